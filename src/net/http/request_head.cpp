#include <algorithm>
#include <cstring>

#include "net/http/characters.hpp"
#include "net/http/head.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::net {
namespace {

constexpr std::string_view kVersion = "HTTP/1.";

}  // namespace

Method to_method(std::string_view text) noexcept {
  switch (text.size()) {
    case 3:
      return text == "GET" ? Method::Get : text == "PUT" ? Method::Put : Method::Other;
    case 4:
      return text == "POST" ? Method::Post : text == "HEAD" ? Method::Head : Method::Other;
    case 5:
      return text == "PATCH" ? Method::Patch : text == "TRACE" ? Method::Trace : Method::Other;
    case 6:
      return text == "DELETE" ? Method::Delete : Method::Other;
    case 7:
      return text == "CONNECT"   ? Method::Connect
             : text == "OPTIONS" ? Method::Options
                                 : Method::Other;
    default:
      return Method::Other;
  }
}

std::optional<std::uint32_t> RequestHead::max_forwards() const noexcept {
  if (method_ != Method::Trace && method_ != Method::Options) return std::nullopt;
  const Field* field = find(FieldId::MaxForwards);
  return field == nullptr ? std::nullopt : parse_number<std::uint32_t>(value(*field));
}

void RequestParser::reset() noexcept {
  phase_ = Phase::Begin;
  begun_ = has_host_ = has_upgrade_ = upgrade_is_websocket_ = false;
  line_at_ = scan_at_ = 0;
  head_.method_at_ = head_.target_ = head_.authority_ = head_.host_ = head_.path_and_query_ = {};
  head_.port_ = 80;
  head_.has_port_ = false;
  head_.scheme_ = Scheme::None;
  head_.framing_ = Framing::None;
  head_.host_is_ipv6_ = head_.keep_alive_ = head_.expects_continue_ = false;
  head_.websocket_ = head_.te_trailers_ = false;
  head_.begin_fields(0);
}

ParseState RequestParser::parse(std::string_view bytes) noexcept {
  head_.rebase(bytes.data());
  begun_ = begun_ || !bytes.empty();
  // Each step goes on to the next phase, or refuses, and answers true; false asks for more bytes.
  for (bool going = true; going;) {
    switch (phase_) {
      case Phase::Begin:
        going = step_begin(bytes);
        break;
      case Phase::Method:
        going = step_method(bytes);
        break;
      case Phase::Target:
        going = step_target(bytes);
        break;
      case Phase::Version:
        going = step_version(bytes);
        break;
      case Phase::Fields:
        going = step_fields(bytes);
        break;
      case Phase::Done:
        return ParseState::Done;
      case Phase::Refused:
        return ParseState::Refused;
    }
  }
  return ParseState::NeedMore;
}

bool RequestParser::refuse(std::uint16_t status, std::string_view reason) noexcept {
  refusal_ = {status, reason};
  phase_ = Phase::Refused;
  return true;
}

// One empty line before the request line is skipped (RFC 9112 §2.2).
bool RequestParser::step_begin(std::string_view bytes) noexcept {
  if (bytes.empty()) return false;
  if (bytes[0] == '\r') {
    if (bytes.size() < 2) return false;
    if (bytes[1] != '\n') return refuse(400, "bare CR");
    line_at_ = scan_at_ = 2;
  }
  phase_ = Phase::Method;
  return true;
}

// The bytes are used up inside the request line.
bool RequestParser::line_too_long(std::string_view bytes) noexcept {
  if (bytes.size() < line_at_ + limits::kRequestLineBytesMax) return false;
  return refuse(414, "request line larger than 16 KiB");
}

