// What a client says in its user name beside who it is. (GW-13, ruling R5)
//
//   NAME-country-us-region-ca-city-berlin-carrier-x-session-abc123-sesstime-10-tag.k-v-strict
//
// NAME is the longest configured client name that is followed by a hyphen or by the end; names may
// hold hyphens themselves, values may not. All that follows must parse, and no parameter comes
// twice. Other spellings: cc (country), st (region), sid, sessid (session), sessionduration,
// lifetime, ttl (sesstime). Programs that can set neither a header on CONNECT nor anything else
// can set a user name, which is why the parameters live here.
//
// Finding the name and reading the rest are two steps, so that the password can be checked between
// them: whoever does not know it learns nothing about parameters.
//
// Thread rule: pure functions.
// Limits:      kUserNameBytesMax bytes, kUserTagsMax tags; over: an error that says so.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "proxypool/base/result.hpp"
#include "proxypool/base/text.hpp"
#include "proxypool/domain/routing/proxy_filter.hpp"

namespace proxypool::domain {

inline constexpr std::size_t kClientNameBytesMax = 64;  // of a configured name
inline constexpr std::size_t kUserNameBytesMax = 1024;
inline constexpr std::size_t kUserTagsMax = 16;
inline constexpr std::size_t kSessionBytesMax = 128;
inline constexpr std::chrono::minutes kSessionTimeMax{1440};

struct UserParameters {
  ProxyFilter filter;
  std::string session;                               // empty: none
  std::optional<std::chrono::minutes> session_time;  // the greatest age of the session
  bool strict = false;                               // fail rather than change the proxy
  friend bool operator==(const UserParameters&, const UserParameters&) = default;
};

// A session's name, from the user name or from a header: [A-Za-z0-9._~-]{1,128} (R4).
constexpr bool is_session_name(std::string_view text) noexcept {
  if (text.empty() || text.size() > kSessionBytesMax) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    const char l = lower(c);
    return (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '~' ||
           c == '-';
  });
}

// The client's name in `user`: the longest start of it that known(name) accepts and that a hyphen
// or the end follows. Nothing when there is none.
template <class Known>
std::optional<std::string_view> client_in(std::string_view user, Known&& known) {
  std::size_t end = user.size();
  while (end != 0 && end != std::string_view::npos) {
    if (end <= kClientNameBytesMax && known(user.substr(0, end))) return user.substr(0, end);
    end = user.rfind('-', std::min(end - 1, kClientNameBytesMax));
  }
  return std::nullopt;
}

namespace user_name_detail {

inline Error fault(std::string_view parameter, std::string_view why) {
  std::string message("\"");
  constexpr std::size_t kShownMax = 32;
  message += parameter.substr(0, kShownMax);
  message += "\": ";
  message += why;
  return Error{ErrorCode::InvalidArgument, Origin::Client, std::move(message)};
}

constexpr std::string_view canonical(std::string_view key) noexcept {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kAliases{{
      {"cc", "country"},
      {"st", "region"},
      {"sid", "session"},
      {"sessid", "session"},
      {"sessionduration", "sesstime"},
      {"lifetime", "sesstime"},
      {"ttl", "sesstime"},
  }};
  for (const auto& [alias, name] : kAliases) {
    if (key == alias) return name;
  }
  return key;
}

constexpr bool is_label(std::string_view text) noexcept {
  constexpr std::size_t kLabelBytesMax = 64;
  if (text.empty() || text.size() > kLabelBytesMax) return false;
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

constexpr bool is_letter(char c) noexcept {
  return lower(c) >= 'a' && lower(c) <= 'z';
}

// Reads one parameter after the other; each method takes one key's value.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  Result<UserParameters> read() {
    while (more_) {
      const std::string_view key = next();
      PP_TRY(const Unit taken, take(key));
      (void)taken;
    }
    return std::move(out_);
  }

 private:
  std::string_view next() noexcept {
    const auto end = rest_.find('-');
    const std::string_view token = rest_.substr(0, end);
    more_ = end != std::string_view::npos;
    rest_ = more_ ? rest_.substr(end + 1) : std::string_view{};
    return token;
  }
  Status take(std::string_view key) {
    const std::string_view name = canonical(key);
    if (name == "strict") {
      if (std::exchange(out_.strict, true)) return fault(key, "comes twice");
      return ok();
    }
    const bool tag = key.starts_with("tag.");
    constexpr std::array<std::string_view, 6> kNames{"country", "region",  "city",
                                                     "carrier", "session", "sesstime"};
    const auto known = std::find(kNames.begin(), kNames.end(), name);
    if (!tag && known == kNames.end()) {
      return fault(key,
                   "is no parameter; known are country, region, city, carrier, session, "
                   "sesstime, tag.KEY and strict");
    }
    if (!more_) return fault(key, "has no value");
    const std::string_view value = next();
    if (tag) return take_tag(key, value);
    auto& seen = seen_[static_cast<std::size_t>(known - kNames.begin())];
    if (std::exchange(seen, true)) return fault(key, "comes twice");
    if (name == "country") return take_country(key, value);
    if (name == "session") return take_session(key, value);
    if (name == "sesstime") return take_time(key, value);
    if (!is_label(value)) return fault(key, "wants 1 to 64 bytes without control characters");
    Attributes& to = out_.filter.attributes;
    (name == "region" ? to.region : name == "city" ? to.city : to.carrier) = lower(value);
    return ok();
  }
  Status take_country(std::string_view key, std::string_view value) {
    if (value.size() != 2 || !is_letter(value[0]) || !is_letter(value[1])) {
      return fault(key, "wants two letters, as in ISO 3166-1");
    }
    for (const char c : value) {
      const char l = lower(c);
      out_.filter.attributes.country += static_cast<char>(l - ('a' - 'A'));
    }
    return ok();
  }
  Status take_session(std::string_view key, std::string_view value) {
    if (!is_session_name(value)) return fault(key, "wants 1 to 128 of A-Z a-z 0-9 . _ ~");
    out_.session = value;
    return ok();
  }
  Status take_time(std::string_view key, std::string_view value) {
    const auto minutes = parse_number<std::uint32_t>(value);
    if (!minutes || *minutes == 0 || *minutes > kSessionTimeMax.count()) {
      return fault(key, "wants a number of minutes, 1 to 1440");
    }
    out_.session_time = std::chrono::minutes(*minutes);
    return ok();
  }
  Status take_tag(std::string_view key, std::string_view value) {
    const std::string_view name = key.substr(4);
    if (!is_label(name)) return fault(key, "wants a name behind the dot");
    if (!is_label(value)) return fault(key, "wants 1 to 64 bytes without control characters");
    if (out_.filter.tags.size() == kUserTagsMax) return fault(key, "is one tag too many, after 16");
    if (!out_.filter.tags.emplace(name, value).second) return fault(key, "comes twice");
    return ok();
  }

  std::string_view rest_;
  bool more_ = true;
  std::array<bool, 6> seen_{};
  UserParameters out_;
};

}  // namespace user_name_detail

// What stands behind the client's name, its first hyphen included; nothing stands for no
// parameters. An error's message begins with the parameter in quotes.
inline Result<UserParameters> parse_user_parameters(std::string_view rest) {
  if (rest.size() > kUserNameBytesMax) {
    return user_name_detail::fault("user name", "is longer than 1024 bytes");
  }
  if (rest.empty()) return UserParameters{};
  if (rest.front() != '-') return user_name_detail::fault(rest, "is no parameter");
  return user_name_detail::Reader(rest.substr(1)).read();
}

}  // namespace proxypool::domain
