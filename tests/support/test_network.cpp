// A network for real programs in tests: preloaded, it answers name look-ups from a file and lets
// every connection that would leave this machine end at a port of it. So the programs themselves
// can be asked for any name and any address, and nothing is sent anywhere.
//
// The file is named by PROXYPOOL_TEST_NETWORK and read anew each time. Its lines:
//   name NAME ADDRESS…             what a name means, or with a dot in front every name below it;
//                                  without an address: nothing
//   name NAME ADDRESS… then ADDRESS…   the same, and something else from the second time on
//   slow NAME                      no answer for half a minute
//   dial ADDRESS|* PORT            where a connection ends; without a line it fails
// What was asked for stands in a second file, with ".log" behind its name.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using Words = std::vector<std::string>;

std::string file() {
  const char* name = std::getenv("PROXYPOOL_TEST_NETWORK");
  return name == nullptr ? "" : name;
}

std::vector<Words> lines() {
  std::vector<Words> out;
  std::ifstream in(file());
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    Words& all = out.emplace_back();
    for (std::string word; words >> word;) all.push_back(word);
  }
  return out;
}

void log(const std::string& line) {
  const int fd = ::open((file() + ".log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  const std::string whole = line + "\n";
  if (::write(fd, whole.data(), whole.size()) < 0) ::abort();
  ::close(fd);
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

bool first_time(const std::string& name) {
  static std::mutex lock;
  static std::set<std::string> seen;
  const std::lock_guard held(lock);
  return seen.insert(name).second;
}

// The addresses of a line, of which "then" ends the first ones.
Words meaning(const Words& line) {
  Words now(line.begin() + 2, line.end());
  const auto then = std::find(now.begin(), now.end(), "then");
  if (then == now.end()) return now;
  return first_time(line[1]) ? Words(now.begin(), then) : Words(then + 1, now.end());
}

int answer(const Words& addresses, addrinfo** result) {
  static auto* const real = next<decltype(::getaddrinfo)>("getaddrinfo");
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo** end = result;
  *result = nullptr;
  for (const std::string& address : addresses) {
    if (const int code = real(address.c_str(), nullptr, &hints, end); code != 0) return code;
    while (*end != nullptr) end = &(*end)->ai_next;
  }
  return addresses.empty() ? EAI_NONAME : 0;
}

bool stays_here(const sockaddr* to) {
  if (to->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(to);
    return ntohl(v4->sin_addr.s_addr) >> 24U == 127;
  }
  if (to->sa_family != AF_INET6) return true;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(to)->sin6_addr;
  // Some programs dial IPv4 through sockets of both families.
  const bool mapped = IN6_IS_ADDR_V4MAPPED(&v6) != 0 && v6.s6_addr[12] == 127;
  return mapped || IN6_IS_ADDR_LOOPBACK(&v6) != 0;
}

std::string text_of(const sockaddr* to) {
  char text[INET6_ADDRSTRLEN] = {};
  if (to->sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(to)->sin_addr, text, sizeof text);
  } else {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(to)->sin6_addr, text, sizeof text);
  }
  return text;
}

bool covers(const std::string& name, const std::string& node) {
  return name == node || (name.front() == '.' && node.ends_with(name));
}

std::uint16_t port_of(const std::string& address) {
  std::uint16_t port = 0;
  for (const Words& line : lines()) {
    if (line.size() != 3 || line[0] != "dial") continue;
    const auto number = static_cast<std::uint16_t>(std::stoi(line[2]));
    if (line[1] == address) return number;
    if (line[1] == "*") port = number;
  }
  return port;
}

}  // namespace

extern "C" {

int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** result) {
  static auto* const real = next<decltype(::getaddrinfo)>("getaddrinfo");
  if (file().empty() || node == nullptr) return real(node, service, hints, result);
  for (const Words& line : lines()) {
    if (line.size() < 2 || !covers(line[1], node)) continue;
    if (line[0] == "slow") {
      std::this_thread::sleep_for(std::chrono::seconds(30));
      return EAI_AGAIN;
    }
    if (line[0] != "name") continue;
    log("name " + std::string(node));
    return answer(meaning(line), result);
  }
  return real(node, service, hints, result);
}

int connect(int fd, const sockaddr* to, socklen_t size) {
  static auto* const real = next<decltype(::connect)>("connect");
  if (file().empty() || stays_here(to)) return real(fd, to, size);
  const std::string address = text_of(to);
  const auto asked = to->sa_family == AF_INET
                         ? reinterpret_cast<const sockaddr_in*>(to)->sin_port
                         : reinterpret_cast<const sockaddr_in6*>(to)->sin6_port;
  log("dial " + address + " " + std::to_string(ntohs(asked)));
  const std::uint16_t port = port_of(address);
  if (port == 0) {
    errno = ENETUNREACH;
    return -1;
  }
  if (to->sa_family == AF_INET) {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_port = htons(port);
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return real(fd, reinterpret_cast<const sockaddr*>(&here), sizeof here);
  }
  sockaddr_in6 here{};
  here.sin6_family = AF_INET6;
  here.sin6_port = htons(port);
  ::inet_pton(AF_INET6, "::ffff:127.0.0.1", &here.sin6_addr);
  return real(fd, reinterpret_cast<const sockaddr*>(&here), sizeof here);
}

}  // extern "C"
