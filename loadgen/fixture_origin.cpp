// The fixture's origin: tells what it saw, and answers in every framing.
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "loadgen/digest.hpp"
#include "loadgen/exchange.hpp"
#include "loadgen/fixture_json.hpp"
#include "loadgen/fixture_state.hpp"
#include "loadgen/pattern.hpp"
#include "loadgen/url.hpp"
#include "proxypool/base/text.hpp"
#include "runtime/boot_clock.hpp"

namespace proxypool::loadgen {
namespace {

constexpr std::uint64_t kPaddingBytesMax = std::uint64_t{1} << 20U;

std::uint64_t number_in_query(std::string_view target, std::string_view name,
                              std::uint64_t otherwise) {
  const auto text = query_value(target, name);
  if (!text) return otherwise;
  return parse_number<std::uint64_t>(*text).value_or(otherwise);
}

// The number behind `prefix` when the path is exactly prefix + number.
std::optional<std::uint64_t> number_in_path(std::string_view path, std::string_view prefix) {
  if (!path.starts_with(prefix)) return std::nullopt;
  return parse_number<std::uint64_t>(path.substr(prefix.size()));
}

Sighting sighting_of(const FixtureState& state, const Exchange& exchange) {
  Sighting seen;
  seen.place = "origin";
  const auto peer = exchange.stream->peer();
  if (const auto at = state.dialled.find(peer.port()); at != state.dialled.end()) {
    seen.proxy = at->second;
  }
  seen.method = exchange.request.method;
  seen.target = exchange.request.target;
  seen.fields = exchange.request.fields.all();
  seen.peer = to_text(peer);
  seen.at_ms = runtime::wall_now().time_since_epoch().count();
  return seen;
}

Response binary_response(const Exchange& exchange) {
  Response response = response_to(exchange.request, 200);
  response.fields.add("Content-Type", "application/octet-stream");
  return response;
}

awaitable<bool> send_head(Exchange& exchange, const Response& response) {
  const std::string text = to_text(response);
  const IoError failed = co_await exchange.stream->write(text);
  co_return !failed;
}

awaitable<bool> send_pattern(Exchange& exchange, std::uint64_t from, std::uint64_t bytes) {
  while (bytes > 0) {
    const auto piece = pattern_piece(from, bytes);
    const IoError failed = co_await exchange.stream->write(piece);
    if (failed) co_return false;
    from += piece.size();
    bytes -= piece.size();
  }
  co_return true;
}

// A body of known length; with a pause between single bytes when `gap` is not zero.
awaitable<bool> send_bytes(Exchange& exchange, std::uint64_t bytes, milliseconds gap) {
  Response response = binary_response(exchange);
  response.fields.add("Content-Length", std::to_string(bytes));
  if (!co_await send_head(exchange, response)) co_return false;
  if (exchange.request.method == "HEAD") co_return keeps_alive(exchange.request);
  if (gap.count() == 0) {
    if (!co_await send_pattern(exchange, 0, bytes)) co_return false;
    co_return keeps_alive(exchange.request);
  }
  for (std::uint64_t i = 0; i < bytes; ++i) {
    if (!co_await exchange.stream->pause(gap)) co_return false;
    if (!co_await send_pattern(exchange, i, 1)) co_return false;
  }
  co_return keeps_alive(exchange.request);
}

// A body that ends with the connection.
awaitable<bool> send_until_close(Exchange& exchange, std::uint64_t bytes) {
  exchange.request.minor = 0;
  exchange.request.fields.erase("connection");
  const Response response = binary_response(exchange);
  if (!co_await send_head(exchange, response)) co_return false;
  if (exchange.request.method != "HEAD") co_await send_pattern(exchange, 0, bytes);
  co_return false;
}

awaitable<bool> send_chunked(Exchange& exchange, std::uint64_t chunks, std::uint64_t size) {
  if (exchange.request.minor == 0) co_return co_await send_until_close(exchange, chunks * size);
  Response response = binary_response(exchange);
  response.fields.add("Transfer-Encoding", "chunked");
  if (!co_await send_head(exchange, response)) co_return false;
  if (exchange.request.method == "HEAD") co_return keeps_alive(exchange.request);
  for (std::uint64_t i = 0; i < chunks && size > 0; ++i) {
    std::array<char, 16> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), size, 16).ptr;
    std::string text(i == 0 ? "" : "\r\n");
    text.append(digits.data(), end).append("\r\n");
    const IoError failed = co_await exchange.stream->write(text);
    if (failed) co_return false;
    if (!co_await send_pattern(exchange, i * size, size)) co_return false;
  }
  const std::string last = chunks > 0 && size > 0 ? "\r\n0\r\n\r\n" : "0\r\n\r\n";
  const IoError failed = co_await exchange.stream->write(last);
  co_return !failed && keeps_alive(exchange.request);
}

