// Heads of HTTP/1.0 and HTTP/1.1 messages, parsed strictly by RFC 9110 and 9112 without repair.
//
// The idea: one pass over the bytes, in their order. A fault is met at its own byte, so the outcome
// does not depend on how the bytes were cut into pieces. Nothing is copied or allocated.
//
// Use: reset(), then parse() with all the bytes received so far, from the first byte of the head
// on, at whatever address they lie now. After Done, head() tells what was found; its views point
// into those bytes. A parser (1.8 KiB) may be copied, so that one can serve a whole thread and only
// a connection with half a head keeps its own.
//
// Cost: a request head of 8 fields and 337 bytes takes 0.15 to 0.16 µs, all checks in it, on a
// machine where Boost.Beast's bare parser takes 0.19 (tests/bench/head_bench.cpp).
//
// Thread rule: one thread at a time.
// Limits:      request line 16 KiB: 414; fields as in field_line.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "net/http/authority.hpp"
#include "net/http/fields.hpp"

namespace proxypool::net {

enum class Method : std::uint8_t {
  Other,
  Get,
  Head,
  Post,
  Put,
  Delete,
  Connect,
  Options,
  Trace,
  Patch,
};
// Case matters (RFC 9110 §9.1).
[[nodiscard]] Method to_method(std::string_view text) noexcept;

enum class TargetForm : std::uint8_t { Origin, Absolute, Authority, Asterisk };
enum class Scheme : std::uint8_t { None, Http, Ws };

// How the body ends. Tunnel: there is no message behind the head, only bytes.
enum class Framing : std::uint8_t { None, Length, Chunked, UntilClose, Tunnel };

class RequestHead final : public HeadFields {
 public:
  [[nodiscard]] Method method() const noexcept { return method_; }
  [[nodiscard]] std::string_view method_text() const noexcept { return method_at_.in(base_); }
  // As it was sent, and its parts.
  [[nodiscard]] std::string_view target() const noexcept { return target_.in(base_); }
  [[nodiscard]] TargetForm form() const noexcept { return form_; }
  [[nodiscard]] Scheme scheme() const noexcept { return scheme_; }
  // host[:port] of the target; in origin-form that of the Host field. Empty in HTTP/1.0 without.
  [[nodiscard]] std::string_view authority() const noexcept { return authority_.in(base_); }
  [[nodiscard]] std::string_view host() const noexcept { return host_.in(base_); }  // no brackets
  [[nodiscard]] bool host_is_ipv6() const noexcept { return host_is_ipv6_; }
  // As sent, else 80.
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] bool has_port() const noexcept { return has_port_; }
  // From '/' or '?' on; may be empty in absolute-form.
  [[nodiscard]] std::string_view path_and_query() const noexcept {
    return path_and_query_.in(base_);
  }
  [[nodiscard]] int minor_version() const noexcept { return minor_version_; }

  [[nodiscard]] Framing framing() const noexcept { return framing_; }  // None, Length or Chunked
  [[nodiscard]] std::uint64_t content_length() const noexcept { return content_length_; }
  // The client lets the connection go on after this exchange.
  [[nodiscard]] bool keep_alive() const noexcept { return keep_alive_; }
  [[nodiscard]] bool expects_continue() const noexcept { return expects_continue_; }
  // GET, HTTP/1.1, without a body, `Connection: upgrade` and exactly `Upgrade: websocket`.
  [[nodiscard]] bool upgrades_to_websocket() const noexcept { return websocket_; }
  [[nodiscard]] bool accepts_trailers() const noexcept { return te_trailers_; }
  // Of TRACE and OPTIONS; nothing when absent or no number (then it is passed on as it is).
  [[nodiscard]] std::optional<std::uint32_t> max_forwards() const noexcept;

 private:
  friend class RequestParser;

  Slice method_at_, target_, authority_, host_, path_and_query_;
  std::uint16_t port_ = 80;
  Method method_ = Method::Other;
  TargetForm form_ = TargetForm::Origin;
  Scheme scheme_ = Scheme::None;
  Framing framing_ = Framing::None;
  std::int8_t minor_version_ = 1;
  bool has_port_ = false;
  bool host_is_ipv6_ = false;
  bool keep_alive_ = false;
  bool expects_continue_ = false;
  bool websocket_ = false;
  bool te_trailers_ = false;
};

