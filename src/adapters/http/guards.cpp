#include "adapters/http/guards.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::http {

namespace {

constexpr std::size_t kVerdictsMax = 1'024;
constexpr seconds kVerdictLife{60};

// "Basic YWxhZGRpbg==" → ("aladdin", …).
std::optional<std::pair<std::string, SecretString>> basic_credentials(std::string_view field) {
  constexpr std::string_view kScheme = "basic ";
  if (field.size() <= kScheme.size() ||
      !equal_ignoring_case(field.substr(0, kScheme.size()), kScheme)) {
    return std::nullopt;
  }
  auto decoded = base64_decode(trim(field.substr(kScheme.size())));
  if (!decoded) return std::nullopt;
  const SecretString plain(*std::move(decoded));
  const auto text = plain.reveal();
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  return std::pair(std::string(text.substr(0, colon)),
                   SecretString(std::string(text.substr(colon + 1))));
}

Refusal unauthenticated(const std::string& challenge, std::string detail) {
  Refusal refusal{401, "unauthenticated", std::move(detail)};
  refusal.fields.emplace_back("WWW-Authenticate", challenge);
  return refusal;
}

class ClientGuard {
 public:
  ClientGuard(std::string realm, std::vector<RealmClient> clients, GuardNeeds needs)
      : realm_(std::move(realm)),
        clients_(std::move(clients)),
        needs_(needs),
        key_(needs.crypto.random_bytes(32)) {}

  std::optional<Refusal> operator()(Call& call) {
    const std::string challenge = "Basic realm=\"" + realm_ + "\", charset=\"UTF-8\"";
    const auto given = basic_credentials(call.request.field("authorization"));
    if (!given) return unauthenticated(challenge, "send the name and secret of a client");
    const Result<bool> good = verify(given->first, given->second);
    if (!good) return refusal_of(good.error());
    if (!*good) {
      needs_.events.emit(ports::Event::AuthenticationRejected,
                         {{"realm", realm_},
                          {"peer", call.request.peer.str()},
                          {"reason", "wrong name or secret"}});
      return unauthenticated(challenge, "the name or the secret is wrong");
    }
    call.client = given->first;
    return std::nullopt;
  }

 private:
  struct Verdict {
    bool good = false;
    TimePoint until;
  };

  // An error (no memory for the hash) says nothing about the secret, and is not remembered.
  Result<bool> verify(const std::string& name, const SecretString& secret) {
    std::string message = name;
    message += '\0';
    message += secret.reveal();
    const auto digest = needs_.crypto.hmac_sha256(key_.reveal(), message);
    const std::string key(ports::as_view(digest));
    const TimePoint now = needs_.clock.now();
    const auto known = verdicts_.with([&](auto& verdicts) -> std::optional<bool> {
      const auto found = verdicts.find(key);
      if (found == verdicts.end() || now >= found->second.until) return std::nullopt;
      return found->second.good;
    });
    if (known) return *known;
    const auto client = std::find_if(clients_.begin(), clients_.end(),
                                     [&](const RealmClient& c) { return c.name == name; });
    bool good = false;
    if (client != clients_.end()) {
      PP_TRY(good, needs_.crypto.verify(secret.reveal(), client->secret));
    }
    verdicts_.with([&](auto& verdicts) {
      if (verdicts.size() >= kVerdictsMax) verdicts.clear();
      verdicts[key] = {good, now + kVerdictLife};
    });
    return good;
  }

  const std::string realm_;
  const std::vector<RealmClient> clients_;
  GuardNeeds needs_;
  const SecretString key_;  // of this process; what is remembered is no use elsewhere
  Guarded<std::map<std::string, Verdict>> verdicts_;
};

}  // namespace

Guard allow_sources(std::vector<Cidr> allow) {
  return [allow = std::move(allow)](Call& call) -> std::optional<Refusal> {
    if (allow.empty()) return std::nullopt;
    const IpAddress& source = call.request.peer.address;
    const bool inside = std::any_of(allow.begin(), allow.end(),
                                    [&](const Cidr& range) { return range.contains(source); });
    if (inside) return std::nullopt;
    return Refusal{403, "source_denied", "this source address is not allowed"};
  };
}

