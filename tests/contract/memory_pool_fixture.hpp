// The embedded pool with its note of leases and its hand-out log in a folder.
#pragma once

#include <memory>
#include <string>

#include "adapters/crypto/openssl_crypto.hpp"
#include "adapters/file/file_stores.hpp"
#include "adapters/memory/memory_stores.hpp"
#include "contract/pool_steps.hpp"
#include "runtime/manual_clock.hpp"
#include "support/temp_dir.hpp"

namespace proxypool::contract {

class MemoryPoolFixture {
 public:
  MemoryPoolFixture() { restart(); }
  ports::ActivityPool& pool() { return *pool_; }
  void advance(milliseconds duration) { clock_.advance(duration); }
  void restart() {
    pool_.reset();
    log_.reset();
    notes_.reset();
    notes_ = *file::open_notes(folder_.path(), *crypto_);
    log_ = *file::open_log(folder_.path() / "handouts.log", *crypto_);
    memory::PoolOptions options;
    options.lease_times.margin = kMargin;
    options.lease_times.orphan_grace = kGrace;
    options.seal_key = SecretString(std::string(ports::Crypto::kSealKeyBytes, 'k'));
    pool_ = *memory::make_activity_pool(options, {notes_.get(), log_.get()}, clock_, *crypto_);
  }

 private:
  support::TempDir folder_;
  runtime::ManualClock clock_;
  std::unique_ptr<ports::Crypto> crypto_ = crypto::make_openssl_crypto();
  std::unique_ptr<ports::DurableNotes> notes_;
  std::unique_ptr<ports::DurableLog> log_;
  std::unique_ptr<ports::ActivityPool> pool_;
};

}  // namespace proxypool::contract
