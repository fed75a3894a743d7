// What a gateway counts, by name; adding costs a nanosecond.
//
// Thread rule: any thread.
#pragma once

#include <array>
#include <cstdint>

#include "net/tls.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/health/observation.hpp"
#include "proxypool/domain/traffic/error_contract.hpp"
#include "proxypool/ports/metrics.hpp"

namespace proxypool::gateway {

// What came of the PROXY header of a trusted peer.
enum class Announcement : std::uint8_t { Taken, Local, Malformed, Missing };
inline constexpr std::size_t kAnnouncements = 4;

class Counters {
 public:
  explicit Counters(ports::Metrics& metrics);

  // How a request ended. Every request ends in exactly one of these.
  void answered(domain::Refusal refusal) noexcept {
    refused_[static_cast<std::size_t>(refusal)]->add();
  }
  void served(nanoseconds took) noexcept {
    served_.add();
    seconds_.observe(std::chrono::duration<double>(took).count());
  }
  void answered_locally() noexcept { local_.add(); }
  void tunnelled() noexcept { tunnelled_.add(); }
  void truncated() noexcept { truncated_.add(); }
  void aborted() noexcept { aborted_.add(); }

  void accepted() noexcept { accepted_.add(); }
  void turned_away() noexcept { turned_away_.add(); }
  void out_of_descriptors() noexcept { out_of_descriptors_.add(); }
  void client_tls(net::TlsOutcome outcome) noexcept {
    client_tls_[static_cast<std::size_t>(outcome)]->add();
  }
  void proxy_tls(net::TlsOutcome outcome) noexcept {
    proxy_tls_[static_cast<std::size_t>(outcome)]->add();
  }
  void announced(Announcement what) noexcept { announced_[static_cast<std::size_t>(what)]->add(); }
  void dialled() noexcept { dialled_.add(); }
  void reused() noexcept { reused_.add(); }
  void retried() noexcept { retried_.add(); }
  void went_direct() noexcept { direct_.add(); }
  // How waiting for a place ended.
  enum class Wait : std::uint8_t { Served, TimedOut, Full };
  void waited(Wait end) noexcept { waits_[static_cast<std::size_t>(end)]->add(); }
  void session_lost() noexcept { sessions_lost_.add(); }
  void failed(domain::Phase phase) noexcept { failed_[static_cast<std::size_t>(phase)]->add(); }
  void bytes(std::uint64_t up, std::uint64_t down) noexcept {
    up_.add(up);
    down_.add(down);
  }

 private:
  ports::Counter& served_;
  ports::Counter& local_;
  ports::Counter& tunnelled_;
  ports::Counter& truncated_;
  ports::Counter& aborted_;
  std::array<ports::Counter*, domain::kRefusals> refused_{};
  ports::Histogram& seconds_;
  ports::Counter& accepted_;
  ports::Counter& turned_away_;
  ports::Counter& out_of_descriptors_;
  ports::Counter& dialled_;
  ports::Counter& reused_;
  ports::Counter& retried_;
  ports::Counter& direct_;
  ports::Counter& sessions_lost_;
  std::array<ports::Counter*, 5> failed_{};
  std::array<ports::Counter*, net::kTlsOutcomes> client_tls_{};
  std::array<ports::Counter*, net::kTlsOutcomes> proxy_tls_{};
  std::array<ports::Counter*, kAnnouncements> announced_{};
  std::array<ports::Counter*, 3> waits_{};
  ports::Counter& up_;
  ports::Counter& down_;
};

}  // namespace proxypool::gateway
