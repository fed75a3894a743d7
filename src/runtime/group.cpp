#include "runtime/group.hpp"

#include <utility>

#include "proxypool/base/assert.hpp"

namespace proxypool::runtime {

Group::Group(const Clock& clock, Report report) : clock_(clock), report_(std::move(report)) {}

Group::~Group() {
  shutdown(Deadline{TimePoint::min()});
}

void Group::add(Member member) {
  PP_ASSERT(started_ == 0);
  members_.push_back(std::move(member));
}

Status Group::start() {
  for (const Member& member : members_) {
    const TimePoint before = clock_.now();
    const Status status = member.start ? member.start() : ok();
    report_({Stage::Start, member.name, clock_.now() - before, status.has_value(),
             status ? std::string_view{} : std::string_view{status.error().message}});
    if (!status) {
      shutdown(Deadline{TimePoint::min()});
      return status;
    }
    ++started_;
  }
  return ok();
}

// Calls `call` on what was started, last first; `call` answers {was there anything, complete}.
template <class Call>
void Group::reverse(Stage stage, Call call) {
  for (std::size_t i = started_; i-- > 0;) {
    const TimePoint before = clock_.now();
    const auto [called, complete] = call(members_[i]);
    if (called) report_({stage, members_[i].name, clock_.now() - before, complete, {}});
  }
}

bool Group::shutdown(Deadline drain_until) {
  bool drained = true;
  reverse(Stage::StopIntake, [](const Member& member) {
    if (member.stop_intake) member.stop_intake();
    return std::pair{static_cast<bool>(member.stop_intake), true};
  });
  reverse(Stage::Drain, [&](const Member& member) {
    const bool complete = !member.drain || member.drain(drain_until);
    drained = drained && complete;
    return std::pair{static_cast<bool>(member.drain), complete};
  });
  reverse(Stage::Stop, [](const Member& member) {
    if (member.stop) member.stop();
    return std::pair{static_cast<bool>(member.stop), true};
  });
  started_ = 0;
  return drained;
}

}  // namespace proxypool::runtime
