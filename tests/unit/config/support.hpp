// Short ways to load a text and to look at what came out.
#pragma once

#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include "config/load.hpp"

namespace proxypool::config::test {

using Environment = std::map<std::string, std::string>;

inline EnvLookup lookup(Environment environment) {
  return [environment = std::move(environment)](const std::string& name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  };
}

inline LoadResult load(const std::string& text, Environment environment = {},
                       Program program = Program::Controller) {
  LoadOptions options;
  options.env = lookup(std::move(environment));
  options.program = program;
  return load_text(text, "test.yaml", options);
}

// An upstream and a routing, for documents that are about something else.
inline const std::string kRest = R"(
upstreams: [{id: list, provider: {type: static, proxies: ["192.0.2.1:80"]}}]
routings: [{id: all, upstreams: [{id: list}]}]
)";

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

inline std::string digest(const SecretString& secret) {
  return "digest-of-" + std::string(secret.reveal());
}

}  // namespace proxypool::config::test
