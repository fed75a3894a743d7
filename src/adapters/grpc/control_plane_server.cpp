#include "adapters/grpc/control_plane_server.hpp"

#include <google/protobuf/arena.h>
#include <grpc/support/time.h>
#include <grpcpp/alarm.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/message_allocator.h>

#include <map>
#include <vector>

#include "adapters/grpc/message_codec.hpp"
#include "adapters/grpc/outbox_pump.hpp"
#include "adapters/grpc/push_encoder.hpp"
#include "adapters/grpc/status_map.hpp"
#include "adapters/grpc/transport_log.hpp"
#include "adapters/grpc/transport_options.hpp"
#include "proto/controlplane/v1/controlplane.grpc.pb.h"

namespace proxypool::rpc {
namespace {

using grpc::CallbackServerContext;

// Requests and answers on one arena per call.
template <class Request, class Answer>
class ArenaAllocator final : public grpc::MessageAllocator<Request, Answer> {
 public:
  grpc::MessageHolder<Request, Answer>* AllocateMessages() override { return new Holder; }

 private:
  struct Holder final : grpc::MessageHolder<Request, Answer> {
    Holder() {
      this->set_request(google::protobuf::Arena::CreateMessage<Request>(&arena));
      this->set_response(google::protobuf::Arena::CreateMessage<Answer>(&arena));
    }
    void Release() override { delete this; }
    google::protobuf::Arena arena;
  };
};

gpr_timespec from_now(nanoseconds duration) {
  return gpr_time_from_nanos(duration.count(), GPR_TIMESPAN);
}

Error stopping() {
  return {ErrorCode::Unavailable, Origin::Internal, "the controller stops", true};
}
Error overloaded() {
  return {ErrorCode::Unavailable, Origin::Internal, "the controller is overloaded", true};
}

ports::Peer peer_of(const CallbackServerContext& context) {
  return {"", context.peer()};
}

// The open streams, so that a stop can end them.
class OpenStreams {
 public:
  // False: nothing new is opened any more.
  bool add(const void* key, std::weak_ptr<Endable> stream) {
    return state_.with([&](State& state) {
      if (!state.stopping) state.streams.emplace(key, std::move(stream));
      return !state.stopping;
    });
  }
  void remove(const void* key) {
    state_.with([&](State& state) { state.streams.erase(key); });
  }
  void end_all() {
    const auto streams = state_.with([](State& state) {
      state.stopping = true;
      return state.streams;
    });
    for (const auto& [key, weak] : streams) {
      if (const auto stream = weak.lock()) stream->end(stopping());
    }
  }

 private:
  struct State {
    std::map<const void*, std::weak_ptr<Endable>> streams;
    bool stopping = false;
  };
  Guarded<State> state_;
};

// What the handlers of both services share.
struct Common {
  const ServerOptions& options;
  const Clock& clock;
  OpenStreams& streams;

  // The caller's deadline on our clock, at most call_time_max away.
  [[nodiscard]] Deadline deadline_of(const CallbackServerContext& context) const {
    const auto left = gpr_convert_clock_type(context.raw_deadline(), GPR_TIMESPAN);
    const bool sooner = gpr_time_cmp(left, from_now(options.call_time_max)) < 0;
    const nanoseconds budget =
        sooner ? seconds(left.tv_sec) + nanoseconds(left.tv_nsec) : options.call_time_max;
    return Deadline::after(clock.now(), budget);
  }
};

template <class Out>
void put(const Unit& /*nothing*/, Out& /*empty*/) {}
template <class Answer, class Out>
void put(const Answer& answer, Out& out) {
  encode(answer, out);
}

// A unary call: decode, the service's method on the executor, encode.
template <class Service, class Request, class Answer, class In, class Out>
grpc::ServerUnaryReactor* serve(const Common& common, CallbackServerContext* context,
                                Service& service,
                                Result<Answer> (Service::*method)(const Request&,
                                                                  const ports::Peer&, Deadline),
                                const In* in, Out* out) {
  auto* reactor = context->DefaultReactor();
  auto request = decode(*in);
  if (!request) {
    reactor->Finish(to_status(request.error()));
    return reactor;
  }
  submit(
      common.options.executor,
      [&service, method, reactor, out, request = *std::move(request), peer = peer_of(*context),
       deadline = common.deadline_of(*context)] {
        const auto answer = (service.*method)(request, peer, deadline);
        if (answer) put(*answer, *out);
        reactor->Finish(answer ? grpc::Status::OK : to_status(answer.error()));
      },
      [reactor] { reactor->Finish(to_status(overloaded())); });
  return reactor;
}

// A server stream: gRPC's callbacks on one side, the pump on the other.
template <class Message, class Encoder>
class StreamReactor final : public grpc::ServerWriteReactor<typename Encoder::Wire>,
                            public OutboxPump<Message, Encoder>::Transport {
 public:
  using Pump = OutboxPump<Message, Encoder>;
  using Wire = typename Encoder::Wire;

  explicit StreamReactor(const Common& common)
      : common_(common), pump_(std::make_shared<Pump>(*this)) {}

  void start(typename Pump::Open open) {
    if (!common_.streams.add(this, pump_)) pump_->end(stopping());
    pump_->start(std::move(open));
  }

  void write(const Wire& piece) override { this->StartWrite(&piece); }
  void finish(const Error& reason) override { this->Finish(to_status(reason)); }
  void run(std::function<void()> turn) override {
    submit(common_.options.executor, turn, [this, turn] { run_later(turn); });
  }

  void OnWriteDone(bool delivered) override { pump_->written(delivered); }
  void OnCancel() override { pump_->end(from_status(grpc::Status::CANCELLED)); }
  void OnDone() override {
    common_.streams.remove(this);
    pump_->closed();
    delete this;
  }

 private:
  // The executor refused; a wake-up must not be lost, so it is asked again. A turn under ending()
  // does not block and needs no executor. The reactor stays as long as it owes somebody a turn.
  void run_later(std::function<void()> turn) {
    constexpr milliseconds kPause{10};
    retry_ = std::make_unique<grpc::Alarm>();
    retry_->Set(from_now(kPause), [this, turn = std::move(turn)](bool /*fired*/) {
      if (pump_->ending()) {
        turn();
      } else {
        run(turn);
      }
    });
  }

  const Common& common_;
  std::shared_ptr<Pump> pump_;
  std::unique_ptr<grpc::Alarm> retry_;
};

// Ends a stream whose request was refused, without opening anything.
template <class Wire>
class RefusedStream final : public grpc::ServerWriteReactor<Wire> {
 public:
  explicit RefusedStream(const Error& reason) { this->Finish(to_status(reason)); }
  void OnDone() override { delete this; }
};

// A client stream of batches: each is handed over, and read on, only when the one before is done.
class OutcomeReader final : public grpc::ServerReadReactor<v1::OutcomeBatch> {
 public:
  OutcomeReader(const Common& common, ports::WorkerService& service, ports::Peer peer,
                Deadline deadline, v1::ReportOutcomesResponse* out)
      : common_(common), service_(service), peer_(std::move(peer)), deadline_(deadline), out_(out) {
    StartRead(&batch_);
  }

