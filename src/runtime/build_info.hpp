// What was built, and how: for --version and the metric proxypool_build_info.
//
// Thread rule: immutable.
#pragma once

#include <string>

namespace proxypool::runtime {

struct BuildInfo {
  std::string version;   // "0.1.0"
  std::string compiler;  // "GNU 12.2.0"
  std::string type;      // "Release", with the sanitizers if there are any
};

const BuildInfo& build_info();

}  // namespace proxypool::runtime
