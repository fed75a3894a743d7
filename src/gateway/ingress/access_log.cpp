#include "gateway/ingress/access_log.hpp"

namespace proxypool::gateway {

using ports::Event;

namespace {

std::string name_of_proxy(const AccessEnd& end) {
  return end.direct ? "direct" : to_string(end.proxy);
}

}  // namespace

void AccessLog::served(const AccessNote& note, const AccessEnd& end) {
  events_.emit(Event::RequestServed, {{"request", to_hex(end.request_id)},
                                      {"client", note.client},
                                      {"routing", note.routing},
                                      {"upstream", note.upstream},
                                      {"proxy", name_of_proxy(end)},
                                      {"method", note.method},
                                      {"target", note.target},
                                      {"status", end.status},
                                      {"attempts", end.attempts},
                                      {"reason", end.reason},
                                      {"bytes_in", end.bytes_in},
                                      {"bytes_out", end.bytes_out},
                                      {"took", end.took}});
}

void AccessLog::refused(const AccessNote* note, const AccessEnd& end, const IpAddress& peer,
                        domain::Refusal refusal, std::string_view detail, TimePoint now) {
  const ports::EventRow& limits = ports::row(Event::RequestRefused);
  if (!events_.enabled(limits.level)) return;
  if (now >= second_ends_) {
    second_ends_ = now + seconds(1);
    refused_ = 0;
  }
  if (refused_ == limits.per_second_max) return;
  ++refused_;
  const domain::RefusalRow& row = contract(refusal);
  const AccessNote nobody;
  const AccessNote& known = note == nullptr ? nobody : *note;
  events_.emit(Event::RequestRefused, {{"request", to_hex(end.request_id)},
                                       {"client", known.client},
                                       {"peer", peer.str()},
                                       {"target", known.target},
                                       {"proxy", end.attempts == 0 ? "" : name_of_proxy(end)},
                                       {"attempts", end.attempts},
                                       {"status", row.status},
                                       {"code", row.code},
                                       {"detail", detail.empty() ? row.title : detail}});
}

}  // namespace proxypool::gateway
