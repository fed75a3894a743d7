// The committed files against the table: documentation, schema, examples (CF-1).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "config/docs.hpp"
#include "config/node.hpp"
#include "unit/config/schema_validator.hpp"
#include "unit/config/support.hpp"

namespace proxypool::config {
namespace {

using nlohmann::json;
using test::slurp;

const std::string kRoot = PROXYPOOL_SOURCE_DIR;
constexpr const char* kRemedy = "run build/debug/bin/config_docs . and commit what it writes";

const json& schema() {
  static const json parsed = json::parse(json_schema());
  return parsed;
}

// As an editor sees the document; nothing when it is no YAML that we take.
std::optional<json> as_json(const std::string& text) {
  std::vector<Problem> problems;
  const auto node = parse_yaml(text, problems);
  if (!node || !problems.empty()) return std::nullopt;
  return json::parse(to_json(*node, false));
}

std::optional<std::string> anything(const std::string& name) {
  return "value-of-" + name;
}

LoadResult load_example(const std::string& path) {
  LoadOptions options;
  options.env = anything;
  return load_file(path, options);
}

std::vector<std::string> yaml_files() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot + "/configs")) {
    if (entry.path().extension() == ".yaml") out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST(GeneratedFiles, AreTheOnesThatAreCommitted) {
  EXPECT_TRUE(slurp(kRoot + "/docs/configuration.md") == configuration_markdown()) << kRemedy;
  EXPECT_TRUE(slurp(kRoot + "/configs/config.schema.json") == json_schema()) << kRemedy;
  EXPECT_TRUE(slurp(kRoot + "/configs/embedded.yaml") == embedded_yaml()) << kRemedy;
}

TEST(Examples, AllLoadWithoutErrorsAndWarnings) {
  const auto files = yaml_files();
  EXPECT_GE(files.size(), 8U);
  for (const auto& path : files) {
    const auto loaded = load_example(path);
    EXPECT_TRUE(loaded.config) << loaded.format_errors();
    EXPECT_EQ(loaded.format_warnings(), "");
  }
}

TEST(Examples, AreAcceptedByTheSchemaToo) {
  for (const auto& path : yaml_files()) {
    const auto document = as_json(slurp(path));
    ASSERT_TRUE(document) << path;
    EXPECT_EQ(test::schema_complaint(schema(), *document), "") << path;
  }
}

TEST(Examples, TheMinimalOneHasSixLines) {  // CF-2
  const auto text = slurp(kRoot + "/configs/examples/minimal.yaml");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6);
}

TEST(Examples, TheFullOneShowsTheDefaults) {
  const auto loaded = load_example(kRoot + "/configs/embedded.yaml");
  ASSERT_TRUE(loaded.config) << loaded.format_errors();
  auto shown = json::parse(canonical_json(*loaded.config, test::digest));
  const auto defaults = json::parse(canonical_json(Config{}, test::digest));
  const auto minimal = json::parse(
      canonical_json(*load_example(kRoot + "/configs/examples/minimal.yaml").config, test::digest));
  for (const auto& [section, value] : shown.items()) {
    if (section == "clients") continue;
    const bool list = section == "upstreams" || section == "routings";
    EXPECT_EQ(value, list ? minimal[section] : defaults[section]) << section;
  }
}

struct Document {
  std::string text;
  bool good;
};
class SchemaAndLoader : public testing::TestWithParam<Document> {};

TEST_P(SchemaAndLoader, Agree) {
  const std::string& text = GetParam().text;
  LoadOptions options;
  options.env = anything;
  const auto loaded = load_text(text, "test.yaml", options);
  EXPECT_EQ(loaded.config.has_value(), GetParam().good) << text << loaded.format_errors();
  const auto document = as_json(text);
  ASSERT_TRUE(document) << text;
  const auto complaint = test::schema_complaint(schema(), *document);
  EXPECT_EQ(complaint.empty(), GetParam().good) << text << complaint;
}

std::string provider(const std::string& text) {
  return "upstreams: [{id: u, provider: {" + text + "}}]";
}
const std::string kHttp = "type: http, request: {url: \"https://v.example/\"}";

