#include "config/regex.hpp"

#include <re2/re2.h>

namespace proxypool::config {

std::string complain_about_regex(std::string_view pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(std::int64_t{1} << 20U);
  const RE2 compiled(re2::StringPiece(pattern.data(), pattern.size()), options);
  return compiled.ok() ? std::string() : compiled.error();
}

}  // namespace proxypool::config
