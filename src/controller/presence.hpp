// Who comes and who goes, as events: workers and checkers, by looking at the registry.
//
//   Presence presence(registry, events);
//   next = presence.step(now);
//
// Thread rule: one thread at a time.
#pragma once

#include <map>
#include <string>

#include "proxypool/base/id.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/ports/telemetry.hpp"
#include "proxypool/ports/worker_registry.hpp"

namespace proxypool::controller {

class Presence {
 public:
  Presence(ports::WorkerRegistry& registry, ports::Events& events)
      : registry_(registry), events_(events) {}

  // A registry that does not answer is looked at again; nobody is said to be lost meanwhile.
  TimePoint step(TimePoint now);

 private:
  void look_at_workers(const std::vector<ports::WorkerRow>& rows);
  void look_at_checkers(const std::vector<ports::WorkerRegistry::CheckerRow>& rows);

  ports::WorkerRegistry& registry_;
  ports::Events& events_;
  std::map<WorkerId, SessionId> workers_;  // the live ones
  std::map<CheckerId, SessionId> checkers_;
};

}  // namespace proxypool::controller
