#include "contract/activity_pool_contract.hpp"
#include "contract/memory_pool_fixture.hpp"

namespace proxypool::contract {

INSTANTIATE_TYPED_TEST_SUITE_P(Memory, ActivityPoolContract, MemoryPoolFixture);

}  // namespace proxypool::contract
