#include "loadgen/load_user.hpp"

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "runtime/boot_clock.hpp"

namespace proxypool::loadgen {
namespace {

using asio::experimental::awaitable_operators::operator&&;

constexpr std::size_t kProblemBytesMax = 64 * 1024;
constexpr std::size_t kSentAtOnce = 64 * 1024;  // fits into the socket's own buffer

// Methods that may be sent again when a kept connection ended before any answer (RFC 9110 §9.2.2).
bool repeatable(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "PUT" ||
         method == "DELETE";
}

std::string code_in(const std::string& body) {
  const auto json = nlohmann::json::parse(body, nullptr, false);
  if (!json.is_object()) return {};
  const auto code = json.find("code");
  return code != json.end() && code->is_string() ? code->get<std::string>() : std::string{};
}

}  // namespace

bool Budget::take(TimePoint now) noexcept {
  if (interrupted.load(std::memory_order_relaxed) || now >= end) return false;
  auto there = left.load(std::memory_order_relaxed);
  while (there > 0) {
    if (left.compare_exchange_weak(there, there - 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

awaitable<void> LoadUser::run() {
  while (budget_.take(runtime::boot_now())) co_await request_once();
  if (stream_) stream_->close();
}

void LoadUser::abort() {
  if (stream_) stream_->close();
}

awaitable<void> LoadUser::request_once() {
  const auto begin = runtime::boot_now();
  const bool kept = stream_ != nullptr;
  auto outcome = co_await attempt(begin);
  const bool stale = kept && outcome.error == LoadError::Reset && !outcome.answered;
  if (stale && repeatable(plan_.options.method)) {
    ++report_.reconnects;
    stream_.reset();
    outcome = co_await attempt(begin);
  }
  if (outcome.error != LoadError::None && budget_.interrupted.load(std::memory_order_relaxed)) {
    ++report_.aborted;
    stream_.reset();
    co_return;
  }
  if (outcome.error == LoadError::None || outcome.error == LoadError::Status) {
    report_.latency.record(runtime::boot_now() - begin);
  }
  if (!outcome.reusable || !plan_.options.keep_alive) {
    if (stream_) stream_->close();
    stream_.reset();
  }
  ++report_.done;
  budget_.done.fetch_add(1, std::memory_order_relaxed);
  if (outcome.error == LoadError::None) co_return;
  ++report_.failed;
  ++report_.errors[outcome.error];
  budget_.failed.fetch_add(1, std::memory_order_relaxed);
}

awaitable<LoadUser::Outcome> LoadUser::attempt(TimePoint begin) {
  Outcome outcome;
  if (!stream_) {
    outcome.error = co_await open(begin);
    if (outcome.error != LoadError::None) co_return outcome;
  }
  const auto left = plan_.options.timeout - (runtime::boot_now() - begin);
  stream_->expire_after(std::max(left, nanoseconds{0}));
  outcome = co_await exchange(plan_.request, plan_.options.method);
  if (outcome.error != LoadError::None && stream_->expired()) outcome.error = LoadError::Timeout;
  if (outcome.error == LoadError::None && !expected(status_)) outcome.error = LoadError::Status;
  co_return outcome;
}

// A connection that is ready for the request: TCP, then CONNECT and TLS where they are needed.
awaitable<LoadError> LoadUser::open(TimePoint begin) {
  const auto dialled = co_await dial(plan_.connect_to, plan_.options.timeout);
  if (!dialled.stream) {
    const bool late = dialled.error == asio::error::timed_out;
    co_return late ? LoadError::Timeout : LoadError::Connect;
  }
  stream_ = dialled.stream;
  ++report_.connections;
  const auto left = plan_.options.timeout - (runtime::boot_now() - begin);
  stream_->expire_after(std::max(left, nanoseconds{0}));
  if (!plan_.connect_request.empty()) {
    const auto outcome = co_await exchange(plan_.connect_request, "CONNECT");
    if (stream_->expired()) co_return LoadError::Timeout;
    if (outcome.error != LoadError::None) co_return outcome.error;
    if (status_ / 100 != 2) co_return LoadError::ProxyStatus;
  }
  if (plan_.tls) {
    const IoError error = co_await stream_->start_tls(plan_.tls, plan_.options.url.authority.host);
    if (stream_->expired()) co_return LoadError::Timeout;
    if (error) co_return LoadError::Tls;
  }
  report_.connect.record(runtime::boot_now() - begin);
  co_return LoadError::None;
}

awaitable<LoadUser::Outcome> LoadUser::exchange(std::string_view request, std::string_view method) {
  // A server may answer before it has read all, and end then: what it said counts, not our write.
  const auto begin = runtime::boot_now();
  IoError unsent;
  Outcome outcome;
  if (request.size() <= kSentAtOnce) {
    unsent = co_await stream_->write(request);
    outcome = co_await read_answer(method);
  } else {
    std::tie(unsent, outcome) = co_await (stream_->write(request) && read_answer(method));
  }
  if (!unsent) report_.bytes_out += request.size();
  if (unsent) outcome.reusable = false;
  if (outcome.error == LoadError::None && method != "CONNECT") {
    report_.head.record(head_at_ - begin);
  }
  co_return outcome;
}

awaitable<LoadUser::Outcome> LoadUser::read_answer(std::string_view method) {
  Outcome outcome;
  for (;;) {
    const auto head = co_await read_head(stream_);
    report_.bytes_in += head.text.size();
    if (head.outcome != HeadText::Outcome::Ok) {
      outcome.answered = outcome.answered || !stream_->buffered().empty();
      outcome.error = outcome.answered ? LoadError::Truncated : LoadError::Reset;
      if (head.outcome == HeadText::Outcome::TooLarge) outcome.error = LoadError::Protocol;
      co_return outcome;
    }
    outcome.answered = true;
    const auto response = parse_response(head.text);
    const auto framing = response ? framing_of(*response, method) : response.error();
    if (!framing) {
      outcome.error = LoadError::Protocol;
      co_return outcome;
    }
    if (response->status / 100 == 1 && response->status != 101) continue;
    head_at_ = runtime::boot_now();
    status_ = response->status;
    ++report_.statuses[status_];
    if (const auto value = response->fields.find(plan_.options.count_header)) {
      count(report_.header_values, std::string(*value));
    }
    outcome.error = co_await read_body(*response, *framing);
    outcome.reusable = outcome.error == LoadError::None && keeps_alive(*response) &&
                       framing->kind != Framing::Kind::UntilClose && stream_->buffered().empty();
    co_return outcome;
  }
}

awaitable<LoadError> LoadUser::read_body(const Response& response, Framing framing) {
  const bool problem =
      response.fields.find("content-type").value_or("").starts_with("application/problem+json");
  std::string kept;
  BodyScanner body(framing);
  while (!body.done()) {
    const IoError error = co_await stream_->fill_if_empty();
    if (error == asio::error::eof && body.ends_with_connection()) break;
    if (error) co_return LoadError::Truncated;
    const auto step = body.take(stream_->buffered());
    if (step.malformed) co_return LoadError::Protocol;
    report_.bytes_in += step.consumed;
    if (problem && kept.size() < kProblemBytesMax) kept.append(step.payload);
    stream_->consume(step.consumed);
  }
  if (auto code = code_in(kept); problem && !code.empty()) count(report_.codes, std::move(code));
  co_return LoadError::None;
}

bool LoadUser::expected(unsigned status) const {
  const auto& wanted = plan_.options.expected;
  if (wanted.empty()) return status < 400;
  return std::find(wanted.begin(), wanted.end(), status) != wanted.end();
}

void LoadUser::count(std::map<std::string, std::uint64_t>& counts, std::string value) {
  const bool room = counts.size() < kCountedValuesMax || counts.contains(value);
  ++counts[room ? std::move(value) : std::string("other")];
}

}  // namespace proxypool::loadgen
