// What asking who somebody is costs a request whose answer is known (GW-10: under 1 µs). Median of
// CPU time of 15 runs on a busy two-core machine, -O2:
//   warm_password            62 ns   a user name with parameters
//   warm_key_as_user_name    69 ns   the same
//   warm_bearer              49 ns
//   known_address            59 ns   one of 10,000 ranges of eight lengths
//   any_of_all              361 ns   its address is looked up in vain, in eight lengths
// The digest of the first three was HMAC-SHA-256 before: 283, 263 and 205 ns, and a third of all
// instructions of a GET.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapters/crypto/openssl_crypto.hpp"
#include "gateway/ingress/authenticator.hpp"
#include "net/event_loop.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::gateway {
namespace {

using Way = Settings::Auth;

constexpr const char* kKey = "4f1c9a0e7b3d58264f1c9a0e7b3d5826";
const IpAddress kStranger = IpAddress::v4(0xCB007107);

// 10,000 clients with an address range each, of eight lengths; one has a password, one a key.
class Desk {
 public:
  explicit Desk(Authenticator::Ways ways) : authenticator_(verifier_, asker_, std::move(ways)) {
    std::vector<domain::SnapshotClient> clients(10'000);
    for (std::uint32_t i = 0; i < clients.size(); ++i) {
      clients[i].name = ClientName("client-" + std::to_string(i));
      clients[i].sources = {Cidr::around(IpAddress::v4(0x0A000000 + (i << 10U)), 24 + i % 8)};
    }
    clients[17].gateway_secret = crypto_->hash_password("se:cret", {4, 1, 1})->str();
    clients[18].gateway_secret = crypto_->hash_api_key(kKey).str();
    clients_ = ClientTable(clients);
  }
  ~Desk() { verifier_.stop(); }
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  Principal ask(const std::string& value, const IpAddress& source = kStranger) {
    return authenticator_.check({clients_, 1, true}, value, source, TimePoint{} + seconds(100));
  }
  // Asks until the answer is known, and then again and again.
  void run(benchmark::State& state, const std::string& value, const IpAddress& source = kStranger) {
    while (ask(value, source).verdict == Principal::Verdict::Pending) {
      loop_.turn(milliseconds(10));
    }
    if (ask(value, source).verdict != Principal::Verdict::Accepted) {
      return state.SkipWithError("not accepted");
    }
    for (auto _ : state) benchmark::DoNotOptimize(ask(value, source));
  }

 private:
  std::unique_ptr<ports::Crypto> crypto_ = crypto::make_openssl_crypto();
  net::EventLoop loop_;
  Verifier verifier_{*crypto_};
  Verifier::Asker asker_{loop_, [](const CredentialKey&, Verifier::Verdict) {}};
  ClientTable clients_;
  Authenticator authenticator_;
};

std::string basic(const std::string& pair) {
  return "Basic " + base64_encode(pair);
}

void warm_password(benchmark::State& state) {
  Desk desk({Way::UsernamePassword});
  desk.run(state, basic("client-17-country-us-session-a1:se:cret"));
}
BENCHMARK(warm_password);

void warm_key_as_user_name(benchmark::State& state) {
  Desk desk({Way::ApiKey});
  desk.run(state, basic(std::string(kKey) + "-session-a1:"));
}
BENCHMARK(warm_key_as_user_name);

void warm_bearer(benchmark::State& state) {
  Desk desk({Way::Bearer});
  desk.run(state, std::string("Bearer ") + kKey);
}
BENCHMARK(warm_bearer);

void known_address(benchmark::State& state) {
  Desk desk({Way::IpWhitelist});
  desk.run(state, {}, IpAddress::v4(0x0A000000 + (4711U << 10U)));
}
BENCHMARK(known_address);

// Its address is looked up in vain, and then what it shows.
void any_of_all(benchmark::State& state) {
  Desk desk({Way::IpWhitelist, Way::Bearer, Way::ApiKey, Way::UsernamePassword});
  desk.run(state, basic("client-17:se:cret"));
}
BENCHMARK(any_of_all);

}  // namespace
}  // namespace proxypool::gateway

BENCHMARK_MAIN();
