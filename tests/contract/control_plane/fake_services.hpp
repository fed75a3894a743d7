// Small services behind a real server, for the control plane's tests.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "proxypool/base/concurrent.hpp"
#include "proxypool/ports/control_plane.hpp"

namespace proxypool::test {

inline Error stale() {
  return {ErrorCode::Stale, Origin::Client, "the session was replaced"};
}

// Waits for what another thread does next; the test's own time limit ends a wait in vain.
template <class Condition>
void await(Condition condition) {
  while (!condition()) std::this_thread::yield();
}

// One message at most, latest wins (CP-5).
template <class Message>
class Mailbox final : public ports::Outbox<Message> {
 public:
  explicit Mailbox(std::function<void()> wake) : state_(State{{}, {}, std::move(wake)}) {}

  void put(Message message) {
    wake_after([&](State& state) { state.message = std::move(message); });
  }
  void fail(Error error) {
    wake_after([&](State& state) { state.error = std::move(error); });
  }
  Result<std::optional<Message>> take() override {
    ++takes;
    return state_.with([](State& state) -> Result<std::optional<Message>> {
      if (state.error) return *state.error;
      return std::exchange(state.message, std::nullopt);
    });
  }
  void closed() override { ++closings; }

  std::atomic<int> takes{0};
  std::atomic<int> closings{0};

 private:
  struct State {
    std::optional<Message> message;
    std::optional<Error> error;
    std::function<void()> wake;
  };
  template <class F>
  void wake_after(F change) {
    const auto wake = state_.with([&](State& state) {
      change(state);
      return state.wake;
    });
    wake();
  }
  Guarded<State> state_;
};

using PushBox = Mailbox<ports::Push>;
using TaskBox = Mailbox<std::vector<domain::CheckTask>>;

// Gives out the sessions s-1, s-2, …; the newest alone is valid.
class FakeWorkers final : public ports::WorkerService {
 public:
  Result<ports::RegisterWorkerAnswer> register_worker(const ports::RegisterWorkerRequest& request,
                                                      const ports::Peer& peer,
                                                      Deadline deadline) override {
    if (on_register) {
      if (auto status = on_register(deadline); !status) return status.error();
    }
    last_peer = peer;
    last_registration = request;
    ports::RegisterWorkerAnswer answer;
    answer.session = SessionId("s-" + std::to_string(++sessions));
    answer.epoch = Epoch(5);
    if (auto box = box_.with([](auto& current) { return std::exchange(current, nullptr); })) {
      box->fail(stale());
    }
    return answer;
  }
  Result<std::shared_ptr<ports::Outbox<ports::Push>>> open_snapshots(
      const WorkerId& /*worker*/, const SessionId& session,
      const std::optional<domain::SnapshotVersion>& held, const ports::Peer& /*peer*/,
      std::function<void()> wake, Deadline /*deadline*/) override {
    if (session.str() != "s-" + std::to_string(sessions.load())) return stale();
    last_held = held;
    auto box = std::make_shared<PushBox>(std::move(wake));
    box_.with([&](auto& current) { current = box; });
    return std::shared_ptr<ports::Outbox<ports::Push>>(box);
  }
  Status acknowledge(const ports::SnapshotAck& ack, const ports::Peer& /*peer*/,
                     Deadline /*deadline*/) override {
    last_ack = ack;
    return ok();
  }
  Result<ports::RuntimeAnswer> report_runtime(const ports::RuntimeReport& report,
                                              const ports::Peer& /*peer*/,
                                              Deadline /*deadline*/) override {
    last_report = report;
    return ports::RuntimeAnswer{report.sequence, {ProxyId(77)}};
  }

  Status report_outcomes(const ports::OutcomeBatch& batch, const ports::Peer& /*peer*/,
                         Deadline /*deadline*/) override {
    if (batch.session.str() != "s-" + std::to_string(sessions.load())) return stale();
    last_outcomes = batch;
    return ok();
  }

  // The open stream's mailbox; waits until there is one.
  std::shared_ptr<PushBox> box() {
    await([&] { return current_box() != nullptr; });
    return current_box();
  }

  std::function<Status(Deadline)> on_register;
  std::atomic<int> sessions{0};
  // Read after the call that set them has returned.
  ports::Peer last_peer;
  ports::RegisterWorkerRequest last_registration;
  std::optional<domain::SnapshotVersion> last_held;
  std::optional<ports::SnapshotAck> last_ack;
  std::optional<ports::RuntimeReport> last_report;
  std::optional<ports::OutcomeBatch> last_outcomes;

 private:
  std::shared_ptr<PushBox> current_box() {
    return box_.with([](auto& current) { return current; });
  }
  Guarded<std::shared_ptr<PushBox>> box_;
};

class FakeCheckers final : public ports::CheckerService {
 public:
  Result<ports::RegisterCheckerAnswer> register_checker(
      const ports::RegisterCheckerRequest& request, const ports::Peer& /*peer*/,
      Deadline /*deadline*/) override {
    if (refuse_with) return *refuse_with;
    last_registration = request;
    const int number = ++sessions;
    if (auto box = box_.with([](auto& current) { return std::exchange(current, nullptr); })) {
      box->fail(stale());
    }
    return ports::RegisterCheckerAnswer{SessionId("c-" + std::to_string(number)),
                                        milliseconds(45'000)};
  }
  Result<std::shared_ptr<ports::Outbox<std::vector<domain::CheckTask>>>> open_tasks(
      const CheckerId& /*checker*/, const SessionId& session, const ports::Peer& /*peer*/,
      std::function<void()> wake, Deadline /*deadline*/) override {
    if (session.str() != "c-" + std::to_string(sessions.load())) return stale();
    auto box = std::make_shared<TaskBox>(std::move(wake));
    box_.with([&](auto& current) { current = box; });
    return std::shared_ptr<ports::Outbox<std::vector<domain::CheckTask>>>(box);
  }
  Status report_observations(const ports::ObservationReport& report, const ports::Peer& /*peer*/,
                             Deadline /*deadline*/) override {
    if (report.session.str() != "c-" + std::to_string(sessions.load())) return stale();
    reports.with([&](auto& all) { all.push_back(report); });
    return ok();
  }

  std::shared_ptr<TaskBox> box() {
    await([&] { return current_box() != nullptr; });
    return current_box();
  }

  std::optional<Error> refuse_with;
  std::atomic<int> sessions{0};
  ports::RegisterCheckerRequest last_registration;
  Guarded<std::vector<ports::ObservationReport>> reports;

 private:
  std::shared_ptr<TaskBox> current_box() {
    return box_.with([](auto& current) { return current; });
  }
  Guarded<std::shared_ptr<TaskBox>> box_;
};

}  // namespace proxypool::test
