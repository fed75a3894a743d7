// deploy/local/run.sh as a test starts it: on the programs of this build, with ports, state and
// temporary files of its own.
//
// Thread rule: one thread, that of the test.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "support/temp_dir.hpp"

namespace proxypool::support {

inline constexpr std::chrono::seconds kScriptLimit{45};

// A listener on 127.0.0.1 for as long as it lives; bound() tells whether the port was free.
class Listener {
 public:
  explicit Listener(std::uint16_t port);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();
  [[nodiscard]] bool bound() const noexcept { return bound_; }

 private:
  int fd_;
  bool bound_ = false;
};

class RunScript : public testing::Test {
 protected:
  RunScript();
  ~RunScript() override;  // ends what a script that was killed has left running

  [[nodiscard]] ChildProcess::Options script(std::vector<std::string> arguments,
                                             std::string fixture = {}) const;
  [[nodiscard]] std::string port() const { return std::to_string(port_); }
  // The programs that a script has started, by name, as long as they run.
  static std::map<std::string, pid_t> children(pid_t script);
  static bool runs(pid_t process);
  [[nodiscard]] std::filesystem::path write(const std::string& name, const std::string& text) const;
  // Nothing of a run stays behind but the state.
  [[nodiscard]] bool left_behind() const;
  // Pastes every line that the script printed into a shell until it works or time has passed; the
  // lines' names.
  std::set<std::string> paste_all(const ChildProcess& script) const;

  TempDir folder_;
  std::uint16_t port_;  // the first of seven in a row that were free a moment ago
};

}  // namespace proxypool::support
