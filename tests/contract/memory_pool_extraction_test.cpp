#include "contract/activity_pool_extraction_contract.hpp"
#include "contract/memory_pool_fixture.hpp"

namespace proxypool::contract {

INSTANTIATE_TYPED_TEST_SUITE_P(Memory, PoolExtractionContract, MemoryPoolFixture);

}  // namespace proxypool::contract
