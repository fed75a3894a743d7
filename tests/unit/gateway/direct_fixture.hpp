// A gateway whose one routing goes direct, with a resolver and a network of the test's own: names
// mean what means() says, and every dial is written down before it goes to a port of this machine.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gateway_fixture.hpp"
#include "net/socket.hpp"
#include "proxypool/base/concurrent.hpp"

namespace proxypool::gateway {

class DirectTest : public GatewayTest {
 protected:
  static constexpr auto kUsual = "203.0.113.10";  // what a name means unless the test says more

  DirectTest() {
    domain::SnapshotRouting& routing = rig_.snapshot.routings.front();
    routing.upstreams.clear();
    routing.on_unavailable = domain::OnUnavailable::Direct;
    rig_.look_up = [this](const std::string& name, Deadline) { return look_up(name); };
    rig_.dial = [this](const net::Endpoint& to) { return dial(to); };
  }

  // Where everything that is dialled ends, unless leads_to() says otherwise.
  FakeProxy& origin(FakeProxy::Script script) {
    proxies_.emplace_back(std::move(script));
    origin_ = proxies_.back().port();
    return proxies_.back();
  }
  void means(const std::string& name, const std::vector<std::string>& addresses) {
    world_.with([&](World& world) { world.names[name] = addresses; });
  }
  void leads_to(const std::string& address, std::uint16_t port) {
    world_.with([&](World& world) { world.ports[address] = port; });
  }
  std::vector<std::string> dialled() {
    return world_.with([](World& world) { return std::exchange(world.dialled, {}); });
  }
  std::vector<std::string> looked_up() {
    return world_.with([](World& world) { return std::exchange(world.looked_up, {}); });
  }
  std::string ask(const std::string& request) {
    Peer c = client();
    c.send(request);
    return c.answer();
  }
  static std::string code_of(const std::string& answer) {
    const auto at = answer.find("\"code\":\"");
    if (at == std::string::npos) return answer.substr(0, answer.find("\r\n"));
    return answer.substr(at + 8, answer.find('"', at + 8) - at - 8);
  }
  static std::string get_of(const std::string& authority, const std::string& more = {}) {
    return "GET http://" + authority + "/ HTTP/1.1\r\nHost: " + authority + "\r\n" + more + "\r\n";
  }

 private:
  struct World {
    std::map<std::string, std::vector<std::string>> names;
    std::map<std::string, std::uint16_t> ports;
    std::vector<std::string> dialled;
    std::vector<std::string> looked_up;
  };

  Result<std::vector<IpAddress>> look_up(const std::string& name) {
    return world_.with([&](World& world) -> Result<std::vector<IpAddress>> {
      world.looked_up.push_back(name);
      const auto found = world.names.find(name);
      if (found == world.names.end()) return std::vector{*IpAddress::parse(kUsual)};
      if (found->second.empty()) return Error{ErrorCode::NotFound, Origin::Target, "no such name"};
      std::vector<IpAddress> out;
      for (const auto& text : found->second) out.push_back(*IpAddress::parse(text));
      return out;
    });
  }
  net::Connecting dial(const net::Endpoint& to) {
    const std::uint16_t port = world_.with([&](World& world) {
      world.dialled.push_back(to.str());
      const auto found = world.ports.find(to.address.str());
      return found == world.ports.end() ? origin_.load() : found->second;
    });
    return net::start_connect({IpAddress::v4(0x7f000001), port});
  }

  Guarded<World> world_;
  std::atomic<std::uint16_t> origin_{0};
};

}  // namespace proxypool::gateway