  void OnReadDone(bool received) override {
    if (!received) return Finish(grpc::Status::OK);
    submit(
        common_.options.executor, [this] { take(); }, [this] { Finish(to_status(overloaded())); });
  }
  void OnDone() override { delete this; }

 private:
  void take() {
    const auto batch = decode(batch_);
    const Status taken =
        batch ? service_.report_outcomes(*batch, peer_, deadline_) : Status(batch.error());
    if (!taken) return Finish(to_status(taken.error()));
    out_->set_accepted_sequence(batch->sequence);
    batch_.Clear();
    StartRead(&batch_);
  }

  const Common& common_;
  ports::WorkerService& service_;
  const ports::Peer peer_;
  const Deadline deadline_;
  v1::ReportOutcomesResponse* const out_;
  v1::OutcomeBatch batch_;
};

class WorkerEndpoint final : public v1::WorkerControlPlane::CallbackService {
 public:
  WorkerEndpoint(const Common& common, ports::WorkerService& service)
      : common_(common), service_(service) {
    SetMessageAllocatorFor_RegisterWorker(&registrations_);
    SetMessageAllocatorFor_AcknowledgeSnapshot(&acknowledgements_);
    SetMessageAllocatorFor_ReportRuntime(&reports_);
  }

  grpc::ServerUnaryReactor* RegisterWorker(CallbackServerContext* context,
                                           const v1::RegisterWorkerRequest* in,
                                           v1::RegisterWorkerResponse* out) override {
    return serve(common_, context, service_, &ports::WorkerService::register_worker, in, out);
  }
  grpc::ServerUnaryReactor* AcknowledgeSnapshot(CallbackServerContext* context,
                                                const v1::AcknowledgeSnapshotRequest* in,
                                                v1::AcknowledgeSnapshotResponse* out) override {
    return serve(common_, context, service_, &ports::WorkerService::acknowledge, in, out);
  }
  grpc::ServerUnaryReactor* ReportRuntime(CallbackServerContext* context,
                                          const v1::ReportRuntimeRequest* in,
                                          v1::ReportRuntimeResponse* out) override {
    return serve(common_, context, service_, &ports::WorkerService::report_runtime, in, out);
  }
  grpc::ServerReadReactor<v1::OutcomeBatch>* ReportOutcomes(
      CallbackServerContext* context, v1::ReportOutcomesResponse* out) override {
    return new OutcomeReader(common_, service_, peer_of(*context), common_.deadline_of(*context),
                             out);
  }
  grpc::ServerWriteReactor<v1::SnapshotEvent>* WatchSnapshots(
      CallbackServerContext* context, const v1::WatchSnapshotsRequest* in) override {
    auto watch = decode(*in);
    if (!watch) return new RefusedStream<v1::SnapshotEvent>(watch.error());
    auto* reactor = new StreamReactor<ports::Push, PushEncoder>(common_);
    reactor->start([this, watch = *std::move(watch), peer = peer_of(*context)](auto wake) {
      const auto deadline = Deadline::after(common_.clock.now(), common_.options.call_time_max);
      return service_.open_snapshots(watch.worker, watch.session, watch.held, peer, std::move(wake),
                                     deadline);
    });
    return reactor;
  }

