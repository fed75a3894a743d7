// Field lines, one at a time: for heads and for trailers.
//
// The idea: positions, not views. The bytes may come in pieces, into a buffer that moves; reading
// goes on where it stopped. Inline, because a head is mostly field lines.
//
// Thread rule: one thread at a time.
// Limits:      kHeaderFieldsMax lines, kHeaderBytesMax bytes; over: 431.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "net/http/characters.hpp"
#include "proxypool/base/limits.hpp"

namespace proxypool::net {

enum class ParseState : std::uint8_t { NeedMore, Done, Refused };

// Why a message is refused. `status` is the answer to a client; an upstream's message that is
// refused is proxy_protocol_error whatever it says.
struct Refusal {
  std::uint16_t status = 0;
  std::string_view reason;  // static text
};

// Bytes of the buffer that the head was parsed from.
struct Slice {
  std::uint32_t at = 0;
  std::uint32_t size = 0;

  [[nodiscard]] std::string_view in(const char* base) const noexcept { return {base + at, size}; }
};

// The names that the codec itself looks at.
enum class FieldId : std::uint8_t {
  Other,
  Connection,
  ContentLength,
  Expect,
  Host,
  KeepAlive,
  MaxForwards,
  ProxyAuthenticate,
  ProxyAuthenticationInfo,
  ProxyAuthorization,
  ProxyConnection,
  Te,
  Trailer,
  TransferEncoding,
  Upgrade,
};
// The length rules nearly all other names out before a byte is compared.
inline FieldId field_id(std::string_view name) noexcept {
  const char* const p = name.data();
  switch (name.size()) {
    case 2:
      return is_name(p, "te") ? FieldId::Te : FieldId::Other;
    case 4:
      return is_name(p, "host") ? FieldId::Host : FieldId::Other;
    case 6:
      return is_name(p, "expect") ? FieldId::Expect : FieldId::Other;
    case 7:
      if (is_name(p, "upgrade")) return FieldId::Upgrade;
      return is_name(p, "trailer") ? FieldId::Trailer : FieldId::Other;
    case 10:
      if (is_name(p, "connection")) return FieldId::Connection;
      return is_name(p, "keep-alive") ? FieldId::KeepAlive : FieldId::Other;
    case 12:
      return is_name(p, "max-forwards") ? FieldId::MaxForwards : FieldId::Other;
    case 14:
      return is_name(p, "content-length") ? FieldId::ContentLength : FieldId::Other;
    case 16:
      return is_name(p, "proxy-connection") ? FieldId::ProxyConnection : FieldId::Other;
    case 17:
      return is_name(p, "transfer-encoding") ? FieldId::TransferEncoding : FieldId::Other;
    case 18:
      return is_name(p, "proxy-authenticate") ? FieldId::ProxyAuthenticate : FieldId::Other;
    case 19:
      return is_name(p, "proxy-authorization") ? FieldId::ProxyAuthorization : FieldId::Other;
    case 25:
      return is_name(p, "proxy-authentication-info") ? FieldId::ProxyAuthenticationInfo
                                                     : FieldId::Other;
    default:
      return FieldId::Other;
  }
}

constexpr bool is_hop_by_hop(FieldId id) noexcept {
  switch (id) {
    case FieldId::Connection:
    case FieldId::KeepAlive:
    case FieldId::ProxyAuthenticate:
    case FieldId::ProxyAuthenticationInfo:
    case FieldId::ProxyAuthorization:
    case FieldId::ProxyConnection:
    case FieldId::Te:
    case FieldId::Upgrade:
      return true;
    default:
      return false;
  }
}

struct Field {
  std::uint32_t name_at = 0;  // also where the line begins
  std::uint32_t value_at = 0;
  std::uint32_t value_size = 0;  // without the blanks around it
  std::uint16_t name_size = 0;
  FieldId id = FieldId::Other;
  bool hop_by_hop = false;  // by its name, or because Connection lists it
};

// Reads one line at a time; holds where it stands between two pieces.
class FieldLineReader {
 public:
  enum class Result : std::uint8_t { NeedMore, Line, End, Refused };

  // `begin`: where the section begins in the buffer.
  void reset(std::size_t begin) noexcept;
  // The next line of base[0, size): a field in `out`, or the empty line at the end.
  Result next(const char* base, std::size_t size, Field& out, Refusal& why) noexcept;
  // Behind the last line read.
  [[nodiscard]] std::size_t position() const noexcept { return line_at_; }

 private:
  // The way out of next() where no line was read: at the empty line, at a fault, at the end of the
  // bytes.
  Result empty_line(const char* base, const char* end, bool full, Refusal& why) noexcept;
  static Result refuse(Refusal& why, std::uint16_t status, std::string_view reason) noexcept;
  static Result refuse_name(Refusal& why, char c) noexcept;
  static Result refuse_value(Refusal& why, char c) noexcept;
  Result need_more(const char* base, const char* p, std::uint32_t name_size, bool full,
                   Refusal& why) noexcept;

  std::uint32_t begin_ = 0;
  std::uint32_t line_at_ = 0;
  std::uint32_t scan_at_ = 0;    // inside the line
  std::uint32_t name_size_ = 0;  // 0: the colon was not met yet
  std::uint32_t lines_ = 0;
};

inline FieldLineReader::Result FieldLineReader::next(const char* base, std::size_t size, Field& out,
                                                     Refusal& why) noexcept {
  const std::size_t cap = begin_ + limits::kHeaderBytesMax;
  const bool full = size >= cap;
  const char* const end = base + (full ? cap : size);
  const char* const line = base + line_at_;
  const char* p = base + scan_at_;
  std::uint32_t name_size = name_size_;
  if (name_size == 0) {
    if (line == end) return need_more(base, line, 0, full, why);
    if (*line == '\r') return empty_line(base, end, full, why);
    if (lines_ == limits::kHeaderFieldsMax) return refuse(why, 431, "more than 100 fields");
    if (is_blank(*line)) return refuse(why, 400, "folded field line");
    p = find_token_end(p, end);
    if (p == end) return need_more(base, p, 0, full, why);
    if (*p != ':') return refuse_name(why, *p);
    if (p == line) return refuse(why, 400, "empty field name");
    name_size = static_cast<std::uint32_t>(p - line);
    ++p;
  }
  p = find_value_end(p, end);
  if (end - p < 2) {
    if (p != end && *p != '\r') return refuse_value(why, *p);
    return need_more(base, p, name_size, full, why);
  }
  if (*p != '\r') return refuse_value(why, *p);
  if (p[1] != '\n') return refuse(why, 400, "bare CR");
  const char* first = line + name_size + 1;
  const char* last = p;
  while (is_blank(*first)) ++first;  // ends at the CR
  while (first != last && is_blank(last[-1])) --last;
  out.name_at = line_at_;
  out.value_at = static_cast<std::uint32_t>(first - base);
  out.value_size = static_cast<std::uint32_t>(last - first);
  out.name_size = static_cast<std::uint16_t>(name_size);
  out.id = field_id({line, name_size});
  out.hop_by_hop = out.id != FieldId::Other && is_hop_by_hop(out.id);
  line_at_ = scan_at_ = static_cast<std::uint32_t>(p + 2 - base);
  name_size_ = 0;
  ++lines_;
  return Result::Line;
}

}  // namespace proxypool::net
