// The architecture as a table: what each folder may include. The first row that fits counts, so the
// special cases stand above the general ones.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "tidy/tidy.hpp"

namespace proxypool::tidy {
namespace {

// Stands for the headers of the C library and the kernel: <unistd.h>, <sys/socket.h>, …
constexpr std::string_view kSystem = "system";

struct Layer {
  std::string_view folder;
  std::vector<std::string_view> own;          // prefixes of our own headers
  std::vector<std::string_view> third_party;  // prefixes of others' headers, or kSystem
};

const std::vector<Layer>& layers() {
  static const std::vector<Layer> table{
      {"include/proxypool/base/", {"proxypool/base/"}, {}},
      {"include/proxypool/domain/", {"proxypool/base/", "proxypool/domain/"}, {}},
      {"include/proxypool/ports/",
       {"proxypool/base/", "proxypool/domain/", "proxypool/ports/"},
       {}},

      // Configuration is text to values: it knows YAML, and checks regular expressions.
      {"src/config/regex.cpp", {"proxypool/base/", "config/"}, {"re2/"}},
      {"src/config/",
       {"proxypool/base/", "proxypool/domain/", "config/"},
       {"yaml-cpp/", "nlohmann/"}},

      // The only clocks, threads and sockets.
      {"src/runtime/", {"proxypool/base/", "runtime/"}, {kSystem}},
      {"src/net/",
       {"proxypool/base/", "proxypool/domain/", "proxypool/ports/http_caller.hpp",
        "proxypool/ports/telemetry.hpp", "proxypool/ports/metrics.hpp", "runtime/", "net/"},
       {kSystem, "boost/asio", "boost/beast", "boost/system", "boost/url", "openssl/", "zlib.h",
        "nlohmann/"}},

      // Services: rules, ports, and configuration; no technology, no clock, no thread.
      {"src/controller/", {"proxypool/", "controller/", "config/"}, {}},

      // The request path asks nobody: of the ports it sees the control plane (for the session) and
      // telemetry, no store and no vendor.
      {"src/gateway/dispatch/host_regex.cpp", {"proxypool/base/", "gateway/"}, {"re2/"}},
      {"src/gateway/",
       {"proxypool/base/", "proxypool/domain/", "proxypool/ports/control_plane.hpp",
        "proxypool/ports/crypto.hpp", "proxypool/ports/telemetry.hpp",
        "proxypool/ports/metrics.hpp", "gateway/", "net/", "runtime/", "config/"},
       {kSystem}},
      {"src/checker/",
       {"proxypool/base/", "proxypool/domain/", "proxypool/ports/control_plane.hpp",
        "proxypool/ports/telemetry.hpp", "proxypool/ports/metrics.hpp", "checker/", "net/",
        "runtime/", "config/"},
       {kSystem}},

      // One technology each.
      {"src/adapters/memory/", {"proxypool/", "adapters/memory/"}, {}},
      {"src/adapters/file/",
       {"proxypool/", "adapters/file/", "adapters/memory/"},
       {kSystem, "nlohmann/"}},
      {"src/adapters/crypto/", {"proxypool/", "adapters/crypto/"}, {"openssl/"}},
      {"src/adapters/grpc/",
       {"proxypool/", "adapters/grpc/", "proto/", "runtime/"},
       {"grpcpp/", "grpc/", "google/protobuf/"}},
      {"src/adapters/http/",
       {"proxypool/", "adapters/http/", "net/", "runtime/", "config/"},
       {"nlohmann/"}},
      {"src/adapters/provider_template/",
       {"proxypool/", "adapters/provider_template/", "config/"},
       {kSystem, "nlohmann/"}},
      {"src/adapters/telemetry/",
       {"proxypool/", "adapters/telemetry/", "runtime/"},
       {kSystem, "spdlog/", "fmt/", "prometheus/"}},

      // Load and fixtures: our own network code and formats, none of the programs' insides.
      {"loadgen/",
       {"proxypool/", "loadgen/", "net/", "runtime/", "config/", "adapters/crypto/"},
       {kSystem, "boost/", "openssl/", "nlohmann/", "zlib.h"}},

      // Wiring knows every part, and no library behind it.
      {"cmd/",
       {"proxypool/", "config/", "runtime/", "net/", "gateway/", "controller/", "checker/",
        "adapters/", "loadgen/", "common/", "proxy-controller/"},
       {kSystem}},

      {"tests/", {""}, {kSystem, ""}},
  };
  return table;
}

bool begins_with_any(std::string_view text, const std::vector<std::string_view>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

// Standard headers have neither a folder nor an ending.
bool is_standard(std::string_view name) {
  return name.find_first_of("/.") == std::string_view::npos;
}

bool is_system(std::string_view name) {
  constexpr std::array<std::string_view, 6> kFolders{"sys/",  "linux/", "netinet/",
                                                     "arpa/", "net/",   "bits/"};
  if (!name.ends_with(".h")) return false;
  return (name.find('/') == std::string_view::npos && name != "zlib.h") ||
         std::any_of(kFolders.begin(), kFolders.end(),
                     [&](std::string_view folder) { return name.starts_with(folder); });
}

// What may stand in a header of ours, although it is somebody else's: it costs next to nothing.
bool is_cheap(std::string_view name) {
  return is_system(name) || name == "nlohmann/json_fwd.hpp";
}

std::string check_own(const Layer& layer, std::string_view name) {
  if (name.find("..") != std::string_view::npos) return "include whole paths, not \"..\"";
  if (layer.folder == "tests/") return {};
  if (name.find('/') == std::string_view::npos) {
    // Wiring includes what the build generates.
    return layer.folder == "cmd/" ? "" : "include whole paths from include/ or src/";
  }
  if (begins_with_any(name, layer.own)) return {};
  return std::string(layer.folder) + " must not know " + std::string(name);
}

std::string check_foreign(const Layer& layer, std::string_view name, bool in_header) {
  if (is_standard(name)) return {};
  const auto& allowed = layer.third_party;
  const bool known = is_system(name)
                         ? std::find(allowed.begin(), allowed.end(), kSystem) != allowed.end()
                         : begins_with_any(name, allowed);
  if (!known) return std::string(layer.folder) + " must not know <" + std::string(name) + ">";
  if (in_header && layer.folder != "tests/" && !is_cheap(name)) {
    return "<" + std::string(name) + "> belongs into a source, not into a header";
  }
  return {};
}

}  // namespace

Problems check_includes(std::string_view path, std::string_view text) {
  if (!is_cpp(path)) return {};
  const auto layer = std::find_if(layers().begin(), layers().end(), [&](const Layer& candidate) {
    return path.starts_with(candidate.folder);
  });
  if (layer == layers().end()) {
    return {{std::string(path), 0, "include", "this folder has no row in tests/tidy/includes.cpp"}};
  }
  Problems problems;
  std::size_t number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++number;
    constexpr std::string_view kInclude = "#include ";
    if (!line.starts_with(kInclude) || line.size() < kInclude.size() + 2) continue;
    const std::string_view rest = line.substr(kInclude.size());
    const bool own = rest.front() == '"';
    const std::string_view name = rest.substr(1, rest.find_first_of("\">", 1) - 1);
    const std::string message =
        own ? check_own(*layer, name) : check_foreign(*layer, name, is_header(path));
    if (!message.empty()) problems.push_back({std::string(path), number, "include", message});
  }
  return problems;
}

}  // namespace proxypool::tidy
