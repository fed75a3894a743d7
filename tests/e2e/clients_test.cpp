// What curl and Python send through the gateway arrives, and what comes back is what was sent
// (GW-1, GW-5, GW-6, GW-40).
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "e2e/programs.hpp"
#include "proxypool/base/text.hpp"
#include "support/cluster.hpp"

namespace proxypool {
namespace {

using e2e::curl;
using e2e::seen_at;
using support::Cluster;
using support::run;

TEST(Curl, GetsAndTheOriginSeesNothingOfTheProxies) {
  Cluster cluster;
  const auto got = run(curl(cluster, {"-w", "%{http_code}", "-o", "/dev/null", "-H", "X-Kept: yes",
                                      cluster.origin_url("/t/curl-get")}));
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(got.out, "200");
  const auto origin = seen_at(cluster, "curl-get", "origin");
  ASSERT_FALSE(origin.is_null());
  EXPECT_EQ(origin.at("target"), "/t/curl-get");
  EXPECT_EQ(e2e::header_of(origin, "X-Kept"), "yes");
  for (const char* private_name : {"Proxy-Authorization", "Proxy-Connection", "X-Forwarded-For"}) {
    EXPECT_EQ(e2e::header_of(origin, private_name), "") << private_name;
  }
  // The vendor's proxy gets the vendor's credential.
  const auto proxy = seen_at(cluster, "curl-get", "proxy");
  ASSERT_FALSE(proxy.is_null());
  EXPECT_EQ("Proxy-Authorization: " + e2e::header_of(proxy, "Proxy-Authorization") + "\r\n",
            cluster.fixture().authorization());
}

TEST(Curl, PostsABodyThatArrivesUnchanged) {
  Cluster cluster;
  const std::string body = e2e::sample_body(1'000'000);
  e2e::write_file(cluster.folder() / "body", body);
  const auto got = run(curl(cluster, {"--data-binary", "@body", "-H", "X-Token: curl-post", "-o",
                                      "answer", cluster.origin_url("/echo")}));
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(e2e::sha256(support::read_file(cluster.folder() / "answer")), e2e::sha256(body));
}

TEST(Curl, UploadsChunkedFromAPipe) {
  Cluster cluster;
  const std::string body = e2e::sample_body(700'000);
  e2e::write_file(cluster.folder() / "body", body);
  // From a pipe curl knows no length: it sends chunks, after Expect: 100-continue.
  const auto got =
      run({"sh",
           {"-c", "cat body | curl -q -sS -m 20 --noproxy '' -x \"$0\" -T - -o answer \"$1\"",
            cluster.gateway_url(), cluster.origin_url("/echo?token=curl-chunked")},
           {},
           cluster.folder()});
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(e2e::sha256(support::read_file(cluster.folder() / "answer")), e2e::sha256(body));
  EXPECT_EQ(e2e::header_of(seen_at(cluster, "curl-chunked", "origin"), "Transfer-Encoding"),
            "chunked");
}

TEST(Curl, AsksForTheHeadAlone) {
  Cluster cluster;
  const auto got = run(curl(cluster, {"--head", cluster.origin_url("/bytes/5000")}));
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_NE(got.out.find("HTTP/1.1 200"), std::string::npos) << got.out;
  EXPECT_NE(lower(got.out).find("content-length: 5000\r\n"), std::string::npos) << got.out;
}

TEST(Curl, DownloadsALargeFile) {
  constexpr std::uint64_t kBytes = std::uint64_t{64} << 20U;
  Cluster cluster;
  const auto got = run(curl(cluster, {"-o", "file", "-w", "%{size_download}",
                                      cluster.origin_url("/bytes/" + std::to_string(kBytes))}));
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(got.out, std::to_string(kBytes));
  EXPECT_EQ(e2e::sha256(support::read_file(cluster.folder() / "file")),
            e2e::sha256_of_pattern(kBytes));
}

TEST(Curl, KeepsItsConnectionToTheGateway) {
  Cluster cluster;
  const std::string url = cluster.origin_url("/bytes/10");
  const auto got = run(curl(cluster, {"-w", "%{num_connects} %{http_code}\n", "-o", "/dev/null",
                                      "-o", "/dev/null", "-o", "/dev/null", url, url, url}));
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_EQ(got.out, "1 200\n0 200\n0 200\n");
}

TEST(Python, SpeaksEveryFramingOnOneConnection) {
  Cluster cluster;
  const auto got = run(e2e::python("http_client_session.py",
                                   {cluster.gateway_url().substr(7), cluster.origin_url("")}));
  ASSERT_EQ(got.code, 0) << got.err;
  const auto calls = nlohmann::json::parse(got.out);
  for (const auto& [name, call] : calls.items()) EXPECT_EQ(call.at("connects"), 1) << name;
  EXPECT_EQ(calls.at("get").at("sha256"), e2e::sha256_of_pattern(100'000));
  EXPECT_EQ(calls.at("head").at("length"), 0);
  EXPECT_EQ(calls.at("head").at("content_length"), "5000");
  for (const char* upload : {"post", "chunked"}) {
    EXPECT_EQ(calls.at(upload).at("status"), 200) << upload;
    EXPECT_EQ(calls.at(upload).at("arrived"), calls.at(upload).at("sent")) << upload;
  }
  EXPECT_EQ(calls.at("chunked_answer").at("sha256"), e2e::sha256_of_pattern(20 * 777));
  EXPECT_EQ(calls.at("not_found").at("status"), 404);
}

}  // namespace
}  // namespace proxypool
