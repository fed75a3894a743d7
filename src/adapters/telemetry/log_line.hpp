// How an event looks as one line: key=value for people, JSON for machines.
//
//   2026-11-30T03:07:25.123Z INFO  routing_switched routing=cn from=a to=b reason="a is empty"
//   {"ts":"…","level":"info","process":"controller","event":"routing_switched","routing":"cn",…}
//
// Durations are 12.5ms in text and a number of seconds under KEY_s in JSON. Control characters are
// escaped, so that nobody's input can start a line of its own; bytes that are not UTF-8 become
// U+FFFD in JSON and \xNN in text.
//
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "adapters/telemetry/telemetry.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/ports/telemetry.hpp"

namespace proxypool::telemetry {

struct LineHead {
  WallTime time;
  std::string_view process;
  std::uint64_t left_out;  // lines of this event that the rate limit swallowed before this one
};

// The line with its newline.
std::string compose_line(Format format, const LineHead& head, ports::Event event,
                         std::span<const ports::Field> fields);

}  // namespace proxypool::telemetry
