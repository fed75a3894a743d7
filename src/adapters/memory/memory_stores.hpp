// Embedded stores: the whole state of one process, in memory, with what a restart must not forget
// in durable notes and a durable log (ST-4).
//
// A restart is a new generation (C18): proxies are fetched again. What survives: which instances
// may still hold leases, so that nothing is given to anybody else before these have ended; and
// which proxies were handed out, so that nobody gets them again.
//
// Thread rule: the stores: any thread.
// Limits:      suited to one machine and one controller process.
#pragma once

#include <memory>

#include "proxypool/base/secret.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/activitypool/lease.hpp"
#include "proxypool/ports/activity_pool.hpp"
#include "proxypool/ports/coordination.hpp"
#include "proxypool/ports/crypto.hpp"
#include "proxypool/ports/durable_log.hpp"
#include "proxypool/ports/durable_notes.hpp"
#include "proxypool/ports/worker_registry.hpp"

namespace proxypool::memory {

struct PoolOptions {
  domain::LeaseTimes lease_times;
  SecretString seal_key;  // 32 bytes; seals credentials in the hand-out log (C1)
};

// What the pool keeps outside the process. Both may be null: then nothing survives a restart, and
// exclusivity is promised within the process alone (tests).
struct PoolDurability {
  ports::DurableNotes* notes = nullptr;
  ports::DurableLog* handouts = nullptr;
};

// Corrupt when what was kept cannot be read; the message names the file and the remedy.
Result<std::unique_ptr<ports::ActivityPool>> make_activity_pool(const PoolOptions& options,
                                                                const PoolDurability& durability,
                                                                const Clock& clock,
                                                                ports::Crypto& crypto);

std::unique_ptr<ports::WorkerRegistry> make_worker_registry(const Clock& clock,
                                                            ports::Crypto& crypto);
std::unique_ptr<ports::Coordination> make_coordination(const Clock& clock, ports::Crypto& crypto);

}  // namespace proxypool::memory
