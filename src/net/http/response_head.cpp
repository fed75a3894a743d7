#include <algorithm>

#include "net/http/characters.hpp"
#include "net/http/head.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::net {
namespace {

// d stands for a digit.
constexpr std::string_view kStatusLine = "HTTP/1.d ddd ";

bool fits(char c, char wanted) noexcept {
  return wanted == 'd' ? is_digit(c) : c == wanted;
}

}  // namespace

void ResponseParser::reset(ResponseContext context) noexcept {
  context_ = context;
  phase_ = Phase::Version;
  upgrade_is_websocket_ = false;
  scan_at_ = 0;
  head_.status_ = 0;
  head_.reason_ = {};
  head_.framing_ = Framing::None;
  head_.keep_alive_ = false;
  head_.begin_fields(0);
}

ParseState ResponseParser::parse(std::string_view bytes) noexcept {
  head_.rebase(bytes.data());
  for (bool going = true; going;) {
    switch (phase_) {
      case Phase::Version:
        going = step_version(bytes);
        break;
      case Phase::Reason:
        going = step_reason(bytes);
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

bool ResponseParser::refuse(std::string_view reason) noexcept {
  refusal_ = {502, reason};
  phase_ = Phase::Refused;
  return true;
}

bool ResponseParser::step_version(std::string_view bytes) noexcept {
  for (std::size_t i = scan_at_; i < std::min(bytes.size(), kStatusLine.size()); ++i) {
    if (!fits(bytes[i], kStatusLine[i]) || (i == 7 && bytes[i] > '1') ||
        (i == 9 && bytes[i] == '0')) {
      return refuse("invalid status line");
    }
    scan_at_ = static_cast<std::uint32_t>(i + 1);
  }
  if (scan_at_ < kStatusLine.size()) return false;
  const auto digit = [&](std::size_t at) { return bytes[at] - '0'; };
  head_.minor_version_ = static_cast<std::int8_t>(digit(7));
  head_.status_ = static_cast<std::int16_t>(digit(9) * 100 + digit(10) * 10 + digit(11));
  head_.reason_.at = scan_at_;
  phase_ = Phase::Reason;
  return true;
}

bool ResponseParser::step_reason(std::string_view bytes) noexcept {
  bytes = bytes.substr(0, limits::kRequestLineBytesMax);
  const char* const end = bytes.data() + bytes.size();
  const char* const stop = find_value_end(bytes.data() + scan_at_, end);
  scan_at_ = static_cast<std::uint32_t>(stop - bytes.data());
  if (end - stop >= 2 && stop[0] == '\r' && stop[1] == '\n') {
    head_.reason_.size = scan_at_ - head_.reason_.at;
    head_.begin_fields(scan_at_ + 2);
    phase_ = Phase::Fields;
    return true;
  }
  if (stop != end && (*stop != '\r' || end - stop >= 2)) return refuse("invalid status line");
  if (bytes.size() == limits::kRequestLineBytesMax) return refuse("status line over 16 KiB");
  return false;
}

bool ResponseParser::step_fields(std::string_view bytes) noexcept {
  const auto state = head_.read_fields(bytes.size(), refusal_, [this](const Field& field) {
    head_.note_framing(field);
    if (field.id == FieldId::Upgrade) {
      upgrade_is_websocket_ = equal_ignoring_case(head_.value(field), "websocket");
    }
    return true;
  });
  if (state == ParseState::NeedMore) return false;
  phase_ = state == ParseState::Done && finish() ? Phase::Done : Phase::Refused;
  refusal_.status = 502;
  return true;
}

bool ResponseParser::finish() noexcept {
  if (!head_.read_connection(refusal_)) return false;
  const bool modern = head_.minor_version_ == 1;
  const auto& connection = head_.connection_;
  head_.keep_alive_ = !connection.close && (modern || connection.keep_alive);
  const int status = head_.status_;
  if (context_.method == Method::Connect && status >= 200 && status < 300) {
    head_.framing_ = Framing::Tunnel;  // its framing fields mean nothing (RFC 9110 §9.3.6)
    return true;
  }
  if (!head_.framing_fault_.empty()) return !refuse(head_.framing_fault_);
  const bool chunked = head_.transfer_encodings_ != 0;
  if (chunked && !modern) return !refuse("Transfer-Encoding in HTTP/1.0");
  if (status == 101) {
    if (!context_.upgrade_requested || !connection.upgrade || !upgrade_is_websocket_ || !modern) {
      return !refuse("upgrade that was not asked for");
    }
    head_.framing_ = Framing::Tunnel;
    return true;
  }
  if (status < 200 || status == 204 || status == 304 || context_.method == Method::Head) {
    head_.framing_ = Framing::None;
  } else if (chunked) {
    head_.framing_ = Framing::Chunked;
  } else if (head_.content_lengths_ != 0) {
    head_.framing_ = Framing::Length;
  } else {
    head_.framing_ = Framing::UntilClose;
    head_.keep_alive_ = false;
  }
  return true;
}

}  // namespace proxypool::net
