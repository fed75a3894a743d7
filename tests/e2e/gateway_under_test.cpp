// A gateway with one proxy, for the HTTP cases: options in, ports out as one line of JSON, until
// SIGTERM. It stands for the program in the set-ups that the cases ask for.
//
//   --proxy HOST:PORT:USER:PASSWORD  --auth USER:PASSWORD  --allow-cidr CIDR  --idle-ms N
//   --threads N  --proxies N (as many, from that port on)

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "net/socket.hpp"
#include "proxypool/base/text.hpp"
#include "runtime/signals.hpp"
#include "support/gateway_rig.hpp"

namespace {

using namespace proxypool;

int fail(const std::string& what) {
  std::fprintf(stderr, "gateway_under_test: %s\n", what.c_str());
  return 2;
}

bool set(testing::GatewayRig& rig, std::string_view name, const std::string& value) {
  const auto parts = split(value, ':');
  if (name == "--proxy" && parts.size() == 4) {
    rig.add({std::string(parts[0]), *parse_number<std::uint16_t>(parts[1]), std::string(parts[2]),
             std::string(parts[3])});
  } else if (name == "--proxies" && !rig.snapshot.proxies.empty()) {
    const auto first = rig.snapshot.proxies.front();
    for (std::uint16_t i = 1; i < *parse_number<std::uint16_t>(value); ++i) {
      auto next = first;
      next.id = ProxyId{i + 1U};
      next.endpoint.port = static_cast<std::uint16_t>(next.endpoint.port + i);
      rig.snapshot.proxies.push_back(next);
    }
  } else if (name == "--auth" && parts.size() == 2) {
    rig.add_client(std::string(parts[0]), std::string(parts[1]));
  } else if (name == "--allow-cidr") {
    rig.settings.allow_cidrs.push_back(*Cidr::parse(value));
  } else if (name == "--allow-target") {
    rig.snapshot.policy.allow_cidrs.push_back(*Cidr::parse(value));
  } else if (name == "--idle-ms") {
    rig.settings.idle = milliseconds(*parse_number<int>(value));
  } else if (name == "--threads") {
    rig.settings.threads = *parse_number<std::uint32_t>(value);
  } else if (name == "--port") {
    rig.settings.listen.port = *parse_number<std::uint16_t>(value);
  } else {
    return false;
  }
  return true;
}

// Answers every connection with the metrics; a test asks for nothing else.
void serve_metrics(int listener, ports::Metrics& metrics) {
  for (;;) {
    const int fd = ::accept(listener, nullptr, nullptr);
    if (fd < 0) return;
    char request[4096];
    (void)::recv(fd, request, sizeof request, 0);
    const std::string body = metrics.render();
    const std::string answer =
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
        "\r\n\r\n" + body;
    (void)::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
    ::close(fd);
  }
}

}  // namespace

int main(int argc, char** argv) {
  runtime::block_signals();
  runtime::Signals signals([] {});
  testing::GatewayRig rig;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!set(rig, argv[i], argv[i + 1])) return fail("unknown option " + std::string(argv[i]));
  }
  if (const auto started = rig.start(); !started) return fail(started.error().message);
  auto listener = net::listen_tcp({IpAddress::v4(0x7f000001), 0});
  if (!listener) return fail(listener.error().message);
  const auto metrics_port = net::local_port(listener->get());
  // Blocking accepts: the thread has nothing else to do.
  const int blocking = listener->release();
  (void)::fcntl(blocking, F_SETFL, ::fcntl(blocking, F_GETFL) & ~O_NONBLOCK);
  std::thread metrics([&] { serve_metrics(blocking, rig.metrics()); });
  std::printf("{\"proxy\": %d, \"metrics\": %d}\n", rig.port(), metrics_port);
  std::fflush(stdout);
  signals.wait_for_stop();
  ::shutdown(blocking, SHUT_RDWR);
  metrics.join();
  ::close(blocking);
  rig.stop();
  return bugs_counted() == 0 ? 0 : 3;
}
