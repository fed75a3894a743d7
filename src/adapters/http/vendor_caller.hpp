// The HttpCaller over net::HttpClient.
//
// Thread rule: the caller: any thread.
#pragma once

#include <memory>
#include <string>

#include "proxypool/base/result.hpp"
#include "proxypool/ports/http_caller.hpp"

namespace proxypool::http {

// An error when the system's certificate authorities cannot be loaded.
Result<std::unique_ptr<ports::HttpCaller>> make_vendor_caller(const std::string& version);

}  // namespace proxypool::http
