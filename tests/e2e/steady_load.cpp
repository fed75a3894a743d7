#include "e2e/steady_load.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>

#include "proxypool/base/random.hpp"
#include "support/eventually.hpp"
#include "support/http_client.hpp"

namespace proxypool::e2e {
namespace {

using std::chrono::milliseconds;
using support::HttpClient;
using support::Reply;

using Steady = std::chrono::steady_clock;

bool is_refusal(const Reply& reply) {
  return reply.complete && reply.status >= 400 &&
         reply.header("Content-Type") == "application/problem+json";
}

std::string random_text(SplitMix64& random, std::size_t bytes) {
  std::string out(bytes, '\0');
  for (char& c : out) c = static_cast<char>('a' + random.below(26));
  return out;
}

// Sixteen pipes a thread are kept for the next bulk tunnels, and its own output may be pipes.
int pipe_ends_max() {
  return 2 * 16 * static_cast<int>(std::max(2U, std::thread::hardware_concurrency())) + 3;
}

}  // namespace

// One client -------------------------------------------------------------------------------------

struct SteadyLoad::Client {
  enum class Outcome : std::uint8_t { Served, Refused, Broken, Wrong };

  std::uint16_t gateway;
  std::string origin;
  SplitMix64 random;
  std::unique_ptr<HttpClient> plain{};
  Outcome outcome = Outcome::Served;
  std::string story{};
  milliseconds took{0};

