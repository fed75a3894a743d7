// The spelling of a proxy in text: inline lists, list files, vendor answers.
//
// One grammar in one place. Hosts come out canonical: addresses in their shortest spelling, names
// in lower case without a final dot. A host that looks like an IPv4 address but is none in four
// decimal parts is refused.
//
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "proxypool/base/result.hpp"
#include "proxypool/domain/proxy/proxy.hpp"

namespace proxypool::config {

enum class ProxyForm : std::uint8_t {
  Any,                 // Url when it holds "://" or '@', else HostPort or HostPortUserPass
  HostPort,            // host:port
  HostPortUserPass,    // host:port:user:pass (the password is the rest)
  Url,                 // [scheme://][user[:pass]@]host:port, percent-decoded
  UserPassHostPort,    // user:pass:host:port
  HostPortAtUserPass,  // host:port@user:pass
};

// One proxy. The error says what is wrong and never repeats the text, which may hold a password.
// Only schemes that this version can use are accepted.
Result<domain::Candidate> parse_proxy(std::string_view text, ProxyForm form = ProxyForm::Any);

}  // namespace proxypool::config