Guard require_client(std::string realm, std::vector<RealmClient> clients, GuardNeeds needs) {
  auto guard = std::make_shared<ClientGuard>(std::move(realm), std::move(clients), needs);
  return [guard](Call& call) { return (*guard)(call); };
}

Guard require_token(std::string realm, std::vector<RealmToken> tokens, Role needed,
                    GuardNeeds needs) {
  return [realm = std::move(realm), tokens = std::move(tokens), needed,
          needs](Call& call) -> std::optional<Refusal> {
    constexpr std::string_view kScheme = "bearer ";
    const std::string challenge = "Bearer realm=\"" + realm + "\"";
    const std::string_view field = call.request.field("authorization");
    if (field.size() <= kScheme.size() ||
        !equal_ignoring_case(field.substr(0, kScheme.size()), kScheme)) {
      return unauthenticated(challenge, "send Authorization: Bearer and the token");
    }
    const auto given = trim(field.substr(kScheme.size()));
    const RealmToken* known = nullptr;
    for (const RealmToken& token : tokens) {
      if (SecretString::equal_in_constant_time(given, token.token.reveal())) known = &token;
    }
    if (known && known->role >= needed) {
      call.client = known->name;
      return std::nullopt;
    }
    needs.events.emit(ports::Event::AuthenticationRejected,
                      {{"realm", realm},
                       {"peer", call.request.peer.str()},
                       {"reason", known ? known->name + " may not do this" : "wrong token"}});
    if (known) return Refusal{403, "forbidden", "this token may not do this"};
    return unauthenticated(challenge, "the token is wrong");
  };
}

Guard require_requested_by() {
  return [](Call& call) -> std::optional<Refusal> {
    if (!call.request.field("x-requested-by").empty()) return std::nullopt;
    return Refusal{403, "requested_by_missing",
                   "without authentication a write needs the field X-Requested-By, with any text"};
  };
}

LiveGuard::LiveGuard(Guard guard) : cell_(std::make_shared<Cell>()) {
  set(std::move(guard));
}

void LiveGuard::set(Guard guard) {
  auto next = std::make_shared<const Guard>(std::move(guard));
  cell_->with([&](auto& current) { current = std::move(next); });
}

Guard LiveGuard::guard() const {
  return [cell = cell_](Call& call) {
    const auto current = cell->with([](const auto& guard) { return guard; });
    return (*current)(call);
  };
}

Guard require_local_page(std::vector<std::string> hosts) {
  return [hosts = std::move(hosts)](Call& call) -> std::optional<Refusal> {
    const std::string host = lower(call.request.field("host"));
    const auto named = [&](std::string_view wanted) {
      return host == wanted || (host.size() > wanted.size() && host[wanted.size()] == ':' &&
                                std::string_view(host).substr(0, wanted.size()) == wanted);
    };
    if (!hosts.empty() && std::none_of(hosts.begin(), hosts.end(), named)) {
      return Refusal{403, "foreign_host",
                     "without authentication this API answers only under its own address"};
    }
    const std::string_view site = call.request.field("sec-fetch-site");
    const std::string_view origin = call.request.field("origin");
    const bool foreign_site = !site.empty() && site != "same-origin" && site != "none";
    const bool foreign_origin = !origin.empty() && lower(origin) != "http://" + host;
    if (foreign_site || foreign_origin) {
      return Refusal{403, "foreign_page", "without authentication web pages may not call this API"};
    }
    return std::nullopt;
  };
}

Guard all_of(std::vector<Guard> guards) {
  return [guards = std::move(guards)](Call& call) -> std::optional<Refusal> {
    for (const Guard& guard : guards) {
      if (auto refusal = guard(call)) return refusal;
    }
    return std::nullopt;
  };
}

}  // namespace proxypool::http
