#include "contract/activity_pool_ownership_contract.hpp"
#include "contract/lost_owner_contract.hpp"
#include "contract/memory_pool_fixture.hpp"

namespace proxypool::contract {

INSTANTIATE_TYPED_TEST_SUITE_P(Memory, PoolOwnershipContract, MemoryPoolFixture);
INSTANTIATE_TYPED_TEST_SUITE_P(Memory, LostOwnerContract, MemoryPoolFixture);

}  // namespace proxypool::contract
