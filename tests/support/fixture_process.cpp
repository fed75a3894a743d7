#include "support/fixture_process.hpp"

#include <cstdio>
#include <utility>

#include "proxypool/base/assert.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::support {
namespace {

ChildProcess::Options command(const std::filesystem::path& folder,
                              std::vector<std::string> arguments) {
  std::vector<std::string> all{"fixture", "--ready-file", folder / "ready", "--upstreams-file",
                               folder / "list"};
  for (auto& argument : arguments) all.push_back(std::move(argument));
  return {"proxy-loadgen", std::move(all), {}, {}};
}

}  // namespace

FixtureProcess::FixtureProcess(std::vector<std::string> arguments)
    : process_(command(folder_.path(), std::move(arguments))) {
  const auto ready = folder_.path() / "ready";
  eventually([&] { return std::filesystem::exists(ready) || !process_.running(); });
  if (!std::filesystem::exists(ready)) std::fputs(process_.err().c_str(), stderr);
  PP_ASSERT(std::filesystem::exists(ready));
  ready_ = nlohmann::json::parse(read_file(ready));
}

std::string FixtureProcess::authorization() const {
  if (!ready_.at("auth").get<bool>()) return {};
  const auto account =
      ready_.at("user").get<std::string>() + ":" + ready_.at("password").get<std::string>();
  return "Proxy-Authorization: Basic " + base64_encode(account) + "\r\n";
}

void FixtureProcess::control(std::string_view call) {
  const auto reply = http_post(vendor_port(), "/control/" + std::string(call));
  if (reply.status != 200) std::fprintf(stderr, "%s\n", reply.body.c_str());
  PP_ASSERT(reply.status == 200);
}

void FixtureProcess::set_fault(std::size_t proxy, std::string_view kind) {
  control("fault?proxy=" + std::to_string(proxy) + "&kind=" + std::string(kind));
}

nlohmann::json FixtureProcess::stats() {
  return nlohmann::json::parse(http_get(vendor_port(), "/stats").body);
}

nlohmann::json FixtureProcess::records(std::string_view token) {
  return nlohmann::json::parse(
      http_get(vendor_port(), "/records?token=" + std::string(token)).body);
}

}  // namespace proxypool::support
