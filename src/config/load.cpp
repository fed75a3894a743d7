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

LoadResult load_document(std::string_view text, LoadResult result, const LoadOptions& options) {
  const auto document = parse_yaml(text, result.errors);
  if (!document) return result;
  return load_node(*document, std::move(result), options);
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
  return load_document(text, std::move(result), options);
}

LoadResult load_file(const std::string& path, LoadOptions options) {
  LoadResult result;
  result.file = path;
  result.files.push_back(path);
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
  return load_document(text, std::move(result), options);
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

bool same(const Node* a, const Node* b) {
  const auto text = [](const Node* node) { return to_json(node ? *node : Node(), true); };
  return text(a) == text(b);
}

const Node* member(const Node* node, const std::string& key) {
  return node == nullptr ? nullptr : node->find(key);
}

// `program`: what the section around demands.
void find_restarts(const schema::Section& section, const Node* before, const Node* after,
                   const std::string& prefix, const std::string& program,
                   std::vector<RestartKey>& out) {
  for (const schema::Row& row : section.rows) {
    const Node* old_part = member(before, row.key);
    const Node* new_part = member(after, row.key);
    if (same(old_part, new_part)) continue;
    const std::string& own = row.restart.empty() ? program : row.restart;
    const std::string path = prefix + row.key;
    const bool whole = row.section == nullptr || row.is_list || !old_part || !new_part;
    if (!whole) {
      find_restarts(*row.section, old_part, new_part, path + ".", own, out);
    } else if (!own.empty()) {
      out.push_back({path, own});
    }
  }
}

}  // namespace

Diff diff(const Config& before, const Config& after, const SecretDigest& digest) {
  const schema::Writer writer(digest);
  const Node old_node = schema::write_section(*schema::root(), &before, writer);
  const Node new_node = schema::write_section(*schema::root(), &after, writer);
  Diff out;
  for (const schema::Row& row : schema::root()->rows) {
    if (!same(old_node.find(row.key), new_node.find(row.key))) out.sections.push_back(row.key);
  }
  find_restarts(*schema::root(), &old_node, &new_node, "", "", out.restart);
  out.upstreams = compare(old_node.find("upstreams"), new_node.find("upstreams"));
  out.routings = compare(old_node.find("routings"), new_node.find("routings"));
  out.clients = compare(old_node.find("clients"), new_node.find("clients"));
  return out;
}

bool same_source(const UpstreamConfig& a, const UpstreamConfig& b) {
  // Compared as they are, and forgotten at once.
  const schema::Writer plain(
      [](const SecretString& secret) { return std::string(secret.reveal()); });
  const auto texts = [&](const UpstreamConfig& upstream) {
    Config config;
    config.upstreams.push_back(upstream);
    const Node root = schema::write_section(*schema::root(), &config, plain);
    const Node& element = root.find("upstreams")->items.front();
    std::string out;
    for (const char* key : {"provider", "allowPrivateAddresses"}) {
      const Node* part = element.find(key);
      out += to_json(part == nullptr ? Node() : *part, true) + "\n";
    }
    return out;
  };
  return texts(a) == texts(b);
}

std::string redacted_yaml(const Config& config) {
  return to_yaml(schema::write_section(*schema::root(), &config, schema::Writer()));
}

std::string canonical_json(const Config& config, const SecretDigest& digest) {
  return to_json(schema::write_section(*schema::root(), &config, schema::Writer(digest)), true);
}

}  // namespace proxypool::config
