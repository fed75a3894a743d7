#include "gateway/transport/bulk_flows.hpp"

#include <sys/socket.h>

#include <algorithm>

namespace proxypool::gateway {
namespace {

// Sets from how many bytes on the kernel tells of them. It looks at once whether they are there.
bool tell_from(int socket, int bytes) noexcept {
  return ::setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes) == 0;
}

}  // namespace

void BulkFlows::moved(BulkFlow& flow, int socket) noexcept {
  flow.stirred_ = true;
  if (flow.listed_ || flows_.size() == kMax || !tell_from(socket, kBytes)) return;
  flow.listed_ = true;
  flows_.push_back({&flow, socket});
  if (!armed()) arm_after(kTick);
}

void BulkFlows::leave(BulkFlow& flow) noexcept {
  if (flow.listed_) (void)tell_from(take_out(flow), 1);
}

void BulkFlows::forget(BulkFlow& flow) noexcept {
  if (flow.listed_) (void)take_out(flow);
}

int BulkFlows::take_out(BulkFlow& flow) noexcept {
  const auto place =
      std::find_if(flows_.begin(), flows_.end(), [&](const Place& at) { return at.flow == &flow; });
  const int socket = place->socket;
  *place = flows_.back();
  flows_.pop_back();
  flow.listed_ = false;
  return socket;
}

void BulkFlows::on_timer() {
  for (std::size_t i = flows_.size(); i > 0; --i) {
    BulkFlow& flow = *flows_[i - 1].flow;
    if (!flow.stirred_) leave(flow);
    flow.stirred_ = false;
  }
  if (!flows_.empty()) arm_after(kTick);
}

}  // namespace proxypool::gateway
