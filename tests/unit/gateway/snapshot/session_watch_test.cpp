// What the session does with what the controller pushes: CP-2, CP-3, CP-4, CP-9, C9, C13, C16.
#include <gtest/gtest.h>

#include "unit/gateway/snapshot/session_rig.hpp"

namespace proxypool::gateway {
namespace {

using namespace testing_support;
using domain::AckStatus;

class SessionWatch : public SessionTest {};

TEST_F(SessionWatch, AFullSnapshotIsAppliedAndAcknowledged) {  // CP-4
  watch();
  const auto sent = full(snapshot(3));
  push(sent);
  ASSERT_EQ(sink_.applied.size(), 1U);
  ASSERT_EQ(control_.acks.size(), 1U);
  const auto& ack = control_.acks[0];
  EXPECT_EQ(ack.worker, WorkerId("w"));
  EXPECT_EQ(ack.session, SessionId("session-1"));
  EXPECT_EQ(ack.version, (domain::SnapshotVersion{7, 3}));
  EXPECT_EQ(ack.epoch, Epoch(1));
  EXPECT_EQ(ack.digest, sent.digest);
  EXPECT_EQ(ack.status, AckStatus::Applied);
  EXPECT_TRUE(ack.rejected.empty());
  EXPECT_EQ(session_.status().version, (domain::SnapshotVersion{7, 3}));
  EXPECT_EQ(session_.status().counters.snapshots_applied, 1U);
}

TEST_F(SessionWatch, TheLeaseCountsFromTheRegistrationWhileNoReportIsNamed) {  // CP-9, C9, C16
  watch();
  const TimePoint registered = clock_.now();
  clock_.advance(seconds(3));  // the push was on its way
  push(full(snapshot(1)));
  ASSERT_EQ(sink_.applied.size(), 1U);
  const Validity& validity = sink_.applied[0].validity;
  EXPECT_EQ(validity.base, registered);
  EXPECT_EQ(validity.store_now, kStoreNow);
  EXPECT_EQ(validity.until, registered + kLease - kMargin);
  EXPECT_EQ(validity.tunnels_until, registered + kLease + kGrace);
  EXPECT_EQ(session_.status().valid_until, validity.until);
  EXPECT_EQ(session_.status().orphans_end, validity.tunnels_until);
}

TEST_F(SessionWatch, TheLeaseCountsFromWhenTheNamedReportWasSent) {  // CP-9
  serve();
  const TimePoint first = clock_.now();
  report();
  clock_.advance(seconds(1));
  report();
  clock_.advance(seconds(10));
  push(extension(1, 1));
  ASSERT_EQ(sink_.extended.size(), 1U);
  EXPECT_EQ(sink_.extended[0].base, first);
  push(extension(1, 2));
  EXPECT_EQ(sink_.extended[1].base, first + seconds(1));
  EXPECT_EQ(session_.status().valid_until, first + seconds(1) + kLease - kMargin);
  EXPECT_EQ(session_.status().counters.extends, 2U);
}

TEST_F(SessionWatch, AReportThatWasNeverSentOrIsForgottenCountsFromTheRegistration) {  // CP-9
  serve();
  const TimePoint registered = clock_.now();
  for (int i = 0; i < 130; ++i) {
    clock_.advance(seconds(1));
    report();
  }
  ASSERT_EQ(control_.reports.back().sequence, 130U);
  for (const std::uint64_t sequence : {2U, 131U, 4'000U}) {
    push(extension(1, sequence));
    EXPECT_EQ(sink_.extended.back().base, registered) << sequence;
  }
  push(extension(1, 3));
  EXPECT_EQ(sink_.extended.back().base, registered + seconds(3)) << "the oldest remembered";
}

TEST_F(SessionWatch, AnAnswerToAnOlderReportNeverShortensTheValidity) {
  serve();
  clock_.advance(seconds(9));
  report();
  push(extension(1, 1));
  const auto until = session_.status().valid_until;
  push(extension(1, 0));
  EXPECT_EQ(session_.status().valid_until, until);
}

TEST_F(SessionWatch, ReportsOfAnEarlierSessionAreNotCountedFrom) {  // CP-7, CP-9
  serve();
  clock_.advance(seconds(5));
  report();
  clock_.set(break_stream());
  watch();
  const TimePoint registered = clock_.now();
  push(full(snapshot(2), 1));
  EXPECT_EQ(sink_.applied.back().validity.base, registered);
}

TEST_F(SessionWatch, AnotherDigestThanPromisedRefusesTheVersion) {  // CP-3
  serve(1);
  auto damaged = full(snapshot(2));
  damaged.digest[5] ^= 1U;
  push(damaged);
  EXPECT_EQ(sink_.applied.size(), 1U) << "the old view stands";
  const auto& ack = control_.acks.back();
  EXPECT_EQ(ack.status, AckStatus::Rejected);
  EXPECT_EQ(ack.version, (domain::SnapshotVersion{7, 2}));
  EXPECT_EQ(ack.reason, "the digest does not match");
  EXPECT_EQ(session_.status().version, (domain::SnapshotVersion{7, 1}));
  EXPECT_EQ(session_.status().counters.snapshots_rejected, 1U);
  EXPECT_EQ(session_.status().warning, "snapshot refused: the digest does not match");
  push(full(snapshot(3)));
  EXPECT_EQ(control_.acks.back().status, AckStatus::Applied);
  EXPECT_TRUE(session_.status().warning.empty());
}

TEST_F(SessionWatch, ASnapshotWhoseValidityHasEndedOnItsWayIsRefused) {
  watch();
  clock_.advance(kLease - kMargin);
  push(full(snapshot(1)));
  EXPECT_TRUE(sink_.applied.empty());
  EXPECT_EQ(control_.acks[0].status, AckStatus::Rejected);
  EXPECT_FALSE(session_.status().valid_until);
}

TEST_F(SessionWatch, ARefusedVersionLeavesTheAcceptedOneInForce) {  // C13
  serve(1);
  sink_.apply_error = refusal(ErrorCode::InvalidArgument, "a routing without a name");
  push(full(snapshot(2)));
  EXPECT_EQ(control_.acks.back().status, AckStatus::Rejected);
  EXPECT_EQ(control_.acks.back().reason, "a routing without a name");
  clock_.advance(seconds(20));
  report();
  EXPECT_EQ(control_.reports.back().version, (domain::SnapshotVersion{7, 1}))
      << "reports speak of what is served";
  push(extension(1, 1, {ProxyId(2)}));
  EXPECT_EQ(session_.status().valid_until, clock_.now() + kLease - kMargin);
  EXPECT_EQ(sink_.revoked, std::vector{ProxyId(2)});
  EXPECT_TRUE(session_.status().registered);
}

TEST_F(SessionWatch, QuarantinedProxiesAreNamedInTheAcknowledgement) {  // CP-4
  sink_.quarantined = {{ProxyId(2), "socks5 is not served yet"}};
  watch();
  push(full(snapshot(1)));
  EXPECT_EQ(control_.acks[0].status, AckStatus::Applied);
  ASSERT_EQ(control_.acks[0].rejected.size(), 1U);
  EXPECT_EQ(control_.acks[0].rejected[0].proxy, ProxyId(2));
  EXPECT_EQ(control_.acks[0].rejected[0].reason, "socks5 is not served yet");
}

TEST_F(SessionWatch, AnExtensionOfWhatIsNotHeldEndsTheSessionButItsRevocationsAreObeyed) {  // C13
  serve(3);
  ports::ExtendPush other_epoch = extension(3, 0, {ProxyId(1)});
  other_epoch.epoch = Epoch(2);
  ports::ExtendPush other_generation = extension(3, 0, {ProxyId(2)});
  other_generation.version.generation = 8;
  const ports::ExtendPush other_version = extension(2, 0, {ProxyId(3)});
  std::size_t registrations = 1;
  for (const auto& wrong : {other_epoch, other_generation, other_version}) {
    clock_.set(push(wrong));
    EXPECT_FALSE(session_.status().registered);
    ASSERT_FALSE(sink_.revoked.empty());
    EXPECT_EQ(sink_.revoked.back(), wrong.revoked[0]);
    EXPECT_TRUE(sink_.extended.empty());
    serve(3);
    EXPECT_EQ(control_.registrations.size(), ++registrations);
  }
}

TEST_F(SessionWatch, NothingCanBeExtendedBeforeTheFirstAcknowledgementOfASession) {  // CP-7
  serve(3);
  clock_.set(break_stream());
  watch();
  push(extension(3));
  EXPECT_TRUE(sink_.extended.empty()) << "what an earlier session acknowledged does not count";
  clock_.set(watch());
  watch();
  ports::ExtendPush nothing = extension(0);
  nothing.version = {};
  nothing.epoch = {};
  push(nothing);
  EXPECT_TRUE(sink_.extended.empty());
}

TEST_F(SessionWatch, AnAcknowledgementThatFailsMakesTheWorkerRegisterAgain) {  // CP-7
  control_.ack_error = refusal(ErrorCode::Stale, "the session was replaced");
  watch();
  EXPECT_EQ(push(full(snapshot(1))), clock_.now() + milliseconds(250));
  EXPECT_FALSE(session_.status().registered);
  report();
  EXPECT_TRUE(control_.reports.empty()) << "no session, no report";
  control_.ack_error.reset();
  clock_.advance(milliseconds(250));
  watch();
  EXPECT_EQ(control_.registrations[1].held_version, (domain::SnapshotVersion{7, 1}))
      << "it serves it all the same";
}

TEST_F(SessionWatch, ASliceWithoutAMessageIsNoFailure) {
  serve();
  EXPECT_EQ(watch(), clock_.now());
  EXPECT_EQ(session_.status().counters.failures, 0U);
  EXPECT_TRUE(session_.status().registered);
}

TEST_F(SessionWatch, ACancelledWaitRegistersAgain) {
  serve();
  session_.cancel();
  clock_.set(watch());
  watch();
  EXPECT_EQ(control_.registrations.size(), 2U);
}

}  // namespace
}  // namespace proxypool::gateway
