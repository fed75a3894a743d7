// HandoutLog: what was extracted, durable before anybody learns of it (EX-1).
//
// Each record is sealed with AES-256-GCM, since a kept result holds credentials (C1): the mark that
// a proxy was handed out, or the result that an idempotency key replays.
//
// Thread rule: any thread; load() once, before the rest.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "proxypool/base/secret.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/extraction/extraction.hpp"
#include "proxypool/ports/crypto.hpp"
#include "proxypool/ports/durable_log.hpp"

namespace proxypool::memory {

// One extraction, whole: enough to keep its proxies out of the pool and to answer a repeat.
struct Handout {
  std::string client;
  std::string idempotency_key;  // empty: none
  std::string request_digest;
  StoreTime replay_until;
  StoreTime at;
  std::vector<domain::ExtractedProxy> proxies;
};

class HandoutLog {
 public:
  // `log` may be null: nothing survives.
  HandoutLog(ports::DurableLog* log, SecretString key, ports::Crypto& crypto);

  Status load(const std::function<void(Handout)>& take);
  Status append(const Handout& handout);
  // Whether so much has been appended that rewriting what still counts pays.
  [[nodiscard]] bool worth_rewriting() const;
  Status rewrite(const std::vector<Handout>& handouts);

 private:
  [[nodiscard]] Result<std::string> seal(const Handout& handout);

  ports::DurableLog* log_;
  SecretString key_;
  ports::Crypto& crypto_;
  std::size_t size_after_rewrite_ = 0;
};

}  // namespace proxypool::memory
