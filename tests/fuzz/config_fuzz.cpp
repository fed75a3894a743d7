// Any text as a configuration file: it is accepted or refused with a reason, and what was accepted
// and shown without secrets is accepted again with the same meaning.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "config/load.hpp"
#include "proxypool/base/assert.hpp"

namespace {

using namespace proxypool::config;

std::string stars(const proxypool::SecretString&) {
  return "***";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  LoadOptions options;
  options.env = [](const std::string&) { return std::optional<std::string>("value"); };
  options.program = Program::Gateway;  // the one that reads no file for a secret
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto loaded = load_text(text, "fuzz.yaml", options);
  PP_ASSERT(loaded.config.has_value() == loaded.errors.empty());
  PP_ASSERT(loaded.errors.empty() == loaded.format_errors().empty());
  if (!loaded.config) return 0;

  const std::string shown = redacted_yaml(*loaded.config);
  if (shown.find("***") != std::string::npos) return 0;
  const auto again = load_text(shown, "shown.yaml", options);
  PP_ASSERT(again.config.has_value());
  PP_ASSERT(canonical_json(*again.config, stars) == canonical_json(*loaded.config, stars));
  return 0;
}
