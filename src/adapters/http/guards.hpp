// Who may call: the realms of Distribution and Admin, each independent of the other (GW-10).
//
// Thread rule: any thread. Verifying a password takes 70 ms once and is remembered for a minute, so
//              guards run on a bounded pool, never on a loop.
// Limits:      1,024 remembered verdicts a realm.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "adapters/http/router.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/ip.hpp"
#include "proxypool/base/secret.hpp"
#include "proxypool/base/stored_hash.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/ports/crypto.hpp"
#include "proxypool/ports/telemetry.hpp"

namespace proxypool::http {

struct GuardNeeds {
  const ports::Crypto& crypto;
  const Clock& clock;
  ports::Events& events;
};

struct RealmClient {
  std::string name;
  StoredHash secret;
};

// Sources outside `allow` are refused with 403 `source_denied`; an empty list allows every one.
Guard allow_sources(std::vector<Cidr> allow);

// HTTP Basic with the name and secret of a client; 401 otherwise. Sets Call::client.
Guard require_client(std::string realm, std::vector<RealmClient> clients, GuardNeeds needs);

// What a bearer token may do: each role what those before it may.
enum class Role : std::uint8_t { Read, Write, Admin };
struct RealmToken {
  std::string name;  // "readToken"
  SecretString token;
  Role role = Role::Read;
};

// `Authorization: Bearer TOKEN`; 401 for one that is none of these, 403 for one that may not do
// this. Sets Call::client to the token's name.
Guard require_token(std::string realm, std::vector<RealmToken> tokens, Role needed,
                    GuardNeeds needs);

// For writes on a listener without authentication: 403 without the field X-Requested-By, which no
// web page can send across sites without being asked.
Guard require_requested_by();

// Another guard may take its place while requests pass.
class LiveGuard {
 public:
  explicit LiveGuard(Guard guard);
  void set(Guard guard);
  // Asks whichever is in place then. It may outlive the LiveGuard.
  [[nodiscard]] Guard guard() const;

 private:
  using Cell = Guarded<std::shared_ptr<const Guard>>;
  std::shared_ptr<Cell> cell_;
};

// For a listener without authentication: a request whose Host is none of `hosts` (an empty list:
// any will do), or that a foreign web page sent, is refused with 403. A browser on this machine,
// or in the allowed ranges, must not be the way in.
Guard require_local_page(std::vector<std::string> hosts);

// All of them, in order.
Guard all_of(std::vector<Guard> guards);

}  // namespace proxypool::http
