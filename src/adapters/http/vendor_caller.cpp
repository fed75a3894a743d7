#include "adapters/http/vendor_caller.hpp"

#include <utility>

#include "net/http_client.hpp"

namespace proxypool::http {

namespace {

domain::FetchReason reason_of(net::HttpFault fault) noexcept {
  using domain::FetchReason;
  switch (fault) {
    case net::HttpFault::Dns:
      return FetchReason::Dns;
    case net::HttpFault::Connect:
      return FetchReason::Connect;
    case net::HttpFault::Tls:
      return FetchReason::Tls;
    case net::HttpFault::Timeout:
      return FetchReason::Timeout;
    case net::HttpFault::TooLarge:
      return FetchReason::TooLarge;
    case net::HttpFault::Truncated:
    case net::HttpFault::Protocol:
      return FetchReason::Decode;
    case net::HttpFault::Redirect:
      return FetchReason::Redirect;
    default:
      return FetchReason::Other;
  }
}

class VendorCaller final : public ports::HttpCaller {
 public:
  explicit VendorCaller(net::HttpClient client) : client_(std::move(client)) {}

  ports::HttpReply call(const ports::HttpCall& call, Deadline deadline) override {
    net::HttpCall request;
    request.method = call.method;
    request.url = call.url.reveal();
    for (const auto& [name, value] : call.headers) {
      request.fields.emplace_back(name, std::string(value.reveal()));
    }
    request.body_bytes_max = call.body_bytes_max;
    request.decoded_bytes_max = call.body_bytes_max;
    net::HttpFault fault = net::HttpFault::None;
    auto answer = client_.request(request, deadline, &fault);
    ports::HttpReply reply;
    if (!answer) {
      reply.failed = reason_of(fault);
      reply.detail = answer.error().message;
      return reply;
    }
    reply.status = answer->status;
    reply.headers = std::move(answer->fields);
    reply.body = std::move(answer->body);
    return reply;
  }

 private:
  net::HttpClient client_;
};

}  // namespace

Result<std::unique_ptr<ports::HttpCaller>> make_vendor_caller(const std::string& version) {
  net::HttpClientOptions options;
  options.user_agent = "proxypool/" + version;
  PP_TRY(net::HttpClient client, net::HttpClient::create(options));
  return std::unique_ptr<ports::HttpCaller>(std::make_unique<VendorCaller>(std::move(client)));
}

}  // namespace proxypool::http
