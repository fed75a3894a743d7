// Pieces that the checks of whole configurations share.
//
// Thread rule: one thread.
#pragma once

#include <string>
#include <string_view>

#include "config/config.hpp"
#include "config/schema/reader.hpp"

namespace proxypool::config {

inline std::string at(std::string_view list, std::size_t index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

// Reports `low` when it is greater than `high` and both were readable.
template <class T>
void demand_order(schema::Reader& reader, const std::string& low_path, const T& low,
                  const std::string& high_path, const T& high) {
  if (!(high < low) || reader.failed(low_path) || reader.failed(high_path)) return;
  reader.error_at(reader.given(low_path) ? low_path : high_path,
                  low_path.substr(low_path.rfind('.') + 1) + " must not be greater than " +
                      high_path.substr(high_path.rfind('.') + 1));
}

// Values of one upstream that contradict each other, or its provider's type.
void check_upstreams(const Config& config, schema::Reader& reader);

}  // namespace proxypool::config
