// What no single value shows: references, contradictions, dangerous combinations.
//
// Thread rule: one thread.
#pragma once

#include "config/config.hpp"
#include "config/schema/reader.hpp"

namespace proxypool::config {

// Reports to the reader. Also runs after errors, so that everything is reported at once; it stays
// silent about values that already failed.
void validate(const Config& config, schema::Reader& reader);

}  // namespace proxypool::config
