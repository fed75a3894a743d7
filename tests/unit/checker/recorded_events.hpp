// Events kept for a test to look at.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "proxypool/base/concurrent.hpp"
#include "proxypool/ports/telemetry.hpp"

namespace proxypool::test {

class RecordedEvents final : public ports::Events {
 public:
  using Events::emit;
  void emit(ports::Event event, std::span<const ports::Field> fields) noexcept override {
    std::string line(ports::row(event).name);
    for (const auto& field : fields) {
      EXPECT_TRUE(ports::has_field(event, field.key)) << line << ": " << field.key;
      line += " " + std::string(field.key);
      if (const auto* text = std::get_if<std::string_view>(&field.value)) {
        line += "=" + std::string(*text);
      }
    }
    lines_.with([&](auto& lines) { lines.push_back(line); });
  }
  [[nodiscard]] bool enabled(ports::Level /*level*/) const noexcept override { return true; }

  [[nodiscard]] std::vector<std::string> lines() const {
    return lines_.with([](const auto& lines) { return lines; });
  }

 private:
  Guarded<std::vector<std::string>> lines_;
};

}  // namespace proxypool::test
