// One table row per key, and the sections that they form. Everything else comes from here: the
// parser, the defaults, the documentation, the JSON Schema, the dump.
//
// A Type<T> knows how one kind of value is read, written and described; field() binds it to a
// member of a struct; section() makes rows into an object.
//
// Thread rule: immutable once built.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/node.hpp"
#include "config/schema/reader.hpp"

namespace proxypool::config::schema {

struct Section;
using SectionPtr = std::shared_ptr<const Section>;

template <class T>
struct Type {
  // Reports every error and answers false; leaves what was there where the file is wrong.
  std::function<bool(const Node&, Reader&, T&)> read;
  // Null: there is nothing to show.
  std::function<Node(const T&, const Writer&)> write;
  Node json_schema;       // empty for objects: made from the section
  std::string described;  // "duration, 1s … 1h"
  SectionPtr section;     // of an object, or of the elements of a list
  bool is_list = false;
};

struct Row {
  std::string key;
  std::string sentence;
  std::string described;
  Node json_schema;
  SectionPtr section;
  bool is_list = false;
  bool required = false;
  bool optional_part = false;         // the example file shows it, but as a comment
  std::string example;                // YAML in flow style
  std::string default_note;           // when the default is not one value
  std::vector<std::string> variants;  // where the section has variants: those that have this key
  std::string restart;  // what has to be restarted when it changes; empty: as the section around it
  std::function<bool(const Node&, Reader&, void*)> read;
  std::function<Node(const void*, const Writer&)> write;
  std::function<bool(const void*)> applies;  // empty: always; else what is shown leaves it out

  // The file must give it; `sample` shows how.
  Row&& must(std::string sample) && {
    required = true;
    example = std::move(sample);
    return std::move(*this);
  }
  Row&& sample(std::string text) && {
    example = std::move(text);
    return std::move(*this);
  }
  // Says the default in words, where it depends on something.
  Row&& defaults_to(std::string note) && {
    default_note = std::move(note);
    return std::move(*this);
  }
  // Does not go with what the example file shows beside it.
  Row&& as_comment() && {
    optional_part = true;
    return std::move(*this);
  }
  // A running program keeps what it began with, here and in everything below.
  Row&& needs_restart(std::string program) && {
    restart = std::move(program);
    return std::move(*this);
  }
  // Means something only where `condition` holds for the T around it.
  template <class T>
  Row&& where(bool (*condition)(const T&)) && {
    applies = [condition](const void* object) { return condition(*static_cast<const T*>(object)); };
    return std::move(*this);
  }
  Row&& only_for(std::vector<std::string> names) && {
    variants = std::move(names);
    return std::move(*this);
  }
};

struct Section {
  std::vector<Row> rows;
  std::string discriminator;          // the key whose value chooses the variant; empty: none
  std::vector<std::string> variants;  // its values
  std::function<std::shared_ptr<void>()> make_default;
};

bool read_section(const Section& section, const Node& node, Reader& reader, void* object);
Node write_section(const Section& section, const void* object, const Writer& writer);
// The rows that an object with this variant may have.
std::vector<const Row*> rows_of(const Section& section, const std::string& variant);

template <class T>
SectionPtr section(std::vector<Row> rows) {
  Section out;
  out.rows = std::move(rows);
  out.make_default = [] { return std::static_pointer_cast<void>(std::make_shared<T>()); };
  return std::make_shared<const Section>(std::move(out));
}

template <class T>
Type<T> object(SectionPtr rows) {
  Type<T> type;
  type.section = rows;
  type.described = "mapping";
  type.read = [rows](const Node& node, Reader& reader, T& into) {
    return read_section(*rows, node, reader, &into);
  };
  type.write = [rows](const T& from, const Writer& writer) {
    return write_section(*rows, &from, writer);
  };
  return type;
}

template <class T, class Member>
Row field(std::string key, Member T::*member, Type<Member> type, std::string sentence) {
  Row row;
  row.key = std::move(key);
  row.sentence = std::move(sentence);
  row.described = type.described;
  row.json_schema = type.json_schema;
  row.section = type.section;
  row.is_list = type.is_list;
  row.read = [member, read = type.read](const Node& node, Reader& reader, void* object) {
    return read(node, reader, static_cast<T*>(object)->*member);
  };
  row.write = [member, write = type.write](const void* object, const Writer& writer) {
    return write(static_cast<const T*>(object)->*member, writer);
  };
  return row;
}

// A mapping in the file whose keys are members of the struct around it.
template <class T>
Row nested(std::string key, std::vector<Row> rows, std::string sentence) {
  const SectionPtr inner = section<T>(std::move(rows));
  Row row;
  row.key = std::move(key);
  row.sentence = std::move(sentence);
  row.described = "mapping";
  row.section = inner;
  row.read = [inner](const Node& node, Reader& reader, void* object) {
    return read_section(*inner, node, reader, object);
  };
  row.write = [inner](const void* object, const Writer& writer) {
    return write_section(*inner, object, writer);
  };
  return row;
}

}  // namespace proxypool::config::schema
