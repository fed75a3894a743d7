// A program in the foreground of a terminal of its own, as a person sees it: what is typed reaches
// it as from a keyboard, so that Ctrl-C ("\x03") signals it and everything that it has started.
//
// Thread rule: one thread, that of the test.
// Limits:      what the program leaves running outlives it; the test looks for that itself.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "support/child_process.hpp"

namespace proxypool::support {

class Terminal {
 public:
  explicit Terminal(const ChildProcess::Options& options);
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();  // kills the program if it still runs

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  void type(std::string_view keys) const;
  // What has been shown so far.
  [[nodiscard]] const std::string& output() const noexcept { return output_; }
  bool wait_for(std::string_view text, std::chrono::milliseconds limit = kPatience);
  // Its exit code, 128 + number when a signal ended it; nothing when it still runs.
  std::optional<int> wait(std::chrono::milliseconds limit = kPatience);

 private:
  void read_shown();

  int screen_ = -1;
  pid_t pid_ = -1;
  std::string output_;
  std::optional<int> code_;
};

}  // namespace proxypool::support
