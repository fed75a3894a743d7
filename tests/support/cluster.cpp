#include "support/cluster.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "proxypool/base/assert.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::support {
namespace {

std::string loopback(std::uint16_t port) {
  return "127.0.0.1:" + std::to_string(port);
}

std::string indented(std::string_view lines, std::size_t depth) {
  std::string out;
  for (const auto line : split(lines, '\n')) {
    if (!line.empty()) out += std::string(depth, ' ') + std::string(line) + "\n";
  }
  return out;
}

std::vector<std::string> fixture_arguments(const ClusterOptions& options) {
  std::vector<std::string> out{"--proxies", std::to_string(options.proxies), "--ttl",
                               std::to_string(options.ttl.count()) + "s"};
  out.insert(out.end(), options.fixture.begin(), options.fixture.end());
  return out;
}

std::string upstream_text(const ClusterOptions& options, std::uint16_t vendor_port) {
  const std::string all = std::to_string(options.proxies);
  const std::string slots = std::to_string(options.proxies * options.concurrency);
  std::string out =
      "upstreams:\n"
      "  - id: fixture\n"
      "    provider:\n"
      "      type: http\n"
      "      request: {url: 'http://" +
      loopback(vendor_port) +
      "/json/array?count={{ batch }}'}\n"
      "      response: {format: json}\n"
      "      records: {from: 'body[*]'}\n"
      "      map:\n"
      "        {host: item.host, port: item.port, username: item.username,\n"
      "         password: item.password, country: item.country, region: item.region,\n"
      "         city: item.city, carrier: item.carrier,\n"
      "         expires: {after: item.ttl, unit: s}" +
      (options.map.empty() ? "" : ", " + options.map) +
      "}\n"
      "    allowPrivateAddresses: true\n"
      "    extraction: {reserve: " +
      std::to_string(options.reserve) + "}\n";
  out += indented(options.upstream, 4);
  out += "    fetch:\n      estimatedIPsPerCall: " + all + "\n" + indented(options.fetch, 6);
  out += "    pool:\n      maxConcurrency: " + std::to_string(options.concurrency) + "\n";
  if (options.pool.find("target:") == std::string::npos) {
    out += "      minimum: " + slots + "\n      target: " + slots + "\n";
  }
  return out + indented(options.pool, 6);
}

}  // namespace

double metric_sum(std::string_view text, std::string_view series) {
  double sum = 0;
  for (const auto line : split(text, '\n')) {
    if (!line.starts_with(series)) continue;
    const auto rest = line.substr(series.size());
    if (!rest.starts_with('{') && !rest.starts_with(' ') && !rest.starts_with(',')) continue;
    sum += std::strtod(std::string(line.substr(line.rfind(' ') + 1)).c_str(), nullptr);
  }
  return sum;
}

Cluster::Cluster(ClusterOptions options)
    : options_(std::move(options)), fixture_(fixture_arguments(options_)) {
  for (unsigned i = 0; i < options_.gateways; ++i) {
    ports_.push_back(std::make_unique<GatewayPorts>());
    std::ofstream(folder() / ("gateway-" + std::to_string(i) + ".yaml")) << config_text(i);
  }
  gateways_.resize(options_.gateways);
  start_controller();
  start_checker();
  for (std::size_t i = 0; i < gateways_.size(); ++i) start_gateway(i);
  if (!options_.wait) return;
  const bool served = serves(options_.proxies - options_.reserve);
  if (!served) std::fputs(logs().c_str(), stderr);
  PP_ASSERT(served);
}

std::string Cluster::config_text(std::size_t gateway) const {
  const std::string control = loopback(control_.port());
  const std::uint16_t metrics = gateway_metrics_port(gateway);
  const auto metrics_at = [](std::uint16_t port) {
    return "  metrics: {listen: " + loopback(port) + "}\n";
  };
  return "storage: {stateDir: " + (folder() / "state").string() + "}\n" +
         "controlPlane:\n  listen: " + control + "\n" + indented(options_.control_plane, 2) +
         "gateway:\n  listen: " + loopback(gateway_port(gateway)) + "\n  controlPlane: " + control +
         (options_.one_port ? "\n  sharePort: true" : "") + "\n  target: {" + options_.target +
         "}\n" + metrics_at(metrics) + indented(options_.gateway, 2) +
         "distribution:\n  listen: " + loopback(distribution_.port()) + "\n" +
         indented(options_.distribution, 2) + "admin: {listen: " + loopback(admin_.port()) + "}\n" +
         "controller:\n" + metrics_at(controller_metrics_.port()) +
         indented(options_.controller, 2) + "checker:\n  controlPlane: " + control + "\n" +
         metrics_at(checker_metrics_.port()) +
         (options_.check.empty() ? "" : "check:\n" + indented(options_.check, 2)) +
         upstream_text(options_, fixture_.vendor_port()) + indented(options_.upstreams, 2) +
         "routings:\n" + indented(options_.routings, 2) +
         "  - id: default\n    upstreams: [{id: fixture}]\n" + indented(options_.routing, 4) +
         options_.top_level + "\n";
}

