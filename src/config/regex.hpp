// Does a regular expression compile? The library that matches it stays behind this line.
//
// Thread rule: pure function.
#pragma once

#include <string>
#include <string_view>

namespace proxypool::config {

// What is wrong with the expression (RE2 syntax, bounded size); empty: nothing.
std::string complain_about_regex(std::string_view pattern);

}  // namespace proxypool::config
