#include "adapters/grpc/control_plane_client.hpp"

#include <google/protobuf/arena.h>
#include <grpc/support/time.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <functional>
#include <variant>

#include "adapters/grpc/message_codec.hpp"
#include "adapters/grpc/push_decoder.hpp"
#include "adapters/grpc/status_map.hpp"
#include "adapters/grpc/transport_log.hpp"
#include "adapters/grpc/transport_options.hpp"
#include "proto/controlplane/v1/controlplane.grpc.pb.h"
#include "proxypool/base/concurrent.hpp"

namespace proxypool::rpc {
namespace {

std::shared_ptr<grpc::Channel> make_channel(const std::string& address,
                                            const ClientOptions& options) {
  silence_transport_log();
  const Keepalive keepalive = keepalive_of(options.keepalive);
  const auto ms = [](milliseconds duration) { return static_cast<int>(duration.count()); };
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(options.message_bytes_max));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, ms(keepalive.interval));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, ms(keepalive.timeout));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, ms(options.reconnect_pause));
  // The limit of one attempt, in spite of its name. An attempt advances only while some call polls,
  // so it must outlive the pause between two calls.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 60'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, ms(options.reconnect_pause));
  // A fixed, small window: a reader that stops is felt by the writer after 64 KiB, not after 5 MB.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 65'536);
  // This connection and no other: no proxy from the environment, no TXT look-ups, no sharing.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

void set_deadline(grpc::ClientContext& context, nanoseconds budget) {
  context.set_deadline(gpr_time_from_nanos(budget.count(), GPR_TIMESPAN));
}

// One server stream below the port: reads one message ahead and no more.
//
// The hold keeps gRPC from ending the call between two reads; it is given up when a read fails, or
// when the owner leaves and no read is under way.
//
// The owner stays until the call has ended (close()): the context may be the last to hold the
// channel, and a channel that ends on a thread of gRPC waits for that thread for ever.
template <class Wire>
class Reader final : public grpc::ClientReadReactor<Wire> {
 public:
  struct Item {
    google::protobuf::Arena arena;
    Wire* message = google::protobuf::Arena::CreateMessage<Wire>(&arena);
  };
  using Event = std::variant<std::unique_ptr<Item>, Error>;

  // `call(context, reactor)` is the generated call. close() must follow.
  void start(const std::function<void(grpc::ClientContext*, Reader*)>& call) {
    call(&context_, this);
    this->AddHold();
    item_ = std::make_unique<Item>();
    this->StartRead(item_->message);
    this->StartCall();
  }

  // A message, or the error that the call ended with; nothing when neither came in time.
  std::optional<Event> wait(nanoseconds limit) {
    auto event = events_->pop_for(limit);
    over_ = over_ || (event && std::holds_alternative<Error>(*event));
    return event;
  }

  // After each message that wait() gave.
  void read_more() {
    const bool open = state_.with([](State& state) {
      if (!state.released) state.reading = true;
      return !state.released;
    });
    if (!open) return;
    item_ = std::make_unique<Item>();
    this->StartRead(item_->message);
  }

  void cancel() { context_.TryCancel(); }

  // Cancels, and waits for the end of the call.
  void close() {
    context_.TryCancel();
    const bool mine = state_.with([](State& state) {
      state.closing = true;
      return !state.reading && !std::exchange(state.released, true);
    });
    if (mine) this->RemoveHold();
    while (!over_) static_cast<void>(wait(nanoseconds::max()));
  }

  void OnReadDone(bool received) override {
    const bool release = state_.with([&](State& state) {
      state.reading = false;
      return (!received || state.closing) && !std::exchange(state.released, true);
    });
    if (release) {
      this->RemoveHold();
    } else {
      push(*events_, std::move(item_));
    }
  }

  void OnDone(const grpc::Status& status) override {
    const auto events = events_;  // outlives this object, which may end with the push
    if (status.ok()) {
      push(*events, Error(ErrorCode::Unavailable, Origin::Internal,
                          "the controller ended the stream", true));
      return;
    }
    Error error = from_status(status);
    // Here DeadlineExceeded would read as "nothing yet".
    if (error.code == ErrorCode::DeadlineExceeded) error.code = ErrorCode::Unavailable;
    push(*events, std::move(error));
  }

 private:
  struct State {
    bool reading = true;
    bool released = false;
    bool closing = false;
  };

  static void push(BoundedQueue<Event>& events, Event event) {
    const bool pushed = events.try_push(std::move(event));
    PP_ASSERT(pushed);  // one message and the end
  }

