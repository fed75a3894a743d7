#include "adapters/http/router.hpp"

#include <gtest/gtest.h>

#include <string>

#include "adapters/crypto/openssl_crypto.hpp"
#include "adapters/http/apis.hpp"
#include "adapters/http/guards.hpp"
#include "proxypool/base/text.hpp"
#include "runtime/manual_clock.hpp"
#include "support/recording_events.hpp"

namespace proxypool::http {
namespace {

std::string field(const net::HttpResponse& response, std::string_view name) {
  for (const auto& [key, value] : response.fields) {
    if (equal_ignoring_case(key, name)) return value;
  }
  return {};
}

// Lacks the memory that a password's hash takes, when told so.
class ShortOfMemory final : public ports::Crypto {
 public:
  explicit ShortOfMemory(const ports::Crypto& real) : real_(real) {}
  [[nodiscard]] ports::Digest sha256(std::string_view data) const override {
    return real_.sha256(data);
  }
  [[nodiscard]] ports::Digest hmac_sha256(std::string_view key,
                                          std::string_view data) const override {
    return real_.hmac_sha256(key, data);
  }
  [[nodiscard]] std::string random_bytes(std::size_t count) const override {
    return real_.random_bytes(count);
  }
  [[nodiscard]] Result<StoredHash> hash_password(std::string_view password,
                                                 ScryptCost cost) const override {
    return real_.hash_password(password, cost);
  }
  [[nodiscard]] Result<bool> verify(std::string_view secret,
                                    const StoredHash& stored) const override {
    if (short_of_it) return Error{ErrorCode::Exhausted, Origin::Internal, "no memory", true};
    return real_.verify(secret, stored);
  }
  [[nodiscard]] std::string seal(std::string_view key, std::string_view associated,
                                 std::string_view plain) const override {
    return real_.seal(key, associated, plain);
  }
  [[nodiscard]] Result<SecretString> open(std::string_view key, std::string_view associated,
                                          std::string_view sealed) const override {
    return real_.open(key, associated, sealed);
  }
  bool short_of_it = false;

 private:
  const ports::Crypto& real_;
};

class RouterTest : public ::testing::Test {
 protected:
  RouterTest() {
    router_.add("GET", "/v1/things/{id}", nullptr, [](Call& call) -> Answer {
      return net::text_response(200, call.captures.at("id"));
    });
    router_.add("POST", "/v1/things/{id}", nullptr, [](Call&) -> Answer {
      return Refusal{409, "conflict", "it is there"};
    });
  }
  net::HttpResponse ask(const std::string& method, const std::string& path,
                        std::vector<net::NameValue> fields = {}) {
    net::HttpRequest request;
    request.method_text = method;
    request.path = path;
    request.fields = std::move(fields);
    if (const auto source = IpAddress::parse(source_)) request.peer.address = *source;
    return router_.handle(request);
  }
  // The status of GET /guarded behind this guard.
  net::HttpResponse guarded(Guard guard, std::vector<net::NameValue> fields = {}) {
    Router router(*crypto_);
    router.add("GET", "/", std::move(guard),
               [](Call& call) -> Answer { return net::text_response(200, call.client); });
    net::HttpRequest request;
    request.method_text = "GET";
    request.path = "/";
    request.fields = std::move(fields);
    if (const auto source = IpAddress::parse(source_)) request.peer.address = *source;
    return router.handle(request);
  }
  GuardNeeds needs() { return {*crypto_, clock_, events_}; }

