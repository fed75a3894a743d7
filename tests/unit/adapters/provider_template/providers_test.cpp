#include "adapters/provider_template/providers.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>

#include "config/proxy_line.hpp"
#include "support/temp_dir.hpp"

namespace proxypool::provider_template {
namespace {

class FakeHttp final : public ports::HttpCaller {
 public:
  ports::HttpReply call(const ports::HttpCall& call, Deadline) override {
    url = call.url.reveal();
    for (const auto& [name, value] : call.headers)
      headers += name + "=" + std::string(value.reveal());
    return reply;
  }
  ports::HttpReply reply;
  std::string url;
  std::string headers;
};

config::Template literal(std::string text) {
  config::Template out;
  out.parts.emplace_back(config::Template::Literal{std::move(text)});
  return out;
}

class Providers : public ::testing::Test {
 protected:
  Providers() {
    vendor_.provider.type = config::ProviderType::Http;
    vendor_.provider.request.url = literal("http://vendor.example/get");
    http_.reply.status = 200;
  }
  std::unique_ptr<ports::ProviderApi> make(const config::UpstreamConfig& upstream) {
    return make_provider(upstream, http_);
  }
  ports::FetchAnswer fetch() { return make(vendor_)->fetch({5, {}}, Deadline{}); }

  support::TempDir folder_;
  FakeHttp http_;
  config::UpstreamConfig vendor_;
};

TEST_F(Providers, AVendorIsAskedAsConfigured) {
  config::Template key;
  key.parts.emplace_back(config::Template::SecretRef{"key", SecretString("a&b c")});
  config::Template batch;
  batch.parts.emplace_back(config::Template::Batch{});
  vendor_.provider.request.query = {{"k", key}, {"num", batch}};
  vendor_.provider.request.headers = {{"X-Key", key}};
  http_.reply.body = "8.8.8.8:80\n";
  const auto answer = fetch();
  EXPECT_FALSE(answer.error);
  EXPECT_EQ(answer.candidates.size(), 1U);
  EXPECT_EQ(http_.url, "http://vendor.example/get?k=a%26b%20c&num=5");
  EXPECT_EQ(http_.headers, "X-Key=a&b c");
  vendor_.provider.request.url = literal("http://vendor.example/get?x=1");
  fetch();
  EXPECT_EQ(http_.url, "http://vendor.example/get?x=1&k=a%26b%20c&num=5");
  EXPECT_FALSE(make(vendor_)->authoritative());
}

// Rulings, "Providers": a vendor may not point the gateway into our own network.
TEST_F(Providers, PrivateAddressesAreRefusedUnlessTheUpstreamAllowsThem) {
  http_.reply.body =
      "127.0.0.1:80\n10.0.0.1:80\n192.168.1.1:80\n169.254.169.254:80\n[::1]:80\n[fe80::1]:80\n"
      "[::ffff:10.0.0.1]:80\nlocalhost:80\nx.localhost:80\n8.8.8.8:80\n";
  auto answer = fetch();
  EXPECT_EQ(answer.records, 10U);
  EXPECT_EQ(answer.refused_private, 9U);
  EXPECT_EQ(answer.invalid, 9U);
  ASSERT_EQ(answer.candidates.size(), 1U);
  EXPECT_EQ(answer.candidates[0].endpoint.host, "8.8.8.8");
  vendor_.allow_private_addresses = true;
  EXPECT_EQ(fetch().candidates.size(), 10U);
}

TEST_F(Providers, WhenNothingIsUsableTheAnswerSaysWhereToLook) {
  http_.reply.body = "sorry\nno stock\n";
  const auto answer = fetch();
  EXPECT_FALSE(answer.error);
  EXPECT_EQ(answer.records, 2U);
  EXPECT_EQ(answer.invalid, 2U);
  EXPECT_NE(answer.detail.find("provider.map"), std::string::npos);
  EXPECT_EQ(answer.detail.find("sorry"), std::string::npos);  // CT-12: no body in a log
}

TEST_F(Providers, EveryRefusalOfAVendorHasItsReason) {
  using domain::FetchReason;
  const std::pair<int, FetchReason> cases[] = {{401, FetchReason::Auth},
                                               {403, FetchReason::Auth},
                                               {429, FetchReason::RateLimited},
                                               {302, FetchReason::Status},
                                               {500, FetchReason::Status}};
  for (const auto& [status, reason] : cases) {
    http_.reply.status = status;
    EXPECT_EQ(fetch().error, reason) << status;
  }
  http_.reply.status = 429;
  http_.reply.headers = {{"retry-AFTER", " 30 "}};
  EXPECT_EQ(fetch().retry_after, milliseconds{30'000});
  http_.reply.status = 200;
  http_.reply.body = "<html>";
  vendor_.provider.response.format = config::ResponseFormat::Json;
  EXPECT_EQ(fetch().error, FetchReason::Parse);
  http_.reply.failed = FetchReason::Timeout;
  http_.reply.detail = "no answer";
  EXPECT_EQ(fetch().error, FetchReason::Timeout);
  EXPECT_EQ(fetch().detail, "no answer");
}

TEST_F(Providers, AStaticListIsTheWholeTruth) {
  config::UpstreamConfig upstream;
  upstream.allow_private_addresses = true;
  upstream.provider.proxies = {*config::parse_proxy("10.0.0.1:80"),
                               *config::parse_proxy("10.0.0.2:80")};
  const auto provider = make(upstream);
  EXPECT_TRUE(provider->authoritative());
  EXPECT_EQ(provider->fetch({0, {}}, Deadline{}).candidates.size(), 2U);
  EXPECT_EQ(provider->source_version(), provider->source_version());
}

TEST_F(Providers, AFileIsReadAgainWhenItChanges) {
  config::UpstreamConfig upstream;
  upstream.provider.type = config::ProviderType::File;
  upstream.provider.path = (folder_.path() / "list.txt").string();
  upstream.allow_private_addresses = true;
  const auto provider = make(upstream);
  const auto missing = provider->fetch({0, {}}, Deadline{});
  EXPECT_TRUE(missing.error);
  EXPECT_NE(missing.detail.find("list.txt"), std::string::npos);
  const auto write = [&](const std::string& text) {
    std::ofstream(upstream.provider.path) << text;
  };
  write("10.0.0.1:80\n");
  const auto first = provider->source_version();
  EXPECT_EQ(provider->fetch({0, {}}, Deadline{}).candidates.size(), 1U);
  EXPECT_EQ(provider->source_version(), first);
  write("10.0.0.1:80\n10.0.0.2:80\n");
  EXPECT_GT(provider->source_version(), first);
  EXPECT_EQ(provider->fetch({0, {}}, Deadline{}).candidates.size(), 2U);
}

// An unreadable list is no empty list: an empty one would remove every proxy.
TEST_F(Providers, AFolderInTheListsPlaceIsAnErrorAndNotAnEmptyList) {
  config::UpstreamConfig upstream;
  upstream.provider.type = config::ProviderType::File;
  upstream.provider.path = folder_.path().string();
  EXPECT_TRUE(make(upstream)->fetch({0, {}}, Deadline{}).error);
}

}  // namespace
}  // namespace proxypool::provider_template