bool RequestParser::step_method(std::string_view bytes) noexcept {
  bytes = bytes.substr(0, line_at_ + limits::kRequestLineBytesMax);
  const char* const end = bytes.data() + bytes.size();
  const auto at =
      static_cast<std::size_t>(find_token_end(bytes.data() + scan_at_, end) - bytes.data());
  scan_at_ = static_cast<std::uint32_t>(at);
  if (at == bytes.size()) return line_too_long(bytes);
  if (bytes[at] == '\n') return refuse(400, "line ends with a bare LF");
  if (at == line_at_ || bytes[at] != ' ') return refuse(400, "invalid method");
  head_.method_at_ = {line_at_, scan_at_ - line_at_};
  head_.method_ = to_method(head_.method_text());
  head_.target_.at = ++scan_at_;
  phase_ = Phase::Target;
  return true;
}

bool RequestParser::step_target(std::string_view bytes) noexcept {
  bytes = bytes.substr(0, line_at_ + limits::kRequestLineBytesMax);
  const char* const end = bytes.data() + bytes.size();
  const auto at =
      static_cast<std::size_t>(find_target_end(bytes.data() + scan_at_, end) - bytes.data());
  scan_at_ = static_cast<std::uint32_t>(at);
  if (at == bytes.size()) return line_too_long(bytes);
  if (bytes[at] == '\r' || bytes[at] == '\n') return refuse(400, "request line without a version");
  if (at == head_.target_.at || bytes[at] != ' ') return refuse(400, "invalid request target");
  head_.target_.size = scan_at_ - head_.target_.at;
  ++scan_at_;
  phase_ = Phase::Version;
  return true;
}

bool RequestParser::step_version(std::string_view bytes) noexcept {
  bytes = bytes.substr(0, line_at_ + limits::kRequestLineBytesMax);
  const auto rest = bytes.substr(scan_at_);
  const std::size_t known = std::min(rest.size(), kVersion.size());
  if (rest.substr(0, known) != kVersion.substr(0, known)) {
    return refuse(400, "unknown protocol version");
  }
  if (rest.size() > 7 && rest[7] != '0' && rest[7] != '1') {
    return refuse(400, "unknown protocol version");
  }
  if (rest.size() > 8 && rest[8] != '\r') {
    return refuse(400, rest[8] == '\n' ? "line ends with a bare LF" : "unknown protocol version");
  }
  if (rest.size() > 9 && rest[9] != '\n') return refuse(400, "bare CR");
  if (rest.size() < 10) return line_too_long(bytes);
  head_.minor_version_ = rest[7] == '1' ? 1 : 0;
  if (!interpret_target()) return true;
  head_.begin_fields(scan_at_ + 10);
  phase_ = Phase::Fields;
  return true;
}

Slice RequestParser::slice(std::string_view part) const noexcept {
  return {static_cast<std::uint32_t>(part.data() - head_.base_),
          static_cast<std::uint32_t>(part.size())};
}

// False: refused.
bool RequestParser::interpret_target() noexcept {
  const std::string_view target = head_.target();
  if (head_.method_ == Method::Connect) {
    head_.form_ = TargetForm::Authority;
    if (!take_authority(target)) return false;
    if (head_.has_port_) return true;
    refuse(400, "CONNECT without a port");
    return false;
  }
  if (target.front() == '/') {
    head_.form_ = TargetForm::Origin;
    head_.path_and_query_ = head_.target_;
    return true;
  }
  if (target != "*") return interpret_absolute(target);
  head_.form_ = TargetForm::Asterisk;
  if (head_.method_ == Method::Options) return true;
  refuse(400, "invalid request target");
  return false;
}

bool RequestParser::interpret_absolute(std::string_view target) noexcept {
  head_.form_ = TargetForm::Absolute;
  std::size_t at = 0;
  if (target.size() > 7 && is_name(target.data(), "http://")) {
    head_.scheme_ = Scheme::Http;
    at = 7;
  } else if (target.size() > 5 && is_name(target.data(), "ws://")) {
    head_.scheme_ = Scheme::Ws;
    at = 5;
  } else {
    const bool other = target.substr(std::min(target.find(':'), target.size())).starts_with("://");
    refuse(400, other ? "scheme is neither http nor ws" : "invalid request target");
    return false;
  }
  const auto rest = target.substr(at);
  AuthorityFault fault{};
  std::size_t size = 0;
  const auto authority = parse_leading_authority(rest, size, fault);
  if (!set_authority(authority, fault)) return false;
  head_.path_and_query_ = slice(rest.substr(size));
  return true;
}

