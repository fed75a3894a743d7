// Messages against the golden file (CP-11), and what decoding refuses.
//
// tests/fixtures/controlplane/messages.txt holds one encoded message a line: its name and its bytes
// in hexadecimal. A line never changes: an old peer sends exactly these bytes. When a message gets
// a new field, a new line with a new name is added beside the old one.
#include "adapters/grpc/message_codec.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "adapters/grpc/push_decoder.hpp"
#include "adapters/grpc/push_encoder.hpp"
#include "proto/controlplane/v1/controlplane.pb.h"
#include "proxypool/base/text.hpp"
#include "support/control_plane_samples.hpp"

namespace proxypool::rpc {
namespace {

ports::RegisterWorkerRequest sample_registration() {
  ports::RegisterWorkerRequest value;
  value.cluster_id = "local";
  value.environment = "test";
  value.worker = WorkerId("gw-1");
  value.instance = InstanceId("instance-1");
  value.zone = "eu-1a";
  value.build = "0.1.0";
  value.draining = true;
  value.held_version = domain::SnapshotVersion{5, 6};
  value.held_valid_for = milliseconds(1234);
  value.held = {ProxyId(1), ProxyId(0xffffffffffffffff)};
  value.running = {{ProxyId(2), 3}};
  return value;
}

ports::SnapshotAck sample_ack() {
  ports::SnapshotAck value;
  value.worker = WorkerId("gw-1");
  value.session = SessionId("s-1");
  value.version = {5, 6};
  value.epoch = Epoch(7);
  value.digest = test::sample_digest();
  value.status = ports::AckStatus::Busy;
  value.reason = "building";
  value.retry_after = milliseconds(250);
  value.rejected = {{ProxyId(3), "bad host"}};
  return value;
}

ports::RuntimeReport sample_report() {
  ports::RuntimeReport value;
  value.worker = WorkerId("gw-1");
  value.session = SessionId("s-1");
  value.sequence = 9;
  value.version = {5, 6};
  value.epoch = Epoch(7);
  value.final_report = true;
  value.draining = true;
  value.counts = {{ProxyId(3), Epoch(4), 5, 6, true}, {ProxyId(7), Epoch(8), 1, 0, false}};
  value.usage = {11, {{ClientName("team-a"), {100, 200, 3}}}};
  return value;
}

ports::RuntimeAnswer sample_answer() {
  ports::RuntimeAnswer value{9, {ProxyId(3), ProxyId(4)}};
  value.over_quota = {ClientName("team-a")};
  value.kept_usage = 11;
  value.quota_resets_in = milliseconds(3'600'000);
  return value;
}

ports::OutcomeBatch sample_outcomes() {
  ports::OutcomeBatch value;
  value.worker = WorkerId("gw-1");
  value.session = SessionId("s-1");
  value.sequence = 9;
  value.version = {5, 6};
  value.routings = {RoutingId("all"), RoutingId("eu")};
  ports::Outcome served;
  served.what = {ProxyId(3), domain::RequestKind::Http, {}, 200, false, milliseconds(42)};
  served.lease_epoch = Epoch(7);
  served.request_id = 0x1122334455667788;
  served.age = milliseconds(250);
  ports::Outcome refused;
  refused.what = {ProxyId(4),
                  domain::RequestKind::Connect,
                  {domain::Phase::ProxyHandshake, domain::FailureKind::AuthRejected},
                  407,
                  true,
                  milliseconds(0)};
  refused.routing = 1;
  value.outcomes = {served, refused};
  return value;
}

ports::RegisterCheckerRequest sample_checker() {
  ports::RegisterCheckerRequest value;
  value.cluster_id = "local";
  value.environment = "test";
  value.checker = CheckerId("checker-1");
  value.instance = InstanceId("instance-2");
  value.build = "0.1.0";
  value.in_flight_max = 256;
  value.levels = {domain::CheckLevel::Basic, domain::CheckLevel::Target};
  return value;
}

std::vector<domain::CheckTask> sample_tasks() {
  domain::CheckTask task;
  task.task_id = 11;
  task.proxy = ProxyId(12);
  task.level = domain::CheckLevel::Egress;
  task.endpoint = {domain::Scheme::Https, "proxy.example.net", 8443};
  task.credential = {"user", SecretString("secret")};
  task.target_host = "192.0.2.1";
  task.target_port = 443;
  task.timeout = milliseconds(4000);
  return {task};
}

ports::ObservationReport sample_observations() {
  domain::Observation passed{11,   ProxyId(12), domain::CheckLevel::Basic,
                             true, {},          milliseconds(42)};
  domain::Observation failed{13,
                             ProxyId(14),
                             domain::CheckLevel::Target,
                             false,
                             {domain::Phase::ProxyHandshake, domain::FailureKind::AuthRejected},
                             milliseconds(0)};
  return {CheckerId("checker-1"), SessionId("s-2"), {passed, failed}};
}

const std::map<std::string, std::string>& golden() {
  static const auto lines = [] {
    std::map<std::string, std::string> found;
    std::ifstream file(PROXYPOOL_SOURCE_DIR "/tests/fixtures/controlplane/messages.txt");
    std::string name;
    std::string bytes;
    while (file >> name >> bytes) found[name] = bytes;
    return found;
  }();
  return lines;
}

std::string from_hex(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

// The bytes of the golden line `name`, which `wire` must encode to.
template <class Wire>
std::string expect_golden(const std::string& name, const Wire& wire) {
  const auto line = golden().find(name);
  if (line == golden().end()) {
    ADD_FAILURE() << "new line: " << name << " " << hex(wire.SerializeAsString());
    return wire.SerializeAsString();
  }
  EXPECT_EQ(line->second, hex(wire.SerializeAsString())) << name;
  return from_hex(line->second);
}

template <class Wire, class Value>
void expect_golden_both_ways(const std::string& name, const Value& value) {
  Wire wire;
  encode(value, wire);
  Wire stored;
  ASSERT_TRUE(stored.ParseFromString(expect_golden(name, wire)));
  const auto decoded = decode(stored);
  ASSERT_TRUE(decoded) << name << ": " << decoded.error().message;
  Wire again;
  encode(*decoded, again);
  EXPECT_EQ(again.SerializeAsString(), wire.SerializeAsString()) << name;
}

TEST(MessageCodec, EncodesAndDecodesTheGoldenMessages) {
  expect_golden_both_ways<v1::RegisterWorkerRequest>("RegisterWorkerRequest",
                                                     sample_registration());
  expect_golden_both_ways<v1::RegisterWorkerResponse>(
      "RegisterWorkerResponse",
      ports::RegisterWorkerAnswer{SessionId("s-1"), Epoch(7), milliseconds(60'000),
                                  milliseconds(1'000), milliseconds(2'000), milliseconds(30'000)});
  expect_golden_both_ways<v1::WatchSnapshotsRequest>(
      "WatchSnapshotsRequest",
      WatchSnapshots{WorkerId("gw-1"), SessionId("s-1"), domain::SnapshotVersion{5, 6}});
  expect_golden_both_ways<v1::AcknowledgeSnapshotRequest>("AcknowledgeSnapshotRequest",
                                                          sample_ack());
  expect_golden_both_ways<v1::ReportRuntimeRequest>("ReportRuntimeRequest", sample_report());
  expect_golden_both_ways<v1::ReportRuntimeResponse>("ReportRuntimeResponse", sample_answer());
  expect_golden_both_ways<v1::OutcomeBatch>("OutcomeBatch", sample_outcomes());
  expect_golden_both_ways<v1::RegisterCheckerRequest>("RegisterCheckerRequest", sample_checker());
  expect_golden_both_ways<v1::RegisterCheckerResponse>(
      "RegisterCheckerResponse",
      ports::RegisterCheckerAnswer{SessionId("s-2"), milliseconds(60'000)});
  expect_golden_both_ways<v1::WatchTasksRequest>(
      "WatchTasksRequest", WatchTasks{CheckerId("checker-1"), SessionId("s-2")});
  expect_golden_both_ways<v1::ReportObservationsRequest>("ReportObservationsRequest",
                                                         sample_observations());
}

TEST(MessageCodec, EncodesAndDecodesTheGoldenTasks) {
  v1::CheckTaskBatch wire;
  TaskEncoder encoder(sample_tasks());
  ASSERT_TRUE(*encoder.next(wire));
  v1::CheckTaskBatch stored;
  ASSERT_TRUE(stored.ParseFromString(expect_golden("CheckTaskBatch", wire)));
  const auto tasks = decode(stored);
  ASSERT_TRUE(tasks) << tasks.error().message;
  EXPECT_TRUE(*tasks == sample_tasks());
  EXPECT_FALSE(*encoder.next(wire));
}

TEST(MessageCodec, EncodesAndDecodesTheGoldenSnapshotStream) {
  PushEncoder full(test::sample_full_push());
  PushEncoder extend(test::sample_extend_push());
  PushDecoder decoder;
  std::optional<ports::Push> push;
  for (const char* name : {"SnapshotBegin", "SnapshotChunk", "SnapshotCommit", "SnapshotExtend"}) {
    v1::SnapshotEvent event;
    const bool last = std::string_view(name) == "SnapshotExtend";
    ASSERT_TRUE(*(last ? extend : full).next(event));
    v1::SnapshotEvent stored;
    ASSERT_TRUE(stored.ParseFromString(expect_golden(name, event)));
    if (last) break;
    auto fed = decoder.feed(stored);
    ASSERT_TRUE(fed) << fed.error().message;
    push = std::move(*fed);
  }
  ASSERT_TRUE(push);
  EXPECT_TRUE(*std::get<ports::FullPush>(*push).snapshot == test::sample_snapshot());
}

TEST(MessageCodec, TasksTravelInBatchesOfAtMostFiveHundredAndTwelve) {
  std::vector<domain::CheckTask> tasks(1'100, sample_tasks().front());
  TaskEncoder encoder(tasks);
  v1::CheckTaskBatch wire;
  std::vector<int> sizes;
  while (*encoder.next(wire)) sizes.push_back(wire.tasks_size());
  EXPECT_EQ(sizes, (std::vector<int>{512, 512, 76}));
}

template <class Wire>
void expect_refused(const Wire& wire, const char* words,
                    ErrorCode code = ErrorCode::InvalidArgument) {
  const auto decoded = decode(wire);
  ASSERT_FALSE(decoded) << words;
  EXPECT_EQ(decoded.error().code, code) << decoded.error().message;
  EXPECT_NE(decoded.error().message.find(words), std::string::npos) << decoded.error().message;
}

// CP-11: an incompatible protocol version fails registration with a clear reason.
TEST(MessageCodec, AnotherProtocolVersionIsRefusedInWordsThatNameBoth) {
  v1::RegisterWorkerRequest worker;
  encode(sample_registration(), worker);
  worker.set_supported_protocol_version(static_cast<v1::ProtocolVersion>(2));
  expect_refused(worker, "protocol version 2 is not supported; the controller speaks version 1");
  v1::RegisterCheckerRequest checker;
  encode(sample_checker(), checker);
  checker.clear_supported_protocol_version();
  expect_refused(checker, "protocol version 0");
}

// CP-11: unknown enumeration values are refused.
TEST(MessageCodec, UnknownEnumerationValuesAreRefused) {
  v1::AcknowledgeSnapshotRequest ack;
  encode(sample_ack(), ack);
  ack.set_status(static_cast<v1::AckStatus>(4));
  expect_refused(ack, "unknown acknowledgement status 4");
  v1::RegisterCheckerRequest checker;
  encode(sample_checker(), checker);
  checker.add_levels(static_cast<v1::CheckLevel>(4));
  expect_refused(checker, "unknown check level 4");
  v1::ReportObservationsRequest report;
  encode(sample_observations(), report);
  report.mutable_observations(1)->set_kind(static_cast<v1::FailureKind>(10));
  expect_refused(report, "unknown failure kind 10");
}

TEST(MessageCodec, MissingAndOversizedFieldsAreRefused) {
  v1::RegisterWorkerRequest worker;
  encode(sample_registration(), worker);
  worker.clear_worker_id();
  expect_refused(worker, "worker_id is missing");
  worker.set_worker_id(std::string(257, 'x'));
  expect_refused(worker, "worker_id is longer");
  v1::AcknowledgeSnapshotRequest ack;
  encode(sample_ack(), ack);
  ack.set_digest("short");
  expect_refused(ack, "digest", ErrorCode::Corrupt);
  encode(sample_ack(), ack);
  for (int i = 0; i < 1'000; ++i) ack.add_rejected();
  expect_refused(ack, "rejected entries, at most 1000");
  v1::ReportRuntimeRequest report;
  encode(sample_report(), report);
  report.clear_report_sequence();
  expect_refused(report, "report_sequence is missing");
  v1::ReportObservationsRequest observations;
  encode(sample_observations(), observations);
  for (int i = 0; i < 512; ++i) observations.add_observations();
  expect_refused(observations, "514 observations, at most 512");
}

}  // namespace
}  // namespace proxypool::rpc
