// Snapshots to events and back: equality, sizes (CP-2), and every way in which a stream can be bad.
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <functional>

#include "adapters/grpc/push_decoder.hpp"
#include "adapters/grpc/push_encoder.hpp"
#include "proto/controlplane/v1/controlplane.pb.h"
#include "proxypool/base/limits.hpp"
#include "support/control_plane_samples.hpp"

namespace proxypool::rpc {
namespace {

using test::large_snapshot;
using test::sample_extend_push;
using test::sample_full_push;

std::vector<v1::SnapshotEvent> encode_all(const ports::Push& push) {
  std::vector<v1::SnapshotEvent> events;
  PushEncoder encoder(push);
  while (true) {
    v1::SnapshotEvent event;
    const auto more = encoder.next(event);
    EXPECT_TRUE(more) << more.error().message;
    if (!more || !*more) return events;
    events.push_back(std::move(event));
  }
}

// The push that the events give, or the first error; the events are left as they are.
Result<std::optional<ports::Push>> decode_all(std::vector<v1::SnapshotEvent> events) {
  PushDecoder decoder;
  std::optional<ports::Push> push;
  for (auto& event : events) {
    PP_TRY(auto complete, decoder.feed(event));
    if (complete) push = std::move(complete);
  }
  return push;
}

ports::FullPush full_push(std::shared_ptr<const domain::WorkerSnapshot> snapshot) {
  ports::FullPush push = sample_full_push();
  push.snapshot = std::move(snapshot);
  return push;
}

std::size_t wire_bytes(const std::vector<v1::SnapshotEvent>& events) {
  std::size_t bytes = 0;
  for (const auto& event : events) {
    EXPECT_LE(event.ByteSizeLong(), limits::kSnapshotChunkBytesMax);
    bytes += event.ByteSizeLong() + 5;  // the frame that gRPC puts before a message
  }
  return bytes;
}

TEST(PushCodec, AFullPushComesBackAsItWas) {
  const auto sent = sample_full_push();
  const auto got = decode_all(encode_all(sent));
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_TRUE(got->has_value());
  const auto& push = std::get<ports::FullPush>(**got);
  EXPECT_TRUE(*push.snapshot == *sent.snapshot);
  EXPECT_EQ(push.digest, sent.digest);
  EXPECT_EQ(push.store_now, sent.store_now);
  EXPECT_EQ(push.valid_for, sent.valid_for);
  EXPECT_EQ(push.report_sequence, sent.report_sequence);
}

TEST(PushCodec, AnEmptySnapshotIsASnapshot) {
  const auto sent = full_push(std::make_shared<domain::WorkerSnapshot>());
  const auto got = decode_all(encode_all(sent));
  ASSERT_TRUE(got && got->has_value());
  EXPECT_TRUE(*std::get<ports::FullPush>(**got).snapshot == *sent.snapshot);
}

TEST(PushCodec, AnExtensionComesBackAsItWas) {
  const auto sent = sample_extend_push();
  const auto got = decode_all(encode_all(sent));
  ASSERT_TRUE(got && got->has_value());
  const auto& push = std::get<ports::ExtendPush>(**got);
  EXPECT_EQ(push.version, sent.version);
  EXPECT_EQ(push.epoch, sent.epoch);
  EXPECT_EQ(push.store_now, sent.store_now);
  EXPECT_EQ(push.valid_for, sent.valid_for);
  EXPECT_EQ(push.report_sequence, sent.report_sequence);
  EXPECT_EQ(push.revoked, sent.revoked);
}

TEST(PushCodec, AnExtensionMayComeWhileASnapshotIsBuilt) {
  auto events = encode_all(sample_full_push());
  auto extension = encode_all(sample_extend_push());
  events.insert(events.begin() + 1, extension.front());
  const auto got = decode_all(std::move(events));
  ASSERT_TRUE(got && got->has_value());
  EXPECT_TRUE(std::holds_alternative<ports::FullPush>(**got));
}

// CP-2.
TEST(PushCodec, AHundredThousandProxiesWithAThousandCredentialsFitIntoFiveMebibytes) {
  const auto sent = full_push(large_snapshot(100'000, 1'000));
  const auto events = encode_all(sent);
  const auto bytes = wire_bytes(events);
  RecordProperty("bytes", std::to_string(bytes));
  std::printf("1,000 credentials: %zu bytes in %zu events\n", bytes, events.size());
  EXPECT_LE(bytes, std::size_t{5} << 20U);
  const auto got = decode_all(events);
  ASSERT_TRUE(got && got->has_value());
  EXPECT_TRUE(*std::get<ports::FullPush>(**got).snapshot == *sent.snapshot);
}

// CP-2.
TEST(PushCodec, AHundredThousandProxiesWithACredentialEachFitIntoTwelveMebibytes) {
  const auto sent = full_push(large_snapshot(100'000, 100'000));
  const auto events = encode_all(sent);
  const auto bytes = wire_bytes(events);
  std::printf("100,000 credentials: %zu bytes in %zu events\n", bytes, events.size());
  EXPECT_LE(bytes, std::size_t{12} << 20U);
  const auto got = decode_all(events);
  ASSERT_TRUE(got && got->has_value());
  EXPECT_TRUE(*std::get<ports::FullPush>(**got).snapshot == *sent.snapshot);
}

TEST(PushCodec, AnEntryThatFitsIntoNoChunkIsAnErrorThatNamesIt) {
  auto snapshot = std::make_shared<domain::WorkerSnapshot>();
  snapshot->routings = {test::sample_routing("small"), test::sample_routing("large")};
  snapshot->routings[1].match.hosts.assign(20'000, "some-host.example.org");
  PushEncoder encoder(full_push(snapshot));
  v1::SnapshotEvent event;
  ASSERT_TRUE(encoder.next(event));  // begin
  const auto chunk = encoder.next(event);
  ASSERT_FALSE(chunk);
  EXPECT_EQ(chunk.error().code, ErrorCode::InvalidArgument);
  EXPECT_NE(chunk.error().message.find("routing 2"), std::string::npos) << chunk.error().message;
}

TEST(PushCodec, AProxyOfAnUnknownUpstreamIsNotSent) {
  auto snapshot = std::make_shared<domain::WorkerSnapshot>(test::sample_snapshot());
  snapshot->proxies[0].upstream = UpstreamId("nobody");
  PushEncoder encoder(full_push(snapshot));
  v1::SnapshotEvent event;
  ASSERT_TRUE(encoder.next(event));
  const auto chunk = encoder.next(event);
  ASSERT_FALSE(chunk);
  EXPECT_EQ(chunk.error().code, ErrorCode::Internal);
}

// CP-2: what was being built is thrown away when a newer one begins.
TEST(PushCodec, ANewerBeginThrowsAwayWhatWasBeingBuilt) {
  auto events = encode_all(full_push(large_snapshot(20'000, 10)));
  ASSERT_GT(events.size(), 4U);
  events.resize(3);
  for (const auto& event : encode_all(sample_full_push())) events.push_back(event);
  const auto got = decode_all(std::move(events));
  ASSERT_TRUE(got && got->has_value());
  EXPECT_TRUE(*std::get<ports::FullPush>(**got).snapshot == test::sample_snapshot());
}

// Bad streams: what is done to a good one, and what must be said about it.
struct Damage {
  const char* name;
  std::function<void(std::vector<v1::SnapshotEvent>&)> apply;
  ErrorCode code;
  const char* words;
};

class BadStream : public testing::TestWithParam<Damage> {};

TEST_P(BadStream, IsRefusedWithAPreciseError) {
  auto events = encode_all(sample_full_push());
  ASSERT_EQ(events.size(), 3U);  // begin, one chunk, commit
  GetParam().apply(events);
  const auto got = decode_all(std::move(events));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, GetParam().code) << got.error().message;
  EXPECT_NE(got.error().message.find(GetParam().words), std::string::npos) << got.error().message;
}

using Events = std::vector<v1::SnapshotEvent>;

v1::SnapshotBegin& begin_of(Events& events) {
  return *events[0].mutable_begin();
}
v1::SnapshotChunk& chunk_of(Events& events) {
  return *events[1].mutable_chunk();
}
v1::Proxy& proxy_of(Events& events) {
  return *chunk_of(events).mutable_proxies(0);
}

const Damage kDamages[] = {
    {"NoBegin", [](Events& e) { e.erase(e.begin()); }, ErrorCode::Corrupt, "without a begin"},
    {"NoChunk", [](Events& e) { e.erase(e.begin() + 1); }, ErrorCode::Corrupt, "0 upstreams"},
    {"TwoCommits", [](Events& e) { e.push_back(e.back()); }, ErrorCode::Corrupt,
     "a commit without a begin"},
    {"NoVersion", [](Events& e) { begin_of(e).clear_version(); }, ErrorCode::Corrupt,
     "without a version"},
    {"TooManyProxies", [](Events& e) { begin_of(e).set_proxy_count(131'073); },
     ErrorCode::InvalidArgument, "131073 proxies, at most 131072"},
    {"TooManyRoutings", [](Events& e) { begin_of(e).set_routing_count(65'537); },
     ErrorCode::InvalidArgument, "routings"},
    {"OneProxyTooFew", [](Events& e) { chunk_of(e).mutable_proxies()->RemoveLast(); },
     ErrorCode::Corrupt, "3 proxies arrived, 4 were announced"},
    {"OneProxyTooMany", [](Events& e) { *chunk_of(e).add_proxies() = proxy_of(e); },
     ErrorCode::Corrupt, "more proxies than announced"},
    {"OneClientTooMany", [](Events& e) { chunk_of(e).add_clients()->set_name("x"); },
     ErrorCode::Corrupt, "more entries than announced"},
    {"NoPolicy", [](Events& e) { chunk_of(e).clear_policy(); }, ErrorCode::Corrupt,
     "without a policy"},
    {"RemovedIds", [](Events& e) { chunk_of(e).add_removed_proxy_ids(1); }, ErrorCode::Corrupt,
     "removed ids"},
    {"UnknownUpstream", [](Events& e) { proxy_of(e).set_upstream(2); }, ErrorCode::Corrupt,
     "upstream out of range"},
    {"UnknownCredential", [](Events& e) { proxy_of(e).set_credential(3); }, ErrorCode::Corrupt,
     "credential out of range"},
    {"UnknownString", [](Events& e) { proxy_of(e).set_city(1000); }, ErrorCode::Corrupt,
     "string index 1000"},
    {"OddTags", [](Events& e) { proxy_of(e).add_tags(1); }, ErrorCode::Corrupt, "tag"},
    {"NoHost", [](Events& e) { proxy_of(e).clear_host(); }, ErrorCode::Corrupt, "has no host"},
    {"EmptyHost", [](Events& e) { proxy_of(e).set_name(0); }, ErrorCode::Corrupt, "has no host"},
    {"ShortIpv6", [](Events& e) { proxy_of(e).set_ipv6("short"); }, ErrorCode::Corrupt, "IPv6"},
    {"NoPort", [](Events& e) { proxy_of(e).set_port(0); }, ErrorCode::Corrupt, "port 0"},
    {"HugePort", [](Events& e) { proxy_of(e).set_port(65'536); }, ErrorCode::Corrupt, "port"},
    {"TimeOverflow", [](Events& e) { proxy_of(e).set_expires_at_ms(INT64_MAX); },
     ErrorCode::Corrupt, "time out of range"},
    {"NoScheme", [](Events& e) { proxy_of(e).set_scheme(v1::SCHEME_UNSPECIFIED); },
     ErrorCode::InvalidArgument, "unknown scheme 0"},
    {"NewScheme", [](Events& e) { proxy_of(e).set_scheme(static_cast<v1::Scheme>(9)); },
     ErrorCode::InvalidArgument, "unknown scheme 9"},
    {"NewStrategy",
     [](Events& e) { chunk_of(e).mutable_routings(0)->set_strategy(static_cast<v1::Strategy>(7)); },
     ErrorCode::InvalidArgument, "unknown strategy 7"},
    {"NewRequestKind",
     [](Events& e) {
       chunk_of(e).mutable_routings(0)->mutable_match()->add_kinds(static_cast<v1::RequestKind>(3));
     },
     ErrorCode::InvalidArgument, "unknown request kind 3"},
    {"BadRange", [](Events& e) { chunk_of(e).mutable_policy()->add_deny_cidrs("10.0.0.1/8"); },
     ErrorCode::Corrupt, "10.0.0.1/8"},
    {"ShortDigest", [](Events& e) { e[2].mutable_commit()->set_digest("short"); },
     ErrorCode::Corrupt, "digest"},
    {"HugeChunk",
     [](Events& e) { chunk_of(e).add_strings(std::string(limits::kSnapshotChunkBytesMax, 'x')); },
     ErrorCode::InvalidArgument, "bytes in a chunk"},
    {"HugeSnapshot",
     [](Events& e) {
       v1::SnapshotEvent filler;
       filler.mutable_chunk()->add_strings(std::string(limits::kSnapshotChunkBytesMax - 64, 'x'));
       e.insert(e.begin() + 1, 257, filler);
     },
     ErrorCode::InvalidArgument, "bytes in a snapshot"},
    {"Delta", [](Events& e) { e[0].mutable_delta_begin(); }, ErrorCode::InvalidArgument, "delta"},
    {"NewEvent", [](Events& e) { e[1].clear_event(); }, ErrorCode::InvalidArgument, "unknown kind"},
};

INSTANTIATE_TEST_SUITE_P(PushCodec, BadStream, testing::ValuesIn(kDamages),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace proxypool::rpc
