// The policies that configuration names and the dispatch obeys, with their spelling.
//
// Policy names are snake_case, every other enumeration is camelCase (ruling R1).
//
// Thread rule: immutable values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace proxypool::domain {

// Chooses the upstream of a routing.
enum class Strategy : std::uint8_t {
  Sequential,
  RoundRobin,
  WeightedRoundRobin,
  Random,
  LeastConn,
  First,
};

// Chooses the proxy in the upstream.
enum class Balancer : std::uint8_t {
  LeastConn,
  RoundRobin,
  Random,
  TwoRandomChoices,
  LeastTime,
  ConsistentHash,
};

enum class OnUnavailable : std::uint8_t { Reject, Wait, Direct };
enum class Exhaustion : std::uint8_t { Stop, Loop, StayLast };
enum class UseSuspect : std::uint8_t { WhenEmpty, Never };
enum class RequestKind : std::uint8_t { Http, Connect };

// The spellings of an enumeration, indexed by its value.
template <class Enum>
struct Spelling;
template <>
struct Spelling<Strategy> {
  static constexpr std::string_view names[] = {"sequential", "round_robin", "weighted_round_robin",
                                               "random",     "least_conn",  "first"};
};
template <>
struct Spelling<Balancer> {
  static constexpr std::string_view names[] = {
      "least_conn", "round_robin", "random", "two_random_choices", "least_time", "consistent_hash"};
};
template <>
struct Spelling<OnUnavailable> {
  static constexpr std::string_view names[] = {"reject", "wait", "direct"};
};
template <>
struct Spelling<Exhaustion> {
  static constexpr std::string_view names[] = {"stop", "loop", "stayLast"};
};
template <>
struct Spelling<UseSuspect> {
  static constexpr std::string_view names[] = {"whenEmpty", "never"};
};
template <>
struct Spelling<RequestKind> {
  static constexpr std::string_view names[] = {"http", "connect"};
};

template <class Enum>
constexpr std::string_view spell(Enum value) noexcept {
  return Spelling<Enum>::names[static_cast<std::size_t>(value)];
}

// Nothing when no value is spelled so; case counts.
template <class Enum>
constexpr std::optional<Enum> parse_spelling(std::string_view text) noexcept {
  std::size_t index = 0;
  for (const std::string_view name : Spelling<Enum>::names) {
    if (name == text) return static_cast<Enum>(index);
    ++index;
  }
  return std::nullopt;
}

}  // namespace proxypool::domain
