// The embedded stores with a clock that a test moves, for tests of the services above them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "adapters/crypto/openssl_crypto.hpp"
#include "adapters/file/file_stores.hpp"
#include "adapters/memory/memory_stores.hpp"
#include "contract/pool_steps.hpp"
#include "runtime/manual_clock.hpp"

namespace proxypool::controller {

class NotesInMemory final : public ports::DurableNotes {
 public:
  Result<std::optional<std::string>> load(std::string_view name) override {
    const auto found = notes_.find(std::string(name));
    return found == notes_.end() ? std::optional<std::string>{} : std::optional(found->second);
  }
  Status save(std::string_view name, std::string_view bytes) override {
    notes_[std::string(name)] = bytes;
    return ok();
  }
  [[nodiscard]] std::string damage(std::string_view) override { return {}; }

 private:
  std::map<std::string, std::string> notes_;
};

class Stores {
 public:
  Stores() { restart(); }
  ports::ActivityPool& pool() { return *pool_; }
  ports::WorkerRegistry& registry() { return *registry_; }
  ports::Coordination& coordination() { return *coordination_; }
  ports::ManagementStore& management() { return *management_; }
  ports::Crypto& crypto() { return *crypto_; }
  runtime::ManualClock& clock() { return clock_; }
  void advance(milliseconds duration) { clock_.advance(duration); }
  // A new process of the controller: what was in memory is gone.
  void restart() {
    memory::PoolOptions options;
    options.lease_times.margin = contract::kMargin;
    options.lease_times.orphan_grace = contract::kGrace;
    options.seal_key = SecretString(std::string(ports::Crypto::kSealKeyBytes, 'k'));
    pool_ = *memory::make_activity_pool(options, {&notes_, nullptr}, clock_, *crypto_);
    registry_ = memory::make_worker_registry(clock_, *crypto_);
    coordination_ = memory::make_coordination(clock_, *crypto_);
    management_ = *file::open_management_store(notes_);
  }

 private:
  runtime::ManualClock clock_;
  NotesInMemory notes_;
  std::unique_ptr<ports::Crypto> crypto_ = crypto::make_openssl_crypto();
  std::unique_ptr<ports::ActivityPool> pool_;
  std::unique_ptr<ports::WorkerRegistry> registry_;
  std::unique_ptr<ports::Coordination> coordination_;
  std::unique_ptr<ports::ManagementStore> management_;
};

}  // namespace proxypool::controller