  std::unique_ptr<ports::Crypto> crypto_ = crypto::make_openssl_crypto();
  runtime::ManualClock clock_;
  test::RecordingEvents events_;
  Router router_{*crypto_};
  std::string source_ = "127.0.0.1";
};

TEST_F(RouterTest, APathIsTakenApartAndAnswered) {
  const auto found = ask("GET", "/v1/things/7");
  EXPECT_EQ(found.status, 200);
  EXPECT_EQ(found.body, "7");
  EXPECT_EQ(ask("HEAD", "/v1/things/7").status, 200);
  EXPECT_EQ(ask("GET", "/v1/things/").status, 404);
  EXPECT_EQ(ask("GET", "/v1/things/7/more").status, 404);
  EXPECT_NE(ask("GET", "/nothing").body.find("\"not_found\""), std::string::npos);
}

TEST_F(RouterTest, AMethodThatAPathDoesNotKnowIsTold) {
  const auto refused = ask("DELETE", "/v1/things/7");
  EXPECT_EQ(refused.status, 405);
  EXPECT_EQ(field(refused, "Allow"), "GET, HEAD, POST, OPTIONS");
  const auto options = ask("OPTIONS", "/v1/things/7");
  EXPECT_EQ(options.status, 204);
  EXPECT_EQ(field(options, "Allow"), "GET, HEAD, POST, OPTIONS");
  EXPECT_EQ(ask("OPTIONS", "/nothing").status, 404);
}

TEST_F(RouterTest, EveryAnswerNamesItsRequest) {
  EXPECT_EQ(field(ask("GET", "/v1/things/7", {{"x-request-ID", "abc-1"}}), "x-request-id"),
            "abc-1");
  const auto own = field(ask("GET", "/v1/things/7", {{"X-Request-Id", "a\"b"}}), "x-request-id");
  EXPECT_EQ(own.size(), 16U);
  EXPECT_NE(own, field(ask("GET", "/v1/things/7"), "x-request-id"));
  const auto refused = ask("POST", "/v1/things/7", {{"X-Request-Id", "abc-2"}});
  EXPECT_EQ(refused.status, 409);
  EXPECT_NE(refused.body.find("\"abc-2\""), std::string::npos);
  EXPECT_NE(refused.body.find("\"conflict\""), std::string::npos);
}

TEST_F(RouterTest, OnlyAllowedSourcesPass) {
  const auto guard = allow_sources({*Cidr::parse("10.0.0.0/8")});
  EXPECT_EQ(guarded(guard).status, 403);
  source_ = "10.1.2.3";
  EXPECT_EQ(guarded(guard).status, 200);
  source_ = "127.0.0.1";
  EXPECT_EQ(guarded(allow_sources({})).status, 200);
}

TEST_F(RouterTest, AClientShowsItsNameAndSecret) {
  const auto guard =
      require_client("distribution", {{"acme", crypto_->hash_api_key("s:cret")}}, needs());
  const auto with = [&](const std::string& plain, const std::string& scheme = "Basic ") {
    return guarded(guard, {{"Authorization", scheme + base64_encode(plain)}});
  };
  EXPECT_EQ(with("acme:s:cret").status, 200);
  EXPECT_EQ(with("acme:s:cret", "bAsIc ").body, "acme");
  EXPECT_EQ(with("acme:wrong").status, 401);
  EXPECT_EQ(with("acme:wrong").status, 401);  // from what was remembered
  EXPECT_EQ(with("other:s:cret").status, 401);
  EXPECT_EQ(with("acme").status, 401);
  EXPECT_EQ(with("acme:s:cret", "Bearer ").status, 401);
  const auto none = guarded(guard);
  EXPECT_EQ(none.status, 401);
  EXPECT_NE(field(none, "WWW-Authenticate").find("Basic realm=\"distribution\""),
            std::string::npos);
  for (const auto& line : events_.lines()) EXPECT_EQ(line.find("s:cret"), std::string::npos);
}

// What could not be checked is neither right nor wrong, and is not remembered.
TEST_F(RouterTest, ASecretThatCannotBeCheckedNowIsCheckedLater) {
  ShortOfMemory crypto(*crypto_);
  const auto guard = require_client("distribution", {{"acme", crypto_->hash_api_key("secret")}},
                                    {crypto, clock_, events_});
  const std::vector<net::NameValue> fields{
      {"Authorization", "Basic " + base64_encode("acme:secret")}};
  crypto.short_of_it = true;
  EXPECT_EQ(guarded(guard, fields).status, 503);
  crypto.short_of_it = false;
  EXPECT_EQ(guarded(guard, fields).status, 200);
}

TEST_F(RouterTest, ATokenOpensAdmin) {
  const auto guard = require_token("admin", {{"readToken", SecretString("t0ken"), Role::Read}},
                                   Role::Read, needs());
  EXPECT_EQ(guarded(guard, {{"authorization", "Bearer t0ken"}}).status, 200);
  EXPECT_EQ(guarded(guard, {{"authorization", "Bearer t0ke"}}).status, 401);
  EXPECT_EQ(guarded(guard, {{"authorization", "Basic t0ken"}}).status, 401);
  EXPECT_NE(field(guarded(guard), "WWW-Authenticate").find("Bearer"), std::string::npos);
}

TEST_F(RouterTest, ATokenMayDoWhatItsRoleMay) {
  const std::vector<RealmToken> tokens{{"readToken", SecretString("r"), Role::Read},
                                       {"writeToken", SecretString("w"), Role::Write},
                                       {"adminToken", SecretString("a"), Role::Admin}};
  const auto status = [&](Role needed, const std::string& token) {
    return guarded(require_token("admin", tokens, needed, needs()),
                   {{"authorization", "Bearer " + token}})
        .status;
  };
  EXPECT_EQ(status(Role::Read, "r"), 200);
  EXPECT_EQ(status(Role::Read, "a"), 200);
  EXPECT_EQ(status(Role::Write, "r"), 403);
  EXPECT_EQ(status(Role::Write, "w"), 200);
  EXPECT_EQ(status(Role::Admin, "w"), 403);
  EXPECT_EQ(status(Role::Admin, "a"), 200);
  EXPECT_EQ(status(Role::Read, "x"), 401);
}

TEST_F(RouterTest, AGuardIsExchangedWhileItServes) {
  LiveGuard live([](Call&) { return std::optional<Refusal>(); });
  const Guard guard = live.guard();
  EXPECT_EQ(guarded(guard).status, 200);
  live.set(require_requested_by());
  EXPECT_EQ(guarded(guard).status, 403);
  EXPECT_EQ(guarded(guard, {{"X-Requested-By", "me"}}).status, 200);
}

TEST_F(RouterTest, WithoutATokenOnlyTheOwnPageMayAsk) {
  const auto guard = require_local_page({"localhost", "127.0.0.1"});
  const auto asked = [&](std::vector<net::NameValue> fields) {
    return guarded(guard, std::move(fields)).status;
  };
  EXPECT_EQ(asked({{"Host", "localhost:8082"}}), 200);
  EXPECT_EQ(asked({{"Host", "LOCALHOST"}, {"Sec-Fetch-Site", "same-origin"}}), 200);
  EXPECT_EQ(asked({{"Host", "127.0.0.1:8082"}, {"Origin", "http://127.0.0.1:8082"}}), 200);
  EXPECT_EQ(asked({}), 403);
  EXPECT_EQ(asked({{"Host", "evil.example"}}), 403);  // a name that was bound to 127.0.0.1
  EXPECT_EQ(asked({{"Host", "localhost.evil.example"}}), 403);
  EXPECT_EQ(asked({{"Host", "localhost"}, {"Origin", "http://evil.example"}}), 403);
  EXPECT_EQ(asked({{"Host", "localhost"}, {"Origin", "null"}}), 403);
  EXPECT_EQ(asked({{"Host", "localhost"}, {"Sec-Fetch-Site", "cross-site"}}), 403);
  const auto any_host = require_local_page({});
  EXPECT_EQ(guarded(any_host, {{"Host", "pool.example"}}).status, 200);
  EXPECT_EQ(guarded(any_host, {{"Host", "pool.example"}, {"Origin", "http://evil.example"}}).status,
            403);
}

TEST_F(RouterTest, ReadinessGivesItsReasons) {
  std::vector<std::string> reasons{"no \"view\""};
  add_health(
      router_, [&] { return reasons; }, [] { return std::vector<std::string>{"w"}; });
  EXPECT_EQ(ask("GET", "/livez").status, 200);
  const auto refused = ask("GET", "/readyz");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.body, R"({"status":"notReady","reasons":["no \"view\""],"warnings":["w"]})");
  reasons.clear();
  EXPECT_EQ(ask("GET", "/readyz").status, 200);
}

}  // namespace
}  // namespace proxypool::http
