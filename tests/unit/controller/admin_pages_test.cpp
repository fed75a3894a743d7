// The Admin API over a whole controller on the embedded stores, without processes.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "adapters/http/apis.hpp"
#include "controller/config_reload.hpp"
#include "controller/controller.hpp"
#include "support/recording_events.hpp"
#include "unit/controller/stores.hpp"

namespace proxypool::controller {
namespace {

using nlohmann::json;

constexpr const char* kPassword = "never-to-be-shown-to-anybody";
constexpr const char* kUser = "customer-name";

// A list of proxies that all have the same secret.
class ListApi final : public ports::ProviderApi {
 public:
  ListApi(std::string host, int count) : host_(std::move(host)), count_(count) {}
  ports::FetchAnswer fetch(const ports::FetchRequest&, Deadline) override {
    ports::FetchAnswer answer;
    for (int i = 0; i < count_; ++i) {
      domain::Candidate candidate;
      candidate.endpoint = {domain::Scheme::Http, host_, static_cast<std::uint16_t>(8'000 + i)};
      candidate.credential = {kUser, SecretString(kPassword)};
      answer.candidates.push_back(std::move(candidate));
    }
    answer.records = static_cast<std::uint32_t>(count_);
    return answer;
  }
  [[nodiscard]] bool authoritative() const noexcept override { return true; }
  [[nodiscard]] std::uint64_t source_version() override { return 0; }

 private:
  const std::string host_;
  const int count_;
};

class AdminPages : public contract::PoolSteps<Stores> {
 protected:
  AdminPages() {
    auto config = std::make_shared<config::Config>();
    for (const char* id : {"one", "two"}) {
      config->upstreams.emplace_back().id = UpstreamId(id);
      config->routings.emplace_back().id = RoutingId(std::string("to-") + id);
      config->routings.back().upstreams = {{UpstreamId(id), 1}};
    }
    config->routings.emplace_back().id = RoutingId("turn");
    config->routings.back().strategy = domain::Strategy::Sequential;
    config->routings.back().upstreams = {{UpstreamId("one"), 1}, {UpstreamId("two"), 1}};
    config->clients.resize(1);
    config->clients[0].name = ClientName("caller");
    config->clients[0].gateway_secret = config::ClientSecret{SecretString(kPassword), false};
    ControllerDeps deps{fixture_.pool(),
                        fixture_.registry(),
                        fixture_.coordination(),
                        fixture_.management(),
                        fixture_.crypto(),
                        fixture_.clock(),
                        events_,
                        [](const config::UpstreamConfig& upstream) {
                          const bool one = upstream.id == UpstreamId("one");
                          return std::make_unique<ListApi>(one ? "192.0.2.1" : "192.0.2.2",
                                                           one ? 25 : 3);
                        },
                        [this]() -> Random& { return random_; }};
    auto made = Controller::make(
        config, {InstanceId("instance"), "", SecretString(std::string(32, 'i'))}, std::move(deps));
    EXPECT_TRUE(made);
    controller_ = *std::move(made);
    reload_ =
        std::make_unique<ConfigReload>("pool.yaml", ReloadDeps{*controller_,
                                                               fixture_.management(),
                                                               fixture_.crypto(),
                                                               fixture_.clock(),
                                                               events_,
                                                               SecretString("key"),
                                                               [this](LoadFor) { return loaded_; },
                                                               {}});
    http::add_admin(
        router_, {},
        {*controller_, controller_->routing_operations(), *reload_, fixture_.clock(), "1.2.3"});
    step();
  }
  void step() {
    for (const NamedStep& named : controller_->steps()) named.step(fixture_.clock().now());
  }
  net::HttpResponse ask(const std::string& path, std::vector<net::NameValue> query = {}) {
    net::HttpRequest request;
    request.method_text = "GET";
    request.path = path;
    request.query = std::move(query);
    return ask(request);
  }
  net::HttpResponse post(const std::string& path, const std::string& body = "",
                         const std::string& if_match = "") {
    net::HttpRequest request;
    request.method_text = "POST";
    request.path = path;
    request.body = body;
    if (!body.empty()) request.fields.emplace_back("Content-Type", "application/json");
    if (!if_match.empty()) request.fields.emplace_back("If-Match", if_match);
    return ask(request);
  }
  net::HttpResponse ask(const net::HttpRequest& request) {
    auto response = router_.handle(request);
    // Whatever is asked: no page names a credential.
    EXPECT_EQ(response.body.find(kPassword), std::string::npos) << response.body;
    EXPECT_EQ(response.body.find(kUser), std::string::npos) << response.body;
    return response;
  }
  json page(const std::string& path, std::vector<net::NameValue> query = {}) {
    const auto response = ask(path, std::move(query));
    EXPECT_EQ(response.status, 200) << path << response.body;
    return json::parse(response.body);
  }
  // Every id of a list, page by page; each page but the last is full.
  std::vector<std::string> walk(const std::string& path, std::size_t limit,
                                const std::vector<net::NameValue>& query = {}) {
    std::vector<std::string> ids;
    auto asked = query;
    asked.emplace_back("limit", std::to_string(limit));
    for (json at = page(path, asked);;) {
      for (const auto& item : at["items"]) ids.push_back(item["id"]);
      if (!at.contains("nextCursor")) return ids;
      EXPECT_EQ(at["items"].size(), limit);
      auto next = asked;
      next.emplace_back("cursor", at["nextCursor"]);
      at = page(path, next);
    }
  }
  ports::LeaseHolder enter(const std::string& name) {
    ports::RegisterWorkerRequest request;
    request.cluster_id = "local";
    request.worker = WorkerId(name);
    request.instance = InstanceId("i");
    request.zone = "z";
    const auto answer = controller_->worker_service().register_worker(request, {}, Deadline{});
    EXPECT_TRUE(answer);
    return {request.worker, request.instance, answer->session};
  }

  test::RecordingEvents events_;
  SplitMix64 random_{1};
  config::LoadResult loaded_;
  std::unique_ptr<Controller> controller_;
  std::unique_ptr<ConfigReload> reload_;
  http::Router router_{fixture_.crypto()};
};

TEST_F(AdminPages, StatusIsOnePageAboutEverything) {
  enter("w");
  const json status = page("/v1/status");
  EXPECT_EQ(status["version"], "1.2.3");
  EXPECT_EQ(status["cluster"], "local");
  EXPECT_EQ(status["instance"], "instance");
  EXPECT_EQ(status["storage"]["mode"], "embedded");
  EXPECT_EQ(status["storage"]["exclusive"], true);
  ASSERT_EQ(status["workers"].size(), 1U);
  EXPECT_EQ(status["workers"][0]["id"], "w");
  EXPECT_EQ(status["workers"][0]["zone"], "z");
  ASSERT_EQ(status["upstreams"].size(), 2U);
  ASSERT_EQ(status["routings"].size(), 3U);
  EXPECT_EQ(status["routings"][0]["upstreams"], json::array({"one"}));
  EXPECT_TRUE(status["checkers"].empty());
  // What an operator should know at once.
  ASSERT_EQ(status["warnings"].size(), 1U);
  EXPECT_NE(status["warnings"][0].get<std::string>().find("no checker"), std::string::npos);
}

TEST_F(AdminPages, AnUpstreamShowsItsInventoryAndItsLastFetch) {
  pass_new();
  advance(seconds(1));
  step();
  const json one = page("/v1/upstreams/one");
  EXPECT_EQ(one["proxies"]["managed"], 25);
  EXPECT_EQ(one["proxies"]["byState"]["available"], 25);
  EXPECT_EQ(one["slots"]["available"], 250);
  EXPECT_EQ(one["leader"], true);
  EXPECT_EQ(one["fetch"]["success"], 1);
  EXPECT_EQ(one["fetch"]["admitted"], 25);
  EXPECT_EQ(one["fetch"]["last"]["class"], "success");
  EXPECT_EQ(page("/v1/upstreams")["items"][0]["id"], "one");
  const auto unknown = ask("/v1/upstreams/three");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(json::parse(unknown.body)["code"], "not_found");
}

TEST_F(AdminPages, AProxyShowsItsLifeAndItsOwnerWithoutItsCredential) {
  const auto holder = enter("w");
  pass_new();
  const std::string id = page("/v1/proxies", {{"limit", "1"}})["items"][0]["id"];
  const ProxyId number(std::stoull(id, nullptr, 16));
  EXPECT_FALSE(page("/v1/proxies/" + id).contains("owner"));
  assign(holder, {number});
  report(holder, {{number, Epoch(1), 2, 1, false}}, 0);
  const json proxy = page("/v1/proxies/" + id);
  EXPECT_EQ(proxy["state"], "available");
  EXPECT_EQ(proxy["ownership"], "owned");
  EXPECT_EQ(proxy["owner"], "w");
  EXPECT_EQ(proxy["active"], 2);
  EXPECT_EQ(proxy["reserved"], 1);
  EXPECT_EQ(proxy["host"].get<std::string>().rfind("192.0.2.", 0), 0U);
  EXPECT_GT(proxy["remainingTtlSeconds"].get<int>(), 200);
  EXPECT_TRUE(proxy.contains("lastSuccessAt"));
  EXPECT_FALSE(proxy.contains("orphanedUntil"));
  for (const auto& [key, value] : proxy.items()) {
    EXPECT_EQ(key.find("user"), std::string::npos);
    EXPECT_EQ(key.find("password"), std::string::npos);
    EXPECT_EQ(key.find("redential"), std::string::npos);
  }
  for (const char* wrong : {"0000000000000000", "12", "zzzzzzzzzzzzzzzz", "-000000000000001"}) {
    EXPECT_EQ(ask(std::string("/v1/proxies/") + wrong).status, 404) << wrong;
  }
}

TEST_F(AdminPages, ProxiesComeInPagesThatMissNothing) {
  const auto all = walk("/v1/proxies", 1'000);
  EXPECT_EQ(all.size(), 28U);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_EQ(walk("/v1/proxies", 5), all);
  EXPECT_EQ(walk("/v1/proxies", 28), all);  // a full last page
  EXPECT_EQ(walk("/v1/proxies", 10, {{"upstream", "one"}}).size(), 25U);
  EXPECT_EQ(walk("/v1/proxies", 10, {{"upstream", "one,two"}}), all);
  EXPECT_EQ(walk("/v1/proxies", 10, {{"state", "available"}}).size(), 0U);
  pass_new();
  EXPECT_EQ(walk("/v1/proxies", 10, {{"state", "available,suspect"}}), all);
  EXPECT_EQ(walk("/v1/proxies", 10, {{"upstream", "unknown"}}).size(), 0U);
}

TEST_F(AdminPages, EveryListHasPages) {
  for (int i = 0; i < 12; ++i) enter("w" + std::to_string(10 + i));
  EXPECT_EQ(walk("/v1/workers", 1'000).size(), 12U);
  EXPECT_EQ(walk("/v1/workers", 5), walk("/v1/workers", 1'000));
  EXPECT_EQ(walk("/v1/workers", 6).size(), 12U);
  EXPECT_EQ(page("/v1/workers", {{"limit", "5"}})["items"].size(), 5U);
  EXPECT_EQ(walk("/v1/upstreams", 1), (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(walk("/v1/routings", 1), (std::vector<std::string>{"to-one", "to-two", "turn"}));
  EXPECT_TRUE(walk("/v1/checkers", 1).empty());
  // Of a worker that is gone meanwhile the list goes on after its place.
  EXPECT_EQ(page("/v1/workers", {{"cursor", "w105"}})["items"][0]["id"], "w11");
}

TEST_F(AdminPages, AQueryThatCannotBeUsedIsRefusedWithEveryReason) {
  const auto refused = ask("/v1/proxies", {{"limit", "0"}, {"state", "happy"}, {"cursor", "x"}});
  EXPECT_EQ(refused.status, 400);
  const json problem = json::parse(refused.body);
  EXPECT_EQ(problem["code"], "validation_failed");
  std::set<std::string> paths;
  for (const auto& error : problem["errors"]) paths.insert(error["path"]);
  EXPECT_EQ(paths, (std::set<std::string>{"limit", "state", "cursor"}));
  EXPECT_EQ(ask("/v1/workers", {{"limit", "1001"}}).status, 400);
  EXPECT_EQ(ask("/v1/upstreams", {{"limit", "-1"}}).status, 400);
}

TEST_F(AdminPages, AWorkerShowsItsVersions) {
  enter("w");
  const json worker = page("/v1/workers/w");
  EXPECT_EQ(worker["live"], true);
  EXPECT_EQ(worker["draining"], false);
  EXPECT_TRUE(worker["snapshot"]["issued"].is_null());
  EXPECT_TRUE(worker["snapshot"]["acknowledged"].is_null());
  advance(seconds(61));  // without a report its session ends
  EXPECT_EQ(page("/v1/workers/w")["live"], false);
  EXPECT_EQ(ask("/v1/workers/other").status, 404);
}

std::string tag_of(const net::HttpResponse& response) {
  for (const auto& [name, value] : response.fields) {
    if (name == "ETag") return value;
  }
  return {};
}

// CT-40, AD-2: an operator's word, under the fence of what was seen.
TEST_F(AdminPages, ASequentialRoutingIsMovedByWhoHasSeenWhereItStands) {
  const auto seen = ask("/v1/routings/turn");
  EXPECT_EQ(json::parse(seen.body)["current"], "one");
  const std::string tag = tag_of(seen);
  EXPECT_FALSE(tag.empty());
  const auto moved = post("/v1/routings/turn:switch", R"({"to":"two"})", tag);
  EXPECT_EQ(moved.status, 200) << moved.body;
  EXPECT_EQ(json::parse(moved.body)["current"], "two");
  EXPECT_NE(tag_of(moved), tag);
  const auto late = post("/v1/routings/turn:switch", R"({"to":"one"})", tag);
  EXPECT_EQ(late.status, 412);
  EXPECT_EQ(json::parse(late.body)["code"], "stale");
  step();
  const json routing = page("/v1/routings/turn");
  EXPECT_EQ(routing["current"], "two");
  ASSERT_EQ(routing["history"].size(), 1U);
  EXPECT_EQ(routing["history"][0]["to"], "two");
  EXPECT_EQ(routing["history"][0]["actor"], "local at 0.0.0.0");
  EXPECT_EQ(post("/v1/routings/turn:switch", R"({"to":"one"})", "*").status, 200);
}

TEST_F(AdminPages, AWriteThatCannotBeIsRefusedWithItsReason) {
  const auto code = [&](const std::string& path, const std::string& body,
                        const std::string& tag = "") {
    const auto response = post(path, body, tag);
    return std::to_string(response.status) + " " +
           json::parse(response.body)["code"].get<std::string>();
  };
  EXPECT_EQ(code("/v1/routings/turn:switch", R"({"to":"two"})", "2"), "400 bad_request");
  EXPECT_EQ(code("/v1/routings/turn:switch", R"({"to":"two"})", "\"x\""), "400 bad_request");
  EXPECT_EQ(code("/v1/routings/turn:switch", R"({"to":2,"why":1})"), "400 validation_failed");
  EXPECT_EQ(code("/v1/routings/turn:switch", "[]"), "400 not_json");
  EXPECT_EQ(code("/v1/routings/turn:switch", ""), "415 unsupported_media_type");
  EXPECT_EQ(code("/v1/routings/to-one:switch", R"({"to":"one"})"), "400 bad_request");
  EXPECT_EQ(code("/v1/routings/nobody:enable", ""), "404 not_found");
  EXPECT_EQ(ask("/v1/routings/turn:switch").status, 405);
  EXPECT_EQ(post("/v1/routings/turn:else").status, 404);
}

TEST_F(AdminPages, ARoutingIsSwitchedOffAndOnBesideTheConfiguration) {
  EXPECT_EQ(post("/v1/routings/to-two:disable").status, 200);
  step();
  EXPECT_EQ(page("/v1/routings/to-two")["enabled"], false);
  EXPECT_EQ(page("/v1/status")["warnings"].size(), 2U);
  EXPECT_EQ(post("/v1/routings/to-two:enable").status, 200);
  step();
  EXPECT_EQ(page("/v1/routings/to-two")["enabled"], true);
  EXPECT_EQ(page("/v1/routings/to-two")["history"].size(), 2U);
}

TEST_F(AdminPages, TheConfigurationIsShownWithoutSecretsAndEveryErrorIsTold) {
  const json shown = page("/v1/config");
  EXPECT_EQ(shown["file"], "pool.yaml");
  EXPECT_EQ(shown["revision"], 1);
  EXPECT_NE(shown["effective"].get<std::string>().find("id: turn"), std::string::npos);
  loaded_.errors = {{{3, 7}, "a.b", "is wrong", "try c"}, {{}, "", "cannot be read", ""}};
  const auto refused = post("/v1/config:reload");
  EXPECT_EQ(refused.status, 422);
  const json problem = json::parse(refused.body);
  EXPECT_EQ(problem["code"], "config_invalid");
  EXPECT_EQ(problem["errors"],
            (json::array({{{"path", "a.b"}, {"message", "pool.yaml:3:7: is wrong (try c)"}},
                          {{"path", ""}, {"message", "pool.yaml: cannot be read"}}})));
  EXPECT_EQ(page("/v1/config")["rejected"], problem["errors"]);
}

}  // namespace
}  // namespace proxypool::controller
