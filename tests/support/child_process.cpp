#include "support/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <utility>

#include "proxypool/base/assert.hpp"

namespace proxypool::support {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> merged_environment(const std::vector<std::string>& own) {
  std::vector<std::string> out = own;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto name = text.substr(0, text.find('=') + 1);
    bool replaced = false;
    for (const auto& given : own) replaced = replaced || given.starts_with(name);
    if (!replaced) out.emplace_back(text);
  }
  return out;
}

int open_output(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  PP_ASSERT(fd >= 0);
  return fd;
}

std::optional<std::string> line_with(const std::string& output, std::string_view text) {
  const auto at = output.find(text);
  if (at == std::string::npos) return std::nullopt;
  const auto end = output.find('\n', at);
  if (end == std::string::npos) return std::nullopt;
  const auto before = output.rfind('\n', at);
  const auto begin = before == std::string::npos ? 0 : before + 1;
  return output.substr(begin, end - begin);
}

}  // namespace

std::string program_path(std::string_view name) {
  return std::string(PROXYPOOL_BIN_DIR) + "/" + std::string(name);
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;  // a copy by blocks; by characters 64 MiB take seconds in a debug build
  out << in.rdbuf();
  return std::move(out).str();
}

ChildProcess::ChildProcess(Options options) {
  if (options.program.find('/') == std::string::npos &&
      std::filesystem::exists(program_path(options.program))) {
    options.program = program_path(options.program);
  }
  std::vector<std::string> words{options.program};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  auto environment = merged_environment(options.environment);
  auto argv = pointers(words);
  auto envp = pointers(environment);
  const int out = open_output(output_.path() / "out");
  const int err = open_output(output_.path() / "err");
  const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  PP_ASSERT(pid_ >= 0);
  if (pid_ == 0) {  // only async-signal-safe calls from here to exec
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    ::dup2(in, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    const bool passes = options.descriptor_3 >= 0;
    if (passes) ::dup2(options.descriptor_3, 3);
    ::close_range(passes ? 4 : 3, ~0U, 0);
    if (!options.folder.empty() && ::chdir(options.folder.c_str()) != 0) ::_exit(127);
    ::execvpe(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  for (const int fd : {in, out, err}) ::close(fd);
  pid_fd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  PP_ASSERT(pid_fd_ >= 0);
}

ChildProcess::~ChildProcess() {
  kill();
  ::close(pid_fd_);
  // What a sanitizer has found in it is nothing that a test may overlook.
  const std::string said = err();
  for (const char* report : {"ERROR: AddressSanitizer", "ERROR: LeakSanitizer",
                             "WARNING: ThreadSanitizer", ": runtime error: "}) {
    if (said.find(report) == std::string::npos) continue;
    std::cerr << said << "\nthe program under test said this, so this test ends here\n";
    std::abort();
  }
}

bool ChildProcess::reap(bool block) {
  if (code_) return true;
  int status = 0;
  if (::waitpid(pid_, &status, block ? 0 : WNOHANG) != pid_) return false;
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

bool ChildProcess::running() {
  return !reap(false);
}

void ChildProcess::signal(int number) const {
  if (!code_) ::kill(pid_, number);
}

void ChildProcess::kill() {
  signal(SIGKILL);
  reap(true);
}

std::optional<int> ChildProcess::wait(std::chrono::milliseconds limit) {
  pollfd ended{pid_fd_, POLLIN, 0};
  if (!code_) ::poll(&ended, 1, static_cast<int>(limit.count()));
  reap(false);
  return code_;
}

std::optional<int> ChildProcess::stop(std::chrono::milliseconds limit) {
  signal(SIGTERM);
  return wait(limit);
}

std::string ChildProcess::out() const {
  return read_file(output_.path() / "out");
}
std::string ChildProcess::err() const {
  return read_file(output_.path() / "err");
}

std::optional<std::string> ChildProcess::wait_for_line(std::string_view text,
                                                       std::chrono::milliseconds limit) {
  std::optional<std::string> line;
  eventually(
      [&] {
        const bool last_chance = !running();
        line = line_with(out(), text);
        if (!line) line = line_with(err(), text);
        return line || last_chance;
      },
      limit);
  return line;
}

Finished run(ChildProcess::Options options, std::chrono::milliseconds limit) {
  ChildProcess child(std::move(options));
  Finished finished;
  finished.code = child.wait(limit);
  child.kill();
  finished.out = child.out();
  finished.err = child.err();
  return finished;
}

}  // namespace proxypool::support
