#include "adapters/grpc/message_codec.hpp"

#include <algorithm>

#include "proto/controlplane/v1/controlplane.pb.h"
#include "proxypool/base/limits.hpp"

namespace proxypool::rpc {
namespace {

// CP-11: another version is refused in words that name both.
template <class Wire>
Result<std::uint32_t> protocol_version(const Wire& wire) {
  const auto version = static_cast<std::uint32_t>(wire.supported_protocol_version());
  if (version == ports::kProtocolVersion) return version;
  return refused("protocol version " + std::to_string(version) +
                 " is not supported; the controller speaks version " +
                 std::to_string(ports::kProtocolVersion));
}

// What every registration names.
template <class Wire>
Status check_registration(const Wire& wire, const std::string& id, std::string_view what) {
  return first_error({check_name(wire.cluster_id(), "cluster_id"), check_name(id, what),
                      check_name(wire.instance_id(), "instance_id"),
                      check_count(wire.environment().size(), kNameBytesMax, "environment bytes"),
                      check_count(wire.build().size(), kNameBytesMax, "build bytes")});
}

// What every later message of a session names.
template <class Wire>
Status check_session(const Wire& wire, const std::string& id, std::string_view what) {
  return first_error({check_name(id, what), check_name(wire.session_id(), "session_id")});
}

template <class Field>
std::vector<ProxyId> to_ids(const Field& field) {
  std::vector<ProxyId> ids;
  ids.reserve(static_cast<std::size_t>(field.size()));
  for (const auto id : field) ids.emplace_back(id);
  return ids;
}

constexpr std::size_t size_of(int count) noexcept {
  return static_cast<std::size_t>(count);
}

}  // namespace

void encode(const ports::RegisterWorkerRequest& value, v1::RegisterWorkerRequest& wire) {
  wire.set_supported_protocol_version(static_cast<v1::ProtocolVersion>(value.protocol_version));
  wire.set_cluster_id(value.cluster_id);
  wire.set_environment(value.environment);
  wire.set_worker_id(value.worker.str());
  wire.set_instance_id(value.instance.str());
  wire.set_zone(value.zone);
  wire.set_build(value.build);
  wire.set_draining(value.draining);
  if (value.held_version) encode(*value.held_version, *wire.mutable_held_version());
  wire.set_held_valid_for_ms(to_wire_ms(value.held_valid_for));
  for (const ProxyId id : value.held) wire.add_held_proxy_ids(id.value());
  for (const domain::RunningOn& entry : value.running) {
    v1::RunningOn& out = *wire.add_running();
    out.set_proxy_id(entry.id.value());
    out.set_slots(entry.slots);
  }
}

Result<ports::RegisterWorkerRequest> decode(const v1::RegisterWorkerRequest& wire) {
  ports::RegisterWorkerRequest value;
  PP_TRY(value.protocol_version, protocol_version(wire));
  const std::size_t held = size_of(wire.held_proxy_ids_size());
  PP_TRY([[maybe_unused]] Unit valid,
         first_error({check_registration(wire, wire.worker_id(), "worker_id"),
                      check_count(wire.zone().size(), kNameBytesMax, "zone bytes"),
                      check_count(held, limits::kProxiesPerWorkerMax, "held proxies"),
                      check_count(size_of(wire.running_size()), limits::kProxiesPerWorkerMax,
                                  "running proxies")}));
  value.cluster_id = wire.cluster_id();
  value.environment = wire.environment();
  value.worker = WorkerId(wire.worker_id());
  value.instance = InstanceId(wire.instance_id());
  value.zone = wire.zone();
  value.build = wire.build();
  value.draining = wire.draining();
  if (wire.has_held_version()) value.held_version = decode(wire.held_version());
  value.held_valid_for = milliseconds(wire.held_valid_for_ms());
  value.held = to_ids(wire.held_proxy_ids());
  for (const v1::RunningOn& entry : wire.running()) {
    value.running.push_back({ProxyId(entry.proxy_id()), entry.slots()});
  }
  return value;
}

void encode(const ports::RegisterWorkerAnswer& value, v1::RegisterWorkerResponse& wire) {
  wire.set_session_id(value.session.str());
  wire.set_ownership_epoch(value.epoch.value());
  wire.set_max_stale_age_ms(to_wire_ms(value.stale_age_max));
  wire.set_report_interval_ms(to_wire_ms(value.report_interval));
  wire.set_lease_margin_ms(to_wire_ms(value.margin));
  wire.set_orphan_grace_ms(to_wire_ms(value.orphan_grace));
}

Result<ports::RegisterWorkerAnswer> decode(const v1::RegisterWorkerResponse& wire) {
  PP_TRY([[maybe_unused]] Unit valid, check_name(wire.session_id(), "session_id"));
  if (wire.max_stale_age_ms() == 0 || wire.report_interval_ms() == 0) {
    return corrupt("a registration without lease or report interval");
  }
  return ports::RegisterWorkerAnswer{
      SessionId(wire.session_id()),          Epoch(wire.ownership_epoch()),
      milliseconds(wire.max_stale_age_ms()), milliseconds(wire.report_interval_ms()),
      milliseconds(wire.lease_margin_ms()),  milliseconds(wire.orphan_grace_ms())};
}

void encode(const WatchSnapshots& value, v1::WatchSnapshotsRequest& wire) {
  wire.set_worker_id(value.worker.str());
  wire.set_session_id(value.session.str());
  if (value.held) encode(*value.held, *wire.mutable_held_version());
}

Result<WatchSnapshots> decode(const v1::WatchSnapshotsRequest& wire) {
  PP_TRY([[maybe_unused]] Unit valid, check_session(wire, wire.worker_id(), "worker_id"));
  WatchSnapshots value{WorkerId(wire.worker_id()), SessionId(wire.session_id()), {}};
  if (wire.has_held_version()) value.held = decode(wire.held_version());
  return value;
}

void encode(const ports::SnapshotAck& value, v1::AcknowledgeSnapshotRequest& wire) {
  wire.set_worker_id(value.worker.str());
  wire.set_session_id(value.session.str());
  encode(value.version, *wire.mutable_version());
  wire.set_ownership_epoch(value.epoch.value());
  wire.set_digest(to_wire_digest(value.digest));
  wire.set_status(static_cast<v1::AckStatus>(to_wire(value.status)));
  wire.set_reason(value.reason);
  wire.set_retry_after_ms(to_wire_ms(value.retry_after));
  for (const auto& entry : value.rejected) {
    auto* rejected = wire.add_rejected();
    rejected->set_proxy_id(entry.proxy.value());
    rejected->set_reason(entry.reason);
  }
}

Result<ports::SnapshotAck> decode(const v1::AcknowledgeSnapshotRequest& wire) {
  PP_TRY(
      [[maybe_unused]] Unit valid,
      first_error({check_session(wire, wire.worker_id(), "worker_id"),
                   check_count(size_of(wire.rejected_size()), kRejectedMax, "rejected entries")}));
  if (!wire.has_version()) return refused("version is missing");
  ports::SnapshotAck value;
  value.worker = WorkerId(wire.worker_id());
  value.session = SessionId(wire.session_id());
  value.version = decode(wire.version());
  value.epoch = Epoch(wire.ownership_epoch());
  PP_TRY(value.digest, from_wire_digest(wire.digest()));
  PP_TRY(value.status, from_wire<ports::AckStatus>(wire.status()));
  value.reason = wire.reason();
  value.retry_after = milliseconds(wire.retry_after_ms());
  for (const auto& entry : wire.rejected()) {
    value.rejected.push_back({ProxyId(entry.proxy_id()), entry.reason()});
  }
  return value;
}

void encode(const ports::RuntimeReport& value, v1::ReportRuntimeRequest& wire) {
  wire.set_worker_id(value.worker.str());
  wire.set_session_id(value.session.str());
  wire.set_report_sequence(value.sequence);
  encode(value.version, *wire.mutable_version());
  wire.set_ownership_epoch(value.epoch.value());
  wire.set_final(value.final_report);
  wire.set_draining(value.draining);
  wire.mutable_counters()->Reserve(static_cast<int>(value.counts.size()));
  for (const auto& count : value.counts) {
    auto* counter = wire.add_counters();
    counter->set_proxy_id(count.id.value());
    counter->set_lease_epoch(count.lease_epoch.value());
    counter->set_active(count.active);
    counter->set_reserved(count.reserved);
    counter->set_draining(count.draining);
  }
  wire.set_usage_number(value.usage.number);
  for (const auto& row : value.usage.clients) {
    auto* usage = wire.add_usage();
    usage->set_client(row.client.str());
    usage->set_bytes_up(row.usage.bytes_up);
    usage->set_bytes_down(row.usage.bytes_down);
    usage->set_requests(row.usage.requests);
  }
}

Result<ports::RuntimeReport> decode(const v1::ReportRuntimeRequest& wire) {
  PP_TRY([[maybe_unused]] Unit valid, check_session(wire, wire.worker_id(), "worker_id"));
  if (wire.report_sequence() == 0) return refused("report_sequence is missing");
  ports::RuntimeReport value;
  value.worker = WorkerId(wire.worker_id());
  value.session = SessionId(wire.session_id());
  value.sequence = wire.report_sequence();
  value.version = decode(wire.version());
  value.epoch = Epoch(wire.ownership_epoch());
  value.final_report = wire.final();
  value.draining = wire.draining();
  value.counts.reserve(size_of(wire.counters_size()));
  for (const auto& counter : wire.counters()) {
    value.counts.push_back({ProxyId(counter.proxy_id()), Epoch(counter.lease_epoch()),
                            counter.active(), counter.reserved(), counter.draining()});
  }
  PP_TRY([[maybe_unused]] Unit few,
         check_count(size_of(wire.usage_size()), domain::kUsageBatchClientsMax, "usage entries"));
  value.usage.number = wire.usage_number();
  if (value.usage.number == 0 && wire.usage_size() != 0) return refused("usage has no number");
  value.usage.clients.reserve(size_of(wire.usage_size()));
  for (const auto& row : wire.usage()) {
    value.usage.clients.push_back(
        {ClientName(row.client()), {row.bytes_up(), row.bytes_down(), row.requests()}});
  }
  return value;
}

void encode(const ports::RuntimeAnswer& value, v1::ReportRuntimeResponse& wire) {
  wire.set_accepted_sequence(value.accepted_sequence);
  for (const ProxyId id : value.revoke) wire.add_revoke_proxy_ids(id.value());
  for (const ClientName& client : value.over_quota) wire.add_over_quota_clients(client.str());
  wire.set_kept_usage_number(value.kept_usage);
  wire.set_quota_resets_in_ms(to_wire_ms(value.quota_resets_in));
}

Result<ports::RuntimeAnswer> decode(const v1::ReportRuntimeResponse& wire) {
  ports::RuntimeAnswer value{wire.accepted_sequence(), to_ids(wire.revoke_proxy_ids())};
  for (const std::string& client : wire.over_quota_clients()) {
    value.over_quota.emplace_back(client);
  }
  value.kept_usage = wire.kept_usage_number();
  value.quota_resets_in = milliseconds(wire.quota_resets_in_ms());
  return value;
}

void encode(const ports::OutcomeBatch& value, v1::OutcomeBatch& wire) {
  wire.set_worker_id(value.worker.str());
  wire.set_session_id(value.session.str());
  wire.set_sequence(value.sequence);
  encode(value.version, *wire.mutable_version());
  for (const RoutingId& routing : value.routings) wire.add_routings(routing.str());
  for (const ports::Outcome& outcome : value.outcomes) {
    auto* out = wire.add_outcomes();
    out->set_proxy_id(outcome.what.proxy.value());
    out->set_lease_epoch(outcome.lease_epoch.value());
    out->set_routing(outcome.routing);
    out->set_phase(static_cast<v1::Phase>(to_wire(outcome.what.failure.phase)));
    out->set_kind(static_cast<v1::FailureKind>(to_wire(outcome.what.failure.kind)));
    out->set_latency_ms(to_wire_ms(outcome.what.latency));
    out->set_status(outcome.what.status);
    out->set_request(static_cast<v1::RequestKind>(to_wire(outcome.what.kind)));
    out->set_first_byte(outcome.what.first_byte);
    out->set_request_id(outcome.request_id);
    out->set_age_ms(to_wire_ms(outcome.age));
  }
}

Result<ports::OutcomeBatch> decode(v1::OutcomeBatch& wire) {
  PP_TRY(
      [[maybe_unused]] Unit valid,
      first_error({check_session(wire, wire.worker_id(), "worker_id"),
                   check_count(size_of(wire.outcomes_size()), ports::kOutcomesMax, "outcomes"),
                   check_count(size_of(wire.routings_size()), ports::kOutcomesMax, "routings")}));
  if (wire.sequence() == 0) return refused("sequence is missing");
  ports::OutcomeBatch value;
  value.worker = WorkerId(wire.worker_id());
  value.session = SessionId(wire.session_id());
  value.sequence = wire.sequence();
  value.version = decode(wire.version());
  for (auto& routing : *wire.mutable_routings()) value.routings.emplace_back(std::move(routing));
  for (const auto& in : wire.outcomes()) {
    ports::Outcome outcome;
    outcome.what.proxy = ProxyId(in.proxy_id());
    PP_TRY(outcome.what.kind, from_wire<domain::RequestKind>(in.request()));
    PP_TRY(outcome.what.failure.phase, from_wire<domain::Phase>(in.phase()));
    PP_TRY(outcome.what.failure.kind, from_wire<domain::FailureKind>(in.kind()));
    if (in.status() > 999) return refused("a status above 999");
    outcome.what.status = static_cast<std::uint16_t>(in.status());
    outcome.what.first_byte = in.first_byte();
    outcome.what.latency = milliseconds(in.latency_ms());
    outcome.lease_epoch = Epoch(in.lease_epoch());
    if (in.routing() >= value.routings.size()) return refused("an outcome of no routing");
    outcome.routing = in.routing();
    outcome.request_id = in.request_id();
    outcome.age = milliseconds(in.age_ms());
    value.outcomes.push_back(outcome);
  }
  return value;
}

void encode(const ports::RegisterCheckerRequest& value, v1::RegisterCheckerRequest& wire) {
  wire.set_supported_protocol_version(static_cast<v1::ProtocolVersion>(value.protocol_version));
  wire.set_cluster_id(value.cluster_id);
  wire.set_environment(value.environment);
  wire.set_checker_id(value.checker.str());
  wire.set_instance_id(value.instance.str());
  wire.set_build(value.build);
  wire.set_max_in_flight(value.in_flight_max);
  for (const auto level : value.levels) {
    wire.add_levels(static_cast<v1::CheckLevel>(to_wire(level)));
  }
}

Result<ports::RegisterCheckerRequest> decode(const v1::RegisterCheckerRequest& wire) {
  ports::RegisterCheckerRequest value;
  PP_TRY(value.protocol_version, protocol_version(wire));
  PP_TRY([[maybe_unused]] Unit valid, check_registration(wire, wire.checker_id(), "checker_id"));
  value.cluster_id = wire.cluster_id();
  value.environment = wire.environment();
  value.checker = CheckerId(wire.checker_id());
  value.instance = InstanceId(wire.instance_id());
  value.build = wire.build();
  value.in_flight_max = wire.max_in_flight();
  for (const int level : wire.levels()) {
    PP_TRY(const auto known, from_wire<domain::CheckLevel>(level));
    value.levels.push_back(known);
  }
  return value;
}

void encode(const ports::RegisterCheckerAnswer& value, v1::RegisterCheckerResponse& wire) {
  wire.set_session_id(value.session.str());
  wire.set_session_ttl_ms(to_wire_ms(value.session_ttl));
}

Result<ports::RegisterCheckerAnswer> decode(const v1::RegisterCheckerResponse& wire) {
  PP_TRY([[maybe_unused]] Unit valid, check_name(wire.session_id(), "session_id"));
  return ports::RegisterCheckerAnswer{SessionId(wire.session_id()),
                                      milliseconds(wire.session_ttl_ms())};
}

void encode(const WatchTasks& value, v1::WatchTasksRequest& wire) {
  wire.set_checker_id(value.checker.str());
  wire.set_session_id(value.session.str());
}

Result<WatchTasks> decode(const v1::WatchTasksRequest& wire) {
  PP_TRY([[maybe_unused]] Unit valid, check_session(wire, wire.checker_id(), "checker_id"));
  return WatchTasks{CheckerId(wire.checker_id()), SessionId(wire.session_id())};
}

Result<bool> TaskEncoder::next(v1::CheckTaskBatch& wire) {
  wire.Clear();
  const std::size_t end = std::min(tasks_.size(), given_ + kTaskBatchMax);
  for (; given_ < end; ++given_) {
    const auto& task = tasks_[given_];
    auto* out = wire.add_tasks();
    out->set_task_id(task.task_id);
    out->set_proxy_id(task.proxy.value());
    out->set_level(static_cast<v1::CheckLevel>(to_wire(task.level)));
    out->set_scheme(static_cast<v1::Scheme>(to_wire(task.endpoint.scheme)));
    out->set_host(task.endpoint.host);
    out->set_port(task.endpoint.port);
    out->set_username(task.credential.username);
    out->set_password(std::string(task.credential.password.reveal()));
    out->set_target_host(task.target_host);
    out->set_target_port(task.target_port);
    out->set_timeout_ms(to_wire_ms(task.timeout));
  }
  return wire.tasks_size() > 0;
}

Result<std::vector<domain::CheckTask>> decode(v1::CheckTaskBatch& wire) {
  PP_TRY([[maybe_unused]] Unit valid,
         check_count(size_of(wire.tasks_size()), kTaskBatchMax, "tasks"));
  std::vector<domain::CheckTask> tasks;
  tasks.reserve(size_of(wire.tasks_size()));
  for (auto& in : *wire.mutable_tasks()) {
    domain::CheckTask task;
    task.task_id = in.task_id();
    task.proxy = ProxyId(in.proxy_id());
    PP_TRY(task.level, from_wire<domain::CheckLevel>(in.level()));
    PP_TRY(task.endpoint.scheme, from_wire<domain::Scheme>(in.scheme()));
    if (in.host().empty() || in.target_host().empty()) return corrupt("a task without a host");
    task.endpoint.host = std::move(*in.mutable_host());
    PP_TRY(task.endpoint.port, to_port(in.port()));
    task.credential.username = std::move(*in.mutable_username());
    task.credential.password = SecretString(std::move(*in.mutable_password()));
    task.target_host = std::move(*in.mutable_target_host());
    PP_TRY(task.target_port, to_port(in.target_port()));
    task.timeout = milliseconds(in.timeout_ms());
    tasks.push_back(std::move(task));
  }
  return tasks;
}

void encode(const ports::ObservationReport& value, v1::ReportObservationsRequest& wire) {
  wire.set_checker_id(value.checker.str());
  wire.set_session_id(value.session.str());
  for (const auto& observation : value.observations) {
    auto* out = wire.add_observations();
    out->set_task_id(observation.task_id);
    out->set_proxy_id(observation.proxy.value());
    out->set_level(static_cast<v1::CheckLevel>(to_wire(observation.level)));
    out->set_passed(observation.passed);
    out->set_phase(static_cast<v1::Phase>(to_wire(observation.failure.phase)));
    out->set_kind(static_cast<v1::FailureKind>(to_wire(observation.failure.kind)));
    out->set_latency_ms(to_wire_ms(observation.latency));
  }
}

Result<ports::ObservationReport> decode(const v1::ReportObservationsRequest& wire) {
  PP_TRY(
      [[maybe_unused]] Unit valid,
      first_error({check_session(wire, wire.checker_id(), "checker_id"),
                   check_count(size_of(wire.observations_size()), kTaskBatchMax, "observations")}));
  ports::ObservationReport value{CheckerId(wire.checker_id()), SessionId(wire.session_id()), {}};
  for (const auto& in : wire.observations()) {
    domain::Observation observation;
    observation.task_id = in.task_id();
    observation.proxy = ProxyId(in.proxy_id());
    observation.passed = in.passed();
    observation.latency = milliseconds(in.latency_ms());
    PP_TRY(observation.level, from_wire<domain::CheckLevel>(in.level()));
    PP_TRY(observation.failure.phase, from_wire<domain::Phase>(in.phase()));
    PP_TRY(observation.failure.kind, from_wire<domain::FailureKind>(in.kind()));
    value.observations.push_back(observation);
  }
  return value;
}

}  // namespace proxypool::rpc
