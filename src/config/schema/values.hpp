// The kinds of values in match fields and target rules.
//
// Thread rule: pure functions that make immutable values.
#pragma once

#include <string>

#include "config/schema/section.hpp"

namespace proxypool::config::schema {

Type<std::string> host_pattern();  // canonical host, or *.suffix
Type<std::string> host_regex();
Type<std::string> method();
Type<std::string> field_name();  // of a request, none that HTTP itself uses; or empty
Type<std::string> path_prefix();

}  // namespace proxypool::config::schema
