#include "e2e/terminal.hpp"

#include <fcntl.h>
#include <pty.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <vector>

#include "proxypool/base/assert.hpp"

namespace proxypool::support {

Terminal::Terminal(const ChildProcess::Options& options) {
  // env sets the variables, so that nothing but exec remains to be done after the fork.
  std::vector<std::string> words{"env", "-C", options.folder.empty() ? "." : options.folder};
  words.insert(words.end(), options.environment.begin(), options.environment.end());
  words.push_back(options.program);
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = ::forkpty(&screen_, nullptr, nullptr, nullptr);
  PP_ASSERT(pid_ >= 0);
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close_range(3, ~0U, 0);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  PP_ASSERT(::fcntl(screen_, F_SETFL, O_NONBLOCK) == 0);
}

Terminal::~Terminal() {
  if (!code_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(screen_);
}

void Terminal::type(std::string_view keys) const {
  PP_ASSERT(::write(screen_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
}

// An error is the end: the last program on the terminal has closed it.
void Terminal::read_shown() {
  std::array<char, 4096> bytes;
  for (ssize_t n = 0; (n = ::read(screen_, bytes.data(), bytes.size())) > 0;) {
    output_.append(bytes.data(), static_cast<std::size_t>(n));
  }
}

bool Terminal::wait_for(std::string_view text, std::chrono::milliseconds limit) {
  return eventually(
      [&] {
        read_shown();
        return output_.find(text) != std::string::npos;
      },
      limit);
}

std::optional<int> Terminal::wait(std::chrono::milliseconds limit) {
  eventually(
      [&] {
        read_shown();
        int status = 0;
        if (code_ || ::waitpid(pid_, &status, WNOHANG) != pid_) return code_.has_value();
        code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        read_shown();
        return true;
      },
      limit);
  return code_;
}

}  // namespace proxypool::support