 private:
  const Common& common_;
  ports::WorkerService& service_;
  ArenaAllocator<v1::RegisterWorkerRequest, v1::RegisterWorkerResponse> registrations_;
  ArenaAllocator<v1::AcknowledgeSnapshotRequest, v1::AcknowledgeSnapshotResponse> acknowledgements_;
  ArenaAllocator<v1::ReportRuntimeRequest, v1::ReportRuntimeResponse> reports_;
};

class CheckerEndpoint final : public v1::CheckerControlPlane::CallbackService {
 public:
  CheckerEndpoint(const Common& common, ports::CheckerService& service)
      : common_(common), service_(service) {
    SetMessageAllocatorFor_RegisterChecker(&registrations_);
    SetMessageAllocatorFor_ReportObservations(&reports_);
  }

  grpc::ServerUnaryReactor* RegisterChecker(CallbackServerContext* context,
                                            const v1::RegisterCheckerRequest* in,
                                            v1::RegisterCheckerResponse* out) override {
    return serve(common_, context, service_, &ports::CheckerService::register_checker, in, out);
  }
  grpc::ServerUnaryReactor* ReportObservations(CallbackServerContext* context,
                                               const v1::ReportObservationsRequest* in,
                                               v1::ReportObservationsResponse* out) override {
    return serve(common_, context, service_, &ports::CheckerService::report_observations, in, out);
  }
  grpc::ServerWriteReactor<v1::CheckTaskBatch>* WatchTasks(
      CallbackServerContext* context, const v1::WatchTasksRequest* in) override {
    auto watch = decode(*in);
    if (!watch) return new RefusedStream<v1::CheckTaskBatch>(watch.error());
    auto* reactor = new StreamReactor<std::vector<domain::CheckTask>, TaskEncoder>(common_);
    reactor->start([this, watch = *std::move(watch), peer = peer_of(*context)](auto wake) {
      const auto deadline = Deadline::after(common_.clock.now(), common_.options.call_time_max);
      return service_.open_tasks(watch.checker, watch.session, peer, std::move(wake), deadline);
    });
    return reactor;
  }

 private:
  const Common& common_;
  ports::CheckerService& service_;
  ArenaAllocator<v1::RegisterCheckerRequest, v1::RegisterCheckerResponse> registrations_;
  ArenaAllocator<v1::ReportObservationsRequest, v1::ReportObservationsResponse> reports_;
};

class GrpcServer final : public ControlPlaneServer {
 public:
  GrpcServer(ServerOptions options, ports::WorkerService& workers, ports::CheckerService& checkers,
             const Clock& clock)
      : options_(std::move(options)),
        clock_(clock),
        common_{options_, clock_, streams_},
        workers_(common_, workers),
        checkers_(common_, checkers) {}
  ~GrpcServer() override { stop(Deadline(clock_.now())); }

  Status listen() {
    grpc::ServerBuilder builder;
    const Keepalive keepalive = keepalive_of(options_.keepalive);
    const auto ms = [](milliseconds duration) { return static_cast<int>(duration.count()); };
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a taken port is an error
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                               static_cast<int>(options_.concurrent_streams_max));
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, ms(keepalive.interval));
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, ms(keepalive.timeout));
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                               ms(keepalive.server_interval_min));
    builder.SetMaxReceiveMessageSize(static_cast<int>(options_.message_bytes_max));
    builder.AddListeningPort(options_.listen, grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&workers_);
    builder.RegisterService(&checkers_);
    server_ = builder.BuildAndStart();
    if (server_ && port_ != 0) return ok();
    return Error{ErrorCode::Unavailable, Origin::Internal,
                 "cannot listen on " + options_.listen + "; is the port taken?"};
  }

  [[nodiscard]] std::uint16_t port() const override { return static_cast<std::uint16_t>(port_); }

  void stop(Deadline deadline) override {
    streams_.end_all();
    if (server_) server_->Shutdown(from_now(deadline.left(clock_.now())));
  }

 private:
  const ServerOptions options_;
  const Clock& clock_;
  OpenStreams streams_;
  const Common common_;
  WorkerEndpoint workers_;
  CheckerEndpoint checkers_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

Result<std::unique_ptr<ControlPlaneServer>> make_control_plane_server(
    ServerOptions options, ports::WorkerService& workers, ports::CheckerService& checkers,
    const Clock& clock) {
  PP_ASSERT(options.executor != nullptr);
  silence_transport_log();
  PP_TRY([[maybe_unused]] Unit loopback, check_plaintext(options.listen));
  auto server = std::make_unique<GrpcServer>(std::move(options), workers, checkers, clock);
  PP_TRY([[maybe_unused]] Unit listening, server->listen());
  return std::unique_ptr<ControlPlaneServer>(std::move(server));
}

}  // namespace proxypool::rpc