  grpc::ClientContext context_;
  Guarded<State> state_;
  std::shared_ptr<BoundedQueue<Event>> events_ = std::make_shared<BoundedQueue<Event>>(2);
  std::unique_ptr<Item> item_;  // being read
  bool over_ = false;           // of the owner: the end was seen
};

// The port's stream. `Assemble` makes messages out of pieces:
// `Result<std::optional<Message>> feed(Wire&)`.
template <class Message, class Wire, class Assemble>
class ReadStream final : public ports::Stream<Message> {
 public:
  // The reader was started.
  ReadStream(std::unique_ptr<Reader<Wire>> reader, const Clock& clock)
      : reader_(std::move(reader)), clock_(clock) {}
  ReadStream(const ReadStream&) = delete;
  ReadStream& operator=(const ReadStream&) = delete;
  ~ReadStream() override { reader_->close(); }

  Result<Message> next(Deadline deadline) override {
    while (!ended_) {
      auto event = reader_->wait(deadline.left(clock_.now()));
      if (!event) {
        if (!deadline.passed(clock_.now())) continue;
        return Error{ErrorCode::DeadlineExceeded, Origin::Internal, "nothing came in time", true};
      }
      if (auto* end = std::get_if<Error>(&*event)) {
        ended_ = std::move(*end);
        break;
      }
      reader_->read_more();
      auto message = assemble_.feed(*std::get<0>(*event)->message);
      if (!message) {
        reader_->cancel();
        ended_ = message.error();
        break;
      }
      if (*message) return *std::move(*message);
    }
    return *ended_;
  }

  void cancel() override { reader_->cancel(); }

 private:
  const std::unique_ptr<Reader<Wire>> reader_;
  const Clock& clock_;
  Assemble assemble_;
  std::optional<Error> ended_;
};

struct TaskAssembler {
  Result<std::optional<std::vector<domain::CheckTask>>> feed(v1::CheckTaskBatch& wire) {
    PP_TRY(auto tasks, decode(wire));
    return std::optional(std::move(tasks));
  }
};

// What both clients share: the channel, and a blocking call with a deadline.
class Calls {
 public:
  Calls(const std::string& address, const ClientOptions& options, const Clock& clock)
      : options_(options), clock_(clock), channel_(make_channel(address, options)) {}

  [[nodiscard]] const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  [[nodiscard]] const Clock& clock() const { return clock_; }

  // `method(context, in, out)` is the generated call.
  template <class In, class Out, class Value, class Method>
  Result<Out> call(const Value& value, Deadline deadline, Method method) const {
    In in;
    encode(value, in);
    Out out;
    await_attempt(deadline);
    grpc::ClientContext context;
    set_deadline(context, std::min(deadline.left(clock_.now()), options_.call_time_max));
    const grpc::Status status = method(&context, in, &out);
    if (!status.ok()) return from_status(status);
    return out;
  }

 private:
  // After a failure a call is answered at once with that old failure, although the next attempt to
  // connect is due or under way. Polls until it has succeeded, for a short while.
  void await_attempt(Deadline deadline) const {
    if (channel_->GetState(true) != GRPC_CHANNEL_TRANSIENT_FAILURE) return;
    const nanoseconds left = deadline.left(clock_.now());
    const nanoseconds budget = std::min<nanoseconds>(left, options_.reconnect_wait);
    channel_->WaitForConnected(gpr_time_from_nanos(budget.count(), GPR_TIMESPAN));
  }

  const ClientOptions options_;
  const Clock& clock_;
  std::shared_ptr<grpc::Channel> channel_;
};

class GrpcWorkerControl final : public ports::WorkerControl {
 public:
  explicit GrpcWorkerControl(Calls calls)
      : calls_(std::move(calls)), stub_(v1::WorkerControlPlane::NewStub(calls_.channel())) {}

  Result<ports::RegisterWorkerAnswer> register_worker(const ports::RegisterWorkerRequest& request,
                                                      Deadline deadline) override {
    PP_TRY(const auto out,
           (calls_.call<v1::RegisterWorkerRequest, v1::RegisterWorkerResponse>(
               request, deadline, [this](auto* context, const auto& in, auto* answer) {
                 return stub_->RegisterWorker(context, in, answer);
               })));
    return decode(out);
  }

  Result<std::unique_ptr<ports::Stream<ports::Push>>> watch_snapshots(
      const WorkerId& worker, const SessionId& session,
      const std::optional<domain::SnapshotVersion>& held) override {
    v1::WatchSnapshotsRequest in;
    encode(WatchSnapshots{worker, session, held}, in);
    auto reader = std::make_unique<Reader<v1::SnapshotEvent>>();
    reader->start([&](grpc::ClientContext* context, auto* reactor) {
      stub_->async()->WatchSnapshots(context, &in, reactor);
    });
    using Watch = ReadStream<ports::Push, v1::SnapshotEvent, PushDecoder>;
    return std::unique_ptr<ports::Stream<ports::Push>>(
        std::make_unique<Watch>(std::move(reader), calls_.clock()));
  }

