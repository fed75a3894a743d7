// The writing half of the Admin API, and the configuration; add_admin adds it.
//
// Thread rule: the routes run on the server's blocking pool, many at once.
#pragma once

#include <cstdint>
#include <string>

#include "adapters/http/apis.hpp"

namespace proxypool::http {

void add_admin_operations(Router& router, const AdminGuards& guards, AdminNeeds needs);

// The ETag of management state with this revision.
std::string entity_tag(std::uint64_t revision);

}  // namespace proxypool::http
