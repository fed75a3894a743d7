#include "gateway/transport/body_flow.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace proxypool::gateway {

BodyFlow::Step BodyFlow::take(char* data, std::size_t size) noexcept {
  if (done_) return {State::Done, 0, 0};
  switch (framing_) {
    case net::Framing::Length: {
      const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(size, left_));
      left_ -= now;
      done_ = left_ == 0;
      return {done_ ? State::Done : State::More, now, now};
    }
    case net::Framing::Chunked:
      return take_chunks(data, size);
    default:
      return {State::More, size, size};
  }
}

BodyFlow::Step BodyFlow::take_chunks(char* data, std::size_t size) noexcept {
  Step step;
  while (step.used < size) {
    const std::string_view rest(data + step.used, size - step.used);
    const auto element = decode_ ? decoder_.next(rest) : decoder_.relay(rest);
    // What a refused element brought before its fault has been consumed and is good.
    if (decode_ && !element.payload.empty()) {
      std::memmove(data + step.size, element.payload.data(), element.payload.size());
      step.size += element.payload.size();
    }
    if (!decode_) step.size += element.consumed;
    step.used += element.consumed;
    if (element.state == net::ParseState::Refused) {
      return refuse(step, decoder_.refusal().status);
    }
    if (bytes_max_ != 0 && decoder_.payload_bytes() > bytes_max_) return refuse(step, 413);
    if (element.state == net::ParseState::Done) {
      done_ = true;
      step.state = State::Done;
      return step;
    }
    if (element.consumed == 0 || !decode_) return step;
  }
  return step;
}

BodyFlow::Step BodyFlow::refuse(Step step, int status) noexcept {
  refusal_status_ = static_cast<std::int16_t>(status);
  step.state = State::Refused;
  return step;
}

}  // namespace proxypool::gateway
