#include "config/load.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>

#include "config/node.hpp"
#include "config/schema/tables.hpp"
#include "config/validate.hpp"

namespace proxypool::config {
namespace {

constexpr std::streamsize kFileBytesMax = std::streamsize{4} << 20;

LoadResult load_node(const Node& document, LoadResult result, const LoadOptions& options) {
  Config config;
  schema::Reader reader(options, result);
  reader.root = &config;
  schema::read_section(*schema::root(), document, reader, &config);
  validate(config, reader);
  if (result.errors.empty()) result.config = std::move(config);
  return result;
}

}  // namespace

std::optional<std::string> process_environment(const std::string& name) {
  // Read at the start, before there is a second thread that could change it.
  const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

LoadResult load_text(std::string_view text, std::string file, const LoadOptions& options) {
  LoadResult result;
  result.file = std::move(file);
  const auto document = parse_yaml(text, result.errors);
  if (!document) return result;
  return load_node(*document, std::move(result), options);
}

LoadResult load_file(const std::string& path, LoadOptions options) {
  LoadResult result;
  result.file = path;
  std::error_code failure;
  if (std::filesystem::is_directory(path, failure)) {
    result.errors.push_back({{}, "", "is a folder", ""});
    return result;
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    result.errors.push_back({{}, "", std::string("cannot be read: ") + std::strerror(errno), ""});
    return result;
  }
  std::string text(static_cast<std::size_t>(kFileBytesMax) + 1, '\0');
  in.read(text.data(), kFileBytesMax + 1);
  text.resize(static_cast<std::size_t>(in.gcount()));
  options.base_dir = std::filesystem::path(path).parent_path().string();
  if (options.base_dir.empty()) options.base_dir = ".";
  return load_text(text, path, options);
}

LoadResult load_defaults(const LoadOptions& options) {
  LoadResult result;
  result.file = "(no file)";
  return load_node(Node::map(), std::move(result), options);
}

namespace {

using Texts = std::map<std::string, std::string>;  // element by name, as canonical text

Texts elements_of(const Node* list) {
  Texts out;
  if (list == nullptr) return out;
  for (const Node& element : list->items) {
    const Node* name = element.find("id");
    if (name == nullptr) name = element.find("name");
    if (name != nullptr) out[name->text] = to_json(element, true);
  }
  return out;
}

Changes compare(const Node* before, const Node* after) {
  const Texts old_texts = elements_of(before);
  const Texts new_texts = elements_of(after);
  Changes out;
  for (const auto& [name, text] : new_texts) {
    const auto old_text = old_texts.find(name);
    if (old_text == old_texts.end()) {
      out.added.push_back(name);
    } else if (old_text->second != text) {
      out.changed.push_back(name);
    }
  }
  for (const auto& [name, text] : old_texts) {
    if (!new_texts.contains(name)) out.removed.push_back(name);
  }
  return out;
}

}  // namespace

Diff diff(const Config& before, const Config& after, const SecretDigest& digest) {
  const schema::Writer writer(digest);
  const Node old_node = schema::write_section(*schema::root(), &before, writer);
  const Node new_node = schema::write_section(*schema::root(), &after, writer);
  Diff out;
  for (const schema::Row& row : schema::root()->rows) {
    const Node* old_part = old_node.find(row.key);
    const Node* new_part = new_node.find(row.key);
    if (to_json(old_part == nullptr ? Node() : *old_part, true) !=
        to_json(new_part == nullptr ? Node() : *new_part, true)) {
      out.sections.push_back(row.key);
    }
  }
  out.upstreams = compare(old_node.find("upstreams"), new_node.find("upstreams"));
  out.routings = compare(old_node.find("routings"), new_node.find("routings"));
  out.clients = compare(old_node.find("clients"), new_node.find("clients"));
  return out;
}

std::string redacted_yaml(const Config& config) {
  return to_yaml(schema::write_section(*schema::root(), &config, schema::Writer()));
}

std::string canonical_json(const Config& config, const SecretDigest& digest) {
  return to_json(schema::write_section(*schema::root(), &config, schema::Writer(digest)), true);
}

}  // namespace proxypool::config
