#include "net/http/fields.hpp"

#include "net/http/characters.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::net {
ParseState FieldLineReader::refuse(Refusal& why, std::uint16_t status,
                                   std::string_view reason) noexcept {
  why = {status, reason};
  return ParseState::Refused;
}

// A wrong byte inside or behind a name.
ParseState FieldLineReader::refuse_name(Refusal& why, char c) noexcept {
  if (c == '\n') return refuse(why, 400, "line ends with a bare LF");
  if (c == '\r') return refuse(why, 400, "field line without a colon");
  if (is_blank(c)) return refuse(why, 400, "white space in or behind a field name");
  return refuse(why, 400, "invalid field name");
}

// A wrong byte inside or behind a value.
ParseState FieldLineReader::refuse_value(Refusal& why, char c) noexcept {
  if (c == '\n') return refuse(why, 400, "line ends with a bare LF");
  return refuse(why, 400, "control character in a field value");
}

void FieldLineReader::reset(std::size_t begin) noexcept {
  begin_ = line_at_ = scan_at_ = static_cast<std::uint32_t>(begin);
  name_size_ = 0;
  lines_ = 0;
}

ParseState FieldLineReader::empty_line(const char* base, const char* end, bool full,
                                       Refusal& why) noexcept {
  const char* const line = base + line_at_;
  if (end - line < 2) return need_more(base, line, 0, full, why);
  if (line[1] != '\n') return refuse(why, 400, "bare CR");
  line_at_ += 2;
  return ParseState::Done;
}

ParseState FieldLineReader::need_more(const char* base, const char* p, std::uint32_t name_size,
                                      bool full, Refusal& why) noexcept {
  if (full) return refuse(why, 431, "header section larger than 64 KiB");
  scan_at_ = static_cast<std::uint32_t>(p - base);
  name_size_ = name_size;
  return ParseState::NeedMore;
}

const Field* HeadFields::find(FieldId id) const noexcept {
  for (const Field& field : fields()) {
    if (field.id == id) return &field;
  }
  return nullptr;
}

const Field* HeadFields::find(std::string_view wanted) const noexcept {
  for (const Field& field : fields()) {
    if (equal_ignoring_case(name(field), wanted)) return &field;
  }
  return nullptr;
}

std::string_view HeadFields::value_of(std::string_view wanted) const noexcept {
  const Field* field = find(wanted);
  return field == nullptr ? std::string_view{} : value(*field);
}

void HeadFields::begin_fields(std::size_t at) noexcept {
  fields_at_ = static_cast<std::uint32_t>(at);
  count_ = content_lengths_ = transfer_encodings_ = 0;
  has_connection_ = false;
  connection_ = {};
  content_length_ = 0;
  framing_fault_ = {};
  reader_.reset(at);
}

void HeadFields::note_framing(const Field& field) noexcept {
  const auto fault = [this](std::string_view text) {
    if (framing_fault_.empty()) framing_fault_ = text;
  };
  if (field.id == FieldId::ContentLength) {
    const auto length = parse_number<std::uint64_t>(value(field));
    if (!length) fault("Content-Length is no decimal number");
    if (++content_lengths_ > 1) fault("repeated Content-Length");
    content_length_ = length.value_or(0);
  } else if (field.id == FieldId::TransferEncoding) {
    if (!equal_ignoring_case(value(field), "chunked")) fault("Transfer-Encoding is not chunked");
    if (++transfer_encodings_ > 1) fault("repeated Transfer-Encoding");
  } else if (field.id == FieldId::Connection) {
    has_connection_ = true;
  }
  if (content_lengths_ != 0 && transfer_encodings_ != 0) {
    fault("both Content-Length and Transfer-Encoding");
  }
}

bool HeadFields::read_connection(Refusal& why) noexcept {
  if (!has_connection_) return true;
  std::size_t options = 0;
  for (const Field& field : fields()) {
    if (field.id != FieldId::Connection) continue;
    const bool good = for_each_element(value(field), [&](std::string_view option) {
      return ++options <= limits::kHeaderFieldsMax && mark_listed(option);
    });
    if (good) continue;
    if (options > limits::kHeaderFieldsMax) {
      why = {431, "more than 100 connection options"};
    } else {
      why = {400, "Connection is no list of tokens"};
    }
    return false;
  }
  return true;
}

// What carries the framing and the host stays, whatever Connection says about it: dropping it would
// change the meaning of the message on its way.
bool HeadFields::mark_listed(std::string_view option) noexcept {
  const auto is = [&](std::string_view known) {
    return option.size() == known.size() && is_name(option.data(), known);
  };
  bool* const known = is("keep-alive") ? &connection_.keep_alive
                      : is("close")    ? &connection_.close
                      : is("upgrade")  ? &connection_.upgrade
                      : is("te")       ? &connection_.te
                                       : nullptr;
  if (known != nullptr) {
    *known = true;  // a field of that name is hop-by-hop by itself
    return true;
  }
  if (!is_token(option)) return false;
  for (std::uint32_t i = 0; i < count_; ++i) {
    Field& field = fields_[i];
    if (field.id == FieldId::Host || field.id == FieldId::ContentLength ||
        field.id == FieldId::TransferEncoding) {
      continue;
    }
    if (equal_ignoring_case(name(field), option)) field.hop_by_hop = true;
  }
  return true;
}

}  // namespace proxypool::net
