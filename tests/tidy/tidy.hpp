// The shape of the tree as a test: who may include what, what is banned where, how long things get.
//
// Each rule is a function from a path and a text to problems, so that each has tests of its own on
// texts of three lines. tree_test.cpp runs them all over the repository. What is excused stands in
// exceptions(), with the reason; an exception that nothing needs any more is a problem too.
//
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace proxypool::tidy {

struct Problem {
  std::string path;
  std::size_t line = 0;  // 0: the file as a whole
  std::string rule;      // "include", "ban", "length", …
  std::string message;
};
using Problems = std::vector<Problem>;
std::string to_string(const Problem& problem);

// Paths from the root of the repository, with "/".
using Tree = std::map<std::string, std::string, std::less<>>;

// Everything but build folders, the version control's own files and what is not text.
Tree read_tree(const std::string& root);

// --- text ---------------------------------------------------------------------------------------
// The text with comments and the insides of string and character literals blanked, line for line.
std::string code_only(std::string_view text);
std::vector<std::string_view> lines_of(std::string_view text);
bool is_cpp(std::string_view path);
bool is_header(std::string_view path);

// --- rules on one C++ file
// ------------------------------------------------------------------------ include: the table of
// layers; third-party headers stay in sources.
Problems check_includes(std::string_view path, std::string_view text);
// ban: names that have a better place.
Problems check_bans(std::string_view path, std::string_view text);
// length: lines of 100 columns, files of 600 lines.
Problems check_lengths(std::string_view path, std::string_view text);
// header: #pragma once comes before any code, and a comment before that.
Problems check_header(std::string_view path, std::string_view text);

// --- rules on the tree
// ---------------------------------------------------------------------------- own-header: x.cpp
// includes x.hpp before anything else, if there is one.
Problems check_own_header_first(const Tree& tree);
// unbuilt: every source is named by the CMakeLists.txt of its folder or one above.
Problems check_sources_are_built(const Tree& tree);
// machine-path: no path of somebody's machine anywhere.
Problems check_machine_paths(const Tree& tree);
// leftover: no reminder for later, no conflict marker.
Problems check_leftovers(const Tree& tree);
// link, title: documents point to what exists and have one title.
Problems check_documents(const Tree& tree);
// requirement: docs/requirements.md names each id once, and tests that exist; no test proves an id
// that the table does not know.
Problems check_requirements(const Tree& tree);

// --- exceptions
// -----------------------------------------------------------------------------------
struct Exception {
  std::string_view path;
  std::string_view rule;
  std::string_view reason;
};
const std::vector<Exception>& exceptions();
// Takes out what is excused, and adds a problem for each exception that excused nothing.
Problems without_exceptions(const Problems& problems, const std::vector<Exception>& excused);

}  // namespace proxypool::tidy
