// In the line for a place in a proxy (R8), and what is said when there is none.
#include <algorithm>

#include "gateway/ingress/connection.hpp"
#include "gateway/worker.hpp"

namespace proxypool::gateway {
namespace {

using domain::FailureKind;

domain::Refusal refusal_of(Acquired outcome) noexcept {
  switch (outcome) {
    case Acquired::NoRouting:
      return domain::Refusal::NoRouting;
    case Acquired::RoutingFull:
      return domain::Refusal::Overloaded;
    case Acquired::NotValid:
      return domain::Refusal::NotReady;
    case Acquired::Stranger:
      return domain::Refusal::AuthRejected;
    case Acquired::SessionLost:
      return domain::Refusal::SessionLost;
    default:
      return domain::Refusal::NoCandidate;
  }
}

}  // namespace

void Connection::refuse_place(Acquired outcome) {
  const Exchange& x = *exchange_;
  // What went wrong before says more than that nothing else is left.
  if (x.last_refusal) {
    refuse(*x.last_refusal, x.last_kind);
  } else {
    const bool filtered = x.asked != nullptr && !x.asked->filter_key.empty();
    const bool none_fits = filtered && outcome == Acquired::NoCandidate;
    refuse(refusal_of(outcome), FailureKind::None,
           none_fits ? "no proxy that fits the user name is available" : "");
  }
}

// In the line for a place. What is asked for must be there when one comes.
void Connection::wait_for_place(const net::RequestHead& head) {
  Exchange& x = *exchange_;
  remember(head);
  const auto joined = worker_.join_line(*this, x);
  if (!joined) {
    worker_.counters().waited(Counters::Wait::Full);
    return refuse(domain::Refusal::Overloaded, FailureKind::None,
                  "too many requests wait for a proxy");
  }
  if (x.waits_until == TimePoint{}) x.waits_until = worker_.now() + x.routing->wait_timeout;
  state_ = State::Waiting;
  if (joined->first) return look_for_place(head);
  sleep_in_line();
}

// One look; whoever finds nothing stays in the line.
void Connection::look_for_place(const net::RequestHead& head) {
  Exchange& x = *exchange_;
  const RoutingRuntime* const line = x.line;
  Acquired outcome = worker_.renew_view(x);
  if (outcome == Acquired::Ok) outcome = worker_.acquire(head, x);
  if (outcome == Acquired::Ok) {
    worker_.leave_line(x);
    worker_.counters().waited(Counters::Wait::Served);
    return connect(head);
  }
  if (!worker_.may_wait(x, outcome)) {
    worker_.leave_line(x);
    return refuse_place(outcome);
  }
  if (x.routing->runtime == line) return sleep_in_line();
  worker_.leave_line(x);  // the new view sends it elsewhere
  wait_for_place(head);
}

void Connection::sleep_in_line() {
  const Exchange& x = *exchange_;
  const TimePoint look = std::min(x.waits_until, worker_.next_look(x));
  limit(Limit::Wait, std::max<nanoseconds>(look - worker_.now(), nanoseconds{1}));
}

void Connection::woken() {
  if (state_ != State::Waiting) return;
  const std::uint64_t ticket = exchange_->ticket;
  const auto still = [&] { return state_ == State::Waiting && exchange_->ticket == ticket; };
  for (const bool again : {false, true}) {
    if (again) worker_.rest(ticket);
    look_for_place(remembered());
    if (!still()) break;
  }
  if (still()) worker_.pass_on(ticket);
  if (state_ != State::Gone) drive();
}

}  // namespace proxypool::gateway
