#include "gateway/certificate.hpp"

#include <sys/stat.h>

#include <chrono>
#include <utility>

#include "proxypool/base/text.hpp"

namespace proxypool::gateway {
namespace {

ports::Counter& outcome(ports::Metrics& metrics, const char* name) {
  return metrics.counter("proxypool_gateway_certificate_loads_total",
                         "Certificates of the clients' listener that were read, by what came of it",
                         {{"outcome", name}});
}

}  // namespace

CertificateKeeper::CertificateKeeper(net::TlsServerOptions options, Use use, ports::Events& events,
                                     ports::Metrics& metrics)
    : options_(std::move(options)),
      use_(std::move(use)),
      events_(events),
      loaded_(outcome(metrics, "loaded")),
      refused_(outcome(metrics, "refused")),
      valid_until_(metrics.gauge("proxypool_gateway_certificate_valid_until_seconds",
                                 "When the certificate in use ends, in seconds since 1970")) {}

Status CertificateKeeper::load() {
  seen_ = tried_ = look();
  PP_TRY(std::shared_ptr<const net::TlsContext> context, net::TlsContext::server(options_));
  use(std::move(context));
  return ok();
}

TimePoint CertificateKeeper::step(TimePoint now) {
  const bool asked = asked_.exchange(false);
  const Sightings before = std::exchange(seen_, look());
  const bool changed = seen_ == before && seen_ != tried_;
  if (!asked && !changed) return now + kLook;
  tried_ = seen_;
  auto context = net::TlsContext::server(options_);
  if (context) {
    use(*std::move(context));
  } else {
    refused_.add();
    events_.emit(ports::Event::CertificateRefused,
                 {{"certificate", options_.certificate_file}, {"reason", context.error().message}});
  }
  return now + kLook;
}

void CertificateKeeper::use(std::shared_ptr<const net::TlsContext> context) {
  const WallTime end = context->valid_until();
  use_(std::move(context));
  loaded_.add();
  valid_until_.set(std::chrono::duration<double>(end.time_since_epoch()).count());
  events_.emit(ports::Event::CertificateLoaded,
               {{"certificate", options_.certificate_file}, {"valid_until", format_time(end)}});
}

CertificateKeeper::Sightings CertificateKeeper::look() const noexcept {
  Sightings out{};
  const std::array<const char*, 2> files{options_.certificate_file.c_str(),
                                         options_.key_file.c_str()};
  for (std::size_t i = 0; i < files.size(); ++i) {
    struct stat found {};
    if (::stat(files[i], &found) != 0) continue;
    out[i] = {found.st_dev, found.st_ino, found.st_size,
              std::int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec};
  }
  return out;
}

}  // namespace proxypool::gateway
