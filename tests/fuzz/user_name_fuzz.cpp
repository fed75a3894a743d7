// Any bytes as a user name: the client's name is a start of it, what was read is within its bounds,
// and what was read, written down again, reads the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "proxypool/domain/client/user_name.hpp"

namespace {

using namespace proxypool::domain;

void must(bool property) {
  if (!property) std::abort();
}

bool label(std::string_view text) {
  return text.size() <= 64 && text.find('-') == std::string_view::npos;
}

std::string written(const UserParameters& from) {
  std::string out;
  const auto add = [&](std::string_view key, std::string_view value) {
    if (!value.empty()) out += "-" + std::string(key) + "-" + std::string(value);
  };
  const Attributes& at = from.filter.attributes;
  add("country", at.country);
  add("region", at.region);
  add("city", at.city);
  add("carrier", at.carrier);
  add("session", from.session);
  if (from.session_time) add("sesstime", std::to_string(from.session_time->count()));
  for (const auto& [key, value] : from.filter.tags) add("tag." + key, value);
  if (from.strict) out += "-strict";
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view user(reinterpret_cast<const char*>(data), size);
  int asked = 0;
  const auto client = client_in(user, [&](std::string_view name) {
    ++asked;
    return name == "ann" || name == "ann-b" || name == "country";
  });
  must(asked <= 65);
  if (!client) return 0;
  must(user.starts_with(*client));
  const std::string_view rest = user.substr(client->size());
  must(rest.empty() || rest.front() == '-');
  const auto read = parse_user_parameters(rest);
  if (!read) {
    must(!read.error().message.empty() && read.error().message.size() < 200);
    return 0;
  }
  const Attributes& at = read->filter.attributes;
  must(at.country.empty() || at.country.size() == 2);
  must(label(at.region) && label(at.city) && label(at.carrier));
  must(read->filter.tags.size() <= kUserTagsMax);
  must(read->session.empty() || is_session_name(read->session));
  must(!read->session_time || read->session_time->count() > 0);
  const auto again = parse_user_parameters(written(*read));
  must(again && *again == *read);
  return 0;
}