// Gives the body back in the framing in which it came, while it comes.
awaitable<bool> echo(FixtureState& state, Exchange& exchange, Sighting seen) {
  const auto& fields = exchange.request.fields;
  const auto length = fields.find("content-length");
  const bool chunked = fields.find("transfer-encoding").has_value();
  if (!co_await send_continue(exchange)) co_return false;
  Response response = binary_response(exchange);
  if (chunked) response.fields.add("Transfer-Encoding", "chunked");
  if (!chunked) response.fields.add("Content-Length", std::string(length.value_or("0")));
  const bool started = co_await send_head(exchange, response);
  if (!started) co_return false;
  auto& stream = *exchange.stream;
  Sha256 digest;
  while (!exchange.body.done()) {
    const IoError failed = co_await stream.fill_if_empty();
    if (failed) co_return false;
    const auto step = exchange.body.take(stream.buffered());
    if (step.malformed) co_return false;
    digest.add(step.payload);
    seen.body_bytes += step.payload.size();
    if (exchange.body.done()) {
      seen.body_sha256 = digest.finish();
      if (const auto token = token_of(seen.target, fields)) state.journal.remember(*token, seen);
    }
    const IoError broken = co_await stream.write(stream.buffered().substr(0, step.consumed));
    if (broken) co_return false;
    stream.consume(step.consumed);
  }
  co_return keeps_alive(exchange.request);
}

awaitable<bool> tell(Exchange& exchange, unsigned status, const Sighting& seen,
                     std::uint64_t padding) {
  Answer answer;
  answer.status = status;
  answer.body = sighting_json(seen).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  if (padding > 0) {
    answer.fields.add("X-Padding", std::string(std::min(padding, kPaddingBytesMax), 'x'));
  }
  co_return co_await send(exchange, std::move(answer));
}

awaitable<bool> answer_origin(FixtureState& state, Exchange& exchange) {
  ++state.origin_requests;
  auto seen = sighting_of(state, exchange);
  const std::string target = exchange.request.target;
  const auto path = path_of(target);
  if (path == "/echo") co_return co_await echo(state, exchange, std::move(seen));

  Sha256 digest;
  const Sink sink = [&](std::string_view piece) {
    digest.add(piece);
    seen.body_bytes += piece.size();
  };
  if (!co_await drain(exchange, sink)) co_return false;
  seen.body_sha256 = digest.finish();
  if (const auto token = token_of(target, exchange.request.fields)) {
    state.journal.remember(*token, seen);
  }

  if (const auto bytes = number_in_path(path, "/bytes/")) {
    co_return co_await send_bytes(exchange, *bytes, milliseconds{0});
  }
  if (path == "/drip") {
    const auto gap = static_cast<std::int64_t>(number_in_query(target, "ms", 100));
    const auto bytes = number_in_query(target, "bytes", 10);
    co_return co_await send_bytes(exchange, bytes, milliseconds{gap});
  }
  if (path == "/chunked") {
    const auto chunks = number_in_query(target, "chunks", 5);
    co_return co_await send_chunked(exchange, chunks, number_in_query(target, "size", 1000));
  }
  if (path == "/until-close") {
    co_return co_await send_until_close(exchange, number_in_query(target, "bytes", 1000));
  }
  if (path == "/slow") {
    const auto ms = static_cast<std::int64_t>(number_in_query(target, "ms", 1000));
    if (!co_await exchange.stream->pause(milliseconds{ms})) co_return false;
  }
  const auto status = number_in_path(path, "/status/").value_or(200);
  const bool valid = status >= 200 && status <= 599;
  const auto padding = path == "/head" ? number_in_query(target, "bytes", 1000) : 0;
  co_return co_await tell(exchange, valid ? static_cast<unsigned>(status) : 400, seen, padding);
}

}  // namespace

awaitable<void> serve_origin(FixtureStatePtr state, StreamPtr stream) {
  // A named handler: GCC 12 destroys a capturing temporary of a co_await twice.
  const Handler handler = [state](Exchange& exchange) { return answer_origin(*state, exchange); };
  co_await serve_exchanges(std::move(stream), handler);
}

}  // namespace proxypool::loadgen
