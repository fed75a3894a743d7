// The session that a request belongs to, as it was named. (R4)
//
// Thread rule: plain value.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "proxypool/base/hash.hpp"
#include "proxypool/domain/client/user_name.hpp"

namespace proxypool::gateway {

class SessionName {
 public:
  SessionName() = default;
  // REQUIRES: is_session_name(name), or empty: no session.
  explicit SessionName(std::string_view name) noexcept
      : size_(static_cast<std::uint8_t>(std::min(name.size(), bytes_.size()))) {
    std::copy_n(name.begin(), size_, bytes_.begin());
  }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::string_view view() const noexcept { return {bytes_.data(), size_}; }
  // For the key of connections that are kept; 0: no session.
  [[nodiscard]] std::uint64_t tag() const noexcept { return empty() ? 0 : hash64(view()) | 1U; }

 private:
  std::array<char, domain::kSessionBytesMax> bytes_{};
  std::uint8_t size_ = 0;
};

}  // namespace proxypool::gateway
