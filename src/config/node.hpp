// A document as a tree of own values: what the YAML reader gives, and what the writers print.
//
// Scalars have the type that YAML 1.2's core schema gives them, so that `yes` is a text and `"5"`
// is no number. Every value knows where it stood.
//
// Thread rule: immutable values.
// Limits: 4 MiB of text, 100,000 values with aliases expanded, 32 levels; over: one error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/problem.hpp"

namespace proxypool::config {

enum class NodeKind : std::uint8_t { Null, Bool, Number, Text, List, Map };

struct Member;

struct Node {
  NodeKind kind = NodeKind::Null;
  std::string text;  // Bool, Number, Text
  Mark mark;
  std::vector<Node> items;      // List
  std::vector<Member> members;  // Map, in the order of the file

  static Node of(std::string_view value);
  static Node of(const char* value);
  static Node of(bool value);
  static Node of(std::uint64_t value);
  static Node list();
  static Node list(std::vector<Node> items);
  static Node map();

  [[nodiscard]] bool is_scalar() const noexcept {
    return kind != NodeKind::List && kind != NodeKind::Map;
  }
  // Nothing when this is no map or has no such key.
  [[nodiscard]] const Node* find(std::string_view key) const noexcept;
  // Adds a member; REQUIRES: a map.
  Node& set(std::string_view key, Node value);
};

struct Member {
  std::string key;
  Node value;
  Mark mark;  // of the key
};

inline Node Node::of(const char* value) {
  return of(std::string_view(value));
}

// Reads one YAML document. Nothing when the text cannot be read at all; duplicate keys, `<<` and
// keys that are no text are reported, left out, and the rest is kept.
std::optional<Node> parse_yaml(std::string_view text, std::vector<Problem>& problems);

// "a mapping", "a number", … for messages.
std::string_view describe(NodeKind kind) noexcept;

// Members in their order, or sorted by key (one value has one spelling).
std::string to_json(const Node& node, bool sorted, int indent = -1);

// Block style; every text that YAML could read as something else is quoted.
std::string to_yaml(const Node& node);
std::string yaml_scalar(const Node& node);

}  // namespace proxypool::config
