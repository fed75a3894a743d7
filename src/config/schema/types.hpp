// The kinds of values that the file knows: how each is read, written and described.
//
// Thread rule: pure functions that make immutable values.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/schema/section.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::config::schema {

// Nothing and an error that says what was expected.
bool mismatch(const Node& node, Reader& reader, std::string_view expected, std::string hint = {});

Type<bool> boolean();
Type<std::string> text(std::size_t bytes_max = 1024);
Type<std::string> identifier();  // [A-Za-z0-9._-]{1,64}, begins with a letter or digit
Type<std::string> file_path();   // as resolved from the file's folder
Type<nanoseconds> duration(nanoseconds min, nanoseconds max);
// 0 switches it off.
Type<nanoseconds> duration_or_zero(nanoseconds min, nanoseconds max);
Type<std::uint64_t> bytes(std::uint64_t min, std::uint64_t max);
Type<std::uint64_t> bytes_or_zero(std::uint64_t min, std::uint64_t max);
Type<std::uint32_t> threads();  // a number, or `auto`, kept as 0
Type<ListenAddress> listen_address();
Type<HostPort> host_port();
Type<std::vector<Cidr>> cidrs();
Type<SecretString> secret();
Type<ClientSecret> client_secret();
Type<domain::Tags> tags();

// Shared by the types above and those of the provider.
Node string_schema(std::string pattern);
std::optional<std::string> scalar_text(const Node& node, Reader& reader, std::string_view expected);
bool is_identifier(std::string_view text);
// Reads a decimal number; reports what is wrong with it.
std::optional<std::uint64_t> read_integer(const Node& node, Reader& reader, std::uint64_t min,
                                          std::uint64_t max);
Node integer_schema(std::uint64_t min, std::uint64_t max);
std::string shown_range(const std::string& min, const std::string& max);

template <class Integer>
Type<Integer> integer(Integer min, Integer max = std::numeric_limits<Integer>::max()) {
  Type<Integer> type;
  type.described = "number, " + shown_range(std::to_string(min), std::to_string(max));
  type.json_schema = integer_schema(min, max);
  type.read = [min, max](const Node& node, Reader& reader, Integer& into) {
    const auto value = read_integer(node, reader, min, max);
    if (value) into = static_cast<Integer>(*value);
    return value.has_value();
  };
  type.write = [](const Integer& from, const Writer&) { return Node::of(std::uint64_t{from}); };
  return type;
}

template <class Id>
Type<Id> name_id() {
  Type<Id> type;
  const auto inner = identifier();
  type.described = inner.described;
  type.json_schema = inner.json_schema;
  type.read = [inner](const Node& node, Reader& reader, Id& into) {
    std::string value;
    if (!inner.read(node, reader, value)) return false;
    into = Id(std::move(value));
    return true;
  };
  type.write = [](const Id& from, const Writer&) { return Node::of(from.str()); };
  return type;
}

// One of the words of an enumeration; `built` are those that this version can do.
bool read_word(const Node& node, Reader& reader, const std::vector<std::string>& all,
               const std::vector<std::string>& built, std::size_t& index);
Node words_schema(const std::vector<std::string>& built);
std::string shown_words(const std::vector<std::string>& built);

template <class Enum>
std::vector<std::string> spellings() {
  std::vector<std::string> out;
  for (const std::string_view name : domain::Spelling<Enum>::names) out.emplace_back(name);
  return out;
}

template <class Enum>
Type<Enum> word(const std::vector<Enum>& built_values) {
  std::vector<std::string> built;
  for (const Enum value : built_values) built.emplace_back(domain::spell(value));
  Type<Enum> type;
  type.described = shown_words(built);
  type.json_schema = words_schema(built);
  type.read = [built](const Node& node, Reader& reader, Enum& into) {
    std::size_t index = 0;
    if (!read_word(node, reader, spellings<Enum>(), built, index)) return false;
    into = static_cast<Enum>(index);
    return true;
  };
  type.write = [](const Enum& from, const Writer&) { return Node::of(domain::spell(from)); };
  return type;
}

template <class T>
Type<std::optional<T>> optional(Type<T> inner) {
  Type<std::optional<T>> type;
  type.described = inner.described;
  type.json_schema = inner.json_schema;
  type.section = inner.section;
  type.read = [inner](const Node& node, Reader& reader, std::optional<T>& into) {
    T value{};
    if (!inner.read(node, reader, value)) return false;
    into = std::move(value);
    return true;
  };
  type.write = [inner](const std::optional<T>& from, const Writer& writer) {
    return from ? inner.write(*from, writer) : Node();
  };
  return type;
}

Node list_schema(const Node& items, std::size_t items_min, std::size_t items_max);
bool check_list(const Node& node, Reader& reader, std::size_t items_min, std::size_t items_max);

// `init` makes the element that the file's values are laid over; without it, a default one.
template <class T>
Type<std::vector<T>> list_of(Type<T> element, std::size_t items_min, std::size_t items_max,
                             std::function<T(const Node&, Reader&)> init = {}) {
  Type<std::vector<T>> type;
  type.described = "list of " + element.described;
  type.json_schema = list_schema(element.json_schema, items_min, items_max);
  type.section = element.section;
  type.is_list = true;
  type.read = [=](const Node& node, Reader& reader, std::vector<T>& into) {
    if (!check_list(node, reader, items_min, items_max)) return false;
    into.clear();
    bool good = true;
    for (const Node& item : node.items) {
      const auto step = reader.enter_item(into.size(), item.mark);
      // Also what failed keeps its place, so that paths and indices stay the file's.
      T value = [&] {
        if constexpr (std::is_default_constructible_v<T>) {
          if (!init) return T{};
        }
        return init(item, reader);
      }();
      good = element.read(item, reader, value) && good;
      into.push_back(std::move(value));
    }
    return good;
  };
  type.write = [element](const std::vector<T>& from, const Writer& writer) {
    Node out = Node::list();
    for (const T& item : from) out.items.push_back(element.write(item, writer));
    return out;
  };
  return type;
}

Node keyed_schema(const Node& values);
bool check_keyed(const Node& node, Reader& reader, std::size_t items_max);

// A mapping with free keys, in the order of the file. `check_key` says what is wrong with one.
template <class T>
Type<std::vector<std::pair<std::string, T>>> keyed(
    Type<T> value_type, std::size_t items_max,
    std::function<std::string(const std::string&)> check_key) {
  using Pairs = std::vector<std::pair<std::string, T>>;
  Type<Pairs> type;
  type.described = "mapping of names to " + value_type.described;
  type.json_schema = keyed_schema(value_type.json_schema);
  type.read = [=](const Node& node, Reader& reader, Pairs& into) {
    if (!check_keyed(node, reader, items_max)) return false;
    into.clear();
    bool good = true;
    for (const Member& member : node.members) {
      const auto step = reader.enter_key(member.key, member.value.mark);
      const auto complaint = check_key(member.key);
      if (!complaint.empty()) good = reader.error(member.mark, complaint);
      T value{};
      good = value_type.read(member.value, reader, value) && good;
      into.emplace_back(member.key, std::move(value));
    }
    return good;
  };
  type.write = [value_type](const Pairs& from, const Writer& writer) {
    Node out = Node::map();
    for (const auto& [key, value] : from) out.set(key, value_type.write(value, writer));
    return out;
  };
  return type;
}

}  // namespace proxypool::config::schema
