#include "e2e/programs.hpp"

#include <algorithm>
#include <fstream>
#include <utility>

#include "loadgen/digest.hpp"
#include "loadgen/pattern.hpp"
#include "proxypool/base/assert.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::e2e {
namespace {

Arguments joined(Arguments first, Arguments second) {
  first.insert(first.end(), std::make_move_iterator(second.begin()),
               std::make_move_iterator(second.end()));
  return first;
}

}  // namespace

support::ChildProcess::Options curl(const support::Cluster& cluster, Arguments arguments) {
  return {"curl",
          joined({"--disable", "--silent", "--show-error", "--max-time", "20", "--noproxy", "",
                  "--proxy", cluster.gateway_url()},
                 std::move(arguments)),
          {},
          cluster.folder()};
}

support::ClusterOptions with_crawler(const std::string& password, const std::string& more) {
  support::ClusterOptions options;
  options.gateway = "auth: {mode: usernamePassword}";
  options.top_level =
      "clients:\n"
      "  - name: crawler\n"
      "    credentials: {gateway: {env: CRAWLER_PASSWORD}}\n" +
      more;
  options.environment = {"CRAWLER_PASSWORD=" + password};
  return options;
}

support::ChildProcess::Options python(std::string_view script, Arguments arguments) {
  const auto path = std::filesystem::path(PROXYPOOL_SOURCE_DIR) / "tests/e2e/clients" / script;
  return {"python3", joined({path.string()}, std::move(arguments)), {}, {}};
}

Load::Load(const support::Cluster& cluster, std::string_view path, Arguments arguments)
    : process_({"proxy-loadgen",
                joined({"http", "--proxy", cluster.gateway_url(), "--json",
                        (folder_.path() / "report").string()},
                       joined(std::move(arguments), {cluster.origin_url(path)})),
                {},
                {}}) {}

nlohmann::json Load::report() {
  const auto code = process_.wait();
  const auto text = support::read_file(folder_.path() / "report");
  if (!code || text.empty()) std::fputs(process_.err().c_str(), stderr);
  PP_ASSERT(code && !text.empty());
  return nlohmann::json::parse(text);
}

std::string sha256(std::string_view bytes) {
  loadgen::Sha256 digest;
  digest.add(bytes);
  return digest.finish();
}

std::string sha256_of_pattern(std::uint64_t bytes) {
  loadgen::Sha256 digest;
  for (std::uint64_t at = 0; at < bytes;) {
    const auto piece = loadgen::pattern_piece(at, bytes - at);
    digest.add(piece);
    at += piece.size();
  }
  return digest.finish();
}

std::string sample_body(std::size_t bytes) {
  std::string body(bytes, '\0');
  std::uint32_t state = 1;
  for (char& c : body) {
    state = state * 1'664'525U + 1'013'904'223U;
    c = static_cast<char>(state >> 24U);
  }
  return body;
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string header_of(const nlohmann::json& sighting, std::string_view name) {
  for (const auto& field : sighting.at("headers")) {
    if (equal_ignoring_case(field.at(0).get<std::string>(), name)) return field.at(1);
  }
  return {};
}

nlohmann::json seen_at(support::Cluster& cluster, std::string_view token, std::string_view place) {
  const auto records = cluster.fixture().records(token);
  for (const auto& sighting : records.at("sightings")) {
    if (sighting.at("place") == place) return sighting;
  }
  return nullptr;
}

}  // namespace proxypool::e2e