void Cluster::write_config(std::string_view text) const {
  const auto next = folder() / "next.yaml";
  std::ofstream(next) << text;
  std::filesystem::rename(next, config_file());
}

std::string Cluster::config_with(std::string_view part, std::string_view instead) const {
  std::string text = config();
  const auto at = text.find(part);
  PP_ASSERT(at != std::string::npos);
  return text.replace(at, part.size(), instead);
}

std::unique_ptr<ChildProcess> Cluster::start(std::string program, std::size_t gateway) {
  const std::string name = "gateway-" + std::to_string(gateway);
  ChildProcess::Options options{
      std::move(program), {"--config", folder() / (name + ".yaml")}, options_.environment, {}};
  if (options.program == "proxy-gateway") {
    options.arguments.insert(options.arguments.end(), {"--worker-id", name});
  }
  return std::make_unique<ChildProcess>(std::move(options));
}

void Cluster::start_controller() {
  controller_ = start("proxy-controller");
  const auto ready = controller_->wait_for_line("process_ready");
  if (!ready) std::fputs(controller_->err().c_str(), stderr);
  PP_ASSERT(ready);
}
void Cluster::start_checker() {
  checker_ = start("proxy-checker");
}
void Cluster::start_gateway(std::size_t index) {
  gateways_.at(index) = start("proxy-gateway", index);
}
void Cluster::restart_controller() {
  controller_->kill();
  start_controller();
}

std::uint16_t Cluster::gateway_port(std::size_t index) const {
  return ports_.at(options_.one_port ? 0 : index)->listen.port();
}
std::string Cluster::gateway_url(std::size_t index) const {
  return "http://" + loopback(gateway_port(index));
}
std::uint16_t Cluster::gateway_metrics_port(std::size_t index) const {
  return ports_.at(index)->metrics.port();
}
std::string Cluster::origin_url(std::string_view path) const {
  return "http://" + loopback(fixture_.origin_port()) + std::string(path);
}

Reply Cluster::get(std::string_view path, std::size_t gateway) {
  const std::string host = loopback(fixture_.origin_port());
  return http_exchange(gateway_port(gateway), "GET http://" + host + std::string(path) +
                                                  " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
}

Reply Cluster::extract(std::string_view json) {
  return http_post(distribution_port(), "/v1/extractions", json);
}

nlohmann::json Cluster::admin(std::string_view path) {
  const auto reply = http_get(admin_port(), path);
  if (reply.status != 200) std::fputs(reply.body.c_str(), stderr);
  PP_ASSERT(reply.status == 200);
  return nlohmann::json::parse(reply.body);
}

Reply Cluster::operate(std::string_view path, std::string_view json) {
  std::string request = "POST " + std::string(path) +
                        " HTTP/1.1\r\nHost: " + loopback(admin_.port()) +
                        "\r\nX-Requested-By: test\r\n";
  if (!json.empty()) request += "Content-Type: application/json\r\n";
  request += "Content-Length: " + std::to_string(json.size()) + "\r\n\r\n" + std::string(json);
  return http_exchange(admin_.port(), request);
}

double Cluster::controller_metric(std::string_view series) {
  return metric_sum(http_get(controller_metrics_port(), "/metrics").body, series);
}

double Cluster::gateway_metric(std::string_view series, std::size_t gateway) {
  return metric_sum(http_get(gateway_metrics_port(gateway), "/metrics").body, series);
}

bool Cluster::ready(std::size_t gateway) {
  return http_get(gateway_metrics_port(gateway), "/readyz").status == 200;
}

bool Cluster::serves(std::size_t proxies, std::chrono::milliseconds limit) {
  return eventually(
      [&] {
        double served = 0;
        for (std::size_t i = 0; i < gateways_.size(); ++i) {
          if (!gateways_[i]->running()) continue;
          if (!ready(i)) return false;
          served += gateway_metric("proxypool_gateway_proxies", i);
        }
        return served == static_cast<double>(proxies);
      },
      limit);
}

std::string Cluster::logs() const {
  std::string out = "--- controller\n" + controller_->err() + "--- checker\n" + checker_->err();
  for (const auto& gateway : gateways_) out += "--- gateway\n" + gateway->err();
  return out;
}

}  // namespace proxypool::support
