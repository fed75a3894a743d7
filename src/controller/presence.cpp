#include "controller/presence.hpp"

#include <chrono>
#include <utility>
#include <vector>

namespace proxypool::controller {
namespace {

constexpr milliseconds kLook{500};
constexpr milliseconds kStoreBudget{1'000};

using ports::Event;

// Of the sessions before and those now: who is gone, with the reason.
template <class Id, class Rows, class Name, class Lost>
std::map<Id, SessionId> replace(const std::map<Id, SessionId>& before, const Rows& rows,
                                Name&& name, Lost&& lost) {
  std::map<Id, SessionId> now;
  std::map<Id, bool> known;
  for (const auto& row : rows) {
    known[name(row)] = true;
    if (row.live) now.emplace(name(row), row.session);
  }
  for (const auto& [id, session] : before) {
    const auto still = now.find(id);
    if (still != now.end() && still->second == session) continue;
    const bool replaced = still != now.end();
    lost(id, session,
         replaced             ? "another session took its place"
         : known.contains(id) ? "it does not report any more"
                              : "it left");
  }
  return now;
}

}  // namespace

TimePoint Presence::step(TimePoint now) {
  const Deadline deadline = Deadline::after(now, kStoreBudget);
  if (const auto rows = registry_.workers(deadline)) look_at_workers(*rows);
  if (const auto rows = registry_.checkers(deadline)) look_at_checkers(*rows);
  return now + kLook;
}

void Presence::look_at_workers(const std::vector<ports::WorkerRow>& rows) {
  auto now = replace<WorkerId>(
      workers_, rows, [](const auto& row) { return row.worker; },
      [&](const WorkerId& id, const SessionId& session, std::string_view reason) {
        events_.emit(Event::WorkerLost,
                     {{"worker", id.str()}, {"session", session.str()}, {"reason", reason}});
      });
  for (const ports::WorkerRow& row : rows) {
    const auto known = workers_.find(row.worker);
    if (!row.live || (known != workers_.end() && known->second == row.session)) continue;
    events_.emit(Event::WorkerRegistered, {{"worker", row.worker.str()},
                                           {"instance", row.instance.str()},
                                           {"session", row.session.str()},
                                           {"zone", row.zone}});
  }
  workers_ = std::move(now);
}

void Presence::look_at_checkers(const std::vector<ports::WorkerRegistry::CheckerRow>& rows) {
  auto now = replace<CheckerId>(
      checkers_, rows, [](const auto& row) { return row.checker; },
      [&](const CheckerId& id, const SessionId& session, std::string_view reason) {
        events_.emit(Event::CheckerLost,
                     {{"checker", id.str()}, {"session", session.str()}, {"reason", reason}});
      });
  for (const auto& row : rows) {
    const auto known = checkers_.find(row.checker);
    if (!row.live || (known != checkers_.end() && known->second == row.session)) continue;
    events_.emit(Event::CheckerRegistered,
                 {{"checker", row.checker.str()}, {"session", row.session.str()}});
  }
  checkers_ = std::move(now);
}

}  // namespace proxypool::controller
