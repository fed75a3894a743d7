#include "loadgen/journal.hpp"

#include <algorithm>

#include "loadgen/url.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::loadgen {
namespace {

constexpr std::size_t kTokenBytesMax = 128;

bool is_token(std::string_view text) {
  return !text.empty() && text.size() <= kTokenBytesMax &&
         std::all_of(text.begin(), text.end(), [](char c) {
           const char l = lower(c);
           return (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
                  c == '~' || c == '-';
         });
}

}  // namespace

void Journal::remember(const std::string& token, Sighting sighting) {
  auto [at, added] = entries_.try_emplace(token);
  if (added) order_.push_back(token);
  if (at->second.sightings.size() < kRecordsPerToken) {
    at->second.sightings.push_back(std::move(sighting));
  } else {
    ++at->second.forgotten;
  }
  if (order_.size() > kTokensMax) {
    entries_.erase(order_.front());
    order_.pop_front();
  }
}

const Journal::Entry* Journal::find(const std::string& token) const {
  const auto at = entries_.find(token);
  return at == entries_.end() ? nullptr : &at->second;
}

std::optional<std::string> token_of(std::string_view target, const Fields& fields) {
  if (const auto header = fields.find("x-token"); header && is_token(*header)) {
    return std::string(*header);
  }
  if (auto value = query_value(target, "token"); value && is_token(*value)) return value;
  const auto path = path_of(target);
  const auto mark = path.find("/t/");
  if (mark == std::string_view::npos) return std::nullopt;
  const auto rest = path.substr(mark + 3);
  const auto segment = rest.substr(0, rest.find('/'));
  if (!is_token(segment)) return std::nullopt;
  return std::string(segment);
}

}  // namespace proxypool::loadgen