INSTANTIATE_TEST_SUITE_P(
    Files, SchemaAndLoader,
    testing::Values(
        Document{"{}", true}, Document{"gateway: {}", true}, Document{"gatway: {}", false},
        Document{"gateway: ~", false}, Document{"gateway: []", false},
        Document{"gateway: {bench: 3s}", true}, Document{"gateway: {bench: 0}", true},
        Document{"gateway: {bench: 3}", false}, Document{"gateway: {bench: 3 s}", false},
        Document{"gateway: {threads: auto}", true}, Document{"gateway: {threads: 4}", true},
        Document{"gateway: {threads: many}", false}, Document{"gateway: {threads: 0}", false},
        Document{"gateway: {limits: {maxBodyBytes: 64KiB}}", true},
        Document{"gateway: {limits: {maxBodyBytes: 65536}}", true},
        Document{"gateway: {limits: {maxBodyBytes: 64KB}}", false},
        Document{"gateway: {limits: {maxConnections: 0}}", false},
        Document{"gateway: {limits: {maxConnections: \"5\"}}", false},
        Document{"gateway: {listen: 127.0.0.1:1}", true},
        Document{"gateway: {listen: localhost:1}", false},
        Document{"gateway: {access: {allowCIDRs: [10.0.0.0/8]}}", true},
        Document{"gateway: {access: {allowCIDRs: 10.0.0.0/8}}", false},
        Document{"gateway: {access: {allowCIDRs: [example.com]}}", false},
        Document{"gateway: {auth: {mode: usernamePassword}}", true},
        Document{"gateway: {auth: {mode: bearer}}", true},
        Document{"gateway: {auth: {mode: oauth}}", false},
        Document{"gateway: {auth: {mode: any, anyOf: [ipWhitelist, apiKey]}}", true},
        Document{"gateway: {auth: {mode: any, anyOf: [none]}}", false},
        Document{"distribution: {auth: {mode: bearer}}", false},
        Document{"cluster: {strict: yes}", false}, Document{"cluster: {id: 5}", false},
        Document{"cluster: {identityKey: {env: A}}", true},
        Document{"cluster: {identityKey: {env: A, file: b}}", false},
        Document{"cluster: {identityKey: plain}", false},
        Document{"check: {basic: {target: \"example.com:443\"}}", true},
        Document{"check: {basic: {target: example.com}}", false},
        Document{"clients: [{name: a, credentials: {gateway: {env: A}}}]", true},
        Document{"clients: [{name: a, credentials: {gateway: plain}}]", false},
        Document{"clients: [{groups: [a]}]", false}, Document{"clients: {name: a}", false},
        Document{provider("type: static, proxies: [\"192.0.2.1:80\"]"), true},
        Document{provider("type: static, proxies: []"), false},
        Document{provider("type: static"), false},
        Document{provider("type: static, path: x, proxies: [\"192.0.2.1:80\"]"), false},
        Document{provider("type: file, path: x"), true},
        Document{provider("type: file, path: 5"), false},
        Document{provider("type: gateway, path: x"), false}, Document{provider("path: x"), false},
        Document{provider(kHttp), true},
        Document{provider(kHttp + ", response: {format: xml}"), false},
        Document{provider("type: http, request: {}"), false},
        Document{provider("type: http, request: {url: \"ftp://x/\"}"), false},
        Document{provider("type: http, request: {url: \"https://x/\", query: {a: 1, b: true}}"),
                 true},
        Document{provider("type: http, request: {url: \"https://x/\", query: {a: [1]}}"), false},
        Document{provider(kHttp + ", map: {host: item.ip, port: 80}"), true},
        Document{provider(kHttp + ", map: {host: item.ip, port: true}"), false},
        Document{provider(kHttp + ", map: {as: item}"), false},
        Document{provider(kHttp + ", response: {format: json}, records: {from: \"body[*]\"}, "
                                  "map: {as: \"proxy(item, 'url')\"}"),
                 true},
        Document{provider(kHttp + ", records: {from: data}"), false},
        Document{"upstreams: [{id: u}]", false},
        Document{"routings: [{id: r, upstreams: [], onUnavailable: direct}]", true},
        Document{"routings: [{id: r}]", false},
        Document{provider("type: static, proxies: [\"192.0.2.1:80\"]") +
                     "\nroutings: [{id: r, upstreams: [{id: u}], match: {methods: [GET]}}]",
                 true},
        Document{provider("type: static, proxies: [\"192.0.2.1:80\"]") +
                     "\nroutings: [{id: r, upstreams: [{id: u}], match: {methods: [get]}}]",
                 false},
        Document{provider("type: static, proxies: [\"192.0.2.1:80\"]") +
                     "\nroutings: [{id: r, upstreams: [{id: u}], match: {kinds: [socks]}}]",
                 false}));

// What no schema can say: relations, references, and ranges of durations and sizes.
TEST(SchemaAndLoaderTogether, TheLoaderKnowsMoreButNeverLess) {
  for (const std::string text :
       {"gateway: {bench: 99h}", "gateway: {listen: 0.0.0.0:1}",
        "routings: [{id: r, upstreams: [{id: nowhere}]}]", "routings: [{id: r, upstreams: []}]",
        "gateway: {access: {allowCIDRs: [10.0.0.1/8]}}"}) {
    LoadOptions options;
    options.env = anything;
    EXPECT_FALSE(load_text(text, "test.yaml", options).config) << text;
    EXPECT_EQ(test::schema_complaint(schema(), *as_json(text)), "") << text;
  }
}

}  // namespace
}  // namespace proxypool::config
