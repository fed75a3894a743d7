#include "loadgen/fault.hpp"

#include <array>
#include <utility>

#include "proxypool/base/text.hpp"

namespace proxypool::loadgen {
namespace {

using Kind = Fault::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 11> kNames{{
    {"none", Kind::None},
    {"refuse", Kind::Refuse},
    {"hang", Kind::Hang},
    {"slow", Kind::Slow},
    {"garbage", Kind::Garbage},
    {"close-before-head", Kind::CloseBeforeHead},
    {"reset", Kind::Reset},
    {"reset-on-accept", Kind::ResetOnAccept},
    {"reset-in-head", Kind::ResetInHead},
    {"truncate", Kind::Truncate},
    {"reset-in-body", Kind::ResetInBody},
}};

Error bad_fault(std::string_view text) {
  return Error{
      ErrorCode::InvalidArgument, Origin::Client,
      "'" + std::string(text) + "' is no fault; known are " + std::string(kFaultSpellings)};
}

}  // namespace

Result<Fault> parse_fault(std::string_view text) {
  Fault fault;
  const auto status = parse_number<unsigned>(text);
  if (status && *status >= 200 && *status <= 599) {
    fault.kind = Kind::Status;
    fault.status = *status;
    return fault;
  }
  const auto colon = text.find(':');
  const auto name = text.substr(0, colon);
  const bool has_value = colon != std::string_view::npos;
  const auto value = has_value ? text.substr(colon + 1) : std::string_view{};
  for (const auto& [known, kind] : kNames) {
    if (known != name) continue;
    fault.kind = kind;
    if (kind == Kind::Slow) {
      const auto delay = parse_duration(value);
      if (!delay) return bad_fault(text);
      fault.delay = std::chrono::duration_cast<milliseconds>(*delay);
      return fault;
    }
    if (!has_value) return fault;
    if (!fault.cuts()) return bad_fault(text);
    fault.keep = parse_number<std::uint64_t>(value);
    if (!fault.keep) return bad_fault(text);
    return fault;
  }
  return bad_fault(text);
}

std::string to_text(const Fault& fault) {
  if (fault.kind == Kind::Status) return std::to_string(fault.status);
  std::string out;
  for (const auto& [name, kind] : kNames) {
    if (kind == fault.kind) out = name;
  }
  if (fault.kind == Kind::Slow) out += ":" + format_duration(fault.delay);
  if (fault.keep) out += ":" + std::to_string(*fault.keep);
  return out;
}

Result<FaultRule> parse_fault_rule(std::string_view text) {
  const auto equals = text.find('=');
  const auto which = text.substr(0, equals);
  FaultRule rule;
  if (which != "*") {
    rule.proxy = parse_number<unsigned>(which);
    if (!rule.proxy || equals == std::string_view::npos) {
      return Error{
          ErrorCode::InvalidArgument, Origin::Client,
          "'" + std::string(text) + "' is not PROXY=FAULT, for example 2=refuse or *=hang"};
    }
  }
  if (equals == std::string_view::npos) return bad_fault(text);
  PP_TRY(rule.fault, parse_fault(text.substr(equals + 1)));
  return rule;
}

}  // namespace proxypool::loadgen
