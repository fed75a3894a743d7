// The embedded Coordination: one process, so every lease is its own; the arithmetic of permits is
// domain/upstream/permits.hpp.
#include <algorithm>
#include <map>
#include <utility>

#include "adapters/memory/memory_stores.hpp"
#include "adapters/memory/store_clock.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/domain/upstream/permits.hpp"

namespace proxypool::memory {

namespace {

std::uint64_t random_number(ports::Crypto& crypto) {
  std::uint64_t number = 0;
  for (const char c : crypto.random_bytes(8)) number = number << 8U | static_cast<unsigned char>(c);
  return number;
}

class MemoryCoordination final : public ports::Coordination {
 public:
  MemoryCoordination(const Clock& clock, ports::Crypto& crypto)
      : clock_(clock), generation_(random_number(crypto)) {}

  Result<std::optional<ports::LeaderTerm>> lead(const std::string& name, const InstanceId& holder,
                                                milliseconds lease, Deadline) override {
    const StoreTime now = clock_.now();
    return state_.with([&](State& state) -> Result<std::optional<ports::LeaderTerm>> {
      Leader& leader = state.leaders[name];
      const bool running = now < leader.until;
      if (running && leader.holder != holder) return std::optional<ports::LeaderTerm>{};
      if (!running || leader.holder != holder) leader.fence = ++state.fence;
      leader.holder = holder;
      leader.until = now + lease;
      return std::optional(ports::LeaderTerm{generation_, leader.fence, leader.until});
    });
  }

  Status resign(const std::string& name, const InstanceId& holder, Deadline) override {
    return state_.with([&](State& state) -> Status {
      const auto found = state.leaders.find(name);
      if (found != state.leaders.end() && found->second.holder == holder) {
        state.leaders.erase(found);
      }
      return ok();
    });
  }

  Result<ports::PermitAnswer> acquire_permit(const ports::PermitRequest& request,
                                             Deadline) override {
    const StoreTime now = clock_.now();
    return state_.with([&](State& state) -> Result<ports::PermitAnswer> {
      ports::PermitAnswer answer;
      if (!leads(state, request.leader, request.term, now)) return answer;
      domain::PermitLimits limits;
      limits.request_interval = request.request_interval;
      limits.in_flight_max = request.in_flight_max;
      if (request.total_max != 0) limits.total_max = request.total_max;
      limits.permit_ttl = request.lifetime;
      const auto given = state.books[request.upstream].acquire(limits, request.expected, now);
      if (given.permit != 0) {
        answer.permit = ports::Permit{given.permit, request.expected};
        return answer;
      }
      answer.refusal =
          given.refusal == domain::PermitRefusal::Interval   ? ports::PermitRefusal::Interval
          : given.refusal == domain::PermitRefusal::InFlight ? ports::PermitRefusal::InFlight
                                                             : ports::PermitRefusal::TotalSpent;
      if (given.ask_again_at) answer.retry_after = std::max(*given.ask_again_at - now, {});
      return answer;
    });
  }

  Status settle_permit(const UpstreamId& upstream, const ports::Permit& permit,
                       std::optional<std::uint32_t> actual, Deadline) override {
    return state_.with([&](State& state) -> Status {
      const auto delivered = actual ? std::optional<std::uint64_t>(*actual) : std::nullopt;
      static_cast<void>(state.books[upstream].settle(permit.id, delivered));
      return ok();
    });
  }

  Result<ports::FetchLedger> ledger(const UpstreamId& upstream, Deadline) override {
    const StoreTime now = clock_.now();
    return state_.with([&](State& state) -> Result<ports::FetchLedger> {
      domain::PermitBook& book = state.books[upstream];
      book.expire(now);
      return ports::FetchLedger{book.total(), book.reserved(), book.in_flight()};
    });
  }

  Status raise_total(const UpstreamId& upstream, std::uint64_t total, Deadline) override {
    return state_.with([&](State& state) -> Status {
      state.books[upstream].raise_total(total);
      return ok();
    });
  }

  Status reset_total(const UpstreamId& upstream, Deadline) override {
    return state_.with([&](State& state) -> Status {
      state.books[upstream].reset_total();
      return ok();
    });
  }

  Result<std::uint32_t> count_empty(const UpstreamId& upstream, Deadline) override {
    return state_.with(
        [&](State& state) -> Result<std::uint32_t> { return ++state.empty[upstream]; });
  }

  Status clear_empty(const UpstreamId& upstream, Deadline) override {
    return state_.with([&](State& state) -> Status {
      state.empty.erase(upstream);
      return ok();
    });
  }

  Result<Epoch> next_epoch(Deadline) override {
    return state_.with([](State& state) -> Result<Epoch> { return Epoch(++state.epoch); });
  }

 private:
  struct Leader {
    InstanceId holder;
    StoreTime until;
    std::uint64_t fence = 0;
  };
  struct State {
    std::map<std::string, Leader> leaders;
    std::map<UpstreamId, domain::PermitBook> books;
    std::map<UpstreamId, std::uint32_t> empty;
    std::uint64_t fence = 0;
    std::uint64_t epoch = 0;
  };

  [[nodiscard]] bool leads(const State& state, const std::string& name,
                           const ports::LeaderTerm& term, StoreTime now) const {
    const auto found = state.leaders.find(name);
    return found != state.leaders.end() && now < found->second.until &&
           term.generation == generation_ && term.fence == found->second.fence;
  }

  StoreClock clock_;
  const std::uint64_t generation_;
  Guarded<State> state_;
};

}  // namespace

std::unique_ptr<ports::Coordination> make_coordination(const Clock& clock, ports::Crypto& crypto) {
  return std::make_unique<MemoryCoordination>(clock, crypto);
}

}  // namespace proxypool::memory