  Status acknowledge(const ports::SnapshotAck& ack, Deadline deadline) override {
    return calls_
        .call<v1::AcknowledgeSnapshotRequest, v1::AcknowledgeSnapshotResponse>(
            ack, deadline,
            [this](auto* context, const auto& in, auto* answer) {
              return stub_->AcknowledgeSnapshot(context, in, answer);
            })
        .transform([](auto&&) { return Unit{}; });
  }

  Result<ports::RuntimeAnswer> report_runtime(const ports::RuntimeReport& report,
                                              Deadline deadline) override {
    PP_TRY(const auto out,
           (calls_.call<v1::ReportRuntimeRequest, v1::ReportRuntimeResponse>(
               report, deadline, [this](auto* context, const auto& in, auto* answer) {
                 return stub_->ReportRuntime(context, in, answer);
               })));
    return decode(out);
  }

  // One batch a call: it is confirmed as a whole or sent again.
  Status report_outcomes(const ports::OutcomeBatch& batch, Deadline deadline) override {
    return calls_
        .call<v1::OutcomeBatch, v1::ReportOutcomesResponse>(
            batch, deadline,
            [this](auto* context, const auto& in, auto* answer) {
              const auto writer = stub_->ReportOutcomes(context, answer);
              // What went wrong is in the status.
              if (writer->Write(in)) writer->WritesDone();
              return writer->Finish();
            })
        .transform([](auto&&) { return Unit{}; });
  }

 private:
  Calls calls_;
  std::unique_ptr<v1::WorkerControlPlane::Stub> stub_;
};

class GrpcCheckerControl final : public ports::CheckerControl {
 public:
  explicit GrpcCheckerControl(Calls calls)
      : calls_(std::move(calls)), stub_(v1::CheckerControlPlane::NewStub(calls_.channel())) {}

  Result<ports::RegisterCheckerAnswer> register_checker(
      const ports::RegisterCheckerRequest& request, Deadline deadline) override {
    PP_TRY(const auto out,
           (calls_.call<v1::RegisterCheckerRequest, v1::RegisterCheckerResponse>(
               request, deadline, [this](auto* context, const auto& in, auto* answer) {
                 return stub_->RegisterChecker(context, in, answer);
               })));
    return decode(out);
  }

  Result<std::unique_ptr<ports::Stream<std::vector<domain::CheckTask>>>> watch_tasks(
      const CheckerId& checker, const SessionId& session) override {
    v1::WatchTasksRequest in;
    encode(WatchTasks{checker, session}, in);
    auto reader = std::make_unique<Reader<v1::CheckTaskBatch>>();
    reader->start([&](grpc::ClientContext* context, auto* reactor) {
      stub_->async()->WatchTasks(context, &in, reactor);
    });
    using Watch = ReadStream<std::vector<domain::CheckTask>, v1::CheckTaskBatch, TaskAssembler>;
    return std::unique_ptr<ports::Stream<std::vector<domain::CheckTask>>>(
        std::make_unique<Watch>(std::move(reader), calls_.clock()));
  }

  Status report_observations(const ports::ObservationReport& report, Deadline deadline) override {
    return calls_
        .call<v1::ReportObservationsRequest, v1::ReportObservationsResponse>(
            report, deadline,
            [this](auto* context, const auto& in, auto* answer) {
              return stub_->ReportObservations(context, in, answer);
            })
        .transform([](auto&&) { return Unit{}; });
  }

 private:
  Calls calls_;
  std::unique_ptr<v1::CheckerControlPlane::Stub> stub_;
};

}  // namespace

Result<std::unique_ptr<ports::WorkerControl>> make_worker_control(const std::string& address,
                                                                  const ClientOptions& options,
                                                                  const Clock& clock) {
  PP_TRY([[maybe_unused]] Unit loopback, check_plaintext(address));
  return std::unique_ptr<ports::WorkerControl>(
      std::make_unique<GrpcWorkerControl>(Calls(address, options, clock)));
}

Result<std::unique_ptr<ports::CheckerControl>> make_checker_control(const std::string& address,
                                                                    const ClientOptions& options,
                                                                    const Clock& clock) {
  PP_TRY([[maybe_unused]] Unit loopback, check_plaintext(address));
  return std::unique_ptr<ports::CheckerControl>(
      std::make_unique<GrpcCheckerControl>(Calls(address, options, clock)));
}

}  // namespace proxypool::rpc
