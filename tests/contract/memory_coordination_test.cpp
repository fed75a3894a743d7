#include <memory>

#include "adapters/crypto/openssl_crypto.hpp"
#include "adapters/memory/memory_stores.hpp"
#include "contract/coordination_contract.hpp"
#include "contract/worker_registry_contract.hpp"
#include "runtime/manual_clock.hpp"

namespace proxypool::contract {
namespace {

template <class Store, std::unique_ptr<Store> (*make)(const Clock&, ports::Crypto&)>
class MemoryFixture {
 public:
  Store& store() { return *store_; }
  void advance(milliseconds duration) { clock_.advance(duration); }

 private:
  runtime::ManualClock clock_;
  std::unique_ptr<ports::Crypto> crypto_ = crypto::make_openssl_crypto();
  std::unique_ptr<Store> store_ = make(clock_, *crypto_);
};

using Coordination = MemoryFixture<ports::Coordination, &memory::make_coordination>;
using Registry = MemoryFixture<ports::WorkerRegistry, &memory::make_worker_registry>;
INSTANTIATE_TYPED_TEST_SUITE_P(Memory, CoordinationContract, Coordination);
INSTANTIATE_TYPED_TEST_SUITE_P(Memory, WorkerRegistryContract, Registry);

}  // namespace
}  // namespace proxypool::contract
