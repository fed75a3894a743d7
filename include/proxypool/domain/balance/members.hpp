// The members of one upstream with what each carries: the runtime side of every choice.
//
// A member is a position that stays its own for as long as the proxy lives here, over any number of
// snapshots, so that counters and the index of loads survive a swap. Its whole state is one word
// (Capacity): both counts, the limit, and in the note whether it takes work and where the index has
// it. Whoever changes a word so that the member belongs at another level of the index sets the bit
// `moving` in the same step, moves it, and takes the bit away by a compare-and-set that fails if
// the word has changed meanwhile; then it moves on. So nobody waits: other threads change the
// counts of a moving member and leave the moving to the one who does it, and the word stays the
// truth, the index a hint that is exact whenever nobody is between two steps.
//
// Levels of the index: by requests in flight; SUSPECT members after all AVAILABLE ones, so that the
// lowest level is a last resort only when it has to be (C6); benched ones apart; full, closed and
// expired ones nowhere. That is what least_conn asks for, and it costs two levels a reservation and
// two a release. Until some routing does (keep_exact), AVAILABLE members with a free place are all
// at one level, where any of them is found; then most reservations are one compare-and-set.
//
// Up to kScanMax members there is no index: a scan of their few words is as fast and exact as well
// (at 64 it took three times as long as the index).
//
// A choice reads and writes words and hardly more: eight bytes a member, so that 100,000 members
// stay in a core's own cache (0.8 MB), where a word costs 6 ns; beyond, it is 20 to 170. So the
// ends of members stand elsewhere, and a bitmap, kept by look_ahead(), tells choices for whom they
// must look there.
//
// Thread rule: place, set, close, reclaim, look_ahead, keep_exact: one thread at a time (the
// owner).
//              Everything else: any thread; no method there blocks or allocates.
// Invariant:   a place is taken only from an open member below its limit and before its `until`.
// Limits:      262,144 positions; place() answers kNone at the maximum. Loads from 223 on (29 for
//              SUSPECT) share one level of the index: among them the choice is not by load.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "proxypool/base/assert.hpp"
#include "proxypool/base/id.hpp"
#include "proxypool/base/random.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/domain/balance/latency.hpp"
#include "proxypool/domain/balance/level_index.hpp"
#include "proxypool/domain/balance/segmented.hpp"
#include "proxypool/domain/proxy/capacity.hpp"

