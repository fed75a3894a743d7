// The fixture's own answers as JSON: sightings, records, counters, ports. Only for the .cpp files
// of the fixture.
//
// Thread rule: one thread, that of the fixture.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "loadgen/fixture_state.hpp"
#include "loadgen/journal.hpp"

namespace proxypool::loadgen {

using Json = nlohmann::ordered_json;

Json sighting_json(const Sighting& sighting);
// The answer to GET /records?token=T.
Json records_json(const std::string& token, const Journal::Entry& entry);
// The answer to GET /stats.
Json stats_json(const FixtureState& state);
// The line that tells all ports.
Json ready_json(const FixtureState& state);

}  // namespace proxypool::loadgen
