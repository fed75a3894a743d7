// The certificate of the clients' listener: read at the start, and again when its files change or
// somebody asks (GW-2).
//
// The idea: a step that looks at the two files. Nobody replaces two files at once, so that a change
// counts once it has stood still from one look to the next. Only a pair that fits together and is
// valid goes on; until then the one before stays in use.
//
// Thread rule: load, step: one thread at a time; ask: any thread.
// Limits:      a change is in use 2 × kLook after it at the latest, on request at once.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "net/tls.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/ports/metrics.hpp"
#include "proxypool/ports/telemetry.hpp"

namespace proxypool::gateway {

class CertificateKeeper {
 public:
  using Use = std::function<void(std::shared_ptr<const net::TlsContext>)>;
  static constexpr nanoseconds kLook = seconds(1);

  CertificateKeeper(net::TlsServerOptions options, Use use, ports::Events& events,
                    ports::Metrics& metrics);

  // The first time: an error is the caller's.
  [[nodiscard]] Status load();
  TimePoint step(TimePoint now);
  // The next step reads the files, changed or not.
  void ask() noexcept { asked_ = true; }

 private:
  // What changes when a file is replaced or written to.
  struct Sighting {
    dev_t device = 0;
    ino_t number = 0;
    off_t size = 0;
    std::int64_t changed_ns = 0;
    friend bool operator==(const Sighting&, const Sighting&) = default;
  };
  using Sightings = std::array<Sighting, 2>;

  [[nodiscard]] Sightings look() const noexcept;
  void use(std::shared_ptr<const net::TlsContext> context);

  const net::TlsServerOptions options_;
  const Use use_;
  ports::Events& events_;
  ports::Counter& loaded_;
  ports::Counter& refused_;
  ports::Gauge& valid_until_;
  std::atomic<bool> asked_{false};
  Sightings seen_{};
  Sightings tried_{};
};

}  // namespace proxypool::gateway
