// Distribution through a real server on a port of its own, with raw requests.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "adapters/crypto/openssl_crypto.hpp"
#include "adapters/http/apis.hpp"
#include "adapters/http/rest_server.hpp"
#include "runtime/manual_clock.hpp"
#include "support/recording_events.hpp"
#include "unit/net/raw_client.hpp"

namespace proxypool::http {
namespace {

class FakeExtractions final : public ports::Extractions {
 public:
  Result<domain::ExtractionResult> extract(domain::ExtractionCommand command, Deadline) override {
    last = std::move(command);
    return answer;
  }
  Result<domain::ExtractionResult> preview(domain::ExtractionCommand command, Deadline) override {
    last = std::move(command);
    return answer;
  }
  domain::ExtractionCommand last;
  Result<domain::ExtractionResult> answer = domain::ExtractionResult{};
};

class Distribution : public ::testing::Test {
 protected:
  void SetUp() override {
    auto router = std::make_unique<Router>(*crypto_);
    add_distribution(*router, nullptr, {extractions_, events_, clock_, [] {
                                          return DistributionNeeds::Defaults{seconds{30}, {}};
                                        }});
    server_ = make_rest_server("test", {IpAddress::v4(0x7f000001), 0}, std::move(router));
    ASSERT_TRUE(server_->start());
  }
  void TearDown() override { server_->stop(); }

