// Secret<T> holds what must never be printed: it has no formatter and no stream operator, so that a
// log line with a password does not compile. Its memory is overwritten at the end of its life.
//
// Thread rule: one thread at a time; a plain value.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace proxypool {

template <class T>
class Secret;

template <>
class Secret<std::string> {
 public:
  Secret() = default;
  explicit Secret(std::string value) : value_(std::move(value)) {}
  Secret(const Secret&) = default;
  Secret(Secret&& other) noexcept : value_(std::move(other.value_)) { other.wipe(); }
  Secret& operator=(const Secret& other) {
    if (this != &other) {
      wipe();
      value_ = other.value_;
    }
    return *this;
  }
  Secret& operator=(Secret&& other) noexcept {
    if (this != &other) {
      wipe();
      value_ = std::move(other.value_);
      other.wipe();
    }
    return *this;
  }
  ~Secret() { wipe(); }

  // The only way in: the name shows up in a review.
  [[nodiscard]] std::string_view reveal() const noexcept { return value_; }
  [[nodiscard]] bool empty() const noexcept { return value_.empty(); }
  friend bool operator==(const Secret& a, const Secret& b) noexcept {
    return equal_in_constant_time(a.value_, b.value_);
  }

  // Time depends on the lengths alone. The one comparison for everything that is secret.
  static bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept {
    if (a.size() != b.size()) return false;
    unsigned char difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      difference = static_cast<unsigned char>(
          difference | (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i])));
    }
    return difference == 0;
  }

 private:
  void wipe() noexcept {
    // All that the string has room for: a short text that was moved out is still there.
    value_.resize(value_.capacity());
    volatile char* bytes = value_.data();
    for (std::size_t i = 0; i < value_.size(); ++i) bytes[i] = 0;
    value_.clear();
  }

  std::string value_;
};

using SecretString = Secret<std::string>;

}  // namespace proxypool
