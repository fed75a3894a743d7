#include "net/http/chunked.hpp"

#include <algorithm>

#include "net/http/characters.hpp"
#include "proxypool/base/limits.hpp"

namespace proxypool::net {
namespace {

using Step = ChunkedDecoder::Step;

// The digit's value, or 16.
unsigned hex_value(char c) noexcept {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return 16;
}

std::string_view skip_blanks(std::string_view text) noexcept {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  return text;
}

std::string_view skip_token(std::string_view text) noexcept {
  while (!text.empty() && in(kTokenByte, text.front())) text.remove_prefix(1);
  return text;
}

// Behind the closing quote; nothing changes when there is none. The bytes are free of controls.
std::string_view skip_quoted(std::string_view text) noexcept {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return text.substr(i + 1);
    }
  }
  return text;
}

// *( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )
bool is_chunk_extension(std::string_view text) noexcept {
  while (!text.empty()) {
    text = skip_blanks(text);
    if (text.empty() || text.front() != ';') return false;
    text = skip_blanks(text.substr(1));
    const auto behind_name = skip_token(text);
    if (behind_name.size() == text.size()) return false;
    text = behind_name;
    const auto equals = skip_blanks(text);
    if (equals.empty() || equals.front() != '=') continue;
    text = skip_blanks(equals.substr(1));
    const bool quoted = !text.empty() && text.front() == '"';
    const auto behind_value = quoted ? skip_quoted(text) : skip_token(text);
    if (behind_value.size() == text.size()) return false;
    text = behind_value;
  }
  return true;
}

// Fields that frame, route or authenticate, or that belong to one hop, mean something only in the
// head (RFC 9110 §6.5.1); in a trailer they are an attempt at something.
bool may_be_trailer(FieldId id) noexcept {
  return id == FieldId::Other;
}

}  // namespace

Step ChunkedDecoder::refuse(std::uint16_t status, std::string_view reason) noexcept {
  refusal_ = {status, reason};
  phase_ = Phase::Refused;
  return {ParseState::Refused, 0, {}};
}

Step ChunkedDecoder::next(std::string_view bytes) noexcept {
  switch (phase_) {
    case Phase::Line:
      return step_line(bytes);
    case Phase::Data:
      return step_data(bytes);
    case Phase::DataEnd:
      return step_data_end(bytes);
    case Phase::Trailers:
      return step_trailers(bytes);
    case Phase::Done:
      return {ParseState::Done, 0, {}};
    case Phase::Refused:
      break;
  }
  return {ParseState::Refused, 0, {}};
}

Step ChunkedDecoder::relay(std::string_view bytes) noexcept {
  std::size_t consumed = 0;
  for (;;) {
    const Step step = next(bytes.substr(consumed));
    consumed += step.consumed;
    if (step.state != ParseState::NeedMore || step.consumed == 0) return {step.state, consumed, {}};
  }
}

Step ChunkedDecoder::step_line(std::string_view bytes) noexcept {
  const auto line = bytes.substr(0, limits::kChunkLineBytesMax);
  std::uint64_t size = 0;
  std::size_t at = 0;
  for (; at < line.size() && hex_value(line[at]) < 16; ++at) {
    if (at == limits::kChunkSizeDigitsMax) return refuse(400, "chunk size of more than 16 digits");
    size = (size << 4U) | hex_value(line[at]);
  }
  if (at == line.size()) return {};
  if (at == 0) return refuse(400, "invalid chunk size");
  const char c = line[at];
  if (c != '\r' && c != ';' && !is_blank(c)) return refuse(400, "invalid chunk size");
  const char* const end = line.data() + line.size();
  const char* const stop = find_value_end(line.data() + at, end);
  if (stop != end && *stop != '\r') {
    return refuse(400, *stop == '\n' ? "line ends with a bare LF" : "control in a chunk line");
  }
  if (end - stop < 2) {
    if (line.size() < limits::kChunkLineBytesMax) return {};
    return refuse(400, "chunk line larger than 4 KiB");
  }
  if (stop[1] != '\n') return refuse(400, "bare CR");
  const auto extension = line.substr(at, static_cast<std::size_t>(stop - line.data()) - at);
  if (!is_chunk_extension(extension)) return refuse(400, "invalid chunk extension");
  const auto line_size = static_cast<std::size_t>(stop - line.data()) + 2;
  if (size != 0) {
    left_ = size;
    phase_ = Phase::Data;
    return {ParseState::NeedMore, line_size, {}};
  }
  // The last chunk goes on together with its trailers: a bad trailer must not leave a body that
  // looks finished.
  trailers_.reset(line_size);
  phase_ = Phase::Trailers;
  return step_trailers(bytes);
}

Step ChunkedDecoder::step_data(std::string_view bytes) noexcept {
  const auto payload = bytes.substr(0, std::min<std::uint64_t>(bytes.size(), left_));
  left_ -= payload.size();
  payload_bytes_ += payload.size();
  if (left_ == 0) phase_ = Phase::DataEnd;
  return {ParseState::NeedMore, payload.size(), payload};
}

Step ChunkedDecoder::step_data_end(std::string_view bytes) noexcept {
  if (bytes.empty()) return {};
  if (bytes[0] != '\r') return refuse(400, "chunk data without a line end");
  if (bytes.size() < 2) return {};
  if (bytes[1] != '\n') return refuse(400, "chunk data without a line end");
  phase_ = Phase::Line;
  return {ParseState::NeedMore, 2, {}};
}

Step ChunkedDecoder::step_trailers(std::string_view bytes) noexcept {
  const ParseState state =
      trailers_.read(bytes.data(), bytes.size(), refusal_, [this](const Field& field) {
        if (may_be_trailer(field.id)) return true;
        refusal_ = {400, "field not allowed in a trailer"};
        return false;
      });
  if (state == ParseState::NeedMore) return {};
  phase_ = state == ParseState::Done ? Phase::Done : Phase::Refused;
  return {state, state == ParseState::Done ? trailers_.position() : 0, {}};
}

}  // namespace proxypool::net
