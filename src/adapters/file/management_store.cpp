// Management state as one JSON document in one note: read from memory, written whole. What clients
// moved changes every second and is a log of its own.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "adapters/file/file_stores.hpp"
#include "adapters/file/usage_book.hpp"
#include "proxypool/base/concurrent.hpp"

namespace proxypool::file {

namespace {

using nlohmann::json;

constexpr std::string_view kNote = "management";
constexpr std::size_t kAuditEntriesMax = 10'000;  // the oldest is dropped

struct Document {
  std::map<std::string, ports::UpstreamState> upstreams;
  std::map<std::string, ports::RoutingState> routings;
  std::optional<ports::ConfigRevision> revision;
  std::vector<ports::AuditEntry> audit;  // oldest first
  std::uint64_t audit_sequence = 0;
};

json to_json(const Document& document) {
  json out{{"version", 1}, {"auditSequence", document.audit_sequence}};
  json& upstreams = out["upstreams"] = json::array();
  for (const auto& [id, state] : document.upstreams) {
    upstreams.push_back({{"id", id},
                         {"enabled", state.enabled},
                         {"spent", state.spent_total},
                         {"revision", state.revision}});
  }
  json& routings = out["routings"] = json::array();
  for (const auto& [id, state] : document.routings) {
    json row{{"id", id}, {"enabled", state.enabled}, {"revision", state.revision}};
    if (state.current) row["current"] = state.current->str();
    routings.push_back(std::move(row));
  }
  if (document.revision) {
    out["config"] = {{"revision", document.revision->revision},
                     {"fingerprint", document.revision->fingerprint},
                     {"at", document.revision->activated_at.time_since_epoch().count()}};
  }
  json& audit = out["audit"] = json::array();
  for (const ports::AuditEntry& entry : document.audit) {
    audit.push_back({{"sequence", entry.sequence},
                     {"at", entry.at.time_since_epoch().count()},
                     {"actor", entry.actor},
                     {"action", entry.action},
                     {"subject", entry.subject},
                     {"detail", entry.detail},
                     {"result", entry.result}});
  }
  return out;
}

WallTime wall_time(const json& value) {
  return WallTime{milliseconds{value.get<std::int64_t>()}};
}

// Throws json::exception on a document that is not ours.
Document from_json(const json& in) {
  Document document;
  document.audit_sequence = in.at("auditSequence").get<std::uint64_t>();
  for (const json& row : in.at("upstreams")) {
    ports::UpstreamState state;
    state.upstream = UpstreamId(row.at("id").get<std::string>());
    state.enabled = row.at("enabled").get<bool>();
    state.spent_total = row.at("spent").get<std::uint64_t>();
    state.revision = row.at("revision").get<std::uint64_t>();
    document.upstreams.emplace(state.upstream.str(), state);
  }
  for (const json& row : in.at("routings")) {
    ports::RoutingState state;
    state.routing = RoutingId(row.at("id").get<std::string>());
    state.enabled = row.at("enabled").get<bool>();
    state.revision = row.at("revision").get<std::uint64_t>();
    if (row.contains("current")) {
      state.current = UpstreamId(row.at("current").get<std::string>());
    }
    document.routings.emplace(state.routing.str(), state);
  }
  if (in.contains("config")) {
    const json& row = in.at("config");
    document.revision =
        ports::ConfigRevision{row.at("revision").get<std::uint64_t>(),
                              row.at("fingerprint").get<std::string>(), wall_time(row.at("at"))};
  }
  for (const json& row : in.at("audit")) {
    document.audit.push_back(
        {row.at("sequence").get<std::uint64_t>(), wall_time(row.at("at")),
         row.at("actor").get<std::string>(), row.at("action").get<std::string>(),
         row.at("subject").get<std::string>(), row.at("detail").get<std::string>(),
         row.at("result").get<std::string>()});
  }
  return document;
}

void add_audit(Document& document, ports::AuditEntry entry) {
  entry.sequence = ++document.audit_sequence;
  document.audit.push_back(std::move(entry));
  if (document.audit.size() > kAuditEntriesMax) document.audit.erase(document.audit.begin());
}

class FileManagementStore final : public ports::ManagementStore {
 public:
  FileManagementStore(ports::DurableNotes& notes, Document document,
                      std::unique_ptr<UsageBook> usage)
      : notes_(notes), document_(std::move(document)), usage_(std::move(usage)) {}

  Result<ports::UpstreamState> upstream_state(const UpstreamId& upstream, Deadline) override {
    return document_.with([&](const Document& document) -> Result<ports::UpstreamState> {
      const auto found = document.upstreams.find(upstream.str());
      if (found != document.upstreams.end()) return found->second;
      ports::UpstreamState state;
      state.upstream = upstream;
      return state;
    });
  }

