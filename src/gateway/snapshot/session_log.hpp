// What becomes of a session, as events. It looks at the session from time to time and says what has
// changed; what came and went between two looks is in the metrics alone.
//
//   SessionLog log(session, views, events);
//   log.look(now);  // a few times a second
//
// Thread rule: one thread at a time.
#pragma once

#include "gateway/snapshot/session.hpp"
#include "gateway/snapshot/view_sink.hpp"
#include "proxypool/base/time.hpp"
#include "proxypool/ports/telemetry.hpp"

namespace proxypool::gateway {

class SessionLog {
 public:
  SessionLog(const Session& session, ViewSink& views, ports::Events& events)
      : session_(session), views_(views), events_(events) {}

  void look(TimePoint now);

 private:
  void say_session(const SessionStatus& status);
  void say_snapshots(const SessionStatus& status, TimePoint now);

  const Session& session_;
  ViewSink& views_;
  ports::Events& events_;
  SessionStatus seen_;
  bool expired_ = false;
};

}  // namespace proxypool::gateway
