// Field lines, one at a time: for heads and for trailers.
//
// The idea: positions, not views. The bytes may come in pieces, into a buffer that moves; reading
// goes on where it stopped. Inline, because a head is mostly field lines.
//
// Thread rule: one thread at a time.
// Limits:      kHeaderFieldsMax lines, kHeaderBytesMax bytes; over: 431.
#pragma once

#include <array>
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
struct KnownField {
  std::string_view name;
  FieldId id = FieldId::Other;
};
inline constexpr KnownField kKnownFields[] = {
    {"connection", FieldId::Connection},
    {"content-length", FieldId::ContentLength},
    {"expect", FieldId::Expect},
    {"host", FieldId::Host},
    {"keep-alive", FieldId::KeepAlive},
    {"max-forwards", FieldId::MaxForwards},
    {"proxy-authenticate", FieldId::ProxyAuthenticate},
    {"proxy-authentication-info", FieldId::ProxyAuthenticationInfo},
    {"proxy-authorization", FieldId::ProxyAuthorization},
    {"proxy-connection", FieldId::ProxyConnection},
    {"te", FieldId::Te},
    {"trailer", FieldId::Trailer},
    {"transfer-encoding", FieldId::TransferEncoding},
    {"upgrade", FieldId::Upgrade},
};
// Length and first letter tell the known names apart, so one comparison is enough.
constexpr std::size_t field_slot(std::string_view name) noexcept {
  return (name.size() + static_cast<unsigned char>(name.front())) % 32;
}
inline constexpr auto kFieldSlots = [] {
  std::array<KnownField, 32> slots{};
  for (const KnownField& field : kKnownFields) slots[field_slot(field.name)] = field;
  return slots;
}();
static_assert([] {
  for (const KnownField& field : kKnownFields) {
    if (kFieldSlots[field_slot(field.name)].name != field.name) return false;
  }
  return true;
}());

// REQUIRES: a token.
inline FieldId field_id(std::string_view name) noexcept {
  const KnownField& known = kFieldSlots[field_slot(name)];
  if (known.name.size() != name.size() || !is_name(name.data(), known.name)) return FieldId::Other;
  return known.id;
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
  // `begin`: where the section begins in the buffer.
  void reset(std::size_t begin) noexcept;
  // Reads the lines of base[0, size) and shows each to on_line(const Field&) → bool, which refuses
  // with false and then has set `why`. Done: the empty line was met.
  template <class OnLine>
  ParseState read(const char* base, std::size_t size, Refusal& why, OnLine&& on_line);
  // Behind the last line read.
  [[nodiscard]] std::size_t position() const noexcept { return line_at_; }

 private:
  // The ways out of read(), apart from its loop.
  ParseState empty_line(const char* base, const char* end, bool full, Refusal& why) noexcept;
  ParseState need_more(const char* base, const char* p, std::uint32_t name_size, bool full,
                       Refusal& why) noexcept;
  static ParseState refuse(Refusal& why, std::uint16_t status, std::string_view reason) noexcept;
  static ParseState refuse_name(Refusal& why, char c) noexcept;
  static ParseState refuse_value(Refusal& why, char c) noexcept;

  std::uint32_t begin_ = 0;
  std::uint32_t line_at_ = 0;
  std::uint32_t scan_at_ = 0;    // inside the line
  std::uint32_t name_size_ = 0;  // 0: the colon was not met yet
  std::uint32_t lines_ = 0;
};

// The loop keeps its place in registers: as members, each line would wait for the stores of the one
// before (a sixth of the time of a head).
template <class OnLine>
ParseState FieldLineReader::read(const char* base, std::size_t size, Refusal& why,
                                 OnLine&& on_line) {
  const std::size_t cap = begin_ + limits::kHeaderBytesMax;
  const bool full = size >= cap;
  const char* const end = base + (full ? cap : size);
  const char* line = base + line_at_;
  const char* p = base + scan_at_;
  std::uint32_t name_size = name_size_;
  std::uint32_t lines = lines_;
  const auto keep_place = [&] {
    line_at_ = static_cast<std::uint32_t>(line - base);
    lines_ = lines;
  };
  for (;; ++lines, name_size = 0, line = p) {
    if (name_size == 0) {
      if (line == end || *line == '\r') {
        keep_place();
        return empty_line(base, end, full, why);
      }
      if (lines == limits::kHeaderFieldsMax) return refuse(why, 431, "more than 100 fields");
      if (is_blank(*line)) return refuse(why, 400, "folded field line");
      p = find_token_end(p, end);
      if (p == end) {
        keep_place();
        return need_more(base, p, 0, full, why);
      }
      if (*p != ':') return refuse_name(why, *p);
      if (p == line) return refuse(why, 400, "empty field name");
      name_size = static_cast<std::uint32_t>(p - line);
      ++p;
    }
    p = find_value_end(p, end);
    if (p != end && *p != '\r') return refuse_value(why, *p);
    if (end - p < 2) {
      keep_place();
      return need_more(base, p, name_size, full, why);
    }
    if (p[1] != '\n') return refuse(why, 400, "bare CR");
    const char* first = line + name_size + 1;
    const char* last = p;
    while (is_blank(*first)) ++first;  // ends at the CR
    while (first != last && is_blank(last[-1])) --last;
    Field field;
    field.name_at = static_cast<std::uint32_t>(line - base);
    field.value_at = static_cast<std::uint32_t>(first - base);
    field.value_size = static_cast<std::uint32_t>(last - first);
    field.name_size = static_cast<std::uint16_t>(name_size);
    field.id = field_id({line, name_size});
    field.hop_by_hop = field.id != FieldId::Other && is_hop_by_hop(field.id);
    p += 2;
    if (!on_line(field)) return ParseState::Refused;
  }
}

}  // namespace proxypool::net
