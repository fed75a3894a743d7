#include "net/http_client.hpp"

#include <fcntl.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <optional>
#include <utility>

#include "net/http/characters.hpp"
#include "net/inflate.hpp"
#include "net/name_lookup.hpp"
#include "net/url.hpp"
#include "proxypool/base/text.hpp"
#include "runtime/boot_clock.hpp"

namespace proxypool::net {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using TlsStream = asio::ssl::stream<tcp::socket&>;
using Parser = http::response_parser<http::string_body>;

constexpr int kInterimAnswersMax = 10;

struct Failure {
  HttpFault fault = HttpFault::None;
  std::string why;
};

bool is_lost(const error_code& error) {
  return error == asio::error::eof || error == asio::error::connection_reset ||
         error == asio::error::broken_pipe || error == asio::error::connection_aborted ||
         error == asio::ssl::error::stream_truncated || error == http::error::partial_message ||
         error == http::error::end_of_stream;
}

Failure classify(const error_code& error) {
  if (error == http::error::body_limit) return {HttpFault::TooLarge, "the answer is too large"};
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return {HttpFault::TooLarge, "the head of the answer is too large"};
  }
  if (is_lost(error)) return {HttpFault::Truncated, "the connection ended inside the answer"};
  return {HttpFault::Protocol, "not an HTTP answer: " + error.message()};
}

// One connection and its steps, each of which ends with the deadline.
class Exchange {
 public:
  Exchange(asio::ssl::context& tls, const Url& url, Deadline deadline)
      : tls_(tls), url_(url), deadline_(deadline) {}

  std::optional<Failure> connect(const LookUp& look_up);
  std::optional<Failure> handshake();
  std::optional<Failure> converse(http::request<http::string_body>& request, std::size_t body_max,
                                  std::optional<Parser>& answer);

 private:
  // Runs what start(handler) begins. Timed out: the socket is closed and timed_out_ set.
  template <class Start>
  error_code run(Deadline until, Start&& start) {
    error_code result;
    start([&result](const error_code& error, auto&&...) { result = error; });
    io_.restart();
    io_.run_for(until.left(runtime::boot_now()));
    if (io_.stopped()) return result;
    error_code ignored;
    socket_.close(ignored);
    io_.run();
    timed_out_ = true;
    return asio::error::timed_out;
  }
  template <class Stream>
  std::optional<Failure> converse_on(Stream& stream, http::request<http::string_body>& request,
                                     std::size_t body_max, std::optional<Parser>& answer);
  std::optional<Failure> connect_to(const Endpoint& endpoint, Deadline until);

  asio::ssl::context& tls_;
  const Url& url_;
  const Deadline deadline_;
  asio::io_context io_{1};
  tcp::socket socket_{io_};
  std::optional<TlsStream> stream_;
  bool timed_out_ = false;
};

std::optional<Failure> Exchange::connect_to(const Endpoint& endpoint, Deadline until) {
  const auto address = asio::ip::make_address(endpoint.address.str());
  const tcp::endpoint to(address, endpoint.port);
  error_code error;
  socket_ = tcp::socket(io_);
  timed_out_ = false;
  socket_.open(to.protocol(), error);
  if (error) return Failure{HttpFault::Connect, error.message()};
  ::fcntl(socket_.native_handle(), F_SETFD, FD_CLOEXEC);
  socket_.set_option(tcp::no_delay(true), error);
  error = run(until, [&](auto handler) { socket_.async_connect(to, std::move(handler)); });
  if (timed_out_) return Failure{HttpFault::Timeout, "no connection in time"};
  if (error) return Failure{HttpFault::Connect, error.message()};
  return std::nullopt;
}

std::optional<Failure> Exchange::connect(const LookUp& look_up) {
  const auto endpoints = look_up(url_.host, url_.port, deadline_);
  if (!endpoints) {
    const bool late = endpoints.error().code == ErrorCode::DeadlineExceeded;
    return Failure{late ? HttpFault::Timeout : HttpFault::Dns, endpoints.error().message};
  }
  std::optional<Failure> failure;
  for (std::size_t i = 0; i < endpoints->size(); ++i) {
    // Each address gets its share of what is left, so that a dead first one leaves time.
    const TimePoint now = runtime::boot_now();
    const auto share = deadline_.left(now) / static_cast<std::int64_t>(endpoints->size() - i);
    failure = connect_to((*endpoints)[i], Deadline::after(now, share));
    if (!failure) return failure;
  }
  return failure;
}

