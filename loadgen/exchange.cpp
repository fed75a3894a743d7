#include "loadgen/exchange.hpp"

#include <utility>

namespace proxypool::loadgen {

std::string_view reason_of(unsigned status) {
  constexpr std::pair<unsigned, std::string_view> kReasons[] = {
      {200, "OK"},
      {204, "No Content"},
      {304, "Not Modified"},
      {400, "Bad Request"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {407, "Proxy Authentication Required"},
      {429, "Too Many Requests"},
      {500, "Internal Server Error"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
  };
  for (const auto& [known, reason] : kReasons) {
    if (known == status) return reason;
  }
  return "Status";
}

Response response_to(const Request& request, unsigned status) {
  Response response;
  response.status = status;
  response.reason = reason_of(status);
  const bool alive = keeps_alive(request);
  if (!alive) response.fields.add("Connection", "close");
  if (alive && request.minor == 0) response.fields.add("Connection", "keep-alive");
  return response;
}

awaitable<bool> send(Exchange& exchange, Answer answer) {
  const auto& request = exchange.request;
  const bool whole = exchange.body.done();
  Response response = response_to(request, answer.status);
  if (!whole && keeps_alive(request)) response.fields.add("Connection", "close");
  const bool bodiless = answer.status == 204 || answer.status == 304;
  if (!bodiless) {
    response.fields.add("Content-Type", answer.content_type);
    response.fields.add("Content-Length", std::to_string(answer.body.size()));
  }
  for (const auto& [name, value] : answer.fields.all()) response.fields.add(name, value);
  std::string text = to_text(response);
  if (!bodiless && request.method != "HEAD") text += answer.body;
  const IoError failed = co_await exchange.stream->write(text);
  if (failed) co_return false;
  if (!whole) co_await exchange.stream->close_gently();
  co_return whole&& keeps_alive(request);
}

awaitable<bool> send_continue(Exchange& exchange) {
  const auto& request = exchange.request;
  const bool expected = request.minor >= 1 && request.fields.has_token("expect", "100-continue") &&
                        !exchange.body.done() && exchange.stream->buffered().empty();
  if (!expected) co_return true;
  const IoError error = co_await exchange.stream->write("HTTP/1.1 100 Continue\r\n\r\n");
  co_return !error;
}

awaitable<bool> drain(Exchange& exchange, Sink sink) {
  if (!co_await send_continue(exchange)) co_return false;
  auto& stream = *exchange.stream;
  while (!exchange.body.done()) {
    const IoError failed = co_await stream.fill_if_empty();
    if (failed) co_return false;
    const auto step = exchange.body.take(stream.buffered());
    if (step.malformed) co_return false;
    sink(step.payload);
    stream.consume(step.consumed);
  }
  co_return true;
}

namespace {

awaitable<void> refuse(StreamPtr stream, std::string why) {
  Exchange exchange{stream, Request{}, BodyScanner{Framing{}}};
  exchange.request.fields.add("Connection", "close");
  Answer answer;
  answer.status = 400;
  answer.content_type = "text/plain";
  answer.body = why + "\n";
  co_await send(exchange, std::move(answer));
  co_await stream->close_gently();
}

}  // namespace

awaitable<void> serve_exchanges(StreamPtr stream, Handler handler) {
  for (;;) {
    const auto head = co_await read_head(stream);
    if (head.outcome == HeadText::Outcome::TooLarge) {
      const std::string why = "the request head is too large";
      co_return co_await refuse(stream, why);
    }
    if (head.outcome != HeadText::Outcome::Ok) co_return;
    auto request = parse_request(head.text);
    if (!request) {
      const std::string why = request.error().message;
      co_return co_await refuse(stream, why);
    }
    const auto framing = framing_of(*request);
    if (!framing) {
      const std::string why = framing.error().message;
      co_return co_await refuse(stream, why);
    }
    Exchange exchange{stream, *std::move(request), BodyScanner{*framing}};
    if (!co_await handler(exchange)) co_return;
  }
}

}  // namespace proxypool::loadgen
