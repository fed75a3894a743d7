// The compiled matcher: which routing does a request belong to? (GW-30, ruling R2)
//
// For each match field the compiler makes a table from value to the set of rules whose field
// accepts that value, rules without the field included. A request looks up one set a field, and
// the first rule in all of them wins. Nothing is tried rule by rule, so that the cost does not
// grow with their number. Hosts: a hash of exact names, then of suffixes from the longest on (each
// suffix's set includes those of the shorter ones); regular expressions go through HostVerdicts.
//
// Thread rule: immutable once compiled.
// Limits:      kRulesMax routings, kTagKeysMax different tag keys in rules; over: not compiled.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "proxypool/base/result.hpp"
#include "proxypool/domain/cluster/snapshot.hpp"
#include "proxypool/domain/routing/host_regex.hpp"
#include "proxypool/domain/routing/policy.hpp"
#include "proxypool/domain/routing/rule_set.hpp"

namespace proxypool::domain {

struct RequestTag {
  std::string_view key;
  std::string_view value;
};

// What routing knows of a request. Views: good for as long as the request's buffers.
struct RouteRequest {
  static constexpr std::uint32_t kNoClient = UINT32_MAX;

  RequestKind kind = RequestKind::Http;
  std::string_view host;  // canonical: lower case, A-labels, no final dot, no brackets
  std::uint16_t port = 0;
  std::string_view method;           // http only
  std::string_view path;             // http only, without the query
  std::uint32_t client = kNoClient;  // index into the snapshot's clients
  std::span<const RequestTag> tags;  // what the client asked for
};

namespace routing_detail {

struct TextHash : std::hash<std::string_view> {
  using is_transparent = void;
};

// One match field: from a value to the rules that accept it. Values that the same rules name share
// one set, so that a list of 100,000 hosts costs its names only.
//
// Thread rule: one thread until close(), then immutable.
template <class Key>
class Field {
 public:
  using Rules = std::vector<std::uint32_t>;

  explicit Field(std::size_t rules) : any_(rules) {}

  void accept_any(std::uint32_t rule) { any_.add(rule); }
  Rules& accept(const Key& value) { return named_[value]; }
  void accept(const Key& value, std::uint32_t rule) { named_[value].push_back(rule); }
  [[nodiscard]] std::map<Key, Rules>& named() noexcept { return named_; }

  // Rules without the field accept every value.
  void close() {
    std::map<Rules, std::uint32_t> known;
    for (auto& [value, rules] : named_) {
      std::sort(rules.begin(), rules.end());
      rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
      const auto [place, added] =
          known.try_emplace(rules, static_cast<std::uint32_t>(sets_.size()));
      if (added) {
        sets_.push_back(any_);
        for (const std::uint32_t rule : rules) sets_.back().add(rule);
      }
      index_.emplace(value, place->second);
    }
    named_.clear();
  }

  // The set of exactly this value, or null.
  template <class Asked>
  [[nodiscard]] const RuleSet* named(const Asked& value) const {
    if (index_.empty()) return nullptr;
    const auto found = index_.find(value);
    return found == index_.end() ? nullptr : &sets_[found->second];
  }
  template <class Asked>
  [[nodiscard]] const RuleSet& find(const Asked& value) const {
    const RuleSet* set = named(value);
    return set != nullptr ? *set : any_;
  }
  [[nodiscard]] const RuleSet& any() const noexcept { return any_; }

 private:
  using Index =
      std::conditional_t<std::is_same_v<Key, std::string>,
                         std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>>,
                         std::unordered_map<Key, std::uint32_t>>;
  std::map<Key, Rules> named_;  // until close()
  Index index_;
  std::vector<RuleSet> sets_;
  RuleSet any_;
};

// Hosts: exact names and "*.suffix" patterns.
class HostField {
 public:
  explicit HostField(std::size_t rules) : exact_(rules), suffix_(rules) {}

  void accept_any(std::uint32_t rule) {
    exact_.accept_any(rule);
    suffix_.accept_any(rule);
  }
  void accept(std::string_view pattern, std::uint32_t rule) {
    if (pattern.substr(0, 2) == "*.") {
      suffix_.accept(std::string(pattern.substr(2)), rule);
    } else {
      exact_.accept(std::string(pattern), rule);
    }
  }
  // Each set takes in the sets of all shorter suffixes, so that one look-up says everything.
  void close() {
    std::vector<std::string> suffixes;
    for (const auto& [suffix, rules] : suffix_.named()) suffixes.push_back(suffix);
    std::stable_sort(suffixes.begin(), suffixes.end(),
                     [](const auto& a, const auto& b) { return a.size() < b.size(); });
    for (const auto& suffix : suffixes) inherit(suffix, suffix_.accept(suffix));
    for (auto& [host, rules] : exact_.named()) inherit(host, rules);
    exact_.close();
    suffix_.close();
  }
  [[nodiscard]] const RuleSet& find(std::string_view host) const {
    if (const RuleSet* set = exact_.named(host)) return *set;
    for (auto dot = host.find('.'); dot != std::string_view::npos; dot = host.find('.', dot + 1)) {
      if (const RuleSet* set = suffix_.named(host.substr(dot + 1))) return *set;
    }
    return suffix_.any();
  }

