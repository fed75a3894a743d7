// The certificate of the clients' listener: read at the start, and again when its files change or
// somebody asks (GW-2).
//
// The idea: a step that looks at the two files (runtime/file_watch.hpp). Only a pair that fits
// together and is valid goes on; until then the one before stays in use.
//
// Thread rule: load, step: one thread at a time; ask: any thread.
// Limits:      a change is in use 2 × kLook after it at the latest, on request at once.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "net/tls.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/ports/metrics.hpp"
#include "proxypool/ports/telemetry.hpp"
#include "runtime/file_watch.hpp"

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
  void use(std::shared_ptr<const net::TlsContext> context);

  const net::TlsServerOptions options_;
  const Use use_;
  ports::Events& events_;
  ports::Counter& loaded_;
  ports::Counter& refused_;
  ports::Gauge& valid_until_;
  std::atomic<bool> asked_{false};
  runtime::FileWatch files_;
};

}  // namespace proxypool::gateway
