#include "gateway/ingress/verifier.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace proxypool::gateway {

Verifier::Verifier(const ports::Crypto& crypto)
    : crypto_(crypto),
      key_(crypto.random_bytes(32)),
      tags_(crypto.random_bytes(SipHash::kKeyBytes)),
      pool_("verify", kThreads, kQueueMax) {}

Verifier::Start Verifier::verify(const CredentialKey& key, SecretString password, StoredHash stored,
                                 Asker& asker) {
  return state_.with([&](State& state) {
    if (const auto known = state.known.find(key); known != state.known.end()) {
      return known->second ? Start::Accepted : Start::Rejected;
    }
    const auto [place, first] = state.running.try_emplace(key);
    auto& askers = place->second;
    if (std::find(askers.begin(), askers.end(), &asker) == askers.end()) askers.push_back(&asker);
    if (!first) return Start::Pending;
    // The job cannot finish before this lock is given up.
    const bool queued =
        pool_.try_run([this, key, password = std::move(password), stored = std::move(stored)] {
          const auto result = crypto_.verify(password.reveal(), stored);
          finish(key, !result ? Verdict::Failed : *result ? Verdict::Accepted : Verdict::Rejected);
        });
    if (queued) return Start::Pending;
    state.running.erase(place);
    return Start::Full;
  });
}

Verifier::Start Verifier::known(const CredentialKey& key) const {
  return state_.with([&](const State& state) {
    const auto known = state.known.find(key);
    if (known == state.known.end()) return Start::Full;
    return known->second ? Start::Accepted : Start::Rejected;
  });
}

void Verifier::remember(const CredentialKey& key) {
  state_.with([&](State& state) { keep(state, key, true); });
}

void Verifier::keep(State& state, const CredentialKey& key, bool good) {
  if (state.known.size() >= kRememberedMax) state.known.clear();
  state.known.emplace(key, good);
}

void Verifier::finish(const CredentialKey& key, Verdict verdict) {
  const auto askers = state_.with([&](State& state) {
    if (verdict != Verdict::Failed) keep(state, key, verdict == Verdict::Accepted);
    return std::move(state.running.extract(key).mapped());
  });
  for (Asker* asker : askers) {
    asker->loop.post([asker, key, verdict] { asker->on_verdict(key, verdict); });
  }
}

}  // namespace proxypool::gateway
