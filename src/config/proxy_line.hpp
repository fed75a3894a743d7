// The spelling of a proxy in inline lists, list files and vendor answers.
//
// The grammar of a list line is the domain's (list_line.hpp); here are the further forms that
// vendors use, and the one place that knows which schemes this version can speak.
//
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "proxypool/base/result.hpp"
#include "proxypool/domain/proxy/proxy.hpp"

namespace proxypool::config {

enum class ProxyForm : std::uint8_t {
  Line,                // every spelling that a list line may have
  HostPort,            // host:port
  HostPortUserPass,    // host:port:user:pass (the password is the rest)
  Url,                 // [scheme://][user[:pass]@]host:port
  UserPassHostPort,    // user:pass:host:port
  HostPortAtUserPass,  // host:port@user:pass
};

// One proxy. The error says what is wrong and never repeats the text, which may hold a password.
Result<domain::Candidate> parse_proxy(std::string_view text, ProxyForm form = ProxyForm::Line);

// An error for a scheme that this version cannot speak.
Status check_scheme(domain::Scheme scheme);

}  // namespace proxypool::config
