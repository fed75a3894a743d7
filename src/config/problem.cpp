#include "config/problem.hpp"

#include <algorithm>
#include <cstddef>

#include "proxypool/base/text.hpp"

namespace proxypool::config {
namespace {

// A name longer than this is no misspelling of ours.
constexpr std::size_t kNameBytesMax = 64;
constexpr std::size_t kListedNamesMax = 12;

// Levenshtein's distance in which two neighbours that changed places count once.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> cells((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& {
    return cells[i * width + j];
  };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
      }
    }
  }
  return at(a.size(), b.size());
}

}  // namespace

std::string format_problems(std::string_view file, const std::vector<Problem>& problems,
                            Severity severity) {
  std::vector<const Problem*> sorted;
  for (const Problem& problem : problems) sorted.push_back(&problem);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Problem* a, const Problem* b) { return a->mark < b->mark; });
  std::string out;
  for (const Problem* problem : sorted) {
    out += file;
    if (problem->mark.line > 0) {
      out += ":" + std::to_string(problem->mark.line) + ":" + std::to_string(problem->mark.column);
    }
    out += severity == Severity::Error ? ": error: " : ": warning: ";
    if (!problem->path.empty()) out += problem->path + ": ";
    out += problem->message;
    if (!problem->hint.empty()) out += " (" + problem->hint + ")";
    out += '\n';
  }
  return out;
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  if (name.empty() || name.size() > kNameBytesMax) return {};
  const std::string wanted = lower(name);
  std::size_t best = std::max<std::size_t>(1, name.size() / 3) + 1;
  std::string found;
  for (const std::string& candidate : known) {
    if (candidate.size() > kNameBytesMax) continue;
    const auto distance = edit_distance(wanted, lower(candidate));
    if (distance < best) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

std::string name_hint(std::string_view name, const std::vector<std::string>& known) {
  if (const auto nearest = nearest_name(name, known); !nearest.empty()) {
    return "did you mean " + nearest + "?";
  }
  if (known.empty() || known.size() > kListedNamesMax) return {};
  std::string out = known.size() == 1 ? "only " : "one of ";
  for (std::size_t i = 0; i < known.size(); ++i) out += (i == 0 ? "" : ", ") + known[i];
  return out;
}

}  // namespace proxypool::config
