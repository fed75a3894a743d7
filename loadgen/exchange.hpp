// The server side of HTTP/1.1 for the fixture's vendor API and origin: one request after the other
// on a connection, bodies streamed.
//
// Thread rule: one thread at a time, that of the connection.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "loadgen/http1.hpp"
#include "loadgen/stream.hpp"

namespace proxypool::loadgen {

struct Exchange {
  StreamPtr stream;
  Request request;
  BodyScanner body;
};

// Answers one request. false: the connection cannot go on.
using Handler = std::function<awaitable<bool>(Exchange&)>;

// Serves until the peer or the handler ends it. Malformed requests are answered 400.
awaitable<void> serve_exchanges(StreamPtr stream, Handler handler);

// Reads what is left of the request body and hands its content to `sink`; answers an
// "Expect: 100-continue" first. false: the connection broke or the body was malformed.
using Sink = std::function<void(std::string_view)>;
awaitable<bool> drain(Exchange& exchange, Sink sink);
awaitable<bool> send_continue(Exchange& exchange);

struct Answer {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  Fields fields;  // further ones
};
awaitable<bool> send(Exchange& exchange, Answer answer);

// A response head that fits the request: version, reason, Connection.
Response response_to(const Request& request, unsigned status);
std::string_view reason_of(unsigned status);

}  // namespace proxypool::loadgen
