// Router: from a request to the function that answers it, with the rules that every REST server of
// the project shares: 404 for an unknown path, 405 with Allow, HEAD and OPTIONS, request ids.
//
// Thread rule: routes are added before the first request; handle() from any thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "net/http_message.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/ports/crypto.hpp"

namespace proxypool::http {

// A request with what the router found out about it.
struct Call {
  const net::HttpRequest& request;
  std::string request_id;
  std::map<std::string, std::string> captures;  // of the pattern's {names}
  std::string client;                           // filled in by the guard; empty: anonymous
};

// What a refusal or a failure says; becomes a problem document with the call's request id.
struct Refusal {
  int status = 500;
  std::string code;
  std::string detail;
  std::vector<net::ProblemEntry> errors = {};
  std::vector<net::NameValue> fields = {};
  std::string extra = {};  // more JSON members, for example "\"available\":3"
};

using Answer = std::variant<net::HttpResponse, Refusal>;
using Handle = std::function<Answer(Call& call)>;
// Nothing lets the call pass.
using Guard = std::function<std::optional<Refusal>(Call& call)>;

class Router {
 public:
  explicit Router(const ports::Crypto& crypto) : crypto_(crypto) {}

  // `pattern` is a path whose parts may be {captures}, also with a verb behind: "/v1/proxies/{id}",
  // "/v1/routings/{id}:switch". What is captured is not empty and has no colon. The guard is asked
  // first; none: the path is open to everybody.
  void add(std::string method, std::string pattern, Guard guard, Handle handle);

  [[nodiscard]] net::HttpResponse handle(const net::HttpRequest& request) const;
  // A refusal before any route is asked.
  [[nodiscard]] net::HttpResponse refuse(const net::HttpRequest& request,
                                         const Refusal& refusal) const;
  // The request's own X-Request-Id when it is a good one, else a fresh one.
  [[nodiscard]] std::string request_id(const net::HttpRequest& request) const;

 private:
  struct Route {
    std::string method;
    std::vector<std::string> parts;
    Guard guard;
    Handle handle;
  };

  const ports::Crypto& crypto_;
  std::vector<Route> routes_;
};

[[nodiscard]] net::HttpResponse refusal_response(const Refusal& refusal,
                                                 const std::string& request_id);
// The refusal that an error of a port deserves: 503 within the store's time, 400 or 403 otherwise.
[[nodiscard]] Refusal refusal_of(const Error& error);

}  // namespace proxypool::http
