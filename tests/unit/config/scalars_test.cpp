// Good and bad spellings of every kind of value, through the whole loader.
#include <gtest/gtest.h>

#include <vector>

#include "unit/config/support.hpp"

namespace proxypool::config {
namespace {

using test::kRest;
using test::load;

struct Kind {
  std::string before;  // the document around the value
  std::string after;
  std::vector<std::string> good;
  std::vector<std::string> bad;
};

void check(const Kind& kind) {
  for (const auto& value : kind.good) {
    const auto text = kind.before + value + kind.after + "\n" + kRest;
    const auto loaded = load(text, {{"E", "x"}});
    EXPECT_TRUE(loaded.config) << text << loaded.format_errors();
  }
  for (const auto& value : kind.bad) {
    const auto text = kind.before + value + kind.after + "\n" + kRest;
    const auto loaded = load(text, {{"E", "x"}});
    EXPECT_FALSE(loaded.config) << text;
    EXPECT_EQ(loaded.errors.size(), 1U) << text << loaded.format_errors();
  }
}

TEST(Scalars, Durations) {
  check({"gateway: {bench: ",
         "}",
         {"2s", "250ms", "5m", "0", "0s", "\"2s\""},
         {"2", "2d", "2 s", "1.5s", "-2s", "+2s", "6m", "99ms", "s", "\"\"", "~", "[2s]", "{a: 2s}",
          "true", "0x2s", "99999999999999999999s"}});
}

TEST(Scalars, Sizes) {
  check({"controlPlane: {limits: {maxMessageBytes: ",
         "}}",
         {"4MiB", "1MiB", "64MiB", "2097152", "2097152B", "2048KiB"},
         {"4MB", "4mb", "4 MiB", "0", "1KiB", "65MiB", "4.5MiB", "-4MiB", "~", "true", "[4MiB]"}});
}

TEST(Scalars, Numbers) {
  check({"checker: {maxInFlight: ",
         "}",
         {"1", "10000", "256"},
         {"0", "10001", "-1", "+1", "010", "0x10", "1e3", "1.0", "\"10\"", "ten", "10s", "~", "[]",
          "99999999999999999999", ".inf", "true"}});
}

TEST(Scalars, ThreadsAreAutoOrANumber) {
  check({"gateway: {threads: ", "}", {"auto", "1", "256"}, {"0", "257", "Auto", "~", "\"4\""}});
}

TEST(Scalars, Booleans) {
  check({"cluster: {strict: ",
         "}",
         {"true", "false", "True", "FALSE"},
         {"yes", "no", "on", "1", "0", "\"true\"", "~", "tRue"}});
}

TEST(Scalars, Names) {
  check({"cluster: {id: ",
         "}",
         {"a", "A.b_c-9", "9a", "\"9\"", std::string(64, 'x')},
         {"\"\"", "-a", ".a", "a b", "ä", "9", "true", "~", std::string(65, 'x'), "a/b"}});
}

TEST(Scalars, ListenAddresses) {
  check({"admin: {listen: ",
         "}",
         {"127.0.0.1:0", "127.1.2.3:65535", "\"[::1]:80\""},
         {"127.0.0.1", "8080", ":8080", "localhost:8080", "127.0.0.1:65536", "127.0.0.1:080",
          "127.0.0.1:-1", "127.1:80", "\"::1:80\"", "\"[127.0.0.1]:80\"", "~", "256.0.0.1:80"}});
}

TEST(Scalars, Peers) {
  check({"check: {basic: {target: ",
         "}}",
         {"example.com:443", "192.0.2.1:1", "\"[2001:db8::1]:443\"", "Example.COM.:443"},
         {"example.com", "example.com:0", "example.com:99999", "http://example.com:80",
          "0x7f.1:443", "ex ample:443", "\"2001:db8::1:443\"", "~"}});
}

TEST(Scalars, AddressRanges) {
  check({"gateway: {access: {allowCIDRs: [",
         "]}}",
         {"10.0.0.0/8", "192.0.2.7", "\"fd00::/8\"", "\"::1\"", ""},
         {"10.0.0.1/8", "10.0.0.0/33", "10.0.0/8", "example.com", "10", "~", "\"fd00::/129\""}});
}

TEST(Scalars, WordsAreMatchedExactly) {
  check({"observability: {logLevel: ",
         "}",
         {"trace", "info", "\"error\""},
         {"Info", "warning", "~", "3", "[info]", "\"\""}});
}

TEST(Scalars, Ports) {
  check({"gateway: {target: {allowPorts: [",
         "]}}",
         {"1", "65535", "80, 443"},
         {"0", "65536", "80-90", "\"80\"", "http"}});
}

TEST(Scalars, SectionsAreMappings) {
  check({"gateway: ", "", {"{}"}, {"[]", "5", "text", "~", "\"\""}});
  check({"clients: ", "", {"[]"}, {"{}", "5", "text", "~"}});
}

TEST(Scalars, ListsGiveAHintWhenOneValueStandsAlone) {
  const auto loaded = load("gateway: {access: {allowCIDRs: 10.0.0.0/8}}\n" + kRest);
  EXPECT_EQ(loaded.format_errors(),
            "test.yaml:1:32: error: gateway.access.allowCIDRs: expected a list, found "
            "\"10.0.0.0/8\" (write [10.0.0.0/8])\n");
}

}  // namespace
}  // namespace proxypool::config
