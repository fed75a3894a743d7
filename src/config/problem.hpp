// What is wrong, or dangerous, in a configuration file, and where.
//
// Thread rule: immutable values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace proxypool::config {

// A place in the file, counted from one; line 0 means the file as a whole.
struct Mark {
  int line = 0;
  int column = 0;
  friend auto operator<=>(const Mark&, const Mark&) = default;
};

struct Problem {
  Mark mark;
  std::string path;     // "upstreams[0].pool.target"; empty: the file as a whole
  std::string message;  // one clause, no secret in it
  std::string hint;     // how to mend it; may be empty
};

enum class Severity { Error, Warning };

// One line a problem, in the order of the file, as compilers write it:
// `FILE:LINE:COLUMN: error: PATH: MESSAGE (HINT)`.
std::string format_problems(std::string_view file, const std::vector<Problem>& problems,
                            Severity severity);

// The name of `known` that is closest to `name`, or empty when none is close enough to be meant.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

// "did you mean NAME?", or "one of A, B, C" when nothing is close and the list is short.
std::string name_hint(std::string_view name, const std::vector<std::string>& known);

}  // namespace proxypool::config
