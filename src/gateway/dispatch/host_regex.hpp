// Host patterns by RE2, all of a configuration in one set.
#pragma once

#include <memory>
#include <span>

#include "proxypool/base/result.hpp"
#include "proxypool/domain/routing/host_regex.hpp"

namespace proxypool::gateway {

// Patterns match the whole host and ignore case. A wrong pattern is InvalidArgument with what RE2
// says about it. Satisfies domain::HostRegexCompiler.
Result<std::unique_ptr<domain::HostRegexSet>> compile_host_regexes(
    std::span<const domain::HostRegex> patterns);

}  // namespace proxypool::gateway
