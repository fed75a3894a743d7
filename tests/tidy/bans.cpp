// Names that have one home, and what to use elsewhere. Comments and literals are not looked at.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tidy/tidy.hpp"

namespace proxypool::tidy {
namespace {

struct Ban {
  std::string_view name;  // not preceded by a letter, digit or "_"
  std::string_view instead;
  std::vector<std::string_view> homes;  // prefixes of paths
  bool at_margin = false;               // only where a line begins with it
};

const std::vector<Ban>& bans() {
  static const std::vector<std::string_view> clock_homes{"src/runtime/", "loadgen/", "tests/"};
  static const std::string_view use_clock = "a `now` argument or the Clock";
  static const std::string_view use_step = "a step that says when it is due";
  static const std::string_view use_random = "a Random& argument";
  static const std::string_view use_guarded = "Guarded or BoundedQueue of base/concurrent.hpp";
  static const std::vector<std::string_view> lock_homes{"include/proxypool/base/concurrent.hpp",
                                                        "tests/"};
  static const std::string_view use_events = "Events::emit";
  static const std::vector<std::string_view> print_homes{"include/proxypool/base/assert.hpp",
                                                         "src/config/docs_main.cpp", "cmd/",
                                                         "loadgen/", "tests/"};
  static const std::vector<Ban> table{
      {"steady_clock::now(", use_clock, clock_homes},
      {"system_clock::now(", use_clock, clock_homes},
      {"high_resolution_clock", use_clock, {}},
      {"clock_gettime(", use_clock, clock_homes},
      {"gettimeofday(", use_clock, clock_homes},
      {"time(nullptr)", use_clock, clock_homes},
      {"boot_now(", use_clock, {"src/runtime/", "src/net/", "loadgen/", "cmd/", "tests/"}},

      {"sleep_for(", use_step, clock_homes},
      {"sleep_until(", use_step, clock_homes},
      {"usleep(", use_step, {}},
      {"nanosleep(", use_step, {}},
      {"sleep(", use_step, {}},

      {"random_device", use_random, {"tests/"}},
      {"mt19937", use_random, {"tests/"}},
      {"rand(", use_random, {}},
      {"srand(", use_random, {}},
      {"getrandom(", use_random, {"src/runtime/"}},

      {"asio::detached", "runtime::spawn, which does not lose exceptions", {"src/runtime/"}},
      {"co_spawn(", "runtime::spawn", {"src/runtime/"}},

      {"catch (...)",
       "the exception's type; exceptions end in an adapter or in main",
       {"src/adapters/", "cmd/", "tests/"}},
      {"throw", "Result", {"tests/"}},
      {"std::regex", "re2, or text.hpp", {"tests/"}},
      {"std::atomic<std::shared_ptr", "SnapshotCell", {}},
      {"std::mutex", use_guarded, lock_homes},
      {"std::shared_mutex", use_guarded, lock_homes},
      {"std::condition_variable", use_guarded, lock_homes},
      {"volatile", "std::atomic", {"include/proxypool/base/secret.hpp", "tests/"}},
      {"using namespace", "the names one by one", {"tests/"}, true},

      {"std::cout", use_events, print_homes},
      {"std::cerr", use_events, print_homes},
      {"printf(", use_events, print_homes},
      {"fprintf(", use_events, print_homes},
  };
  return table;
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool names(std::string_view line, std::string_view name) {
  for (auto at = line.find(name); at != std::string_view::npos; at = line.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool starts = at == 0 || !is_word(line[at - 1]);
    const bool ends = !is_word(name.back()) || end == line.size() || !is_word(line[end]);
    if (starts && ends) return true;
  }
  return false;
}

}  // namespace

Problems check_bans(std::string_view path, std::string_view text) {
  if (!is_cpp(path)) return {};
  const std::string code = code_only(text);
  const auto lines = lines_of(code);
  Problems problems;
  for (const Ban& ban : bans()) {
    const bool at_home = std::any_of(ban.homes.begin(), ban.homes.end(),
                                     [&](std::string_view home) { return path.starts_with(home); });
    if (at_home) continue;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (!names(lines[i], ban.name) || (ban.at_margin && !lines[i].starts_with(ban.name))) {
        continue;
      }
      problems.push_back(
          {std::string(path), i + 1, "ban",
           "`" + std::string(ban.name) + "` is not for here; use " + std::string(ban.instead)});
    }
  }
  return problems;
}

}  // namespace proxypool::tidy