  Result<ports::UpstreamState> put_upstream_state(const ports::UpstreamState& state,
                                                  const std::optional<ports::AuditEntry>& audit,
                                                  Deadline) override {
    return change([&](Document& document) -> Result<ports::UpstreamState> {
      return put(document, document.upstreams[state.upstream.str()], state, audit);
    });
  }

  Result<ports::RoutingState> routing_state(const RoutingId& routing, Deadline) override {
    return document_.with([&](const Document& document) -> Result<ports::RoutingState> {
      const auto found = document.routings.find(routing.str());
      if (found != document.routings.end()) return found->second;
      ports::RoutingState state;
      state.routing = routing;
      return state;
    });
  }

  Result<ports::RoutingState> put_routing_state(const ports::RoutingState& state,
                                                const std::optional<ports::AuditEntry>& audit,
                                                Deadline) override {
    return change([&](Document& document) -> Result<ports::RoutingState> {
      return put(document, document.routings[state.routing.str()], state, audit);
    });
  }

  Result<std::optional<ports::ConfigRevision>> config_revision(Deadline) override {
    return document_.with(
        [](const Document& document) -> Result<std::optional<ports::ConfigRevision>> {
          return document.revision;
        });
  }

  Result<ports::ConfigRevision> activate_config(const std::string& fingerprint, WallTime at,
                                                Deadline) override {
    return change([&](Document& document) -> Result<ports::ConfigRevision> {
      if (!document.revision || document.revision->fingerprint != fingerprint) {
        const std::uint64_t next = document.revision ? document.revision->revision + 1 : 1;
        document.revision = ports::ConfigRevision{next, fingerprint, at};
      }
      return *document.revision;
    });
  }

  Status append_audit(const ports::AuditEntry& entry, Deadline) override {
    return change([&](Document& document) -> Status {
      add_audit(document, entry);
      return ok();
    });
  }

  Result<std::vector<ports::AuditEntry>> audit(std::uint64_t before, std::uint32_t limit,
                                               Deadline) override {
    return document_.with([&](const Document& document) -> Result<std::vector<ports::AuditEntry>> {
      std::vector<ports::AuditEntry> page;
      const std::size_t wanted = std::min<std::size_t>(limit, 1000);
      for (auto it = document.audit.rbegin(); it != document.audit.rend(); ++it) {
        if (page.size() == wanted) break;
        if (before == 0 || it->sequence < before) page.push_back(*it);
      }
      return page;
    });
  }

  Result<ports::UsageAdded> add_usage(const InstanceId& instance, const domain::UsageBatch& batch,
                                      WallTime at, Deadline) override {
    return usage_->add(instance, batch, domain::day_of(at));
  }
  Result<std::vector<domain::DayUsage>> usage(const ClientName& client, Deadline) override {
    return usage_->of(client);
  }
  Result<std::vector<domain::ClientUsage>> usage_on(domain::Day day, Deadline) override {
    return usage_->on(day);
  }

  [[nodiscard]] ports::StoreHealth health() const override {
    const std::string damage = notes_.damage(kNote);
    return {damage.empty(), damage};
  }

 private:
  template <class State>
  static Result<State> put(Document& document, State& stored, const State& wanted,
                           const std::optional<ports::AuditEntry>& audit) {
    if (stored.revision != wanted.revision) {
      return Error{ErrorCode::Conflict, Origin::Client, "another writer was first"};
    }
    stored = wanted;
    ++stored.revision;
    if (audit) add_audit(document, *audit);
    return stored;
  }

  // Changes a copy, saves it, and only then lets readers see it. Writers wait for each other, not
  // readers for them (AD-4).
  template <class F>
  auto change(F&& f) -> decltype(f(std::declval<Document&>())) {
    return writer_.with([&](const Unit&) -> decltype(f(std::declval<Document&>())) {
      Document copy = document_.with([](const Document& document) { return document; });
      auto result = f(copy);
      if (!result) return result;
      const Status saved = notes_.save(kNote, to_json(copy).dump());
      if (!saved) return saved.error();
      document_.with([&](Document& document) { document = std::move(copy); });
      return result;
    });
  }

  ports::DurableNotes& notes_;
  Guarded<Document> document_;
  Guarded<Unit> writer_;
  const std::unique_ptr<UsageBook> usage_;
};

}  // namespace

Result<std::unique_ptr<ports::ManagementStore>> open_management_store(ports::DurableNotes& notes,
                                                                      ports::DurableLog* usage) {
  PP_TRY(const std::optional<std::string> text, notes.load(kNote));
  Document document;
  if (text) {
    try {
      document = from_json(json::parse(*text));
    } catch (const json::exception&) {
      return Error{ErrorCode::Corrupt, Origin::Store,
                   "the management state was written by another version; move management.note away "
                   "to begin anew"};
    }
  }
  PP_TRY(std::unique_ptr<UsageBook> book, UsageBook::open(usage));
  return std::unique_ptr<ports::ManagementStore>(
      std::make_unique<FileManagementStore>(notes, std::move(document), std::move(book)));
}

}  // namespace proxypool::file
