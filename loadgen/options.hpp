// A command line as a table: each option once, with its help, its default and what it sets.
//
// Thread rule: one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxypool/base/result.hpp"
#include "proxypool/base/secret.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::loadgen {

class Options {
 public:
  // Reads a value; the error says what would be right.
  using Setter = std::function<Status(std::string_view)>;

  Options(std::string usage, std::string summary);

  // Options that follow stand under this title in the help.
  void group(std::string title);
  // --name VALUE or --name=VALUE. `shown` is the default as the help shows it; empty: none.
  void value(std::string name, std::string value_name, std::string help, std::string shown,
             Setter set);
  // --name without a value.
  void flag(std::string name, std::string help, bool& target, bool when_given);
  // The one argument without a dash.
  void positional(std::string name, std::string help, Setter set);

  enum class Outcome : std::uint8_t { Run, Help, Version };
  // The arguments behind the sub-command.
  [[nodiscard]] Result<Outcome> parse(std::span<const std::string> arguments) const;
  [[nodiscard]] std::string help() const;

 private:
  struct Entry {
    std::string name;        // with dashes; empty: a group title in `help`
    std::string value_name;  // empty: a flag
    std::string help;
    std::string shown;
    Setter set;
  };
  [[nodiscard]] const Entry* find(std::string_view name) const;
  [[nodiscard]] Error unknown(std::string_view name) const;

  std::string usage_;
  std::string summary_;
  std::vector<Entry> entries_;
  Entry positional_;
};

// Setters for the common types.
Options::Setter text_into(std::string& target);
Options::Setter secret_into(SecretString& target);
Options::Setter number_into(std::uint64_t& target, std::uint64_t min, std::uint64_t max);
Options::Setter number_into(unsigned& target, unsigned min, unsigned max);
Options::Setter port_into(std::uint16_t& target);
Options::Setter duration_into(nanoseconds& target);

}  // namespace proxypool::loadgen
