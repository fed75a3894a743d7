#include "e2e/run_script.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>
#include <utility>

namespace proxypool::support {
namespace {

// Below the ports that the system hands out itself.
std::uint16_t free_port_range() {
  for (int attempt = 0;; ++attempt) {
    const auto base =
        static_cast<std::uint16_t>(12'000 + (::getpid() * 8 + attempt * 808) % 20'000);
    bool all = true;
    for (std::uint16_t port = base; port < base + 7; ++port) all = all && Listener(port).bound();
    if (all) return base;
  }
}

}  // namespace

Listener::Listener(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bound_ = ::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
           ::listen(fd_, 1) == 0;
}

Listener::~Listener() {
  ::close(fd_);
}

RunScript::RunScript() : port_(free_port_range()) {}

// What belongs to this test names its folder on the command line.
RunScript::~RunScript() {
  const std::string folder = folder_.path().string() + "/";
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (read_file(entry.path() / "cmdline").find(folder) == std::string::npos) continue;
    const pid_t process = std::stoi(name);
    if (process != ::getpid()) ::kill(process, SIGKILL);
  }
}

ChildProcess::Options RunScript::script(std::vector<std::string> arguments,
                                        std::string fixture) const {
  arguments.insert(arguments.begin(), "--skip-build");
  ChildProcess::Options options;
  options.program = std::string(PROXYPOOL_SOURCE_DIR) + "/deploy/local/run.sh";
  options.arguments = std::move(arguments);
  options.environment = {"PROXY_POOL_BIN=" + std::string(PROXYPOOL_BIN_DIR),
                         "PROXY_POOL_LOCAL_DIR=" + (folder_.path() / "state").string(),
                         "TMPDIR=" + folder_.path().string(), "PROXY_POOL_FIXTURE=" + fixture};
  options.folder = folder_.path();
  return options;
}

std::map<std::string, pid_t> RunScript::children(pid_t script) {
  std::map<std::string, pid_t> out;
  const std::string id = std::to_string(script);
  std::ifstream list("/proc/" + id + "/task/" + id + "/children");
  for (pid_t child = 0; list >> child;) {
    std::ifstream command("/proc/" + std::to_string(child) + "/comm");
    std::string name;
    if (std::getline(command, name) && name.starts_with("proxy-")) out[name] = child;
  }
  return out;
}

bool RunScript::runs(pid_t process) {
  return ::kill(process, 0) == 0;
}

std::filesystem::path RunScript::write(const std::string& name, const std::string& text) const {
  std::ofstream(folder_.path() / name) << text;
  return folder_.path() / name;
}

bool RunScript::left_behind() const {
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    if (entry.path().filename().string().starts_with("proxypool-run.")) return true;
  }
  return false;
}

std::set<std::string> RunScript::paste_all(const ChildProcess& script) const {
  std::istringstream lines(script.out());
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find(" curl ");
    if (!line.starts_with("  ") || at == std::string::npos) continue;
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    std::string command = line.substr(at + 1);
    command.insert(5, "--fail-with-body ");
    const bool hands_out = name == "extract" || name == "lines";
    Finished ended;
    // The reserve for extractions takes a moment to fill up again.
    const bool worked = eventually(
        [&] {
          ended = run({"bash", {"-c", command}, {}, folder_.path()}, kScriptLimit);
          return ended.code == 0 && (name == "ready" || !ended.out.empty()) &&
                 (!hands_out || ended.out.find("http://") != std::string::npos ||
                  ended.out.find("\"returned\":1") != std::string::npos);
        },
        hands_out ? std::chrono::milliseconds(10'000) : std::chrono::milliseconds(1));
    EXPECT_TRUE(worked) << line << '\n' << ended.out << ended.err;
    names.insert(name);
  }
  return names;
}

}  // namespace proxypool::support
