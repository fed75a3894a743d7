// A SupplyService over the embedded stores and a vendor that a test steers, in virtual time.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controller/supply.hpp"
#include "unit/controller/stores.hpp"

namespace proxypool::controller {

using domain::FetchReason;
using ports::FetchAnswer;

inline domain::Candidate candidate(int number, const std::string& password = "secret") {
  domain::Candidate out;
  out.endpoint = {domain::Scheme::Http, "198.51.100." + std::to_string(number), 8080};
  out.credential = {"user", SecretString(password)};
  return out;
}

inline FetchAnswer proxies(int first, int last) {
  FetchAnswer answer;
  for (int number = first; number <= last; ++number) {
    answer.candidates.push_back(candidate(number));
  }
  answer.records = static_cast<std::uint32_t>(answer.candidates.size());
  return answer;
}

inline FetchAnswer failed(FetchReason reason) {
  FetchAnswer answer;
  answer.error = reason;
  answer.detail = "the vendor said no";
  return answer;
}

// A vendor as the test wants it, and what was asked of it.
struct Vendor {
  struct Call {
    std::uint32_t wanted;
    TimePoint at;
  };
  std::function<FetchAnswer()> answer = [] { return FetchAnswer{}; };
  bool list = false;
  std::uint64_t version = 0;
  std::vector<Call> calls;
};

class VendorApi final : public ports::ProviderApi {
 public:
  VendorApi(Vendor& vendor, const Clock& clock) : vendor_(vendor), clock_(clock) {}
  FetchAnswer fetch(const ports::FetchRequest& request, Deadline) override {
    vendor_.calls.push_back({request.wanted, clock_.now()});
    return vendor_.answer();
  }
  [[nodiscard]] bool authoritative() const noexcept override { return vendor_.list; }
  [[nodiscard]] std::uint64_t source_version() override { return vendor_.version; }

 private:
  Vendor& vendor_;
  const Clock& clock_;
};

class SupplyServiceTest : public contract::PoolSteps<Stores> {
 protected:
  SupplyServiceTest() {
    config_.id = UpstreamId("a");
    config_.provider.type = config::ProviderType::Http;
    config_.pool.concurrency_max = 10;
    config_.fetch.estimated_ips_per_call = 10;
  }
  std::unique_ptr<SupplyService> make(const config::UpstreamConfig& config, Vendor& vendor,
                                      const std::string& instance = "me") {
    SupplyDeps deps{
        fixture_.pool(),
        fixture_.coordination(),
        fixture_.management(),
        fixture_.crypto(),
        fixture_.clock(),
        [this]() -> Random& { return random_; },
        [this](const UpstreamId&, const domain::FetchOutcome&, const std::string&) { ++reported_; },
        [this](const UpstreamId&, Deadline) -> Status {
          ++depletions_;
          if (deaf_) return Error{ErrorCode::Unavailable, Origin::Store, "away"};
          return ok();
        }};
    return std::make_unique<SupplyService>(config, InstanceId(instance), SecretString("key"),
                                           std::make_unique<VendorApi>(vendor, fixture_.clock()),
                                           std::move(deps));
  }
  void begin() { service_ = make(config_, vendor_); }
  // Steps at the moments that the service asks for.
  void run(SupplyService& service, milliseconds duration) {
    const TimePoint end = fixture_.clock().now() + duration;
    const auto steps_max = 100 + duration / milliseconds{100};  // it may not spin
    for (int steps = 0; steps < steps_max; ++steps) {
      const TimePoint next = service.step(fixture_.clock().now());
      if (next > end) {
        fixture_.clock().set(end);
        return;
      }
      if (next > fixture_.clock().now()) fixture_.clock().set(next);
    }
    FAIL() << "the service never rests";
  }
  void run(milliseconds duration) { run(*service_, duration); }
  [[nodiscard]] ports::UpstreamReading reading() const { return service_->reading(); }
  std::vector<ports::ProxyRow> rows() { return *pool().list({}, Deadline{}); }
  // Only `count` proxies are left, whatever was there.
  void keep(std::size_t count) {
    std::vector<ProxyId> gone;
    for (const auto& row : rows()) gone.push_back(row.leased.proxy.id);
    gone.resize(gone.size() - count);
    apply(gone, domain::ProxyEvent::OperatorRemove);
    sweep();
  }
  int next_ = 1;
  FetchAnswer fresh(int count) {
    next_ += count;
    return proxies(next_ - count, next_ - 1);
  }

  config::UpstreamConfig config_;
  Vendor vendor_;
  SplitMix64 random_{7};
  int reported_ = 0;
  int depletions_ = 0;
  bool deaf_ = false;  // nobody takes a depletion
  std::unique_ptr<SupplyService> service_;
};

}  // namespace proxypool::controller
