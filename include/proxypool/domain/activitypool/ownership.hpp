// Which worker should own which proxy: weighted rendezvous hashing over the live workers.
//
// Every worker gets a score for every proxy; the highest wins. When a worker comes, only what it
// wins moves; when one goes, only what it had moves. The plan names assignments and revocations;
// a move is a revocation now and an assignment once the old owner has let go (lease.hpp).
//
// Thread rule: pure function on the caller's data.
// Limits: a full worker (C10) passes a proxy on to the next in score; when all are full it stays
//         unowned and is counted in `unplaced`. Cost: one logarithm per proxy and worker.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "proxypool/base/hash.hpp"
#include "proxypool/base/id.hpp"
#include "proxypool/base/limits.hpp"
#include "proxypool/domain/proxy/proxy.hpp"

namespace proxypool::domain {

struct LiveWorker {
  WorkerId id;
  std::uint32_t weight = 1;  // 0: gets nothing new
  std::uint32_t owned = 0;   // over all upstreams; the plan keeps it up to date
  std::uint32_t owned_max = limits::kProxiesPerWorkerMax;
};

// A usable proxy of the upstream that is planned. `owner` is an index into the live workers; what a
// worker that is not live owns is left alone until its lease frees it.
struct OwnableProxy {
  ProxyId id;
  Ownership ownership = Ownership::Unowned;
  std::optional<std::size_t> owner = std::nullopt;
  bool orphaned = false;  // a lost owner may still use it: nobody extracts it, a worker may have it
};

struct Assignment {
  ProxyId proxy;
  std::size_t worker = 0;
  friend bool operator==(const Assignment&, const Assignment&) = default;
};

struct OwnershipPlan {
  std::vector<Assignment> assign;
  std::vector<ProxyId> revoke;
  std::size_t unplaced = 0;
};

// extraction.reserve as a number of proxies: none where nothing may be extracted; by default a
// tenth, at least one, and never the only proxy. `shortage` is what recent extractions lacked (C3).
struct ReservePolicy {
  bool extractable = true;
  std::optional<std::uint32_t> reserve = std::nullopt;
};

constexpr std::size_t unowned_target(const ReservePolicy& policy, std::size_t available,
                                     std::size_t shortage) noexcept {
  if (!policy.extractable) return 0;
  const std::size_t tenth = available <= 1 ? 0 : (available + 9) / 10;
  const std::size_t wanted = (policy.reserve ? *policy.reserve : tenth) + shortage;
  return std::min(wanted, available);
}

namespace detail {

// A weighted score: with u uniform in (0, 1), the chance of -w / ln(u) to be the highest is w over
// the sum of all weights.
inline double rendezvous_score(std::uint64_t worker_hash, ProxyId proxy,
                               std::uint32_t weight) noexcept {
  const std::uint64_t h = mix64(worker_hash ^ mix64(proxy.value()));
  const double u = (static_cast<double>(h >> 11U) + 0.5) * 0x1.0p-53;
  return -static_cast<double>(weight) / std::log(u);
}

class OwnershipPlanner {
 public:
  OwnershipPlanner(std::vector<LiveWorker>& workers, std::size_t moves_max)
      : workers_(workers), moves_left_(moves_max) {
    hashes_.reserve(workers.size());
    for (const LiveWorker& worker : workers) hashes_.push_back(hash64(worker.id.str()));
  }

  OwnershipPlan plan(const std::vector<OwnableProxy>& proxies, std::size_t reserve) {
    std::vector<const OwnableProxy*> unowned;
    std::vector<const OwnableProxy*> owned;
    std::vector<const OwnableProxy*> orphaned;
    std::size_t coming = 0;  // revoked already, unowned soon
    for (const OwnableProxy& proxy : proxies) {
      // What nobody can extract is no reserve.
      if (proxy.ownership == Ownership::Unowned)
        (proxy.orphaned ? orphaned : unowned).push_back(&proxy);
      if (proxy.ownership == Ownership::Revoking) ++coming;
      if (proxy.ownership == Ownership::Owned && proxy.owner) owned.push_back(&proxy);
    }
    // The reserve is made of the same proxies each time, so that it does not wander.
    const auto by_hash = [](const OwnableProxy* a, const OwnableProxy* b) {
      return mix64(a->id.value()) < mix64(b->id.value());
    };
    std::sort(unowned.begin(), unowned.end(), by_hash);
    std::sort(owned.begin(), owned.end(), by_hash);
    for (const OwnableProxy* proxy : orphaned) assign(*proxy);
    for (std::size_t i = std::min(reserve, unowned.size()); i < unowned.size(); ++i) {
      assign(*unowned[i]);
    }
    std::size_t lacking = reserve > unowned.size() + coming ? reserve - unowned.size() - coming : 0;
    for (const OwnableProxy* proxy : owned) {
      if (lacking > 0) {
        --lacking;
        revoke(*proxy);
      } else if (moves_left_ > 0 && misplaced(*proxy)) {
        --moves_left_;
        revoke(*proxy);
      }
    }
    return std::move(plan_);
  }

 private:
  [[nodiscard]] double score(std::size_t worker, ProxyId proxy) const noexcept {
    return rendezvous_score(hashes_[worker], proxy, workers_[worker].weight);
  }
  // The live worker with the highest score that has room.
  [[nodiscard]] std::optional<std::size_t> best(ProxyId proxy) const noexcept {
    std::optional<std::size_t> winner;
    double highest = 0;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (workers_[i].weight == 0 || workers_[i].owned >= workers_[i].owned_max) continue;
      const double own = score(i, proxy);
      if (!winner || own > highest) {
        winner = i;
        highest = own;
      }
    }
    return winner;
  }
  [[nodiscard]] bool misplaced(const OwnableProxy& proxy) const noexcept {
    const auto winner = best(proxy.id);
    return winner && *winner != *proxy.owner &&
           score(*winner, proxy.id) > score(*proxy.owner, proxy.id);
  }
  void assign(const OwnableProxy& proxy) {
    const auto winner = best(proxy.id);
    if (!winner) {
      ++plan_.unplaced;
      return;
    }
    ++workers_[*winner].owned;
    plan_.assign.push_back({proxy.id, *winner});
  }
  // The owner keeps its place until it has let go: `owned` does not shrink here.
  void revoke(const OwnableProxy& proxy) { plan_.revoke.push_back(proxy.id); }

  std::vector<LiveWorker>& workers_;
  std::size_t moves_left_;
  std::vector<std::uint64_t> hashes_;
  OwnershipPlan plan_;
};

}  // namespace detail

// Plans one upstream. `reserve` proxies stay unowned (unowned_target); at most `moves_max` owned
// proxies are revoked to rebalance. Counts new assignments in `workers`.
inline OwnershipPlan plan_ownership(const std::vector<OwnableProxy>& proxies,
                                    std::vector<LiveWorker>& workers, std::size_t reserve,
                                    std::size_t moves_max) {
  return detail::OwnershipPlanner(workers, moves_max).plan(proxies, reserve);
}

}  // namespace proxypool::domain