  // A GET or a POST, in absolute form or inside a tunnel.
  void exchange(HttpClient& client, const std::string& base, const std::string& token, bool post) {
    const std::string body = post ? random_text(random, 1 + random.below(30'000)) : "";
    const std::string length = post ? "Content-Length: " + std::to_string(body.size()) : "X-A: b";
    const std::string target = base + (post ? "/echo?token=" : "/t/") + token;
    const bool sent =
        client.send((post ? "POST " : "GET ") + target + " HTTP/1.1\r\nHost: " + origin + "\r\n" +
                    length + "\r\n\r\n" + body);
    const Reply reply = client.receive();
    if (is_refusal(reply)) return end(Outcome::Refused, reply.body);
    if (!reply.complete) return end(Outcome::Broken, reply.failure);
    const bool right =
        post ? reply.body == body : reply.body.find("\"/t/" + token + "\"") != std::string::npos;
    if (sent && reply.status == 200 && right) return end(Outcome::Served, "");
    end(Outcome::Wrong, target + " got " + std::to_string(reply.status) + " " + reply.body);
  }

  void end(Outcome what, std::string why) {
    outcome = what;
    story = std::move(why);
  }

  void ask_plainly(const std::string& token, bool post) {
    if (plain == nullptr || !plain->connected()) plain = std::make_unique<HttpClient>(gateway);
    exchange(*plain, "http://" + origin, token, post);
    // After a refusal of a request with a body, or a break, the connection is of no more use.
    if (outcome != Outcome::Served) plain.reset();
  }

  void ask_through_tunnel(const std::string& token, bool post) {
    HttpClient tunnel(gateway);
    const bool sent = tunnel.send("CONNECT " + origin + " HTTP/1.1\r\nHost: " + origin +
                                  "\r\nX-Token: " + token + "\r\n\r\n");
    const Reply reply = tunnel.receive("CONNECT");
    if (is_refusal(reply)) return end(Outcome::Refused, reply.body);
    if (!sent || reply.status == 0) return end(Outcome::Broken, reply.failure);
    if (reply.status != 200) {
      return end(Outcome::Wrong, "CONNECT got " + std::to_string(reply.status) + reply.body);
    }
    exchange(tunnel, "", token, post);
  }
};

// The load ---------------------------------------------------------------------------------------

SteadyLoad::SteadyLoad(std::uint16_t gateway, std::uint16_t origin, unsigned clients)
    : gateway_(gateway), origin_("127.0.0.1:" + std::to_string(origin)) {
  for (unsigned i = 0; i < clients; ++i) threads_.emplace_back([this, i] { run(i); });
}

void SteadyLoad::run(unsigned number) {
  Client client{gateway_, origin_, SplitMix64(number + 1)};
  for (std::uint64_t i = 0; !stopping_; ++i) {
    const std::string token = "load-" + std::to_string(::getpid()) + "-" + std::to_string(number) +
                              "-" + std::to_string(i);
    const bool post = i % 2 == 1;
    const auto began = Steady::now();
    if (i % 5 == 4) {
      client.ask_through_tunnel(token, post);
    } else {
      client.ask_plainly(token, post);
    }
    client.took = std::chrono::duration_cast<milliseconds>(Steady::now() - began);
    note(token, client);
  }
}

void SteadyLoad::note(const std::string& name, const Client& client) {
  totals_.with([&](Totals& totals) {
    switch (client.outcome) {
      case Client::Outcome::Served:
        ++totals.served;
        totals.slowest = std::max(totals.slowest, client.took);
        break;
      case Client::Outcome::Refused:
        if (totals.refused++ == 0) totals.first_refused = name + ": " + client.story;
        break;
      case Client::Outcome::Broken:
        if (totals.broken++ == 0) totals.first_broken = name + ": " + client.story;
        break;
      case Client::Outcome::Wrong:
        if (totals.wrong++ == 0) totals.first_wrong = name + ": " + client.story;
        break;
    }
  });
}

SteadyLoad::Totals SteadyLoad::so_far() const {
  return totals_.with([](const Totals& totals) { return totals; });
}

SteadyLoad::Totals SteadyLoad::stop() {
  stopping_ = true;
  for (auto& thread : threads_) thread.join();
  threads_.clear();
  return so_far();
}

bool SteadyLoad::serves(std::uint64_t more) {
  const std::uint64_t before = so_far().served;
  return support::eventually([&] { return so_far().served >= before + more; });
}

// The gateway ------------------------------------------------------------------------------------

int Watch::descriptors() const {
  const std::filesystem::directory_iterator open("/proc/" + std::to_string(pid_) + "/fd");
  return static_cast<int>(std::distance(begin(open), end(open)));
}

int Watch::pipe_ends() const {
  const std::filesystem::directory_iterator open("/proc/" + std::to_string(pid_) + "/fd");
  return static_cast<int>(std::count_if(begin(open), end(open), [](const auto& descriptor) {
    std::error_code gone;
    return std::filesystem::read_symlink(descriptor.path(), gone).string().starts_with("pipe:");
  }));
}

Holdings Watch::holdings() const {
  const std::string text = support::http_get(metrics_, "/metrics").body;
  const auto gauge = [&](const std::string& name) {
    return support::metric_sum(text, "proxypool_gateway_" + name);
  };
  Holdings out;
  out.descriptors = descriptors() - pipe_ends() - static_cast<int>(gauge("idle_upstreams"));
  out.requests = gauge("active_requests");
  out.waiting = gauge("waiting_requests");
  out.tunnels = gauge("active_tunnels");
  out.connections = gauge("client_connections");
  return out;
}

::testing::AssertionResult Watch::back_to(const Holdings& before) const {
  Holdings now;
  const bool back = support::eventually([&] {
    now = holdings();
    return now == before && pipe_ends() <= pipe_ends_max();
  });
  if (back) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "descriptors " << now.descriptors << " (" << before.descriptors << " before), requests "
         << now.requests << ", waiting " << now.waiting << ", tunnels " << now.tunnels
         << ", connections " << now.connections << ", ends of pipes " << pipe_ends();
}

std::uint64_t Watch::resident_bytes() const {
  std::ifstream statm("/proc/" + std::to_string(pid_) + "/statm");
  std::uint64_t pages_all = 0;
  std::uint64_t pages = 0;
  statm >> pages_all >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::chrono::milliseconds Watch::used() const {
  std::ifstream in("/proc/" + std::to_string(pid_) + "/stat");
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  // Behind the name in brackets; user and system time are the fields 14 and 15.
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string skipped;
  for (int i = 3; i < 14; ++i) fields >> skipped;
  long user = 0;
  long system = 0;
  fields >> user >> system;
  return milliseconds((user + system) * 1'000 / ::sysconf(_SC_CLK_TCK));
}

bool sizes_count() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return false;
#else
  return true;
#endif
#else
  return true;
#endif
}

bool all_places_free(support::Cluster& cluster, double places) {
  return support::eventually([&] {
    const auto text = support::http_get(cluster.controller_metrics_port(), "/metrics").body;
    return support::metric_sum(text, "proxypool_upstream_slots_available") == places &&
           support::metric_sum(text, "proxypool_upstream_reserved") == 0;
  });
}

}  // namespace proxypool::e2e