class RequestParser {
 public:
  RequestParser() { reset(); }
  void reset() noexcept;
  // After Done or Refused the answer stays the same until reset().
  ParseState parse(std::string_view bytes) noexcept;

  // REQUIRES: Done. (After Refused: what was met before the fault, for a log line.)
  [[nodiscard]] RequestHead& head() noexcept { return head_; }
  [[nodiscard]] const RequestHead& head() const noexcept { return head_; }
  // REQUIRES: Refused.
  [[nodiscard]] const Refusal& refusal() const noexcept { return refusal_; }
  // The client has sent something: the header deadline runs.
  [[nodiscard]] bool begun() const noexcept { return begun_; }

 private:
  enum class Phase : std::uint8_t { Begin, Method, Target, Version, Fields, Done, Refused };

  bool step_begin(std::string_view bytes) noexcept;
  bool step_method(std::string_view bytes) noexcept;
  bool step_target(std::string_view bytes) noexcept;
  bool step_version(std::string_view bytes) noexcept;
  bool step_fields(std::string_view bytes) noexcept;
  bool refuse(std::uint16_t status, std::string_view reason) noexcept;
  bool line_too_long(std::string_view bytes) noexcept;
  bool interpret_target() noexcept;
  bool interpret_absolute(std::string_view target) noexcept;
  bool take_authority(std::string_view text) noexcept;
  bool set_authority(const std::optional<Authority>& authority, AuthorityFault fault) noexcept;
  bool on_field(const Field& field) noexcept;
  bool on_host(const Field& field) noexcept;
  bool finish() noexcept;
  [[nodiscard]] Slice slice(std::string_view part) const noexcept;

  RequestHead head_;
  Refusal refusal_;
  Phase phase_ = Phase::Begin;
  bool begun_ = false;
  bool has_host_ = false;
  bool has_upgrade_ = false;
  bool upgrade_is_websocket_ = false;
  std::uint32_t line_at_ = 0;
  std::uint32_t scan_at_ = 0;
};

class ResponseHead final : public HeadFields {
 public:
  [[nodiscard]] int status() const noexcept { return status_; }
  [[nodiscard]] std::string_view reason() const noexcept { return reason_.in(base_); }
  [[nodiscard]] int minor_version() const noexcept { return minor_version_; }
  // An answer before the final one; 101 is final.
  [[nodiscard]] bool interim() const noexcept { return status_ < 200 && status_ != 101; }
  // What follows on this connection: None also for HEAD, 1xx, 204 and 304; Tunnel after 101 and
  // after a 2xx to CONNECT.
  [[nodiscard]] Framing framing() const noexcept { return framing_; }
  // What Content-Length says, also where no body follows.
  [[nodiscard]] std::uint64_t content_length() const noexcept { return content_length_; }
  // The connection can carry another exchange once the body has ended.
  [[nodiscard]] bool keep_alive() const noexcept { return keep_alive_; }

 private:
  friend class ResponseParser;

  Slice reason_;
  std::int16_t status_ = 0;
  std::int8_t minor_version_ = 1;
  Framing framing_ = Framing::None;
  bool keep_alive_ = false;
};

// What the answer depends on.
struct ResponseContext {
  Method method = Method::Get;
  bool upgrade_requested = false;  // only then 101 is an answer
};

class ResponseParser {
 public:
  ResponseParser() { reset({}); }
  void reset(ResponseContext context) noexcept;
  ParseState parse(std::string_view bytes) noexcept;

  [[nodiscard]] ResponseHead& head() noexcept { return head_; }
  [[nodiscard]] const ResponseHead& head() const noexcept { return head_; }
  [[nodiscard]] const Refusal& refusal() const noexcept { return refusal_; }

 private:
  enum class Phase : std::uint8_t { Version, Reason, Fields, Done, Refused };

  bool step_version(std::string_view bytes) noexcept;
  bool step_reason(std::string_view bytes) noexcept;
  bool step_fields(std::string_view bytes) noexcept;
  bool refuse(std::string_view reason) noexcept;
  bool finish() noexcept;

  ResponseHead head_;
  Refusal refusal_;
  ResponseContext context_;
  Phase phase_ = Phase::Version;
  bool upgrade_is_websocket_ = false;
  std::uint32_t scan_at_ = 0;
};

}  // namespace proxypool::net
