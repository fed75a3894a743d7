// How long to leave a vendor alone after errors.
//
// What the vendor asks for wins. Otherwise the wait is random between a floor and a ceiling that
// doubles with each error in a row, so that several pools do not come back together. Reasons that
// waiting a second cannot mend start at a minute.
//
// Thread rule: pure functions; chance comes in as Random.
// Limits: our own waits end at `longest`; a vendor's wish is believed up to a day.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "proxypool/base/random.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/upstream/classification.hpp"

namespace proxypool::domain {

struct BackoffPolicy {
  milliseconds first{1'000};
  milliseconds first_for_account{60'000};  // auth, whitelist, plan, account, quota
  milliseconds longest{300'000};
};
inline constexpr milliseconds kVendorWaitMax = std::chrono::hours(24);

constexpr bool needs_a_person(FetchReason reason) noexcept {
  return reason == FetchReason::Auth || reason == FetchReason::Whitelist ||
         reason == FetchReason::Plan || reason == FetchReason::Account ||
         reason == FetchReason::Quota;
}

// `errors_in_a_row` includes the one just seen.
inline milliseconds backoff_wait(const BackoffPolicy& policy, std::uint32_t errors_in_a_row,
                                 FetchReason reason, std::optional<milliseconds> retry_after,
                                 Random& random) noexcept {
  if (retry_after) return std::clamp(*retry_after, milliseconds(0), kVendorWaitMax);
  const milliseconds wished = needs_a_person(reason) ? policy.first_for_account : policy.first;
  const milliseconds floor = std::min(wished, policy.longest);
  milliseconds ceiling = floor;
  for (std::uint32_t i = 0; i < errors_in_a_row && ceiling < policy.longest; ++i) ceiling *= 2;
  ceiling = std::min(ceiling, policy.longest);
  const auto span = static_cast<std::uint64_t>((ceiling - floor).count()) + 1;
  return floor + milliseconds(static_cast<std::int64_t>(random.below(span)));
}

// The state behind it: errors in a row, and when the next call may be made.
struct Backoff {
  std::uint32_t errors = 0;
  StoreTime until{};

  void add(const FetchOutcome& outcome, const BackoffPolicy& policy, StoreTime now,
           Random& random) noexcept {
    if (outcome.kind == FetchClass::Error) {
      ++errors;
    } else {
      errors = 0;
    }
    if (outcome.kind == FetchClass::Error || outcome.retry_after) {
      until = now + backoff_wait(policy, errors, outcome.reason, outcome.retry_after, random);
    }
  }
  [[nodiscard]] constexpr bool waiting(StoreTime now) const noexcept { return now < until; }
};

}  // namespace proxypool::domain
