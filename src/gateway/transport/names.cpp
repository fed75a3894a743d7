#include "gateway/transport/names.hpp"

#include <utility>

#include "gateway/ingress/connection.hpp"

namespace proxypool::gateway {

Names::Names(Resolver& resolver, net::EventLoop& loop)
    : loop_(loop),
      resolver_(resolver),
      asker_{loop, [this](const std::string& name, const Resolved& resolved) {
               on_resolved(name, resolved);
             }} {}

const Resolved* Names::find(const std::string& name, TimePoint now, Connection& connection) {
  forget(connection);
  if (const Resolved* known = known_.find(name, now)) return known;
  if (auto resolved = resolver_.resolve(name, asker_)) {
    return &known_.learn(name, *std::move(resolved), now);
  }
  waiting_[name].push_back(&connection);
  name_of_.emplace(&connection, name);
  return nullptr;
}

void Names::forget(Connection& connection) {
  if (name_of_.empty()) return;
  const auto found = name_of_.find(&connection);
  if (found == name_of_.end()) return;
  const auto waiting = waiting_.find(found->second);
  std::erase(waiting->second, &connection);
  if (waiting->second.empty()) waiting_.erase(waiting);
  name_of_.erase(found);
}

void Names::on_resolved(const std::string& name, const Resolved& resolved) {
  known_.learn(name, resolved, loop_.now());
  auto waiting = waiting_.extract(name);
  if (waiting.empty()) return;
  for (Connection* connection : waiting.mapped()) name_of_.erase(connection);
  for (Connection* connection : waiting.mapped()) connection->resolved();
}

}  // namespace proxypool::gateway
