// A real program under test: started with arguments and environment, its output in files, ended by
// its handle.
//
// The child dies with the thread that started it, even when the test program is killed.
//
// Thread rule: one thread, that of the test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/eventually.hpp"
#include "support/temp_dir.hpp"

namespace proxypool::support {

class ChildProcess {
 public:
  struct Options {
    std::string program;  // a name without "/" is a program of this build, or one on the PATH
    std::vector<std::string> arguments;
    std::vector<std::string> environment;  // "NAME=value", beside what the test has
    std::filesystem::path folder;          // to run in; empty: that of the test
    int descriptor_3 = -1;                 // of the test, becomes descriptor 3 of the child
  };

  explicit ChildProcess(Options options);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();  // kills it if it still runs

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] bool running();
  void signal(int number) const;
  // SIGTERM, then its exit code; nothing when it did not end in time.
  std::optional<int> stop(std::chrono::milliseconds limit = kPatience);
  // kill -9, and waits.
  void kill();
  // Its exit code, 128 + number when a signal ended it; nothing when it still runs.
  std::optional<int> wait(std::chrono::milliseconds limit = kPatience);

  // What it has written so far.
  [[nodiscard]] std::string out() const;
  [[nodiscard]] std::string err() const;
  // The first whole line on standard output or standard error that holds `text`; nothing when it
  // did not come in time or the program ended without it.
  std::optional<std::string> wait_for_line(std::string_view text,
                                           std::chrono::milliseconds limit = kPatience);

 private:
  bool reap(bool block);

  TempDir output_;
  pid_t pid_ = -1;
  int pid_fd_ = -1;
  std::optional<int> code_;
};

// Runs a program to its end.
struct Finished {
  std::optional<int> code;  // nothing: it had to be killed
  std::string out;
  std::string err;
};
Finished run(ChildProcess::Options options, std::chrono::milliseconds limit = kPatience);

// The path of a program of this build.
std::string program_path(std::string_view name);
std::string read_file(const std::filesystem::path& path);

}  // namespace proxypool::support
