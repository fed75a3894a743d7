// Domain values of the control-plane port to and from their messages.
//
// encode() fills an empty message; decode() checks what it reads (wire.hpp says with which errors)
// and takes nothing on trust but what the transport has already bounded: the size of the message.
//
// Thread rule: pure functions.
#pragma once

#include <optional>
#include <vector>

#include "adapters/grpc/wire.hpp"
#include "proxypool/base/id.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/domain/health/observation.hpp"
#include "proxypool/ports/control_plane.hpp"

namespace proxypool::rpc {

// Who opens a stream, and what it says it holds.
struct WatchSnapshots {
  WorkerId worker;
  SessionId session;
  std::optional<domain::SnapshotVersion> held;
};
struct WatchTasks {
  CheckerId checker;
  SessionId session;
};

void encode(const ports::RegisterWorkerRequest& value, v1::RegisterWorkerRequest& wire);
Result<ports::RegisterWorkerRequest> decode(const v1::RegisterWorkerRequest& wire);
void encode(const ports::RegisterWorkerAnswer& value, v1::RegisterWorkerResponse& wire);
Result<ports::RegisterWorkerAnswer> decode(const v1::RegisterWorkerResponse& wire);

void encode(const WatchSnapshots& value, v1::WatchSnapshotsRequest& wire);
Result<WatchSnapshots> decode(const v1::WatchSnapshotsRequest& wire);

void encode(const ports::SnapshotAck& value, v1::AcknowledgeSnapshotRequest& wire);
Result<ports::SnapshotAck> decode(const v1::AcknowledgeSnapshotRequest& wire);

void encode(const ports::RuntimeReport& value, v1::ReportRuntimeRequest& wire);
Result<ports::RuntimeReport> decode(const v1::ReportRuntimeRequest& wire);
void encode(const ports::RuntimeAnswer& value, v1::ReportRuntimeResponse& wire);
Result<ports::RuntimeAnswer> decode(const v1::ReportRuntimeResponse& wire);

void encode(const ports::OutcomeBatch& value, v1::OutcomeBatch& wire);
Result<ports::OutcomeBatch> decode(v1::OutcomeBatch& wire);

void encode(const ports::RegisterCheckerRequest& value, v1::RegisterCheckerRequest& wire);
Result<ports::RegisterCheckerRequest> decode(const v1::RegisterCheckerRequest& wire);
void encode(const ports::RegisterCheckerAnswer& value, v1::RegisterCheckerResponse& wire);
Result<ports::RegisterCheckerAnswer> decode(const v1::RegisterCheckerResponse& wire);

void encode(const WatchTasks& value, v1::WatchTasksRequest& wire);
Result<WatchTasks> decode(const v1::WatchTasksRequest& wire);

Result<std::vector<domain::CheckTask>> decode(v1::CheckTaskBatch& wire);  // takes the secrets out

void encode(const ports::ObservationReport& value, v1::ReportObservationsRequest& wire);
Result<ports::ObservationReport> decode(const v1::ReportObservationsRequest& wire);

// Tasks in messages of at most kTaskBatchMax.
class TaskEncoder {
 public:
  using Wire = v1::CheckTaskBatch;
  explicit TaskEncoder(std::vector<domain::CheckTask> tasks) : tasks_(std::move(tasks)) {}
  // Fills the next message; false when all tasks were given.
  Result<bool> next(v1::CheckTaskBatch& wire);

 private:
  std::vector<domain::CheckTask> tasks_;
  std::size_t given_ = 0;
};

}  // namespace proxypool::rpc
