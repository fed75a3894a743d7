// Extraction: exclusive, final hand-out of proxies. Command and result as values.
//
// Thread rule: immutable values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxypool/base/id.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/proxy/proxy.hpp"

namespace proxypool::domain {

enum class Fulfillment : std::uint8_t { Partial, AllOrNothing };

// AND between fields, OR inside one; an empty list demands nothing.
struct ExtractionFilters {
  std::vector<Scheme> protocols;
  std::vector<std::string> countries;  // upper case
  std::vector<std::string> regions;
  std::vector<std::string> cities;
  std::vector<std::string> carriers;
  std::vector<UpstreamId> upstreams;
  Tags tags;
  milliseconds min_remaining_ttl{0};
  std::optional<milliseconds> max_health_check_age;
};

// What one upstream allows: extraction.extractable, extraction.reserve, reserveForGateway.
struct ExtractionPolicy {
  UpstreamId upstream;
  bool extractable = true;
  std::uint32_t reserve_for_gateway = 0;
};

struct ExtractionCommand {
  std::uint32_t count = 1;
  Fulfillment fulfillment = Fulfillment::Partial;
  ExtractionFilters filters;
  ClientName client;
  std::string idempotency_key;  // empty: none
  std::string request_digest;   // of the body; compared when a key repeats
  milliseconds idempotency_ttl{600'000};
  std::vector<ExtractionPolicy> policies;  // upstreams that are not listed are not extractable
};

struct ExtractedProxy {
  Proxy proxy;
  Credential credential;
};

enum class ExtractionOutcome : std::uint8_t {
  Done,          // proxies may be fewer than asked for (partial)
  Insufficient,  // allOrNothing: nothing changed; `available` says how many would do
  Replayed,      // the first answer of the same idempotency key
  Mismatch,      // the key was used with another body
  InProgress,    // the same key is being served
  NotYet,        // a young generation: exclusivity cannot be promised yet (C18)
};

struct ExtractionResult {
  ExtractionOutcome outcome = ExtractionOutcome::Done;
  std::uint32_t available = 0;
  StoreTime now;  // the store's clock at the moment of the hand-out
  bool scan_limited = false;
  std::vector<ExtractedProxy> proxies;
};

}  // namespace proxypool::domain
