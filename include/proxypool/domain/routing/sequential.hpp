// The cursor of a sequential routing: which upstream is current, and when does it move? (R3, CT-40)
//
// The decision is pure; the caller stores it by compare-and-set against the cursor it decided on.
// `observed` is the fence: the upstream that the caller saw used up. If the cursor has moved on
// since, somebody else has switched already and nothing happens, so that many reports of one
// empty upstream advance the cursor once.
//
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "proxypool/base/id.hpp"
#include "proxypool/domain/routing/policy.hpp"

namespace proxypool::domain {

// One upstream of a routing in configuration order.
struct SequentialStop {
  UpstreamId upstream;
  bool enabled = true;
};

enum class CursorStep : std::uint8_t {
  Switched,  // `to` is the new cursor
  Stay,      // the cursor keeps its place
  Stopped,   // no upstream is left and the routing has to be disabled (exhaustion: stop)
  Lost,      // the fence: the cursor has moved since it was observed
  Refused,   // an operator's target that is not in the routing, or is disabled
};

struct CursorDecision {
  CursorStep step = CursorStep::Stay;
  std::optional<UpstreamId> to;  // with Switched
};

namespace sequential_detail {

inline constexpr std::size_t kNowhere = SIZE_MAX;

inline std::size_t find(std::span<const SequentialStop> stops, const UpstreamId& upstream) {
  for (std::size_t i = 0; i < stops.size(); ++i) {
    if (stops[i].upstream == upstream) return i;
  }
  return kNowhere;
}
inline std::size_t enabled_in(std::span<const SequentialStop> stops, std::size_t from,
                              std::size_t to) {
  for (std::size_t i = from; i < to; ++i) {
    if (stops[i].enabled) return i;
  }
  return kNowhere;
}
// Where the cursor goes from `at`, whatever is at `at` itself; kNowhere at the end of the list.
inline std::size_t after(std::span<const SequentialStop> stops, std::size_t at,
                         Exhaustion exhaustion) {
  const auto next = enabled_in(stops, at + 1, stops.size());
  if (next != kNowhere || exhaustion != Exhaustion::Loop) return next;
  return enabled_in(stops, 0, at);
}

}  // namespace sequential_detail

// Where traffic goes now: the cursor, or the next enabled upstream after a disabled one. A routing
// without a cursor, or with one that is not in its list any more, begins at the start. Nothing:
// no candidate.
inline std::optional<UpstreamId> current_upstream(std::span<const SequentialStop> stops,
                                                  const std::optional<UpstreamId>& cursor,
                                                  Exhaustion exhaustion) {
  using namespace sequential_detail;
  const auto at = cursor ? find(stops, *cursor) : kNowhere;
  auto stop = at == kNowhere ? enabled_in(stops, 0, stops.size()) : at;
  if (stop != kNowhere && !stops[stop].enabled) stop = after(stops, stop, exhaustion);
  if (stop == kNowhere && at != kNowhere && exhaustion == Exhaustion::StayLast) {
    for (std::size_t i = 0; i < at; ++i) {
      if (stops[i].enabled) stop = i;  // the last one that is left
    }
  }
  if (stop == kNowhere) return std::nullopt;
  return stops[stop].upstream;
}

// `observed` was found used up: where does the cursor go?
inline CursorDecision decide_advance(std::span<const SequentialStop> stops,
                                     const std::optional<UpstreamId>& cursor,
                                     const UpstreamId& observed, Exhaustion exhaustion) {
  using namespace sequential_detail;
  const auto current = current_upstream(stops, cursor, exhaustion);
  if (!current || *current != observed) return {CursorStep::Lost, std::nullopt};
  const auto next = after(stops, find(stops, observed), exhaustion);
  if (next != kNowhere) return {CursorStep::Switched, stops[next].upstream};
  if (exhaustion == Exhaustion::Stop) return {CursorStep::Stopped, std::nullopt};
  return {CursorStep::Stay, std::nullopt};
}

// An operator wants `to`, having seen `observed` as current.
inline CursorDecision decide_switch(std::span<const SequentialStop> stops,
                                    const std::optional<UpstreamId>& cursor,
                                    const UpstreamId& observed, const UpstreamId& to,
                                    Exhaustion exhaustion) {
  using namespace sequential_detail;
  const auto current = current_upstream(stops, cursor, exhaustion);
  if (!current || *current != observed) return {CursorStep::Lost, std::nullopt};
  const auto target = find(stops, to);
  if (target == kNowhere || !stops[target].enabled) return {CursorStep::Refused, std::nullopt};
  if (to == *current) return {CursorStep::Stay, std::nullopt};
  return {CursorStep::Switched, to};
}

}  // namespace proxypool::domain