std::optional<Failure> Exchange::handshake() {
  stream_.emplace(socket_, tls_);
  SSL* const ssl = stream_->native_handle();
  X509_VERIFY_PARAM* const check = SSL_get0_param(ssl);
  const bool literal = IpAddress::parse(url_.host).has_value();
  const int named = literal
                        ? X509_VERIFY_PARAM_set1_ip_asc(check, url_.host.c_str())
                        : X509_VERIFY_PARAM_set1_host(check, url_.host.data(), url_.host.size());
  std::string name = url_.host;  // the call behind OpenSSL's macro takes it as not constant
  const bool announced = literal || SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME,
                                             TLSEXT_NAMETYPE_host_name, name.data()) == 1;
  if (named != 1 || !announced) {
    return Failure{HttpFault::Tls, "the name cannot be checked"};
  }
  const error_code error = run(deadline_, [&](auto handler) {
    stream_->async_handshake(asio::ssl::stream_base::client, std::move(handler));
  });
  if (timed_out_) return Failure{HttpFault::Timeout, "no TLS handshake in time"};
  if (!error) return std::nullopt;
  const long verified = SSL_get_verify_result(ssl);
  if (verified != X509_V_OK) {
    return Failure{HttpFault::Tls, std::string("the certificate is refused: ") +
                                       X509_verify_cert_error_string(verified)};
  }
  return Failure{HttpFault::Tls, "TLS handshake failed: " + error.message()};
}

std::optional<Failure> Exchange::converse(http::request<http::string_body>& request,
                                          std::size_t body_max, std::optional<Parser>& answer) {
  return stream_ ? converse_on(*stream_, request, body_max, answer)
                 : converse_on(socket_, request, body_max, answer);
}

template <class Stream>
std::optional<Failure> Exchange::converse_on(Stream& stream,
                                             http::request<http::string_body>& request,
                                             std::size_t body_max, std::optional<Parser>& answer) {
  error_code error =
      run(deadline_, [&](auto handler) { http::async_write(stream, request, std::move(handler)); });
  if (timed_out_) return Failure{HttpFault::Timeout, "the request was not taken in time"};
  // A server may answer and close before it has read all of the request: the answer counts.
  if (error && !is_lost(error)) return classify(error);
  boost::beast::flat_buffer buffer;
  for (int i = 0; i < kInterimAnswersMax; ++i) {
    answer.emplace();
    answer->header_limit(static_cast<std::uint32_t>(limits::kHeaderBytesMax));
    answer->body_limit(body_max);
    answer->skip(request.method() == http::verb::head);
    error = run(deadline_, [&](auto handler) {
      http::async_read(stream, buffer, *answer, std::move(handler));
    });
    if (timed_out_) return Failure{HttpFault::Timeout, "no answer in time"};
    if (error) return classify(error);
    if (answer->get().result_int() >= 200) return std::nullopt;
  }
  return Failure{HttpFault::Protocol, "too many interim answers"};
}

Error to_error(const Failure& failure, const Url& url) {
  ErrorCode code = ErrorCode::Unavailable;
  bool retryable = false;
  switch (failure.fault) {
    case HttpFault::BadRequest:
      code = ErrorCode::InvalidArgument;
      break;
    case HttpFault::Dns:
    case HttpFault::Connect:
    case HttpFault::Truncated:
      retryable = true;
      break;
    case HttpFault::Timeout:
      code = ErrorCode::DeadlineExceeded;
      retryable = true;
      break;
    case HttpFault::TooLarge:
      code = ErrorCode::Exhausted;
      break;
    case HttpFault::Redirect:
      code = ErrorCode::Forbidden;
      break;
    case HttpFault::Protocol:
      code = ErrorCode::Corrupt;
      break;
    case HttpFault::Tls:
    case HttpFault::None:
      break;
  }
  const std::string where = url.host + ":" + std::to_string(url.port);
  return {code, Origin::Provider, where + ": " + failure.why, retryable};
}

std::optional<Failure> build(const HttpCall& call, const Url& url, const std::string& user_agent,
                             http::request<http::string_body>& out) {
  if (!is_token(call.method) || to_method(call.method) == Method::Connect) {
    return Failure{HttpFault::BadRequest, "invalid method"};
  }
  out.version(11);
  out.method_string(call.method);
  out.target(url.target);
  out.set(http::field::host, url.authority);
  out.set(http::field::user_agent, user_agent);
  out.set(http::field::accept_encoding, "gzip, deflate");
  out.set(http::field::connection, "close");
  for (const auto& [name, value] : call.fields) {
    const char* const end = value.data() + value.size();
    if (!is_token(name) || find_value_end(value.data(), end) != end) {
      return Failure{HttpFault::BadRequest, "invalid header field"};
    }
    out.set(name, value);
  }
  out.body() = call.body;
  out.prepare_payload();
  return std::nullopt;
}

std::optional<Failure> decode(HttpAnswer& answer, std::size_t bytes_max) {
  const auto coding = trim_blanks(answer.field("Content-Encoding"));
  if (answer.body.empty() || coding.empty() || equal_ignoring_case(coding, "identity")) {
    return std::nullopt;
  }
  if (!equal_ignoring_case(coding, "gzip") && !equal_ignoring_case(coding, "x-gzip") &&
      !equal_ignoring_case(coding, "deflate")) {
    return Failure{HttpFault::Protocol, "unknown Content-Encoding"};
  }
  std::string decoded;
  switch (inflate(answer.body, bytes_max, decoded)) {
    case InflateResult::Done:
      answer.body = std::move(decoded);
      return std::nullopt;
    case InflateResult::TooLarge:
      return Failure{HttpFault::TooLarge, "the answer is too large when decompressed"};
    case InflateResult::Truncated:
      return Failure{HttpFault::Truncated, "the compressed answer is cut off"};
    case InflateResult::Corrupt:
      break;
  }
  return Failure{HttpFault::Protocol, "the compressed answer is damaged"};
}

