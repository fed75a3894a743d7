// Result<T> holds a value or an Error; Status is a Result without a value.
//
// The interface is that of std::expected, so that a later compiler makes it an alias. Outcomes of
// the domain (no candidate, not enough inventory) are values, not errors.
//
// Thread rule: one thread at a time; a plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "proxypool/base/assert.hpp"

namespace proxypool {

enum class ErrorCode : std::uint8_t {
  InvalidArgument,
  NotFound,
  Conflict,
  Exhausted,
  Unavailable,
  DeadlineExceeded,
  Unauthenticated,
  Forbidden,
  Stale,
  Corrupt,
  Internal,
};

// Whose fault it is; chooses the counter and the HTTP status.
enum class Origin : std::uint8_t { Client, Proxy, Target, Provider, Store, Internal };

constexpr std::string_view to_string(ErrorCode code) noexcept {
  constexpr std::string_view kNames[] = {
      "invalid_argument", "not_found", "conflict", "exhausted", "unavailable", "deadline_exceeded",
      "unauthenticated",  "forbidden", "stale",    "corrupt",   "internal"};
  return kNames[static_cast<std::size_t>(code)];
}

struct Error {
  ErrorCode code = ErrorCode::Internal;
  Origin origin = Origin::Internal;
  std::string message;     // one sentence for a person; never a secret
  bool retryable = false;  // set where it is known, never guessed later

  Error() = default;
  Error(ErrorCode c, Origin o, std::string m, bool r = false)
      : code(c), origin(o), message(std::move(m)), retryable(r) {}
};

// The value of a Status.
struct Unit {
  friend bool operator==(const Unit&, const Unit&) = default;
};

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  // REQUIRES: has_value().
  T& operator*() & noexcept { return checked(); }
  const T& operator*() const& noexcept { return checked(); }
  T&& operator*() && noexcept { return std::move(checked()); }
  T* operator->() noexcept { return &checked(); }
  const T* operator->() const noexcept { return &checked(); }
  T& value() & noexcept { return checked(); }
  const T& value() const& noexcept { return checked(); }
  T&& value() && noexcept { return std::move(checked()); }

  // REQUIRES: !has_value().
  [[nodiscard]] const Error& error() const& noexcept {
    PP_ASSERT(!has_value());
    return *std::get_if<1>(&state_);
  }
  [[nodiscard]] Error&& error() && noexcept {
    PP_ASSERT(!has_value());
    return std::move(*std::get_if<1>(&state_));
  }

  template <class U>
  [[nodiscard]] T value_or(U&& other) const& {
    return has_value() ? checked() : static_cast<T>(std::forward<U>(other));
  }

  // f(value) → Result<U>; an error passes through.
  template <class F>
  auto and_then(F&& f) && -> decltype(f(std::declval<T&&>())) {
    if (!has_value()) return std::move(*this).error();
    return std::forward<F>(f)(std::move(checked()));
  }
  // f(value) → U; an error passes through.
  template <class F>
  auto transform(F&& f) && -> Result<decltype(f(std::declval<T&&>()))> {
    if (!has_value()) return std::move(*this).error();
    return std::forward<F>(f)(std::move(checked()));
  }

 private:
  T& checked() noexcept {
    PP_ASSERT(has_value());
    return *std::get_if<0>(&state_);
  }
  const T& checked() const noexcept {
    PP_ASSERT(has_value());
    return *std::get_if<0>(&state_);
  }

  std::variant<T, Error> state_;
};

using Status = Result<Unit>;
inline Status ok() {
  return Unit{};
}

}  // namespace proxypool

#define PP_CONCAT_INNER(a, b) a##b
#define PP_CONCAT(a, b) PP_CONCAT_INNER(a, b)
#define PP_TRY_IMPL(holder, declaration, expression, leave) \
  auto holder = (expression);                               \
  if (!holder) leave std::move(holder).error();             \
  declaration = *std::move(holder)

// PP_TRY(Lease lease, leases.find(id)); returns the error, or declares the value.
#define PP_TRY(declaration, expression) \
  PP_TRY_IMPL(PP_CONCAT(pp_try_, __COUNTER__), declaration, expression, return )
// The same in a coroutine.
#define PP_CO_TRY(declaration, expression) \
  PP_TRY_IMPL(PP_CONCAT(pp_try_, __COUNTER__), declaration, expression, co_return )