 private:
  using Rules = Field<std::string>::Rules;

  void inherit(const std::string& host, Rules& rules) {
    for (auto dot = host.find('.'); dot != std::string::npos; dot = host.find('.', dot + 1)) {
      const auto above = suffix_.named().find(host.substr(dot + 1));
      if (above == suffix_.named().end()) continue;
      rules.insert(rules.end(), above->second.begin(), above->second.end());
      return;  // the longest one has inherited already
    }
  }
  Field<std::string> exact_;
  Field<std::string> suffix_;
};

// Path prefixes: the longest one that a path begins with, found by binary search.
class PathField {
 public:
  explicit PathField(std::size_t rules) : field_(rules) {}

  void accept_any(std::uint32_t rule) { field_.accept_any(rule); }
  void accept(const std::string& prefix, std::uint32_t rule) { field_.accept(prefix, rule); }
  void close() {
    for (auto& [text, rules] : field_.named()) {  // sorted: a prefix comes before what extends it
      std::size_t above = prefixes_.empty() ? kNone : prefixes_.size() - 1;
      while (above != kNone && !text.starts_with(prefixes_[above].text)) {
        above = prefixes_[above].above;
      }
      if (above != kNone) {
        const Rules& inherited = field_.named().at(prefixes_[above].text);
        rules.insert(rules.end(), inherited.begin(), inherited.end());
      }
      prefixes_.push_back({text, above, nullptr});
    }
    field_.close();
    for (auto& prefix : prefixes_) prefix.rules = field_.named(prefix.text);
  }
  [[nodiscard]] const RuleSet& find(std::string_view path) const {
    const auto after = std::upper_bound(
        prefixes_.begin(), prefixes_.end(), path,
        [](std::string_view asked, const Prefix& prefix) { return asked < prefix.text; });
    if (after == prefixes_.begin()) return field_.any();
    std::size_t at = static_cast<std::size_t>(after - prefixes_.begin()) - 1;
    while (at != kNone && !path.starts_with(prefixes_[at].text)) at = prefixes_[at].above;
    return at == kNone ? field_.any() : *prefixes_[at].rules;
  }

 private:
  using Rules = Field<std::string>::Rules;
  static constexpr std::size_t kNone = SIZE_MAX;
  struct Prefix {
    std::string text;
    std::size_t above;  // the longest shorter prefix of it
    const RuleSet* rules;
  };
  Field<std::string> field_;
  std::vector<Prefix> prefixes_;
};

}  // namespace routing_detail

class Matcher {
 public:
  static constexpr std::size_t kRulesMax = 4'096;
  static constexpr std::size_t kTagKeysMax = 32;
  static constexpr std::uint32_t kNone = RuleSet::kNone;

  // Compiles routings in their order; disabled ones match nothing. `compile` is called once if any
  // enabled routing has a host pattern; its error is returned.
  static Result<Matcher> compile(std::span<const SnapshotRouting> routings,
                                 std::span<const SnapshotClient> clients,
                                 const HostRegexCompiler& compile_regexes) {
    if (routings.size() > kRulesMax) return refused("more routings than a worker takes");
    Matcher matcher(routings.size());
    std::vector<HostRegex> patterns;
    Clients by_name(routings.size());
    for (std::uint32_t rule = 0; rule < routings.size(); ++rule) {
      if (!routings[rule].enabled) continue;
      matcher.add_target(routings[rule].match, rule, patterns);
      matcher.add_request(routings[rule].match, rule);
      by_name.add(routings[rule].match.clients, rule);
    }
    if (!matcher.add_tags(routings)) return refused("more tag keys in routings than 32");
    matcher.close(by_name, clients);
    if (!patterns.empty()) {
      PP_TRY(matcher.regexes_, compile_regexes(patterns));
    }
    return matcher;
  }

  // The number of the routing that takes the request, or kNone. Allocates nothing once the host was
  // seen by `verdicts`, and never if there are no host patterns.
  [[nodiscard]] std::uint32_t match(const RouteRequest& request, HostVerdicts& verdicts) const {
    std::array<const RuleSet*, 6 + kTagKeysMax> sets;
    std::size_t count = 0;
    const bool http = request.kind == RequestKind::Http;
    sets[count++] = http ? &http_ : &connect_;
    sets[count++] = regexes_ ? &verdict(request.host, verdicts) : &hosts_.find(request.host);
    sets[count++] = &ports_.find(request.port);
    sets[count++] = &client_sets_[request.client < clients_.size() ? clients_[request.client] : 0];
    if (http) {
      sets[count++] = &methods_.find(request.method);
      sets[count++] = &paths_.find(request.path);
    }
    for (const auto& [key, field] : tags_) {
      const auto asked = std::find_if(request.tags.begin(), request.tags.end(),
                                      [&](const RequestTag& tag) { return tag.key == key; });
      sets[count++] = asked == request.tags.end() ? &field.any() : &field.find(asked->value);
    }
    return RuleSet::first_common({sets.data(), count});
  }

