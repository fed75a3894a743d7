#include "gateway/counters.hpp"

#include <string>

namespace proxypool::gateway {
namespace {

ports::Counter& outcome(ports::Metrics& metrics, std::string_view name) {
  return metrics.counter("proxypool_gateway_requests_total",
                         "Requests by how they ended: ok, tunnel, local, truncated, aborted, or "
                         "the code of the error answer",
                         {{"outcome", std::string(name)}});
}

}  // namespace

Counters::Counters(ports::Metrics& metrics)
    : served_(outcome(metrics, "ok")),
      local_(outcome(metrics, "local")),
      tunnelled_(outcome(metrics, "tunnel")),
      truncated_(outcome(metrics, "truncated")),
      aborted_(outcome(metrics, "aborted")),
      seconds_(metrics.histogram("proxypool_gateway_request_seconds",
                                 "From a request's head to the end of its answer",
                                 ports::latency_buckets())),
      accepted_(
          metrics.counter("proxypool_gateway_connections_total", "Client connections accepted")),
      turned_away_(metrics.counter("proxypool_gateway_connections_refused_total",
                                   "Client connections closed on arrival: too many")),
      out_of_descriptors_(
          metrics.counter("proxypool_gateway_accept_pauses_total",
                          "Pauses before the next accept: descriptors or memory had run out")),
      dialled_(metrics.counter("proxypool_gateway_upstream_connects_total",
                               "Connections opened towards proxies and targets")),
      reused_(metrics.counter("proxypool_gateway_upstream_reuses_total",
                              "Requests sent on a kept connection")),
      retried_(metrics.counter("proxypool_gateway_retries_total", "Attempts after the first")),
      direct_(metrics.counter("proxypool_gateway_direct_total",
                              "Requests and tunnels that went to their target without a proxy")),
      sessions_lost_(metrics.counter("proxypool_gateway_sessions_lost_total",
                                     "Sessions whose proxy failed or went away under them")),
      up_(metrics.counter("proxypool_gateway_bytes_total", "Bytes of requests, answers and tunnels",
                          {{"direction", "up"}})),
      down_(metrics.counter("proxypool_gateway_bytes_total",
                            "Bytes of requests, answers and tunnels", {{"direction", "down"}})) {
  for (const auto& row : domain::kErrorContract) {
    refused_[static_cast<std::size_t>(row.refusal)] = &outcome(metrics, row.code);
  }
  constexpr std::string_view kWaits[] = {"served", "timed_out", "full"};
  for (std::size_t i = 0; i < waits_.size(); ++i) {
    waits_[i] = &metrics.counter("proxypool_gateway_waits_total",
                                 "Requests that had to wait for a place, by how that ended",
                                 {{"end", std::string(kWaits[i])}});
  }
  for (std::size_t i = 0; i < failed_.size(); ++i) {
    failed_[i] = &metrics.counter(
        "proxypool_gateway_attempt_failures_total", "Failed attempts by the phase they failed in",
        {{"phase", std::string(to_string(static_cast<domain::Phase>(i)))}});
  }
  for (std::size_t i = 0; i < net::kTlsOutcomes; ++i) {
    const auto outcome = static_cast<net::TlsOutcome>(i);
    const ports::Metrics::Labels labels{{"outcome", std::string(to_string(outcome))}};
    client_tls_[i] = &metrics.counter("proxypool_gateway_client_tls_handshakes_total",
                                      "TLS handshakes with clients by how they ended", labels);
    proxy_tls_[i] = &metrics.counter("proxypool_gateway_upstream_tls_handshakes_total",
                                     "TLS handshakes with proxies by how they ended", labels);
  }
  constexpr std::string_view kAnnounced[kAnnouncements] = {"taken", "local", "malformed",
                                                           "missing"};
  for (std::size_t i = 0; i < kAnnouncements; ++i) {
    announced_[i] = &metrics.counter("proxypool_gateway_proxy_headers_total",
                                     "PROXY headers of trusted peers by what came of them",
                                     {{"outcome", std::string(kAnnounced[i])}});
  }
}

}  // namespace proxypool::gateway
