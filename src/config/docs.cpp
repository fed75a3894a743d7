#include "config/docs.hpp"

#include "config/schema/tables.hpp"

namespace proxypool::config {
namespace {

using schema::Row;
using schema::rows_of;
using schema::Section;

constexpr const char* kIntroduction = R"(# Configuration

<!-- Generated from the table in src/config/schema by `config_docs`; a test compares. -->

One YAML 1.2 file serves all programs; each reads its part. `configs/examples/minimal.yaml` is the
smallest useful file, `configs/embedded.yaml` shows every key with its default, and
`configs/config.schema.json` lets an editor check and complete while you type.

- `proxy-controller --config FILE --check-config` prints every error with line, column and a hint,
  or the effective configuration without its secrets; it ends with 0 or 2.
- Unknown keys, duplicate keys, wrong types and merge keys (`<<`) are errors. Anchors and aliases
  for whole values work.
- Durations are a number and `ms`, `s`, `m` or `h`; sizes a number and `B`, `KiB`, `MiB` or `GiB`.
- Secrets never stand in the file: `{env: NAME}` takes an environment variable, `{file: PATH}` the
  content of a file without its final line break. Proxies in a static list are the exception, and
  so are hashes of client passwords. Only the controller reads secrets.
- Relative paths of secrets and lists start at the folder of the configuration file.
- Flags win over the environment, and the environment over the file: see `--help`.

)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

Node default_of(const Section& section) {
  const auto object = section.make_default();
  return schema::write_section(section, object.get(), schema::Writer());
}

std::string shown_default(const Row& row, const Node& defaults) {
  if (row.required) return "required";
  if (!row.default_note.empty()) return row.default_note;
  if (row.section != nullptr && !row.is_list) return "";
  const Node* value = defaults.find(row.key);
  if (value == nullptr) return "none";
  if (value->kind == NodeKind::List && value->items.empty()) return "empty";
  return "`" + yaml_scalar(*value) + "`";
}

void write_rows(const Section& section, const Node& defaults, const std::string& prefix,
                std::string& out) {
  for (const Row& row : section.rows) {
    const std::string path = prefix + row.key + (row.is_list && row.section ? "[]" : "");
    std::string type = escaped(row.described);
    if (row.section != nullptr) type = row.is_list ? "list" : "mapping";
    std::string meaning = escaped(row.sentence);
    if (!row.variants.empty()) meaning += " (type " + row.variants.front() + ")";
    if (!row.restart.empty()) meaning += " *A change waits for a restart: " + row.restart + ".*";
    out += "| `" + path + "` | " + type + " | " + escaped(shown_default(row, defaults)) + " | " +
           meaning + " |\n";
    if (row.section == nullptr) continue;
    const Node* inner = row.is_list ? nullptr : defaults.find(row.key);
    write_rows(*row.section, inner != nullptr ? *inner : default_of(*row.section), path + ".", out);
  }
}

Node section_schema(const Section& section);

Node row_schema(const Row& row, const Node& defaults) {
  Node out = row.json_schema;
  if (row.section != nullptr && !row.is_list) out = section_schema(*row.section);
  if (row.section != nullptr && row.is_list) out.set("items", section_schema(*row.section));
  out.set("description", Node::of(row.sentence));
  const Node* value = defaults.find(row.key);
  if (value != nullptr && value->is_scalar() && !row.required && row.default_note.empty()) {
    out.set("default", *value);
  }
  return out;
}

Node variant_schema(const Section& section, const std::string& variant) {
  const Node defaults = default_of(section);
  Node properties = Node::map();
  Node required = Node::list();
  for (const Row* row : rows_of(section, variant)) {
    Node property = row_schema(*row, defaults);
    if (row->key == section.discriminator) property = Node::map().set("const", Node::of(variant));
    properties.set(row->key, std::move(property));
    if (row->required) required.items.push_back(Node::of(row->key));
  }
  Node out = Node::map();
  out.set("type", Node::of("object"));
  out.set("properties", std::move(properties));
  out.set("additionalProperties", Node::of(false));
  if (!required.items.empty()) out.set("required", std::move(required));
  return out;
}

Node section_schema(const Section& section) {
  if (section.discriminator.empty()) return variant_schema(section, {});
  Node choices = Node::list();
  for (const auto& variant : section.variants) {
    choices.items.push_back(variant_schema(section, variant));
  }
  return Node::map().set("oneOf", std::move(choices));
}

constexpr std::size_t kColumns = 100;

class ExampleWriter {
 public:
  std::string take() && { return std::move(out_); }

