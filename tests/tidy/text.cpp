#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tidy/tidy.hpp"

namespace proxypool::tidy {

std::string to_string(const Problem& problem) {
  const std::string at = problem.line == 0 ? "" : ":" + std::to_string(problem.line);
  return problem.path + at + ": " + problem.message + " [" + problem.rule + "]";
}

bool is_header(std::string_view path) {
  return path.ends_with(".hpp");
}
bool is_cpp(std::string_view path) {
  return is_header(path) || path.ends_with(".cpp");
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

namespace {

// Where the literal that begins at `from` ends (one past it). Handles escapes and raw strings.
std::size_t end_of_literal(std::string_view text, std::size_t from) {
  const char quote = text[from];
  if (quote == '"' && from > 0 && text[from - 1] == 'R') {
    const auto open = text.find('(', from);
    if (open == std::string_view::npos) return text.size();
    const std::string close = ")" + std::string(text.substr(from + 1, open - from - 1)) + "\"";
    const auto end = text.find(close, open);
    return end == std::string_view::npos ? text.size() : end + close.size();
  }
  std::size_t at = from + 1;
  while (at < text.size() && text[at] != quote && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

std::string code_only(std::string_view text) {
  std::string out(text);
  const auto blank = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to && i < out.size(); ++i) {
      if (out[i] != '\n') out[i] = ' ';
    }
  };
  for (std::size_t at = 0; at < text.size();) {
    const auto two = text.substr(at, 2);
    std::size_t end = at + 1;
    if (two == "//") {
      end = std::min(text.find('\n', at), text.size());
      blank(at, end);
    } else if (two == "/*") {
      const auto close = text.find("*/", at + 2);
      end = close == std::string_view::npos ? text.size() : close + 2;
      blank(at, end);
    } else if (text[at] == '"' || (text[at] == '\'' && (at == 0 || !is_digit(text[at - 1])))) {
      end = end_of_literal(text, at);
      blank(at + 1, end - 1);
    }
    at = end;
  }
  return out;
}

Tree read_tree(const std::string& root) {
  namespace fs = std::filesystem;
  Tree tree;
  for (auto entry = fs::recursive_directory_iterator(root); entry != end(entry); ++entry) {
    const std::string name = entry->path().filename().string();
    if (entry->is_directory() && (name == "build" || name == ".git" || name == ".proxypool" ||
                                  name == "__pycache__" || name == "corpus")) {
      entry.disable_recursion_pending();
      continue;
    }
    if (!entry->is_regular_file() || name == ".git") continue;
    std::ifstream in(entry->path(), std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(in)), {});
    if (text.find('\0') != std::string::npos) continue;
    tree.emplace(fs::relative(entry->path(), root).generic_string(), std::move(text));
  }
  return tree;
}

Problems without_exceptions(const Problems& problems, const std::vector<Exception>& excused) {
  Problems left;
  std::vector<bool> needed(excused.size(), false);
  for (const Problem& problem : problems) {
    bool excuse = false;
    for (std::size_t i = 0; i < excused.size(); ++i) {
      if (excused[i].path == problem.path && excused[i].rule == problem.rule) {
        excuse = needed[i] = true;
      }
    }
    if (!excuse) left.push_back(problem);
  }
  for (std::size_t i = 0; i < excused.size(); ++i) {
    if (!needed[i]) {
      left.push_back({std::string(excused[i].path), 0, "exception",
                      "the exception from '" + std::string(excused[i].rule) +
                          "' is not needed any more: remove it"});
    }
  }
  return left;
}

}  // namespace proxypool::tidy
