// Starts the parts of a process in order and ends them in the reverse order, always the same way.
//
// Start:    each member's start(), in the order of add(). A failure ends what already stands.
// Shutdown: 1. stop_intake of all: nothing new comes in, readiness is already false
//           2. drain of all, until one common deadline: what is going on may finish
//           3. stop of all: cancel, join
// Each of the stages walks the members in reverse. Every call is reported with its duration.
//
// Thread rule: one thread at a time (the owner: main).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::runtime {

enum class Stage : std::uint8_t { Start, StopIntake, Drain, Stop };

constexpr std::string_view to_string(Stage stage) noexcept {
  constexpr std::string_view kNames[] = {"start", "stop_intake", "drain", "stop"};
  return kNames[static_cast<std::size_t>(stage)];
}

// What is not given is not called.
struct Member {
  std::string name;
  std::function<Status()> start;
  std::function<void()> stop_intake;
  std::function<bool(Deadline)> drain;  // whether nothing was left when it returned
  std::function<void()> stop;
};

struct StageReport {
  Stage stage;
  std::string_view member;
  nanoseconds took;
  bool complete;           // false: start failed, or drain ended at the deadline
  std::string_view error;  // of a failed start
};

class Group {
 public:
  using Report = std::function<void(const StageReport&)>;

  Group(const Clock& clock, Report report);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  // Stops what was started and not yet shut down, without draining.
  ~Group();

  // REQUIRES: not started yet.
  void add(Member member);

  // The error of the first member that failed; those before it have been stopped again.
  [[nodiscard]] Status start();

  // Whether every drain was complete. A second call does nothing.
  bool shutdown(Deadline drain_until);

 private:
  template <class Call>
  void reverse(Stage stage, Call call);

  const Clock& clock_;
  const Report report_;
  std::vector<Member> members_;
  std::size_t started_ = 0;
};

}  // namespace proxypool::runtime