// What all calls of a client share.
struct Shared {
  std::string user_agent;
  LookUp look_up;
  // Used by many threads; OpenSSL counts its references itself and nothing here changes it.
  asio::ssl::context tls{asio::ssl::context::tls_client};
};

std::optional<Failure> exchange(Shared& shared, const HttpCall& call, const Url& url,
                                Deadline deadline, HttpAnswer& out) {
  http::request<http::string_body> request;
  if (auto failure = build(call, url, shared.user_agent, request)) return failure;
  Exchange connection(shared.tls, url, deadline);
  if (auto failure = connection.connect(shared.look_up)) return failure;
  if (url.tls) {
    if (auto failure = connection.handshake()) return failure;
  }
  std::optional<Parser> parser;
  if (auto failure = connection.converse(request, call.body_bytes_max, parser)) return failure;
  auto message = parser->release();
  out.status = static_cast<int>(message.result_int());
  out.fields.clear();
  for (const auto& field : message) {
    out.fields.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  out.body = std::move(message.body());
  return decode(out, call.decoded_bytes_max);
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// The credentials in the fields are for this host alone, and never for the plain wire once TLS.
bool may_follow(const Url& from, const Url& to) {
  return from.same_origin(to) || (!from.tls && to.tls && equal_ignoring_case(from.host, to.host));
}

// What the next request of a redirected call is.
void redirect(HttpCall& call, int status) {
  const bool to_get = status == 303 || ((status == 301 || status == 302) && call.method == "POST");
  if (!to_get || call.method == "HEAD") return;
  call.method = "GET";
  call.body.clear();
  std::erase_if(call.fields, [](const NameValue& field) {
    return equal_ignoring_case(field.first, "Content-Type");
  });
}

}  // namespace

std::string_view to_string(HttpFault fault) noexcept {
  constexpr std::string_view kNames[] = {"none",     "bad_request", "dns",       "connect",
                                         "tls",      "timeout",     "too_large", "truncated",
                                         "protocol", "redirect"};
  return kNames[static_cast<std::size_t>(fault)];
}

std::string_view HttpAnswer::field(std::string_view name) const noexcept {
  for (const auto& [known, value] : fields) {
    if (equal_ignoring_case(known, name)) return value;
  }
  return {};
}

struct HttpClient::State : Shared {};

HttpClient::HttpClient(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

Result<HttpClient> HttpClient::create(const HttpClientOptions& options) {
  auto state = std::make_unique<State>();
  state->user_agent = options.user_agent;
  state->look_up = options.look_up ? options.look_up : LookUp(&net::look_up);
  SSL_CTX_set_min_proto_version(state->tls.native_handle(), TLS1_2_VERSION);
  error_code error;
  state->tls.set_verify_mode(asio::ssl::verify_peer, error);
  if (options.ca_file.empty()) {
    state->tls.set_default_verify_paths(error);
  } else {
    state->tls.load_verify_file(options.ca_file, error);
  }
  if (error) {
    return Error{ErrorCode::InvalidArgument, Origin::Internal,
                 "cannot load the certificate authorities" +
                     (options.ca_file.empty() ? "" : " from " + options.ca_file) + ": " +
                     error.message()};
  }
  return HttpClient(std::move(state));
}

Result<HttpAnswer> HttpClient::request(const HttpCall& call, Deadline deadline,
                                       HttpFault* fault) const {
  HttpFault ignored{};
  HttpFault& cause = fault == nullptr ? ignored : *fault;
  cause = HttpFault::BadRequest;
  PP_TRY(Url url, parse_url(call.url));
  const Deadline until = std::min(deadline, Deadline::after(runtime::boot_now(), kLongest));
  const auto failed = [&](const Failure& failure) {
    cause = failure.fault;
    return to_error(failure, url);
  };
  HttpCall current = call;
  for (int hops = 0;; ++hops) {
    HttpAnswer answer;
    if (const auto failure = exchange(*state_, current, url, until, answer)) {
      return failed(*failure);
    }
    const auto location = answer.field("Location");
    if (!is_redirect(answer.status) || location.empty()) {
      cause = HttpFault::None;
      return answer;
    }
    if (hops == call.redirects_max) return failed({HttpFault::Redirect, "too many redirects"});
    auto next = resolve(url, location);
    if (!next) return failed({HttpFault::Redirect, "redirect to an invalid URL"});
    if (!may_follow(url, *next)) {
      return failed({HttpFault::Redirect, "redirect to another host: " + next->host});
    }
    url = *std::move(next);
    redirect(current, answer.status);
  }
}

}  // namespace proxypool::net
