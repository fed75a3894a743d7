#include "checker/prober.hpp"

#include <algorithm>
#include <utility>

#include "proxypool/base/host.hpp"

namespace proxypool::checker {

Prober::Prober(ProberSettings settings, ProberDeps deps)
    : settings_(settings), deps_(std::move(deps)) {}

// BASIC over HTTP proxies; and nothing that would break the request's lines.
bool Prober::supported(const domain::CheckTask& task) const {
  const bool known = task.endpoint.scheme == domain::Scheme::Http ||
                     (task.endpoint.scheme == domain::Scheme::Https && deps_.tls);
  return task.level == domain::CheckLevel::Basic && known && canonical_host(task.target_host) &&
         task.target_port != 0;
}

void Prober::offer(std::vector<domain::CheckTask> tasks) {
  deps_.loop.post([this, tasks = std::move(tasks)]() mutable {
    for (domain::CheckTask& task : tasks) {
      take(std::move(task));
      start_waiting();
    }
  });
}

void Prober::stop_intake() {
  deps_.loop.post([this] {
    stopping_ = true;
    for (const domain::CheckTask& task : waiting_) {
      known_.erase(key_of(task));
      deps_.metrics.dropped(Drop::Stopping);
    }
    waiting_.clear();
    show_counts();
    if (running_.empty()) static_cast<void>(idle_.try_push(true));
  });
}

void Prober::take(domain::CheckTask task) {
  if (stopping_) return deps_.metrics.dropped(Drop::Stopping);
  if (!supported(task)) return deps_.metrics.dropped(Drop::Unsupported);
  if (known_.contains(key_of(task))) return deps_.metrics.dropped(Drop::Duplicate);
  if (waiting_.size() >= settings_.queue_max) return deps_.metrics.dropped(Drop::Full);
  known_.insert(key_of(task));
  waiting_.push_back(std::move(task));
}

void Prober::start_waiting() {
  while (!waiting_.empty() && running_.size() < settings_.in_flight_max) {
    domain::CheckTask task = std::move(waiting_.front());
    waiting_.pop_front();
    start(std::move(task));
  }
  show_counts();
}

void Prober::start(domain::CheckTask task) {
  task.timeout = std::clamp(task.timeout, milliseconds(1), settings_.timeout_max);
  const std::uint64_t ticket = ++last_ticket_;
  const auto address = IpAddress::parse(task.endpoint.host);
  const std::uint16_t port = task.endpoint.port;
  const auto* const tls = task.endpoint.scheme == domain::Scheme::Https ? deps_.tls.get() : nullptr;
  auto owned = std::make_unique<BasicProbe>(
      deps_.loop, std::move(task), tls,
      [this, ticket](const std::optional<domain::Observation>& observation) {
        end(ticket, observation);
      });
  BasicProbe& probe = *owned;
  running_.emplace(ticket, std::move(owned));
  if (address) {
    probe.dial({{*address, port}});  // may have ended the probe
  } else {
    look_up(ticket, probe);
  }
}

void Prober::look_up(std::uint64_t ticket, const BasicProbe& probe) {
  const auto& endpoint = probe.task().endpoint;
  const bool accepted = deps_.blocking(
      [this, ticket, host = endpoint.host, port = endpoint.port, deadline = probe.deadline()] {
        auto found = deps_.look_up(host, port, deadline);
        deps_.loop.post([this, ticket, found = std::move(found)]() mutable {
          const auto waiting = running_.find(ticket);
          if (waiting == running_.end()) return;  // its time is over
          if (!found) return waiting->second->fail_lookup(found.error());
          waiting->second->dial(*std::move(found));
        });
      });
  if (!accepted) end(ticket, std::nullopt);
}

void Prober::end(std::uint64_t ticket, const std::optional<domain::Observation>& observation) {
  const auto ended = running_.find(ticket);
  const auto probe = std::move(ended->second);
  running_.erase(ended);
  known_.erase(key_of(probe->task()));
  if (observation) {
    deps_.metrics.finished(*observation);
    if (deps_.events.enabled(ports::Level::Debug)) {
      deps_.events.emit(
          ports::Event::ProbeFinished,
          {{"proxy", to_string(observation->proxy)},
           {"level", "basic"},
           {"result",
            observation->passed ? "passed" : domain::to_string(observation->failure.kind)},
           {"reason", domain::to_string(observation->failure.phase)},
           {"took", observation->latency}});
    }
    deps_.report(*observation);
  } else {
    deps_.metrics.dropped(Drop::OwnFault);
  }
  // In the next turn: starting a probe may end it at once, and this one is still on the stack.
  if (!waiting_.empty()) deps_.loop.post([this] { start_waiting(); });
  show_counts();
  if (stopping_ && running_.empty()) static_cast<void>(idle_.try_push(true));
}

void Prober::show_counts() {
  deps_.metrics.in_flight().set(static_cast<double>(running_.size()));
  deps_.metrics.queued().set(static_cast<double>(waiting_.size()));
}

}  // namespace proxypool::checker
