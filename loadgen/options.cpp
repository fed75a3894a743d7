#include "loadgen/options.hpp"

#include <algorithm>
#include <utility>

#include "config/problem.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::loadgen {
namespace {

constexpr std::size_t kHelpColumn = 30;
constexpr std::size_t kHelpWidth = 96;

Error usage_error(std::string message) {
  return Error{ErrorCode::InvalidArgument, Origin::Client, std::move(message)};
}

// The left column, then the text in lines of bounded width.
void add_entry(std::string& out, std::string left, std::string_view text) {
  left.insert(0, 2, ' ');
  std::string line = left.size() + 1 < kHelpColumn ? left : std::string{};
  if (line.empty()) out += left + "\n";
  line.resize(kHelpColumn, ' ');
  for (const auto word : split(text, ' ')) {
    if (line.size() + word.size() >= kHelpWidth) {
      out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      line.assign(kHelpColumn, ' ');
    }
    line.append(word).append(" ");
  }
  out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

}  // namespace

Options::Options(std::string usage, std::string summary)
    : usage_(std::move(usage)), summary_(std::move(summary)) {}

void Options::group(std::string title) {
  entries_.push_back({{}, {}, std::move(title), {}, {}});
}

void Options::value(std::string name, std::string value_name, std::string help, std::string shown,
                    Setter set) {
  entries_.push_back(
      {std::move(name), std::move(value_name), std::move(help), std::move(shown), std::move(set)});
}

void Options::flag(std::string name, std::string help, bool& target, bool when_given) {
  entries_.push_back({std::move(name), {}, std::move(help), {}, [&target, when_given](auto) {
                        target = when_given;
                        return ok();
                      }});
}

void Options::positional(std::string name, std::string help, Setter set) {
  positional_ = {std::move(name), {}, std::move(help), {}, std::move(set)};
}

const Options::Entry* Options::find(std::string_view name) const {
  const auto at = std::find_if(entries_.begin(), entries_.end(),
                               [&](const Entry& e) { return !e.name.empty() && e.name == name; });
  return at == entries_.end() ? nullptr : &*at;
}

Error Options::unknown(std::string_view name) const {
  std::vector<std::string> names = {"--help", "--version"};
  for (const auto& entry : entries_) {
    if (!entry.name.empty()) names.push_back(entry.name);
  }
  const auto near = config::nearest_name(name, names);
  return usage_error("unknown option " + std::string(name) +
                     (near.empty() ? std::string{} : "; did you mean " + near + "?"));
}

Result<Options::Outcome> Options::parse(std::span<const std::string> arguments) const {
  bool positional_seen = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--help" || argument == "-h") return Outcome::Help;
    if (argument == "--version") return Outcome::Version;
    if (!argument.starts_with('-')) {
      if (!positional_.set || positional_seen) {
        return usage_error("unexpected argument '" + std::string(argument) + "'");
      }
      positional_seen = true;
      PP_TRY([[maybe_unused]] Unit done, positional_.set(argument));
      continue;
    }
    const auto equals = argument.find('=');
    const auto name = argument.substr(0, equals);
    const auto* entry = find(name);
    if (entry == nullptr) return unknown(name);
    const bool has_value = equals != std::string_view::npos;
    std::string_view value = has_value ? argument.substr(equals + 1) : std::string_view{};
    if (entry->value_name.empty() && has_value) {
      return usage_error(std::string(name) + " takes no value");
    }
    if (!entry->value_name.empty() && !has_value) {
      if (++i == arguments.size()) {
        return usage_error(std::string(name) + " needs a value: " + entry->value_name);
      }
      value = arguments[i];
    }
    if (auto status = entry->set(value); !status) {
      return usage_error(std::string(name) + ": " + status.error().message);
    }
  }
  return Outcome::Run;
}

std::string Options::help() const {
  std::string out = summary_ + "\n\nUsage: " + usage_ + "\n";
  if (positional_.set) {
    out += "\n";
    add_entry(out, positional_.name, positional_.help);
  }
  for (const auto& entry : entries_) {
    if (entry.name.empty()) {
      out += "\n" + entry.help + ":\n";
      continue;
    }
    const std::string left = entry.name + (entry.value_name.empty() ? "" : " " + entry.value_name);
    const std::string shown = entry.shown.empty() ? "" : " (default " + entry.shown + ")";
    add_entry(out, left, entry.help + shown);
  }
  out += "\nOther:\n";
  add_entry(out, "--help", "prints this");
  add_entry(out, "--version", "prints the version");
  return out;
}

Options::Setter text_into(std::string& target) {
  return [&target](std::string_view text) {
    target = text;
    return ok();
  };
}

Options::Setter secret_into(SecretString& target) {
  return [&target](std::string_view text) {
    target = SecretString{std::string(text)};
    return ok();
  };
}

Options::Setter number_into(std::uint64_t& target, std::uint64_t min, std::uint64_t max) {
  return [&target, min, max](std::string_view text) -> Status {
    const auto number = parse_number<std::uint64_t>(text);
    if (!number || *number < min || *number > max) {
      return usage_error("'" + std::string(text) + "' is not a whole number from " +
                         std::to_string(min) + " to " + std::to_string(max));
    }
    target = *number;
    return ok();
  };
}

Options::Setter number_into(unsigned& target, unsigned min, unsigned max) {
  return [&target, min, max](std::string_view text) -> Status {
    std::uint64_t wide = 0;
    PP_TRY([[maybe_unused]] Unit done, number_into(wide, min, max)(text));
    target = static_cast<unsigned>(wide);
    return ok();
  };
}

Options::Setter port_into(std::uint16_t& target) {
  return [&target](std::string_view text) -> Status {
    std::uint64_t wide = 0;
    PP_TRY([[maybe_unused]] Unit done, number_into(wide, 0, 65'535)(text));
    target = static_cast<std::uint16_t>(wide);
    return ok();
  };
}

Options::Setter duration_into(nanoseconds& target) {
  return [&target](std::string_view text) -> Status {
    const auto duration = parse_duration(text);
    if (!duration || duration->count() == 0) {
      return usage_error("'" + std::string(text) +
                         "' is not a duration; write for example 250ms, 10s, 5m or 2h");
    }
    target = *duration;
    return ok();
  };
}

}  // namespace proxypool::loadgen