  std::string send(const std::string& head, const std::string& body = "") {
    net::test::RawClient client(server_->port());
    client.send(head + "\r\nHost: x\r\nConnection: close\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
    return client.read_all();
  }
  std::string extract(const std::string& body, const std::string& query = "",
                      const std::string& fields = "") {
    const bool typed = fields.find("Content-Type") != std::string::npos;
    return send("POST /v1/extractions" + query + " HTTP/1.1" + fields +
                    (typed ? "" : "\r\nContent-Type: application/json"),
                body);
  }
  static domain::ExtractionResult one_proxy() {
    domain::ExtractionResult result;
    domain::ExtractedProxy entry;
    entry.proxy.endpoint = {domain::Scheme::Http, "192.0.2.1", 8080};
    entry.proxy.upstream = UpstreamId("a");
    entry.proxy.expires_at = StoreTime{milliseconds{90'500}};
    entry.proxy.attributes.country = "US";
    entry.credential = {"user", SecretString("p@ss")};
    result.now = StoreTime{milliseconds{30'000}};
    result.available = 1;
    result.proxies.push_back(entry);
    return result;
  }

  std::unique_ptr<ports::Crypto> crypto_ = crypto::make_openssl_crypto();
  runtime::ManualClock clock_;
  test::RecordingEvents events_;
  FakeExtractions extractions_;
  std::unique_ptr<RestServer> server_;
};

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_F(Distribution, AnExtractionIsAnsweredAsJson) {
  extractions_.answer = one_proxy();
  const std::string answer = extract(R"({"count":1})");
  EXPECT_TRUE(has(answer, "HTTP/1.1 200 ")) << answer;
  EXPECT_TRUE(has(answer, "Cache-Control: no-store"));
  for (const char* part :
       {R"("returned":1)", R"("requested":1)", R"("fulfillment":"partial")",
        R"("url":"http://user:p%40ss@192.0.2.1:8080")", R"("password":"p@ss")", R"("country":"US")",
        R"("remainingTtlSeconds":60)", R"("upstream":"a")"}) {
    EXPECT_TRUE(has(answer, part)) << part << "\n" << answer;
  }
  for (const auto& line : events_.lines()) EXPECT_FALSE(has(line, "p@ss")) << line;
}

TEST_F(Distribution, LinesAreGivenToWhoAsksForThem) {
  extractions_.answer = one_proxy();
  EXPECT_TRUE(
      has(extract(R"({"count":1})", "?format=url"), "\r\n\r\nhttp://user:p%40ss@192.0.2.1:8080\n"));
  EXPECT_TRUE(has(extract(R"({"count":1})", "?format=hostport"), "\r\n\r\n192.0.2.1:8080\n"));
  EXPECT_TRUE(has(extract(R"({"count":1})", "?format=hostportuserpass"),
                  "\r\n\r\n192.0.2.1:8080:user:p@ss\n"));
  EXPECT_TRUE(has(extract(R"({"count":1})", "", "\r\nAccept: text/plain"),
                  "\r\n\r\nhttp://user:p%40ss@192.0.2.1:8080\n"));
  EXPECT_TRUE(has(extract(R"({"count":1})", "?format=xml"), "HTTP/1.1 400 "));
}

TEST_F(Distribution, EveryFilterReachesTheCommand) {
  const std::string answer = extract(R"({"count":7,"fulfillment":"allOrNothing","filters":{
      "protocols":["http"],"countries":["us"],"regions":["CA"],"cities":["Fresno"],
      "carriers":["Acme"],"upstreams":["a"],"tags":{"k":"v"},
      "minRemainingTtlSeconds":5,"maxHealthCheckAgeSeconds":9}})");
  EXPECT_TRUE(has(answer, "HTTP/1.1 200 ")) << answer;
  const auto& command = extractions_.last;
  EXPECT_EQ(command.count, 7U);
  EXPECT_EQ(command.fulfillment, domain::Fulfillment::AllOrNothing);
  EXPECT_EQ(command.filters.protocols, std::vector{domain::Scheme::Http});
  EXPECT_EQ(command.filters.countries, std::vector<std::string>{"US"});
  EXPECT_EQ(command.filters.cities, std::vector<std::string>{"fresno"});
  EXPECT_EQ(command.filters.upstreams, std::vector{UpstreamId("a")});
  EXPECT_EQ(command.filters.tags, (domain::Tags{{"k", "v"}}));
  EXPECT_EQ(command.filters.min_remaining_ttl, milliseconds{5'000});
  EXPECT_EQ(command.filters.max_health_check_age, milliseconds{9'000});
  extract(R"({"count":1})");
  EXPECT_EQ(extractions_.last.filters.min_remaining_ttl, milliseconds{30'000});
  EXPECT_FALSE(extractions_.last.filters.max_health_check_age);
}

TEST_F(Distribution, AWrongBodyIsToldWithEveryMistakeAtOnce) {
  const std::string answer = extract(R"({"cuont":1,"fulfillment":"some","filters":{
      "protocols":["ftp"],"countries":["USA"],"cities":"x","tags":{"a":1},"colour":[],
      "minRemainingTtlSeconds":-1}})");
  EXPECT_TRUE(has(answer, "HTTP/1.1 400 ")) << answer;
  for (const char* part : {"validation_failed", "cuont", "count", "fulfillment",
                           "filters.protocols", "filters.countries", "filters.cities",
                           "filters.tags.a", "filters.colour", "filters.minRemainingTtlSeconds"}) {
    EXPECT_TRUE(has(answer, part)) << part << "\n" << answer;
  }
  for (const char* body : {"", "[]", "{", "7"}) {
    EXPECT_TRUE(has(extract(body), "HTTP/1.1 400 ")) << body;
  }
  for (const char* body : {R"({"count":0})", R"({"count":-1})", R"({"count":1.5})",
                           R"({"count":"1"})", R"({"count":99999999999})", "{}"}) {
    EXPECT_TRUE(has(extract(body), "validation_failed")) << body;
  }
  EXPECT_TRUE(
      has(extract(R"({"count":1})", "", "\r\nIdempotency-Key: k"), "idempotency_unsupported"));
  // Without a type, or with one that it may send unasked, a web page must not get through.
  for (const char* type : {"text/xml", "text/plain", ""}) {
    EXPECT_TRUE(has(extract(R"({"count":1})", "", "\r\nContent-Type: " + std::string(type)),
                    "HTTP/1.1 415 "));
  }
  EXPECT_TRUE(has(send("POST /v1/extractions HTTP/1.1", R"({"count":1})"), "HTTP/1.1 415 "));
  EXPECT_TRUE(
      has(extract(R"({"count":1})", "", "\r\nContent-Type: Application/JSON; charset=utf-8"),
          "HTTP/1.1 200 "));
}

TEST_F(Distribution, EveryOutcomeHasItsStatus) {
  using Outcome = domain::ExtractionOutcome;
  const std::pair<Outcome, const char*> cases[] = {
      {Outcome::Insufficient, "409 "}, {Outcome::NotYet, "503 "},   {Outcome::InProgress, "409 "},
      {Outcome::Mismatch, "422 "},     {Outcome::Replayed, "200 "}, {Outcome::Done, "200 "}};
  for (const auto& [outcome, status] : cases) {
    auto result = domain::ExtractionResult{};
    result.outcome = outcome;
    result.available = 3;
    extractions_.answer = result;
    const std::string answer = extract(R"({"count":5})");
    EXPECT_TRUE(has(answer, std::string("HTTP/1.1 ") + status)) << answer;
    EXPECT_EQ(has(answer, "\"available\":3"), outcome == Outcome::Insufficient) << answer;
  }
  const auto failed = [&](ErrorCode code, const std::string& message) {
    extractions_.answer = Error{code, Origin::Client, message};
    return extract(R"({"count":5})");
  };
  EXPECT_TRUE(has(failed(ErrorCode::InvalidArgument, "count_too_large: at most 3"), " 422 "));
  EXPECT_TRUE(has(failed(ErrorCode::Forbidden, "no"), " 403 "));
  const std::string away = failed(ErrorCode::Unavailable, "away");  // EX-4
  EXPECT_TRUE(has(away, " 503 ") && has(away, "Retry-After: 1")) << away;
}

TEST_F(Distribution, APreviewTakesNothingAndReadsTheQuery) {
  auto result = domain::ExtractionResult{};
  result.available = 4;
  extractions_.answer = result;
  const std::string answer = send(
      "GET /v1/extractions/preview?count=9&countries=us,de&cities=New%20York&"
      "minRemainingTtlSeconds=1 HTTP/1.1");
  EXPECT_TRUE(has(answer, "\"available\":4")) << answer;
  EXPECT_EQ(extractions_.last.count, 9U);
  EXPECT_EQ(extractions_.last.filters.countries, (std::vector<std::string>{"US", "DE"}));
  EXPECT_EQ(extractions_.last.filters.cities, std::vector<std::string>{"new york"});
  EXPECT_TRUE(has(send("GET /v1/extractions/preview?count=x HTTP/1.1"), " 400 "));
  EXPECT_TRUE(has(send("GET /v1/extractions HTTP/1.1"), " 405 "));
}

}  // namespace
}  // namespace proxypool::http