namespace proxypool::domain {

enum class Tier : std::uint8_t { Available, Suspect };

// What a finished piece of work says about its proxy.
enum class Verdict : std::uint8_t { Neutral, Good, Bad };

class Members {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kScanMax = 16;
  static constexpr std::uint32_t kMax = std::uint32_t{1} << LevelIndex::kMembersLog;
  static constexpr std::uint32_t kFull = UINT32_MAX;  // see load_of
  static constexpr milliseconds kAhead{1'000};

  struct Settings {
    std::uint32_t limit = 1;
    bool suspect = false;
    TimePoint until = kNever;  // no new work from then on
  };

  Members() = default;
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  // The owner's -----------------------------------------------------------------------------------

  // Gives a proxy a position that takes nothing yet. kNone: no position is free.
  std::uint32_t place(ProxyId id) {
    std::uint32_t member = size_.load(std::memory_order_relaxed);
    if (!free_.empty()) {
      member = free_.back();
      free_.pop_back();
    } else if (member == kMax) {
      return kNone;
    } else {
      words_.grow(member + 1);
      facts_.grow(member + 1);
      latencies_.grow(member + 1);
      ending_.grow(member / 64 + 1);
      (void)words_[member].update([](Word& w) { return w.set_note(kNowhere), true; });
      if (indexing_) index_.grow(member + 1);
      size_.store(member + 1, std::memory_order_release);
      if (!indexing_ && member == kScanMax) start_index();
    }
    facts_[member].id.store(id.value());
    latencies_[member].forget();
    return member;
  }
  // Opens a member, or changes an open one.
  void set(std::uint32_t member, const Settings& settings) {
    prepare(settings.limit);
    facts_[member].until.store(settings.until.time_since_epoch().count());
    note_ending(member, settings.until < TimePoint(nanoseconds(looked_until_.load())));
    const std::uint32_t track = (indexing_ ? kTracked : 0) | (exact_ ? kExact : 0);
    (void)change(member, [&](Word& w) {
      w.set_limit(settings.limit);
      std::uint32_t note = (w.note() & ~(kExpired | kSuspect)) | kOpen | track;
      if (settings.suspect) note |= kSuspect;
      w.set_note(note);
      return true;
    });
  }
  // Nothing new from now on; what is in flight goes on. After it no reservation can succeed.
  void close(std::uint32_t member) {
    (void)change(
        member, [](Word& w) { return w.set_note(w.note() & ~(kOpen | kBenched | kFailed)), true; });
  }
  // Frees the position of a closed member that carries nothing. False: not yet.
  bool reclaim(std::uint32_t member) {
    Word seen = words_[member].load();
    if ((seen.note() & (kOpen | kMoving)) != 0 || seen.taken() != 0) return false;
    if ((seen.note() & kLevelMask) != kNowhere) return false;
    Word freed;
    freed.set_note(kNowhere);
    if (!words_[member].replace(seen, freed)) return false;
    facts_[member].id.store(0);
    free_.push_back(member);
    return true;
  }

  // Notes who ends within kAhead; until then choices look at nobody else's end. A few times a
  // second; it has something to do once in kAhead / 2. Where nobody calls it, each choice looks.
  void look_ahead(TimePoint now) {
    const TimePoint horizon = now + kAhead;
    if (now + kAhead / 2 < TimePoint(nanoseconds(looked_until_.load()))) return;
    for (std::uint32_t m = 0; m < size(); ++m) note_ending(m, until(m) < horizon);
    looked_until_.store(horizon.time_since_epoch().count());
  }
  // From now on reserve_least() of AVAILABLE members is exact at any size.
  void keep_exact() {
    if (exact_) return;
    exact_ = true;
    const std::uint32_t limit = limit_max_;
    limit_max_ = 0;
    prepare(limit);
    for (std::uint32_t m = 0; m < size(); ++m) {
      (void)change(m, [](Word& w) { return w.set_note(w.note() | kExact), true; });
    }
  }

  // Any thread's ----------------------------------------------------------------------------------

  // How many positions were ever given away.
  [[nodiscard]] std::uint32_t size() const noexcept {
    return size_.load(std::memory_order_acquire);
  }
  [[nodiscard]] ProxyId id(std::uint32_t member) const noexcept {
    return ProxyId(facts_[member].id.load());
  }
  [[nodiscard]] TimePoint until(std::uint32_t member) const noexcept {
    return TimePoint(nanoseconds(facts_[member].until.load()));
  }
  [[nodiscard]] Counts counts(std::uint32_t member) const noexcept {
    return words_[member].counts();
  }
  [[nodiscard]] bool is_open(std::uint32_t member) const noexcept {
    return (words_[member].load().note() & kOpen) != 0;
  }
  // Whether work that has a place may still begin: the member is open and before its end.
  [[nodiscard]] bool still_usable(std::uint32_t member, TimePoint now) const noexcept {
    return (words_[member].load().note() & (kOpen | kExpired)) == kOpen && now < until(member);
  }
  // Requests in flight through an AVAILABLE member with a free place, else kFull.
  [[nodiscard]] std::uint32_t load_of(std::uint32_t member) const noexcept {
    const Word w = words_[member].load();
    return in_tier(w, Tier::Available) && w.taken() < w.limit() ? w.taken() : kFull;
  }
  // How long this member's answers take, in microseconds; like the others' if that is not known.
  [[nodiscard]] float cost(std::uint32_t member, TimePoint now) const noexcept {
    return latencies_[member].cost(now, median_.value());
  }
  // For cost: an answer came, none came that was one, or nobody waited for it any longer.
  void answered(std::uint32_t member, TimePoint now, nanoseconds took) noexcept {
    median_.learn(member, latencies_[member].succeeded(now, took, median_.value()), now);
  }
  void failed(std::uint32_t member, TimePoint now, nanoseconds penalty) noexcept {
    median_.learn(member, latencies_[member].failed(now, penalty, median_.value()), now);
  }
  void given_up(std::uint32_t member, TimePoint now, nanoseconds after) noexcept {
    median_.learn(member, latencies_[member].lasted(now, after, median_.value()), now);
  }
  // For round robin: whose turn it is, kept over snapshots.
  [[nodiscard]] std::uint64_t next_turn() noexcept {
    return turn_.fetch_add(1, std::memory_order_relaxed);
  }

  // Brings benched members back whose time is over: one thread at a time, the others pass
  // by. Every choice begins with it: one load, most of the time.
  void wake_benched(TimePoint now) noexcept {
    const std::int64_t moment = now.time_since_epoch().count();
    std::int64_t due = bench_due_.load();
    if (moment < due) return;
    constexpr std::int64_t kNotDue = INT64_MAX;
    if (!bench_due_.compare_exchange_strong(due, kNotDue)) return;
    std::int64_t next = kNotDue;
    int woken = 0;
    const auto wake = [&](std::uint32_t member) {
      const std::int64_t back = facts_[member].bench_until.load();
      if (back > moment) {
        next = std::min(next, back);
        return false;
      }
      (void)change(member, [](Word& w) { return w.set_note(w.note() & ~kBenched), true; });
      if (++woken < kWakeMax) return false;
      next = moment;  // the rest with the next request
      return true;
    };
    for_benched(wake);
    lower(bench_due_, TimePoint(nanoseconds(next)));
  }
  // When the next benched member comes back; kNever: none is benched.
  [[nodiscard]] TimePoint bench_due() const noexcept {
    return TimePoint(nanoseconds(bench_due_.load()));
  }
  // Takes a place at this member, if it is of the tier and has one.
  [[nodiscard]] bool try_reserve(std::uint32_t member, Tier tier, TimePoint now) noexcept {
    if (past_end(member, now)) return false;
    return change(member, [&](Word& w) { return in_tier(w, tier) && w.reserve(); });
  }
  // Takes a place at a least loaded member of the tier; ties are random. Only members in `mask`
  // (one bit a position) that admit(member) accepts. kNone: nobody has a free place. Beyond
  // kScanMax members, and unless keep_exact(), at any AVAILABLE member that has a place.
  template <class Admit>
  [[nodiscard]] std::uint32_t reserve_least(Tier tier, std::span<const std::uint64_t> mask,
                                            TimePoint now, Random& random, Admit&& admit) noexcept {
    return indexed_.load(std::memory_order_acquire) ? search_least(tier, mask, now, random, admit)
                                                    : scan_least(tier, mask, now, random, admit);
  }
  // Reserved becomes active. REQUIRES: the caller holds a reserved place. False: counted as a bug.
  bool commit(std::uint32_t member) noexcept { return words_[member].commit(); }
  // Gives a place back. Two Bad verdicts in a row bench the member for `bench` (0: never).
  // REQUIRES: the caller holds a place of that kind. False: counted as a bug, nothing changed.
  bool release(std::uint32_t member, bool active, Verdict verdict, TimePoint now,
               nanoseconds bench) noexcept {
    if (bench <= nanoseconds{0} && verdict == Verdict::Bad) verdict = Verdict::Neutral;
    const TimePoint back = verdict == Verdict::Bad ? now + bench : kNever;
    bool benched = false;
    const bool given = change(member, [&](Word& w) {
      if (!(active ? w.finish() : w.cancel())) return false;
      if (verdict == Verdict::Neutral) return true;
      std::uint32_t note = w.note() & ~kFailed;
      benched = verdict == Verdict::Bad && (w.note() & (kFailed | kOpen)) == (kFailed | kOpen);
      if (benched) {
        facts_[member].bench_until.store(back.time_since_epoch().count());
        note |= kBenched;
      } else if (verdict == Verdict::Bad) {
        note |= kFailed;
      }
      w.set_note(note);
      return true;
    });
    if (benched) lower(bench_due_, back);
    return !PP_BUG_IF(!given);
  }

  // For tests and reports: whether the index has every member where its word belongs. Meaningful
  // only while no other thread is between two steps.
  [[nodiscard]] bool consistent() const noexcept {
    for (std::uint32_t m = 0; m < size(); ++m) {
      const Word w = words_[m].load();
      const unsigned at = w.note() & kLevelMask;
      const bool tracked = (w.note() & kTracked) != 0;
      if ((w.note() & kMoving) != 0 || at != (tracked ? level_of(w) : kNowhere)) return false;
      for (unsigned level = 0; level < kNowhere; ++level) {
        if (index_.contains(level, m) != (level == at)) return false;
      }
    }
    return true;
  }

 private:
  using Word = Capacity::Word;

  // Levels of the index.
  static constexpr unsigned kAvailableLevels = 224;
  static constexpr unsigned kBenchLevel = 254;
  static constexpr unsigned kNowhere = 255;
  // The note: the level where the index has the member, and these bits.
  static constexpr std::uint32_t kLevelMask = 0xff;
  static constexpr std::uint32_t kMoving = 1U << 8U;    // somebody is moving it in the index
  static constexpr std::uint32_t kTracked = 1U << 9U;   // the index has it
  static constexpr std::uint32_t kOpen = 1U << 10U;     // takes work
  static constexpr std::uint32_t kExpired = 1U << 11U;  // was seen past its end
  static constexpr std::uint32_t kBenched = 1U << 12U;
  static constexpr std::uint32_t kSuspect = 1U << 13U;
  static constexpr std::uint32_t kFailed = 1U << 14U;  // the last verdict was Bad
  static constexpr std::uint32_t kExact = 1U << 15U;   // the index has it by its load

  static constexpr int kRounds = 8;
  static constexpr int kWakeMax = 64;  // benched members that one request wakes at most

  struct Facts {
    std::atomic<std::uint64_t> id{0};
    std::atomic<std::int64_t> until{0};
    std::atomic<std::int64_t> bench_until{0};
  };

  static bool in_tier(Word w, Tier tier) noexcept {
    const std::uint32_t wanted = kOpen | (tier == Tier::Suspect ? kSuspect : 0U);
    return (w.note() & (kOpen | kExpired | kBenched | kSuspect)) == wanted;
  }
  static unsigned level_of(Word w) noexcept {
    if ((w.note() & (kOpen | kExpired)) != kOpen) return kNowhere;
    if ((w.note() & kBenched) != 0) return kBenchLevel;
    if (w.taken() >= w.limit()) return kNowhere;
    if ((w.note() & (kSuspect | kExact)) == 0) return 0;
    if ((w.note() & kSuspect) == 0) return std::min(w.taken(), kAvailableLevels - 1);
    return kAvailableLevels + std::min(w.taken(), kBenchLevel - kAvailableLevels - 1);
  }

  // Applies `step` to a member's word and keeps the index true to it.
  template <class Step>
  bool change(std::uint32_t member, Step&& step) noexcept {
    Capacity& capacity = words_[member];
    Word before = capacity.load();
    for (;;) {
      Word after = before;
      if (!step(after)) return false;
      const std::uint32_t note = after.note();
      const bool mine =
          (note & (kTracked | kMoving)) == kTracked && (note & kLevelMask) != level_of(after);
      if (mine) after.set_note(note | kMoving);
      if (!capacity.replace(before, after)) continue;
      if (mine) move(member, after);
      return true;
    }
  }
  // REQUIRES: this thread has set kMoving. Set before cleared: a member that is being moved can be
  // seen twice, and never not at all.
  void move(std::uint32_t member, Word seen) noexcept {
    unsigned at = seen.note() & kLevelMask;
    for (;;) {
      const unsigned wanted = level_of(seen);
      if (wanted != at) {
        if (wanted != kNowhere) index_.set(wanted, member);
        if (at != kNowhere) index_.clear(at, member);
        at = wanted;
      }
      Word settled = seen;
      settled.set_note((seen.note() & ~(kLevelMask | kMoving)) | at);
      if (words_[member].replace(seen, settled)) return;
    }
  }

  // The owner's.
  void note_ending(std::uint32_t member, bool soon) noexcept {
    const std::uint64_t bit = std::uint64_t{1} << (member % 64);
    std::atomic<std::uint64_t>& word = ending_[member / 64];
    if (((word.load(std::memory_order_relaxed) & bit) != 0) == soon) return;
    soon ? word.fetch_or(bit) : word.fetch_and(~bit);
  }
  [[nodiscard]] bool ends_soon(std::uint32_t member) const noexcept {
    return (ending_[member / 64].load(std::memory_order_relaxed) >> (member % 64) & 1U) != 0;
  }
  // Whether the member's time is over; if so it leaves the index. The owner may have given it more
  // time just then, hence the second look.
  bool past_end(std::uint32_t member, TimePoint now) noexcept {
    if (now.time_since_epoch().count() < looked_until_.load() && !ends_soon(member)) return false;
    if (now < until(member)) return false;
    const auto mark = [&](bool expired) {
      (void)change(member, [&](Word& w) {
        const std::uint32_t note = w.note() & ~kExpired;
        return w.set_note(expired ? note | kExpired : note), true;
      });
    };
    mark(true);
    if (now < until(member)) mark(false);
    return true;
  }

  template <class Admit>
  std::uint32_t search_least(Tier tier, std::span<const std::uint64_t> mask, TimePoint now,
                             Random& random, Admit&& admit) noexcept {
    const bool suspect = tier == Tier::Suspect;
    const unsigned first = suspect ? kAvailableLevels : 0;
    const unsigned end = suspect ? kBenchLevel : kAvailableLevels;
    std::uint32_t taken = kNone;
    for (int round = 1; round <= kRounds; ++round) {
      bool raced = false;
      const auto visit = [&](unsigned level, std::uint32_t member) {
        // On its way to another level: whoever moves it may be asleep, so the last round takes it.
        const auto fits = [&](Word w) { return level_of(w) == level || round == kRounds; };
        if (!fits(words_[member].load())) return !(raced = true);
        if (!admit(member) || past_end(member, now)) return false;
        if (!change(member, [&](Word& w) { return fits(w) && in_tier(w, tier) && w.reserve(); })) {
          return !(raced = true);
        }
        taken = member;
        return true;
      };
      if (index_.search(first, end, mask, random, visit) || !raced) return taken;
    }
    return kNone;
  }

  template <class Admit>
  std::uint32_t scan_least(Tier tier, std::span<const std::uint64_t> mask, TimePoint now,
                           Random& random, Admit&& admit) noexcept {
    static_assert(kScanMax <= 64);
    std::uint64_t wanted = mask.empty() ? 0 : mask[0];
    for (int round = 1; round <= kRounds;) {
      std::uint64_t ties = 0;
      std::uint32_t least = kFull;
      for (std::uint64_t bits = wanted; bits != 0; bits &= bits - 1) {
        const auto i = static_cast<std::uint32_t>(std::countr_zero(bits));
        const Word w = words_[i].load();
        const std::uint32_t taken = w.taken();
        if (taken > least || taken >= w.limit() || !in_tier(w, tier)) continue;
        if (taken < least) ties = 0;
        least = taken;
        ties |= std::uint64_t{1} << i;
      }
      if (ties == 0) return kNone;
      for (auto n = random.below(static_cast<std::uint64_t>(std::popcount(ties))); n > 0; --n) {
        ties &= ties - 1;
      }
      const auto member = static_cast<std::uint32_t>(std::countr_zero(ties));
      if (!admit(member) || past_end(member, now)) {
        wanted &= ~(std::uint64_t{1} << member);
        continue;
      }
      const bool any_load = round++ == kRounds;
      if (change(member, [&](Word& w) {
            return (w.taken() == least || any_load) && in_tier(w, tier) && w.reserve();
          })) {
        return member;
      }
    }
    return kNone;
  }

  static void lower(std::atomic<std::int64_t>& moment, TimePoint to) noexcept {
    const std::int64_t wanted = to.time_since_epoch().count();
    std::int64_t seen = moment.load();
    while (wanted < seen && !moment.compare_exchange_weak(seen, wanted)) {
    }
  }
  template <class F>
  void for_benched(F&& wake) noexcept {
    if (indexed_.load(std::memory_order_acquire)) {
      index_.for_each(kBenchLevel, wake);
      return;
    }
    for (std::uint32_t m = 0; m < size(); ++m) {
      if ((words_[m].load().note() & kBenched) != 0 && wake(m)) return;
    }
  }

  // From now on the index is kept. Members enter it one by one while traffic goes on with scans;
  // the bit in the word tells each change from then on to keep it.
  void start_index() {
    indexing_ = true;
    index_.grow(size());
    index_.open_level(kBenchLevel);
    const std::uint32_t limit = limit_max_;
    limit_max_ = 0;
    prepare(limit);
    for (std::uint32_t m = 0; m < size(); ++m) {
      (void)change(m, [](Word& w) { return w.set_note(w.note() | kTracked), true; });
    }
    indexed_.store(true, std::memory_order_release);
  }
  // Opens the levels that members with this limit can come to.
  void prepare(std::uint32_t limit) {
    if (limit <= limit_max_) return;
    if (indexing_) {
      const unsigned levels = exact_ ? std::min(limit, kAvailableLevels) : 1U;
      for (unsigned level = 0; level < levels; ++level) index_.open_level(level);
      for (unsigned level = kAvailableLevels; level < kBenchLevel; ++level) {
        if (level - kAvailableLevels < limit) index_.open_level(level);
      }
    }
    limit_max_ = limit;
  }

  Segmented<Capacity, 6, LevelIndex::kMembersLog> words_;
  Segmented<Facts, 6, LevelIndex::kMembersLog> facts_;
  Segmented<Latency, 6, LevelIndex::kMembersLog> latencies_;
  Segmented<std::atomic<std::uint64_t>, 4, LevelIndex::kMembersLog - 6> ending_;  // one bit each
  MedianLatency median_;
  LevelIndex index_;
  alignas(64) std::atomic<std::uint64_t> turn_{0};
  alignas(64) std::atomic<std::int64_t> bench_due_{INT64_MAX};
  std::atomic<std::int64_t> looked_until_{INT64_MIN};  // up to then ending_ is right
  std::atomic<std::uint32_t> size_{0};
  std::atomic<bool> indexed_{false};  // the index has everybody
  bool indexing_ = false;             // the owner's: the index is kept
  bool exact_ = false;                // the owner's: by load
  std::uint32_t limit_max_ = 0;       // the owner's
  std::vector<std::uint32_t> free_;   // the owner's
};

}  // namespace proxypool::domain