bool RequestParser::take_authority(std::string_view text) noexcept {
  AuthorityFault fault{};
  const auto authority = parse_authority(text, fault);
  return set_authority(authority, fault);
}

bool RequestParser::set_authority(const std::optional<Authority>& authority,
                                  AuthorityFault fault) noexcept {
  if (!authority) {
    refuse(400, fault == AuthorityFault::UserInformation ? "user information in the target"
                : fault == AuthorityFault::Port          ? "invalid port"
                                                         : "invalid host");
    return false;
  }
  head_.authority_ = slice(authority->text);
  head_.host_ = slice(authority->host);
  head_.host_is_ipv6_ = authority->ipv6;
  head_.has_port_ = authority->has_port;
  if (authority->has_port) head_.port_ = authority->port;
  return true;
}

bool RequestParser::step_fields(std::string_view bytes) noexcept {
  const auto state = head_.read_fields(bytes.size(), refusal_,
                                       [this](const Field& field) { return on_field(field); });
  if (state == ParseState::NeedMore) return false;
  phase_ = state == ParseState::Done && finish() ? Phase::Done : Phase::Refused;
  return true;
}

bool RequestParser::on_field(const Field& field) noexcept {
  switch (field.id) {
    case FieldId::Host:
      return on_host(field);
    case FieldId::ContentLength:
    case FieldId::TransferEncoding:
    case FieldId::Connection:
      head_.note_framing(field);
      return true;
    case FieldId::Expect:
      head_.expects_continue_ =
          head_.minor_version_ == 1 && equal_ignoring_case(head_.value(field), "100-continue");
      return true;
    case FieldId::Upgrade:
      upgrade_is_websocket_ = !has_upgrade_ && equal_ignoring_case(head_.value(field), "websocket");
      has_upgrade_ = true;
      return true;
    case FieldId::Te:
      for_each_element(head_.value(field), [this](std::string_view coding) {
        head_.te_trailers_ = head_.te_trailers_ || equal_ignoring_case(coding, "trailers");
        return true;
      });
      return true;
    default:
      return true;
  }
}

// Its syntax counts in each form; its content only where the target names no host.
bool RequestParser::on_host(const Field& field) noexcept {
  if (has_host_) return !refuse(400, "repeated Host");
  has_host_ = true;
  if (head_.form_ == TargetForm::Origin || head_.form_ == TargetForm::Asterisk) {
    return take_authority(head_.value(field));
  }
  AuthorityFault fault{};
  const auto value = head_.value(field);
  if (value == head_.authority() || parse_authority(value, fault)) return true;
  return !refuse(400, "invalid Host");
}

bool RequestParser::finish() noexcept {
  const bool modern = head_.minor_version_ == 1;
  if (!has_host_ && modern) return !refuse(400, "HTTP/1.1 without Host");
  if (!head_.framing_fault_.empty()) return !refuse(400, head_.framing_fault_);
  const bool chunked = head_.transfer_encodings_ != 0;
  const bool sized = head_.content_lengths_ != 0;
  if (chunked && !modern) return !refuse(400, "Transfer-Encoding in HTTP/1.0");
  if (head_.method_ == Method::Connect && (chunked || sized)) {
    return !refuse(400, "CONNECT with a body");
  }
  if (!head_.read_connection(refusal_)) return false;
  head_.framing_ = chunked ? Framing::Chunked : sized ? Framing::Length : Framing::None;
  const auto& connection = head_.connection_;
  head_.keep_alive_ = !connection.close && (modern || connection.keep_alive);
  head_.websocket_ = modern && connection.upgrade && upgrade_is_websocket_ &&
                     head_.method_ == Method::Get && head_.framing_ == Framing::None;
  head_.te_trailers_ = head_.te_trailers_ && modern && connection.te;
  return true;
}

}  // namespace proxypool::net