  void write_section(const Section& section, const Node& values, std::size_t indent,
                     bool commented) {
    std::string variant = section.variants.empty() ? "" : section.variants.front();
    for (const Row& row : section.rows) {
      bool foreign = !row.variants.empty() && row.variants.front() != variant;
      write_row(row, values, indent, commented || foreign || row.optional_part);
    }
  }

 private:
  void write_row(const Row& row, const Node& values, std::size_t indent, bool commented) {
    if (indent == 0) out_ += '\n';
    comment(row, indent);
    const Node* value = values.find(row.key);
    const bool absent = value == nullptr && !row.required;
    const bool noted = !row.default_note.empty();
    if (row.section != nullptr && !(absent && row.is_list)) {
      const Node inner = row.is_list || value == nullptr ? default_of(*row.section) : *value;
      return write_part(row, inner, indent, commented);
    }
    std::string shown = row.required || value == nullptr ? row.example : yaml_scalar(*value);
    if (shown == "{}" || shown == "[]") shown = value->kind == NodeKind::Map ? "{}" : "[]";
    line(indent, commented || absent || noted, row.key + ": " + shown);
  }

  // A mapping, or one element of a list of mappings. Where every key in it is a comment, it is one.
  void write_part(const Row& row, const Node& values, std::size_t indent, bool commented) {
    ExampleWriter inner;
    inner.write_section(*row.section, values, indent + (row.is_list ? 4 : 2), commented);
    commented = commented || !inner.has_keys_;
    line(indent, commented, row.key + ":");
    if (row.is_list) line(indent + 2, commented, "-");
    out_ += std::move(inner).take();
  }

  void line(std::size_t indent, bool commented, const std::string& text) {
    has_keys_ = has_keys_ || !commented;
    out_ += std::string(indent, ' ') + (commented ? "# " : "") + text + "\n";
  }

  void comment(const Row& row, std::size_t indent) {
    std::string text = row.sentence;
    if (row.section == nullptr) text += " (" + row.described + ")";
    if (!row.default_note.empty()) text += " Default: " + row.default_note + ".";
    const bool list = row.is_list && row.section == nullptr;
    if (list && !row.required && !row.example.empty()) text += " Example: " + row.example;
    const std::string prefix = std::string(indent, ' ') + "## ";
    std::string current = prefix;
    for (std::size_t at = 0; at < text.size();) {
      const auto end = std::min(text.find(' ', at), text.size());
      const auto word = text.substr(at, end - at);
      if (current.size() + 1 + word.size() > kColumns && current != prefix) {
        out_ += current + "\n";
        current = prefix;
      }
      current += (current == prefix ? "" : " ") + word;
      at = end + 1;
    }
    out_ += current + "\n";
  }

  std::string out_;
  bool has_keys_ = false;
};

}  // namespace

std::string configuration_markdown() {
  std::string out = kIntroduction;
  const Section& root = *schema::root();
  const Node defaults = default_of(root);
  for (const Row& row : root.rows) {
    out += "## " + row.key + "\n\n" + row.sentence;
    if (!row.restart.empty()) out += " A change waits for a restart: " + row.restart + ".";
    out += "\n\n";
    out += "| key | value | default | meaning |\n| --- | --- | --- | --- |\n";
    const Node* inner = row.is_list ? nullptr : defaults.find(row.key);
    write_rows(*row.section, inner != nullptr ? *inner : default_of(*row.section),
               row.key + (row.is_list ? "[]." : "."), out);
    out += "\n";
  }
  out.pop_back();
  return out;
}

std::string json_schema() {
  Node out = Node::map();
  out.set("$schema", Node::of("https://json-schema.org/draft/2020-12/schema"));
  out.set("title", Node::of("Proxy Pool configuration"));
  for (Member& member : section_schema(*schema::root()).members) {
    out.members.push_back(std::move(member));
  }
  return to_json(out, false, 2) + "\n";
}

std::string embedded_yaml() {
  ExampleWriter writer;
  writer.write_section(*schema::root(), default_of(*schema::root()), 0, false);
  return "# Every key with its default; generated from the table in src/config/schema.\n"
         "# Lines that begin with ## explain, lines that begin with # show what has no default or\n"
         "# does not go with its neighbours.\n" +
         std::move(writer).take();
}

}  // namespace proxypool::config
