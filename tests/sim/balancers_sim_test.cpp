// RS-6: balancers before a queueing model, in virtual time and from one seed.
//
// Requests come by chance (Poisson); a target serves ten at a time and lets the others wait; a
// service takes an exponential time. What is asserted are the traps of choosing by time: everybody
// at one target, a target that fails fast, a newcomer, one that was slow once, one that hangs.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "proxypool/domain/balance/reserve.hpp"

namespace proxypool::domain {
namespace {

using std::chrono::duration;
using std::chrono::duration_cast;
using std::chrono::seconds;

constexpr TimePoint kStart{seconds(1'000)};
constexpr nanoseconds kPenalty = seconds(5);
constexpr std::size_t kSlots = 10;
constexpr std::uint64_t kSeed = 42;

struct Target {
  std::function<duration<double>(TimePoint)> mean = [](TimePoint) { return milliseconds(100); };
  bool fails = false;  // at once, without service
  bool hangs = false;  // until the client gives up, after 5 s
};

class Model {
 public:
  Model(Balancer balancer, std::uint64_t seed, int equal_targets = 0)
      : balancer_(balancer), random_(seed) {
    for (int i = 0; i < equal_targets; ++i) add({});
  }

  std::uint32_t add(Target target) {
    const auto member = members_.place(ProxyId(targets_.size() + 1));
    members_.set(member, {60'000, false, kNever});
    available_.push_back(member);
    mask_.resize((members_.size() + 63) / 64);
    mask_[member / 64] |= std::uint64_t{1} << (member % 64);
    targets_.push_back({std::move(target), {}, 0});
    return member;
  }
  // Requests at this rate for so long; what is under way at the end goes on later.
  void run(double per_second, nanoseconds time) {
    const TimePoint end = now_ + time;
    const auto pause = [&] { return exponential(duration<double>(1 / per_second)); };
    TimePoint next = now_ + pause();
    while (now_ < end) {
      if (!events_.empty() && events_.begin()->first <= next) {
        auto event = events_.extract(events_.begin());
        now_ = event.key();
        event.mapped()();
        continue;
      }
      now_ = std::min(next, end);
      if (now_ == end) break;
      arrive();
      next = now_ + pause();
    }
  }
  void forget_figures() {
    picks_.clear();
    times_.clear();
  }
  [[nodiscard]] double share(std::uint32_t member) {
    double all = 0;
    for (const auto& [m, count] : picks_) all += count;
    return picks_[member] / all;
  }
  // Of the answers that were good, in milliseconds.
  [[nodiscard]] double quantile(double q) {
    std::sort(times_.begin(), times_.end());
    return times_[static_cast<std::size_t>(q * static_cast<double>(times_.size() - 1))];
  }
  [[nodiscard]] TimePoint now() const { return now_; }
  // When the target was chosen for the first time since then.
  std::map<std::uint32_t, TimePoint> first_pick;

 private:
  struct Running {
    Target target;
    std::deque<std::pair<TimePoint, std::uint32_t>> waiting;
    std::size_t busy = 0;
  };

  nanoseconds exponential(duration<double> mean) {
    return duration_cast<nanoseconds>(mean * -std::log(1 - random_.unit()));
  }
  void after(nanoseconds time, std::function<void()> what) {
    events_.emplace(now_ + time, std::move(what));
  }
  void arrive() {
    const auto member = reserve_by(balancer_, Tier::Available, members_, {available_, mask_}, now_,
                                   random_, [](std::uint32_t) { return true; });
    ASSERT_NE(member, Members::kNone);
    ++picks_[member];
    first_pick.emplace(member, now_);
    Running& at = targets_[member];
    if (at.target.fails) {
      return after(milliseconds(2), [this, member] {
        members_.failed(member, now_, kPenalty);
        leave(member);
      });
    }
    if (at.target.hangs) {
      return after(seconds(5), [this, member, began = now_] {
        members_.given_up(member, now_, now_ - began);
        leave(member);
      });
    }
    at.waiting.emplace_back(now_, member);
    serve(at);
  }
  void serve(Running& at) {
    while (at.busy < kSlots && !at.waiting.empty()) {
      const auto [began, member] = at.waiting.front();
      at.waiting.pop_front();
      ++at.busy;
      after(exponential(at.target.mean(now_)), [this, &at, began = began, member = member] {
        --at.busy;
        members_.answered(member, now_, now_ - began);
        times_.push_back(duration<double, std::milli>(now_ - began).count());
        leave(member);
        serve(at);
      });
    }
  }
  void leave(std::uint32_t member) {
    members_.release(member, false, Verdict::Neutral, now_, nanoseconds(0));
  }

  Balancer balancer_;
  SplitMix64 random_;
  TimePoint now_ = kStart;
  Members members_;
  std::vector<std::uint32_t> available_;
  std::vector<std::uint64_t> mask_;
  std::deque<Running> targets_;
  std::multimap<TimePoint, std::function<void()>> events_;
  std::map<std::uint32_t, double> picks_;
  std::vector<double> times_;
};

Target with_mean(milliseconds mean) {
  Target target;
  target.mean = [mean](TimePoint) { return mean; };
  return target;
}

TEST(LeastTimeSim, EqualTargetsAtSixtyPercentAreServedAsIfByChance) {
  Model model(Balancer::LeastTime, kSeed, 20);
  model.run(1'200, seconds(60));
  // The median of the service alone is 69 ms. A rule that takes the least average waits 19 s here.
  EXPECT_LT(model.quantile(.5), 80);
  EXPECT_LT(model.quantile(.99), 600);
  for (std::uint32_t i = 0; i < 20; ++i) EXPECT_NEAR(model.share(i), .05, .01);
}

TEST(LeastTimeSim, AtNinetyPercentItWaitsLessThanByChance) {
  const auto p99 = [](Balancer balancer) {
    Model model(balancer, kSeed, 20);
    model.run(1'800, seconds(60));
    return model.quantile(.99);
  };
  EXPECT_LT(p99(Balancer::LeastTime), .9 * p99(Balancer::Random));  // 461 is the service alone
}

TEST(LeastTimeSim, UnequalTargetsGetWhatTheyCanServe) {
  // Four serve 100 a second, one 10: by chance that gets 24 and falls behind for good; by what is
  // in flight alone it gets as many at once as the others, and each waits ten times as long.
  const auto p99 = [](Balancer balancer) {
    Model model(balancer, kSeed, 4);
    model.add(with_mean(seconds(1)));
    model.run(120, seconds(60));
    return model.quantile(.99);
  };
  EXPECT_LT(p99(Balancer::LeastTime), 600);
  EXPECT_GT(p99(Balancer::TwoRandomChoices), 900);
  EXPECT_GT(p99(Balancer::Random), 10'000);
}

TEST(LeastTimeSim, OneThatFailsFastDrawsNoTraffic) {
  const auto share = [](Balancer balancer) {
    Model model(balancer, 3);
    Target broken;
    broken.fails = true;
    model.add(broken);
    for (int i = 0; i < 19; ++i) model.add({});
    model.run(1'200, seconds(60));
    return model.share(0);
  };
  EXPECT_LT(share(Balancer::LeastTime), .015);
  EXPECT_GT(share(Balancer::TwoRandomChoices), .08) << "the test could not tell them apart";
}

TEST(LeastTimeSim, OneThatHangsDrawsLessThanItsShare) {
  Model model(Balancer::LeastTime, 3);
  Target hanging;
  hanging.hangs = true;
  model.add(hanging);
  for (int i = 0; i < 19; ++i) model.add({});
  model.run(1'200, seconds(60));
  EXPECT_LT(model.share(0), .01);
}

TEST(LeastTimeSim, ANewcomerIsNeitherFloodedNorStarved) {
  Model model(Balancer::LeastTime, kSeed, 19);
  model.run(1'140, seconds(30));
  const auto fresh = model.add({});
  model.forget_figures();
  model.run(1'140, milliseconds(200));
  EXPECT_LT(model.share(fresh), .13);  // of two random ones no more than 0.10 on average
  model.forget_figures();
  model.run(1'140, milliseconds(1'800));
  EXPECT_NEAR(model.share(fresh), .05, .02);
}

TEST(LeastTimeSim, OneThatWasSlowIsTriedAgainWithinTheMemoryAndNotFlooded) {
  Model model(Balancer::LeastTime, 5);
  const TimePoint slow_until = kStart + seconds(35);
  Target target;
  target.mean = [&](TimePoint now) -> duration<double> {
    const bool slow = now >= kStart + seconds(30) && now < slow_until;
    return slow ? seconds(2) : milliseconds(100);
  };
  model.add(target);
  for (int i = 0; i < 4; ++i) model.add({});
  model.run(12, seconds(40));
  model.forget_figures();
  model.first_pick.clear();
  model.run(12, seconds(5));
  EXPECT_LT(model.share(0), .2) << "it was slow just now";
  model.run(12, seconds(25));
  ASSERT_TRUE(model.first_pick.contains(0));
  EXPECT_LE(model.first_pick.at(0), kStart + seconds(40) + Latency::kMemory);
  EXPECT_NEAR(model.share(0), .2, .1);
  model.forget_figures();
  model.run(12, seconds(60));
  EXPECT_NEAR(model.share(0), .2, .06);
}

TEST(LeastTimeSim, OfAFastAndASlowOneTheSlowGetsNearlyNothing) {
  Model model(Balancer::LeastTime, 9);
  const auto slow = model.add(with_mean(milliseconds(50)));
  model.add(with_mean(milliseconds(1)));
  model.run(500, seconds(60));
  EXPECT_LT(model.share(slow), .02);
  EXPECT_GT(model.share(slow), 0) << "it is tried again now and then";
}

TEST(LeastTimeSim, TheSameSeedGivesTheSameChoices) {
  const auto p = [] {
    Model model(Balancer::LeastTime, kSeed, 20);
    model.run(1'200, seconds(5));
    return std::pair{model.share(3), model.quantile(.9)};
  };
  EXPECT_EQ(p(), p());
}

}  // namespace
}  // namespace proxypool::domain