 private:
  using Tag = std::pair<std::string, routing_detail::Field<std::string>>;

  // The names and groups that rules ask for, until each client of the snapshot has its set.
  struct Clients {
    explicit Clients(std::size_t rules) : field(rules) {}
    void add(const std::vector<std::string>& names, std::uint32_t rule) {
      if (names.empty()) field.accept_any(rule);
      for (const auto& name : names) field.accept(name, rule);
    }
    routing_detail::Field<std::string> field;
  };

  explicit Matcher(std::size_t rules)
      : stamp_(next_stamp()),
        rules_(rules),
        http_(rules),
        connect_(rules),
        hosts_(rules),
        ports_(rules),
        methods_(rules),
        paths_(rules) {}

  static Error refused(const char* why) {
    return Error(ErrorCode::InvalidArgument, Origin::Internal, why);
  }
  // Tells the verdicts of one matcher from those of the one before.
  static std::uint64_t next_stamp() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  void add_target(const RoutingMatch& match, std::uint32_t rule, std::vector<HostRegex>& patterns) {
    if (match.hosts.empty() && match.host_regex.empty()) hosts_.accept_any(rule);
    for (const auto& host : match.hosts) hosts_.accept(host, rule);
    for (const auto& pattern : match.host_regex) patterns.push_back({pattern, rule});
    if (match.ports.empty()) ports_.accept_any(rule);
    for (const auto port : match.ports) ports_.accept(port, rule);
  }
  // Methods and paths exist in http requests only: a rule that names one takes no tunnel.
  void add_request(const RoutingMatch& match, std::uint32_t rule) {
    const auto takes = [&](RequestKind kind) {
      return match.kinds.empty() ||
             std::find(match.kinds.begin(), match.kinds.end(), kind) != match.kinds.end();
    };
    const bool http_only = !match.methods.empty() || !match.path_prefixes.empty();
    if (takes(RequestKind::Http)) http_.add(rule);
    if (takes(RequestKind::Connect) && !http_only) connect_.add(rule);
    if (match.methods.empty()) methods_.accept_any(rule);
    for (const auto& method : match.methods) methods_.accept(method, rule);
    if (match.path_prefixes.empty()) paths_.accept_any(rule);
    for (const auto& prefix : match.path_prefixes) paths_.accept(prefix, rule);
  }
  [[nodiscard]] bool add_tags(std::span<const SnapshotRouting> routings) {
    for (const auto& routing : routings) {
      for (const auto& [key, value] : routing.match.tags) {
        const bool known = std::any_of(tags_.begin(), tags_.end(),
                                       [&](const Tag& tag) { return tag.first == key; });
        if (!known) tags_.emplace_back(key, routing_detail::Field<std::string>(rules_));
      }
    }
    if (tags_.size() > kTagKeysMax) return false;
    for (auto& [key, field] : tags_) {
      for (std::uint32_t rule = 0; rule < routings.size(); ++rule) {
        const auto wanted = routings[rule].match.tags.find(key);
        if (wanted == routings[rule].match.tags.end()) {
          field.accept_any(rule);
        } else {
          field.accept(wanted->second, rule);
        }
      }
      field.close();
    }
    return true;
  }
  void close(Clients& by_name, std::span<const SnapshotClient> clients) {
    hosts_.close();
    ports_.close();
    methods_.close();
    paths_.close();
    by_name.field.close();
    client_sets_.push_back(by_name.field.any());
    for (const auto& client : clients) {
      RuleSet rules = by_name.field.find(client.name.str());
      for (const auto& group : client.groups) rules.unite(by_name.field.find(group));
      if (rules != client_sets_.back() && rules != client_sets_.front()) {
        client_sets_.push_back(rules);
      }
      clients_.push_back(rules == client_sets_.front() ? 0U : last_client_set());
    }
  }

  [[nodiscard]] std::uint32_t last_client_set() const noexcept {
    return static_cast<std::uint32_t>(client_sets_.size() - 1);
  }

  const RuleSet& verdict(std::string_view host, HostVerdicts& verdicts) const {
    return verdicts.find(stamp_, host, [&](std::string_view asked) {
      std::vector<std::uint32_t> matched;
      regexes_->match(asked, matched);
      RuleSet rules = hosts_.find(asked);
      for (const std::uint32_t rule : matched) rules.add(rule);
      return rules;
    });
  }

  std::uint64_t stamp_;
  std::size_t rules_;
  RuleSet http_;
  RuleSet connect_;
  routing_detail::HostField hosts_;
  routing_detail::Field<std::uint16_t> ports_;
  routing_detail::Field<std::string> methods_;
  routing_detail::PathField paths_;
  std::vector<Tag> tags_;
  std::vector<RuleSet> client_sets_;    // the first: rules that ask for no client
  std::vector<std::uint32_t> clients_;  // by client: its set
  std::unique_ptr<HostRegexSet> regexes_;
};

}  // namespace proxypool::domain
