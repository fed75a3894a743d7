#include "adapters/grpc/transport_log.hpp"

#include <grpc/support/log.h>

namespace proxypool::rpc {

void silence_transport_log() {
  gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // namespace proxypool::rpc
