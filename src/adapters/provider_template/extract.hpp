// Reads a vendor's answer by configuration: records out of the body, candidates out of the records.
//
// No clock, no network: bytes in, candidates out. What is wrong with a record is counted and never
// quoted, since any part of it may be a password.
//
// Thread rule: pure functions.
// Limits:      100,000 records (CT-14), 64 levels of JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/provider_config.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/proxy/proxy.hpp"

namespace proxypool::provider_template {

struct Extracted {
  std::uint32_t records = 0;
  std::uint32_t invalid = 0;
  std::string first_invalid;  // where, for a person: "line 3", "record 2"; empty: none is invalid
  std::vector<domain::Candidate> candidates;
};

// Lines of text, one proxy each. Blank lines and lines that begin with # are no records; a byte
// order mark at the start is skipped.
Result<Extracted> extract_lines(std::string_view text, const config::MapConfig& map, WallTime now);

// A JSON document; `records.from` leads to the list (an object there counts by its members).
Result<Extracted> extract_json(std::string_view text, const config::RecordsConfig& records,
                               const config::MapConfig& map, WallTime now);

}  // namespace proxypool::provider_template
