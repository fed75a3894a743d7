// What every WorkerRegistry promises. A fixture offers `ports::WorkerRegistry& store()` and
// `void advance(milliseconds)`.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "proxypool/ports/worker_registry.hpp"

namespace proxypool::contract {

template <class Fixture>
class WorkerRegistryContract : public ::testing::Test {
 protected:
  ports::WorkerRegistry& store() { return fixture_.store(); }
  void advance(milliseconds duration) { fixture_.advance(duration); }
  ports::WorkerRow enter(const std::string& worker, const std::string& instance = "i1") {
    return *store().register_worker(
        {WorkerId(worker), InstanceId(instance), "zone", false, milliseconds{60'000}}, Deadline{});
  }
  ports::WorkerRow row(const ports::WorkerRow& of) {
    const auto found = store().session(of.worker, of.session, Deadline{});
    EXPECT_TRUE(found);
    return found ? *found : ports::WorkerRow{};
  }
  static ports::IssuedSnapshot version(std::uint64_t counter) {
    ports::IssuedSnapshot issued{{1, counter}, Epoch(counter), {}, 100 * counter};
    issued.digest[0] = static_cast<std::uint8_t>(counter);
    return issued;
  }
  Status issue(const ports::WorkerRow& to, std::uint64_t counter) {
    return store().record_issued(to.worker, to.session, version(counter), Deadline{});
  }
  Status acknowledge(const ports::WorkerRow& by, std::uint64_t counter,
                     domain::AckStatus status = domain::AckStatus::Applied) {
    return store().acknowledge(by.worker, by.session, version(counter), status, Deadline{});
  }
  domain::ReportVerdict report(const ports::WorkerRow& by, std::uint64_t sequence,
                               std::uint64_t counter, std::uint8_t content = 0) {
    ports::ReportFence fence;
    fence.sequence = sequence;
    fence.digest[0] = content;
    fence.active = 5;
    if (counter) fence.version = version(counter).version;
    if (counter) fence.epoch = version(counter).epoch;
    return *store().accept_report(by.worker, by.session, fence, milliseconds{60'000}, Deadline{});
  }

  Fixture fixture_;
};

TYPED_TEST_SUITE_P(WorkerRegistryContract);

// CP-7
TYPED_TEST_P(WorkerRegistryContract, ANewSessionReplacesTheOldOneAndForgetsWhatItWasSent) {
  const auto first = this->enter("w");
  ASSERT_TRUE(this->issue(first, 1));
  ASSERT_TRUE(this->acknowledge(first, 1));
  EXPECT_EQ(this->report(first, 7, 1), domain::ReportVerdict::Accept);
  const auto second = this->enter("w", "i2");
  EXPECT_NE(second.session, first.session);
  EXPECT_FALSE(second.acknowledged);
  EXPECT_EQ(second.report_sequence, 0U);
  EXPECT_EQ(second.active, 0U);
  const auto stale = this->store().session(first.worker, first.session, Deadline{});
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code, ErrorCode::Stale);
  EXPECT_EQ(this->issue(first, 2).error().code, ErrorCode::Stale);
  EXPECT_EQ(this->acknowledge(first, 1).error().code, ErrorCode::Stale);
  EXPECT_EQ(this->acknowledge(second, 1).error().code, ErrorCode::Conflict);
  EXPECT_EQ(this->store().workers(Deadline{})->size(), 1U);
  EXPECT_EQ(this->store().leave(first.worker, first.session, Deadline{}).error().code,
            ErrorCode::Stale);
  EXPECT_TRUE(this->store().leave(second.worker, second.session, Deadline{}));
  EXPECT_TRUE(this->store().workers(Deadline{})->empty());
}

// CP-5
TYPED_TEST_P(WorkerRegistryContract, OneSnapshotIsOutstandingAtATime) {
  const auto worker = this->enter("w");
  ASSERT_TRUE(this->issue(worker, 1));
  EXPECT_EQ(this->issue(worker, 2).error().code, ErrorCode::Conflict);
  EXPECT_EQ(this->acknowledge(worker, 2).error().code, ErrorCode::Conflict);
  EXPECT_TRUE(this->acknowledge(worker, 1));
  EXPECT_TRUE(this->acknowledge(worker, 1));  // a repeat is answered as before
  EXPECT_EQ(this->row(worker).acknowledged, this->version(1).version);
  EXPECT_EQ(this->row(worker).acknowledged_change, 100U);
  EXPECT_TRUE(this->issue(worker, 2));
  ASSERT_TRUE(this->store().withdraw_issued(worker.worker, worker.session, Deadline{}));
  EXPECT_EQ(this->acknowledge(worker, 2).error().code, ErrorCode::Conflict);
  EXPECT_TRUE(this->issue(worker, 3));
}

// C13
TYPED_TEST_P(WorkerRegistryContract, ARefusedVersionIsParkedAndTheAcceptedOneStays) {
  const auto worker = this->enter("w");
  ASSERT_TRUE(this->issue(worker, 1));
  ASSERT_TRUE(this->acknowledge(worker, 1));
  ASSERT_TRUE(this->issue(worker, 2));
  ASSERT_TRUE(this->acknowledge(worker, 2, domain::AckStatus::Rejected));
  EXPECT_EQ(this->row(worker).rejected, this->version(2).version);
  EXPECT_EQ(this->row(worker).acknowledged, this->version(1).version);
  EXPECT_EQ(this->issue(worker, 2).error().code, ErrorCode::Conflict);  // never again
  EXPECT_EQ(this->report(worker, 1, 1), domain::ReportVerdict::Accept);
  // A busy worker may be sent the same again.
  ASSERT_TRUE(this->issue(worker, 3));
  ASSERT_TRUE(this->acknowledge(worker, 3, domain::AckStatus::Busy));
  EXPECT_TRUE(this->issue(worker, 3));
}

// CP-7, C12
TYPED_TEST_P(WorkerRegistryContract, AReportCountsOnceAndAgainstWhatWasAcknowledged) {
  const auto worker = this->enter("w");
  EXPECT_EQ(this->report(worker, 1, 0), domain::ReportVerdict::Accept);
  ASSERT_TRUE(this->issue(worker, 1));
  EXPECT_EQ(this->report(worker, 2, 1), domain::ReportVerdict::WrongBase);
  ASSERT_TRUE(this->acknowledge(worker, 1));
  EXPECT_EQ(this->report(worker, 2, 0), domain::ReportVerdict::WrongBase);
  EXPECT_EQ(this->report(worker, 2, 1), domain::ReportVerdict::Accept);
  EXPECT_EQ(this->report(worker, 2, 1), domain::ReportVerdict::Replay);
  EXPECT_EQ(this->report(worker, 2, 1, 9), domain::ReportVerdict::Conflict);
  EXPECT_EQ(this->report(worker, 1, 1), domain::ReportVerdict::Stale);
  EXPECT_EQ(this->row(worker).report_sequence, 2U);
  EXPECT_EQ(this->row(worker).active, 5U);
}

TYPED_TEST_P(WorkerRegistryContract, ASessionLivesAsLongAsItReports) {
  const auto worker = this->enter("w");
  this->advance(milliseconds{59'999});
  EXPECT_TRUE(this->row(worker).live);
  EXPECT_EQ(this->report(worker, 1, 0), domain::ReportVerdict::Accept);
  this->advance(milliseconds{59'999});
  EXPECT_TRUE(this->row(worker).live);
  EXPECT_EQ(this->report(worker, 1, 0), domain::ReportVerdict::Replay);  // prolongs nothing
  this->advance(milliseconds{1});
  EXPECT_FALSE(this->row(worker).live);
  EXPECT_FALSE(this->store().workers(Deadline{})->front().live);
}

TYPED_TEST_P(WorkerRegistryContract, VersionsOfAWorkerOnlyGrow) {
  std::uint64_t last = 0;
  for (int i = 0; i < 5; ++i) {
    const auto next = *this->store().next_version(WorkerId("w"), Deadline{});
    EXPECT_GT(next, last);
    last = next;
    static_cast<void>(*this->store().next_version(WorkerId("x"), Deadline{}));
  }
}

TYPED_TEST_P(WorkerRegistryContract, ACheckersSessionIsReplacedAndRunsOutAsWell) {
  const milliseconds ttl{10'000};
  const CheckerId id("c");
  const auto first = *this->store().register_checker(id, InstanceId("i"), 8, ttl, Deadline{});
  EXPECT_EQ(first.in_flight_max, 8U);
  this->advance(milliseconds{9'999});
  EXPECT_TRUE(this->store().touch_checker(id, first.session, ttl, Deadline{}));
  this->advance(ttl - milliseconds{1});
  EXPECT_TRUE(this->store().checkers(Deadline{})->front().live);
  this->advance(milliseconds{1});
  EXPECT_FALSE(this->store().checkers(Deadline{})->front().live);
  const auto second = *this->store().register_checker(id, InstanceId("j"), 4, ttl, Deadline{});
  EXPECT_EQ(this->store().touch_checker(id, first.session, ttl, Deadline{}).error().code,
            ErrorCode::Stale);
  EXPECT_TRUE(this->store().touch_checker(id, second.session, ttl, Deadline{}));
  EXPECT_EQ(this->store().checkers(Deadline{})->size(), 1U);
}

REGISTER_TYPED_TEST_SUITE_P(WorkerRegistryContract,
                            ANewSessionReplacesTheOldOneAndForgetsWhatItWasSent,
                            OneSnapshotIsOutstandingAtATime,
                            ARefusedVersionIsParkedAndTheAcceptedOneStays,
                            AReportCountsOnceAndAgainstWhatWasAcknowledged,
                            ASessionLivesAsLongAsItReports, VersionsOfAWorkerOnlyGrow,
                            ACheckersSessionIsReplacedAndRunsOutAsWell);

}  // namespace proxypool::contract
