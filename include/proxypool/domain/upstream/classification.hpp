// What a fetch was: success, empty, only duplicates, or an error with a reason (CT-12).
//
// The distinction decides money and routing: an empty vendor makes sequential routings move on, an
// error only makes us wait. So a changed answer format (records, none of them valid) is an error,
// and so is a used-up quota, unless the configuration says otherwise. Outcomes keep counts and
// reasons, never a body, an address or a credential.
//
// Thread rule: pure functions on plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "proxypool/base/time.hpp"

namespace proxypool::domain {

enum class FetchClass : std::uint8_t { Success, Empty, DuplicateOnly, Error };

constexpr std::string_view to_string(FetchClass c) noexcept {
  constexpr std::string_view kNames[] = {"success", "empty", "duplicate_only", "error"};
  return kNames[static_cast<std::size_t>(c)];
}

enum class FetchReason : std::uint8_t {
  None,
  Timeout,
  Dns,
  Connect,
  Tls,
  Status,    // an HTTP status outside 2xx
  Redirect,  // to another host
  TooLarge,  // CT-14
  Decode,    // compression or character set
  Parse,     // unreadable, or records of which none is valid
  Shape,     // the list is not where it should be
  RateLimited,
  Auth,
  Whitelist,
  Plan,
  Account,
  Quota,
  NoStock,  // goes with Empty
  Vendor,   // the vendor says so, for a reason of its own
  Cancelled,
  Other,
};
inline constexpr std::size_t kFetchReasons = 21;

constexpr std::string_view to_string(FetchReason reason) noexcept {
  constexpr std::string_view kNames[kFetchReasons] = {
      "none",      "timeout", "dns",   "connect",  "tls",          "status",    "redirect",
      "too_large", "decode",  "parse", "shape",    "rate_limited", "auth",      "whitelist",
      "plan",      "account", "quota", "no_stock", "vendor",       "cancelled", "other"};
  return kNames[static_cast<std::size_t>(reason)];
}

// The words that classification rules use for a reason; anything else is the vendor's own.
constexpr FetchReason parse_fetch_reason(std::string_view word) noexcept {
  if (word == "rateLimited") return FetchReason::RateLimited;
  if (word == "noStock") return FetchReason::NoStock;
  for (const FetchReason reason : {FetchReason::Auth, FetchReason::Whitelist, FetchReason::Plan,
                                   FetchReason::Account, FetchReason::Quota}) {
    if (word == to_string(reason)) return reason;
  }
  return FetchReason::Vendor;
}

// The records of one fetch, all pages together.
struct FetchTally {
  std::uint32_t records = 0;
  std::uint32_t invalid = 0;
  std::uint32_t duplicates = 0;          // of valid ones: in the answer, or in the pool already
  std::uint32_t expired_on_arrival = 0;  // valid and new, but past their margin
  std::uint32_t refused_private = 0;     // invalid: an address that this upstream may not supply
  std::uint32_t refused_full = 0;        // valid and new, but over pool.maxSize
  std::uint32_t admitted = 0;

  // What the vendor delivered: counts against maxTotal.
  [[nodiscard]] constexpr std::uint32_t valid() const noexcept {
    return duplicates + expired_on_arrival + refused_full + admitted;
  }
};

struct FetchOutcome {
  FetchClass kind = FetchClass::Error;
  FetchReason reason = FetchReason::None;
  std::optional<milliseconds> retry_after;
  FetchTally tally;
};

enum class OnAllInvalid : std::uint8_t { Error, Empty };

// Classifies an answer that was read and passed every rule. Errors before that point and verdicts
// of rules are FetchOutcomes already.
constexpr FetchOutcome classify_fetch(const FetchTally& tally,
                                      OnAllInvalid on_all_invalid = OnAllInvalid::Error) noexcept {
  FetchOutcome outcome;
  outcome.tally = tally;
  if (tally.valid() > 0) {
    outcome.kind =
        tally.valid() == tally.duplicates ? FetchClass::DuplicateOnly : FetchClass::Success;
  } else if (tally.records == 0 || on_all_invalid == OnAllInvalid::Empty) {
    outcome.kind = FetchClass::Empty;
    outcome.reason = FetchReason::NoStock;
  } else {
    outcome.reason = FetchReason::Parse;
  }
  return outcome;
}

// Counters of one upstream since the start of the process.
struct FetchCounters {
  std::array<std::uint64_t, 4> by_class{};
  std::array<std::uint64_t, kFetchReasons> errors_by_reason{};
  std::uint64_t records = 0;
  std::uint64_t invalid = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t expired_on_arrival = 0;
  std::uint64_t refused_private = 0;
  std::uint64_t refused_full = 0;
  std::uint64_t admitted = 0;

  constexpr void add(const FetchOutcome& outcome) noexcept {
    ++by_class[static_cast<std::size_t>(outcome.kind)];
    if (outcome.kind == FetchClass::Error) {
      ++errors_by_reason[static_cast<std::size_t>(outcome.reason)];
    }
    records += outcome.tally.records;
    invalid += outcome.tally.invalid;
    duplicates += outcome.tally.duplicates;
    expired_on_arrival += outcome.tally.expired_on_arrival;
    refused_private += outcome.tally.refused_private;
    refused_full += outcome.tally.refused_full;
    admitted += outcome.tally.admitted;
  }
  [[nodiscard]] constexpr std::uint64_t of(FetchClass kind) const noexcept {
    return by_class[static_cast<std::size_t>(kind)];
  }
};

// Consecutive empty fetches of one upstream: the fact that sequential routings share (R3).
struct EmptyStreak {
  std::uint32_t length = 0;

  // An error says nothing about the stock and changes nothing.
  constexpr void add(FetchClass kind) noexcept {
    if (kind == FetchClass::Empty) {
      ++length;
    } else if (kind != FetchClass::Error) {
      length = 0;
    }
  }
  [[nodiscard]] constexpr bool depleted(std::uint32_t threshold) const noexcept {
    return length >= threshold;
  }
};

}  // namespace proxypool::domain
