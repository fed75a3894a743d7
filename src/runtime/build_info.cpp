#include "runtime/build_info.hpp"

namespace proxypool::runtime {

const BuildInfo& build_info() {
  static const BuildInfo info{PROXYPOOL_VERSION, PROXYPOOL_COMPILER, PROXYPOOL_BUILD_TYPE};
  return info;
}

}  // namespace proxypool::runtime
