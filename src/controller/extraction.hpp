// ExtractionService: exclusive hand-out on behalf of a caller (CT-60, EX-2).
//
// It adds what the configuration says (which upstreams may be extracted from, what must stay) to
// what the caller asked for, and leaves selection and marking to the pool, in one atomic step. It
// never waits for a revocation (C3): what was lacking is remembered for a minute and raises the
// unowned reserve, so that the next call can be served.
//
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "config/config.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/extraction/extraction.hpp"
#include "proxypool/ports/activity_pool.hpp"
#include "proxypool/ports/inbound.hpp"

namespace proxypool::controller {

struct ExtractionCounters {
  std::uint64_t calls = 0;
  std::uint64_t requested = 0;
  std::uint64_t returned = 0;
  std::uint64_t insufficient = 0;
  std::uint64_t replayed = 0;
  std::uint64_t failed = 0;  // the store did not answer
};

class ExtractionService final : public ports::Extractions {
 public:
  ExtractionService(std::shared_ptr<const config::Config> config, ports::ActivityPool& pool,
                    const Clock& clock);

  // Another configuration counts from now on. REQUIRES: not null.
  void configure(std::shared_ptr<const config::Config> config);

  Result<domain::ExtractionResult> extract(domain::ExtractionCommand command,
                                           Deadline deadline) override;
  Result<domain::ExtractionResult> preview(domain::ExtractionCommand command,
                                           Deadline deadline) override;

  // How many proxies of this upstream recent extractions lacked.
  [[nodiscard]] std::size_t shortage(const UpstreamId& upstream) const;
  // The most that this client may take in one call.
  [[nodiscard]] std::uint32_t count_max(const ClientName& client) const;
  [[nodiscard]] ExtractionCounters counters() const;

 private:
  struct Lack {
    std::size_t proxies = 0;
    TimePoint until;
  };
  struct State {
    std::shared_ptr<const config::Config> config;  // never null
    std::map<UpstreamId, Lack> lacks;
    ExtractionCounters counters;
  };
  Status complete(domain::ExtractionCommand& command) const;
  void note(const domain::ExtractionCommand& command, const domain::ExtractionResult& result);

  ports::ActivityPool& pool_;
  const Clock& clock_;
  Guarded<State> state_;
};

}  // namespace proxypool::controller
