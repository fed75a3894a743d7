#include "gateway/certificate.hpp"

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
  files_.watch({options_.certificate_file, options_.key_file});
  PP_TRY(std::shared_ptr<const net::TlsContext> context, net::TlsContext::server(options_));
  use(std::move(context));
  return ok();
}

TimePoint CertificateKeeper::step(TimePoint now) {
  const bool asked = asked_.exchange(false);
  if (asked) files_.settle();
  if (!asked && !files_.changed()) return now + kLook;
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

}  // namespace proxypool::gateway
