#include "config/node.hpp"

#include <nlohmann/json.hpp>

#include "proxypool/base/assert.hpp"

namespace proxypool::config {
namespace {

template <class Json>
Json convert(const Node& node) {
  switch (node.kind) {
    case NodeKind::Null:
      return nullptr;
    case NodeKind::Bool:
      return node.text == "true";
    case NodeKind::Number:  // 0x1f and 010 are numbers to YAML, not to JSON
      return Json::accept(node.text) ? Json::parse(node.text) : Json(node.text);
    case NodeKind::Text:
      return node.text;
    case NodeKind::List: {
      Json out = Json::array();
      for (const Node& item : node.items) out.push_back(convert<Json>(item));
      return out;
    }
    case NodeKind::Map:
      break;
  }
  Json out = Json::object();
  for (const Member& member : node.members) out[member.key] = convert<Json>(member.value);
  return out;
}

// Safe without quotes, in block and in flow style: no indicator, no blank at an end, and no text
// that the core schema would read as something else (those begin like a number or are words).
bool plain(std::string_view text) {
  constexpr std::string_view kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/*+$:";
  if (text.empty() || text.find_first_not_of(kSafe) != std::string_view::npos) return false;
  if (std::string_view(".-+*").find(text.front()) != std::string_view::npos) return false;
  std::vector<Problem> problems;
  const auto read = parse_yaml(text, problems);
  return read && problems.empty() && read->kind == NodeKind::Text && read->text == text;
}

void write_yaml(const Node& node, std::size_t indent, std::string& out);

// The value after "key:" or "-".
void write_value(const Node& value, std::size_t indent, std::string& out) {
  const bool block = (value.kind == NodeKind::Map && !value.members.empty()) ||
                     (value.kind == NodeKind::List && !value.items.empty());
  if (!block) {
    out += " " + yaml_scalar(value) + "\n";
    return;
  }
  out += '\n';
  write_yaml(value, indent, out);
}

void write_yaml(const Node& node, std::size_t indent, std::string& out) {
  for (const Member& member : node.members) {
    out += std::string(indent, ' ') + yaml_scalar(Node::of(member.key)) + ":";
    write_value(member.value, indent + 2, out);
  }
  for (const Node& item : node.items) {
    std::string text;
    write_value(item, indent + 2, text);
    if (text.front() == '\n') text.erase(0, indent + 2);  // first member beside the dash
    out += std::string(indent, ' ') + "-" + text;
  }
}

}  // namespace

Node Node::of(std::string_view value) {
  Node node;
  node.kind = NodeKind::Text;
  node.text = value;
  return node;
}
Node Node::of(bool value) {
  Node node;
  node.kind = NodeKind::Bool;
  node.text = value ? "true" : "false";
  return node;
}
Node Node::of(std::uint64_t value) {
  Node node;
  node.kind = NodeKind::Number;
  node.text = std::to_string(value);
  return node;
}
Node Node::list() {
  Node node;
  node.kind = NodeKind::List;
  return node;
}
Node Node::list(std::vector<Node> items) {
  Node node = list();
  node.items = std::move(items);
  return node;
}
Node Node::map() {
  Node node;
  node.kind = NodeKind::Map;
  return node;
}

const Node* Node::find(std::string_view key) const noexcept {
  for (const Member& member : members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

Node& Node::set(std::string_view key, Node value) {
  PP_ASSERT(kind == NodeKind::Map);
  members.push_back({std::string(key), std::move(value), {}});
  return *this;
}

std::string_view describe(NodeKind kind) noexcept {
  switch (kind) {
    case NodeKind::Null:
      return "nothing";
    case NodeKind::Bool:
      return "true or false";
    case NodeKind::Number:
      return "a number";
    case NodeKind::Text:
      return "a text";
    case NodeKind::List:
      return "a list";
    case NodeKind::Map:
      return "a mapping";
  }
  return "";
}

std::string to_json(const Node& node, bool sorted, int indent) {
  return sorted ? convert<nlohmann::json>(node).dump(indent)
                : convert<nlohmann::ordered_json>(node).dump(indent);
}

std::string yaml_scalar(const Node& node) {
  if (node.kind == NodeKind::List) return "[]";
  if (node.kind == NodeKind::Map) return "{}";
  if (node.kind == NodeKind::Null) return "null";
  if (node.kind != NodeKind::Text || plain(node.text)) return node.text;
  return nlohmann::json(node.text).dump();  // a JSON text is a YAML text
}

std::string to_yaml(const Node& node) {
  std::string out;
  write_yaml(node, 0, out);
  return out;
}

}  // namespace proxypool::config
