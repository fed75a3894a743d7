// Events kept in memory, for assertions on what was said.
//
// Thread rule: any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "proxypool/base/assert.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/text.hpp"
#include "proxypool/ports/telemetry.hpp"

namespace proxypool::test {

class RecordingEvents final : public ports::Events {
 public:
  using ports::Events::emit;
  // Asserts that the table knows each field.
  void emit(ports::Event event, std::span<const ports::Field> fields) noexcept override {
    std::string line(ports::row(event).name);
    for (const auto& field : fields) {
      PP_ASSERT(ports::has_field(event, field.key));
      line += " " + std::string(field.key) + "=" + std::visit(Spell{}, field.value);
    }
    lines_.with([&](auto& lines) { lines.emplace_back(event, std::move(line)); });
  }
  [[nodiscard]] bool enabled(ports::Level) const noexcept override { return true; }

  // "routing_switched routing=cn from=a to=b", in the order of emission.
  [[nodiscard]] std::vector<std::string> lines() const {
    return lines_.with([](const auto& lines) {
      std::vector<std::string> out;
      for (const auto& [event, line] : lines) out.push_back(line);
      return out;
    });
  }
  [[nodiscard]] std::size_t count(ports::Event event) const {
    return lines_.with([&](const auto& lines) {
      std::size_t n = 0;
      for (const auto& [seen, line] : lines) n += seen == event ? 1 : 0;
      return n;
    });
  }

 private:
  struct Spell {
    std::string operator()(std::string_view text) const { return std::string(text); }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(nanoseconds value) const { return format_duration(value); }
    template <class Number>
    std::string operator()(Number value) const {
      return std::to_string(value);
    }
  };
  Guarded<std::vector<std::pair<ports::Event, std::string>>> lines_;
};

}  // namespace proxypool::test
