#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "tidy/tidy.hpp"

namespace proxypool::tidy {
namespace {

constexpr std::size_t kColumnsMax = 100;
constexpr std::size_t kLinesMax = 600;

// Characters, not bytes: what is not the continuation of a UTF-8 character.
std::size_t columns(std::string_view line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80;
  }));
}

std::string folder_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? "" : std::string(path.substr(0, slash + 1));
}

// Whether `text` names `file` as a word of its own.
bool names_file(std::string_view text, std::string_view file) {
  constexpr std::string_view kAround = " \t\n()\"";
  for (auto at = text.find(file); at != std::string_view::npos; at = text.find(file, at + 1)) {
    const std::size_t end = at + file.size();
    if ((at == 0 || kAround.find(text[at - 1]) != std::string_view::npos) &&
        (end == text.size() || kAround.find(text[end]) != std::string_view::npos)) {
      return true;
    }
  }
  return false;
}

}  // namespace

Problems check_lengths(std::string_view path, std::string_view text) {
  if (!is_cpp(path) && !path.ends_with(".proto")) return {};
  Problems problems;
  const auto lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t width = columns(lines[i]);
    if (width > kColumnsMax) {
      problems.push_back({std::string(path), i + 1, "line-length",
                          std::to_string(width) + " columns, at most 100 are allowed"});
    }
  }
  if (lines.size() > kLinesMax) {
    problems.push_back({std::string(path), 0, "file-length",
                        std::to_string(lines.size()) + " lines: this is more than one idea"});
  }
  return problems;
}

Problems check_header(std::string_view path, std::string_view text) {
  if (!is_header(path)) return {};
  if (!text.starts_with("//")) {
    return {{std::string(path), 1, "header", "a header begins by saying what it is"}};
  }
  for (const std::string_view line : lines_of(text)) {
    if (line == "#pragma once") return {};
    if (!line.starts_with("//") && !line.empty()) break;
  }
  return {{std::string(path), 0, "header", "#pragma once follows the first comment"}};
}

Problems check_own_header_first(const Tree& tree) {
  Problems problems;
  for (const auto& [path, text] : tree) {
    if (!path.ends_with(".cpp")) continue;
    const std::string header = path.substr(0, path.size() - 4) + ".hpp";
    if (!tree.contains(header)) continue;
    std::string name = header;
    for (const std::string_view root : {"include/", "src/", "cmd/", "tests/"}) {
      if (name.starts_with(root)) name.erase(0, root.size());
    }
    const auto at = text.find("#include ");
    const auto first = std::string_view(text).substr(std::min(at, text.size()));
    const std::string beside = header.substr(folder_of(header).size());
    if (first.starts_with("#include \"" + name + "\"")) continue;
    if (path.starts_with("tests/") && first.starts_with("#include \"" + beside + "\"")) continue;
    problems.push_back({path, 0, "own-header", "the first include must be \"" + name + "\""});
  }
  return problems;
}

Problems check_sources_are_built(const Tree& tree) {
  Problems problems;
  for (const auto& [path, text] : tree) {
    if (!path.ends_with(".cpp")) continue;
    bool named = false;
    std::string folder = path;
    do {
      folder.pop_back();
      folder = folder_of(folder);
      const auto list = tree.find(folder + "CMakeLists.txt");
      named = list != tree.end() && names_file(list->second, path.substr(folder.size()));
    } while (!named && !folder.empty());
    // A helper function may name a source, from the root of the repository.
    const auto helper = tree.find("cmake/Targets.cmake");
    if (helper != tree.end())
      named = named || helper->second.find("}/" + path) != std::string::npos;
    if (!named) {
      problems.push_back({path, 0, "unbuilt", "no CMakeLists.txt names this source"});
    }
  }
  return problems;
}

}  // namespace proxypool::tidy
