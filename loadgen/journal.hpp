// What the fixture servers saw, by the random token in a request: the proof of which proxy served
// it and of what arrived at the origin.
//
// Thread rule: one thread at a time.
// Limits:      kTokensMax tokens, the oldest forgotten first; kRecordsPerToken each, later ones are
//              only counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "loadgen/http1.hpp"

namespace proxypool::loadgen {

// One request as one server saw it.
struct Sighting {
  std::string place;              // "proxy" or "origin"
  std::optional<unsigned> proxy;  // at the origin: through which proxy it came
  std::string method;
  std::string target;
  std::vector<Field> fields;
  std::string peer;
  std::int64_t at_ms = 0;  // Unix time
  std::uint64_t body_bytes = 0;
  std::string body_sha256;
};

class Journal {
 public:
  static constexpr std::size_t kTokensMax = 10'000;
  static constexpr std::size_t kRecordsPerToken = 64;

  struct Entry {
    std::vector<Sighting> sightings;
    std::uint64_t forgotten = 0;
  };

  void remember(const std::string& token, Sighting sighting);
  // Null: never seen, or forgotten.
  [[nodiscard]] const Entry* find(const std::string& token) const;

 private:
  std::unordered_map<std::string, Entry> entries_;
  std::deque<std::string> order_;
};

// The token of a request: the header X-Token, else `token` in the query, else the path segment
// behind /t/. At most 128 of [A-Za-z0-9._~-].
std::optional<std::string> token_of(std::string_view target, const Fields& fields);

}  // namespace proxypool::loadgen
