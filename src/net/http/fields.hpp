// The fields of a head: the part that requests and responses have in common.
//
// The idea: positions, not views. A head may be read in pieces into a buffer that moves; what was
// parsed stays valid, and parsing goes on where it stopped.
//
// Thread rule: one thread at a time.
// Limits:      kHeaderFieldsMax fields, kHeaderBytesMax bytes; over: 431.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "net/http/field_line.hpp"
#include "proxypool/base/limits.hpp"

namespace proxypool::net {

// What both kinds of head offer.
class HeadFields {
 public:
  [[nodiscard]] std::span<const Field> fields() const noexcept { return {fields_.data(), count_}; }
  [[nodiscard]] std::string_view name(const Field& field) const noexcept {
    return {base_ + field.name_at, field.name_size};
  }
  [[nodiscard]] std::string_view value(const Field& field) const noexcept {
    return {base_ + field.value_at, field.value_size};
  }
  // The first field of that name; null when there is none.
  [[nodiscard]] const Field* find(FieldId id) const noexcept;
  [[nodiscard]] const Field* find(std::string_view name) const noexcept;
  // Its value; empty when there is none.
  [[nodiscard]] std::string_view value_of(std::string_view name) const noexcept;

  // The bytes of the head, from the beginning of the buffer to behind the empty line.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // Where the first field line begins, and where the empty line does.
  [[nodiscard]] std::size_t fields_at() const noexcept { return fields_at_; }
  [[nodiscard]] std::size_t fields_end() const noexcept { return size_ - 2; }
  [[nodiscard]] const char* base() const noexcept { return base_; }
  // The bytes of the head have moved as a whole.
  void rebase(const char* base) noexcept { base_ = base; }

 protected:
  // What the fields Connection, Content-Length and Transfer-Encoding add up to.
  struct Connection {
    bool close = false;
    bool keep_alive = false;
    bool upgrade = false;
    bool te = false;
  };

  void begin_fields(std::size_t at) noexcept;
  // Lines until the empty one. Those with a name of FieldId are shown to on_field(field) → bool;
  // false refuses, and has set `why`.
  template <class F>
  ParseState read_fields(std::size_t size, Refusal& why, F&& on_field) {
    const ParseState state = reader_.read(base_, size, why, [&](const Field& field) {
      fields_[count_++] = field;
      return field.id == FieldId::Other || on_field(field);
    });
    if (state == ParseState::Done) size_ = static_cast<std::uint32_t>(reader_.position());
    return state;
  }
  void note_framing(const Field& field) noexcept;
  // Marks what Connection lists as hop-by-hop; false when it is no list of tokens.
  [[nodiscard]] bool read_connection(Refusal& why) noexcept;
  [[nodiscard]] bool mark_listed(std::string_view option) noexcept;

  const char* base_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t fields_at_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t content_lengths_ = 0;
  std::uint32_t transfer_encodings_ = 0;
  bool has_connection_ = false;
  Connection connection_;
  std::uint64_t content_length_ = 0;
  std::string_view framing_fault_;  // static text; the first fault of a framing field
  FieldLineReader reader_;
  std::array<Field, limits::kHeaderFieldsMax> fields_;
};

}  // namespace proxypool::net
