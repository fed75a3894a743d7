#include "config/schema/section.hpp"

#include <algorithm>
#include <string_view>

namespace proxypool::config::schema {
namespace {

std::vector<std::string> keys_of(const std::vector<const Row*>& rows) {
  std::vector<std::string> keys;
  for (const Row* row : rows) keys.push_back(row->key);
  return keys;
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const Row* find_row(const std::vector<const Row*>& rows, std::string_view key) {
  for (const Row* row : rows) {
    if (row->key == key) return row;
  }
  return nullptr;
}

// The variant that the document names; empty when it names none that exists.
std::string variant_of(const Section& section, const Node& node) {
  if (section.discriminator.empty()) return {};
  const Node* value = node.find(section.discriminator);
  return value != nullptr && contains(section.variants, value->text) ? value->text : std::string();
}

bool report_unknown_keys(const Section& section, const std::vector<const Row*>& rows,
                         const Node& node, Reader& reader) {
  const auto all = rows_of(section, {});
  bool good = true;
  for (const Member& member : node.members) {
    if (find_row(rows, member.key) != nullptr) continue;
    const auto step = reader.enter_key(member.key, member.mark);
    if (find_row(all, member.key) != nullptr) {
      const Node* variant = node.find(section.discriminator);
      good = reader.error(member.mark, "does not apply to " + section.discriminator + " " +
                                           (variant == nullptr ? "" : variant->text));
    } else {
      good = reader.error(member.mark, "unknown key", name_hint(member.key, keys_of(rows)));
    }
  }
  return good;
}

}  // namespace

std::vector<const Row*> rows_of(const Section& section, const std::string& variant) {
  std::vector<const Row*> rows;
  for (const Row& row : section.rows) {
    if (variant.empty() || row.variants.empty() || contains(row.variants, variant)) {
      rows.push_back(&row);
    }
  }
  return rows;
}

bool read_section(const Section& section, const Node& node, Reader& reader, void* object) {
  if (node.kind != NodeKind::Map) {
    return reader.error(node.mark, "expected a mapping, found " + std::string(describe(node.kind)),
                        node.kind == NodeKind::Null ? "remove the key, or give it a value" : "");
  }
  const std::string variant = variant_of(section, node);
  const auto rows = rows_of(section, variant);
  bool good = report_unknown_keys(section, rows, node, reader);
  for (const Row* row : rows) {
    const Node* value = node.find(row->key);
    if (value != nullptr) {
      const auto step = reader.enter_key(row->key, value->mark);
      good = row->read(*value, reader, object) && good;
      continue;
    }
    const bool unknown_variant = !section.discriminator.empty() && variant.empty();
    if (row->required && (row->variants.empty() || !unknown_variant)) {
      const auto step = reader.enter_key(row->key, node.mark);
      good =
          reader.error(node.mark, "is required", "for example " + row->key + ": " + row->example);
    }
  }
  return good;
}

Node write_section(const Section& section, const void* object, const Writer& writer) {
  std::string variant;
  for (const Row& row : section.rows) {
    if (row.key == section.discriminator) variant = row.write(object, writer).text;
  }
  Node out = Node::map();
  for (const Row* row : rows_of(section, variant)) {
    if (row->applies && !row->applies(object)) continue;
    Node value = row->write(object, writer);
    if (value.kind == NodeKind::Null) continue;
    if (value.kind == NodeKind::Map && value.members.empty()) continue;
    out.set(row->key, std::move(value));
  }
  return out;
}

}  // namespace proxypool::config::schema
