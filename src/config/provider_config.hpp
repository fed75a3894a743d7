// One upstream's provider: where its proxies come from and how an answer is read.
//
// The keys and the expressions are a subset of the provider language; what is here keeps its
// meaning when the language grows. Templates and expressions are parsed when the file loads, so
// that the controller only evaluates them.
//
// Thread rule: immutable values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "config/proxy_line.hpp"
#include "config/types.hpp"
#include "proxypool/base/secret.hpp"
#include "proxypool/domain/proxy/proxy.hpp"

namespace proxypool::config {

// A string of the request with {{ secret.NAME }} and {{ batch }} in it, cut into parts.
struct Template {
  struct Literal {
    std::string text;
  };
  struct SecretRef {
    std::string name;
    SecretString value;
  };
  struct Batch {};
  using Part = std::variant<Literal, SecretRef, Batch>;
  std::vector<Part> parts;

  // The text with everything put in. What comes out counts as a secret.
  [[nodiscard]] SecretString render(std::uint32_t batch) const {
    std::string out;
    for (const Part& part : parts) {
      if (const auto* literal = std::get_if<Literal>(&part)) out += literal->text;
      if (const auto* secret = std::get_if<SecretRef>(&part)) out += secret->value.reveal();
      if (std::holds_alternative<Batch>(part)) out += std::to_string(batch);
    }
    return SecretString(std::move(out));
  }
  [[nodiscard]] bool has_secret() const noexcept {
    for (const Part& part : parts) {
      if (std::holds_alternative<SecretRef>(part)) return true;
    }
    return false;
  }
};

// An expression of provider.map: `item.a.b` (a member of the record; `item` is the record itself),
// `secret.NAME`, `'text'`, or a number.
struct MapValue {
  enum class Kind : std::uint8_t { Item, Secret, Constant };
  Kind kind = Kind::Item;
  std::vector<std::string> path;  // Item: the members to walk, empty for the record itself
  std::string text;               // Constant: the text; Secret: the name
  SecretString secret;
};

// provider.map.as: `proxy(EXPRESSION, 'FORM')`.
struct EndpointExpression {
  MapValue source;
  ProxyForm form = ProxyForm::HostPort;
};

enum class TimeUnit : std::uint8_t { S, Ms, Min, H };

// provider.map.expires: either `after` so many units from the receipt on, or at `epoch`, so many
// units since 1970. A record without the value has no expiry; one with a wrong value is invalid.
struct ExpirySpec {
  std::optional<MapValue> after;
  std::optional<MapValue> epoch;
  TimeUnit unit = TimeUnit::S;

  // What one of the number means.
  [[nodiscard]] milliseconds unit_length() const noexcept {
    switch (unit) {
      case TimeUnit::S:
        return std::chrono::seconds(1);
      case TimeUnit::Ms:
        return milliseconds(1);
      case TimeUnit::Min:
        return std::chrono::minutes(1);
      case TimeUnit::H:
        return std::chrono::hours(1);
    }
    return milliseconds(0);
  }
};

struct RequestConfig {
  std::string method = "GET";
  Template url;
  std::vector<std::pair<std::string, Template>> query;    // in the order of the file, not encoded
  std::vector<std::pair<std::string, Template>> headers;  // in the order of the file
};

struct ResponseConfig {
  ResponseFormat format = ResponseFormat::Text;
};

struct RecordsConfig {
  std::vector<std::string> from;  // json: members from the body to the list; empty: the body itself
};

// Either `as`, or `host` and `port`; the other fields win over what `as` found. With neither (text
// only), each line is one of the two spellings of a list.
struct MapConfig {
  std::optional<EndpointExpression> as;
  std::optional<MapValue> scheme;
  std::optional<MapValue> host;
  std::optional<MapValue> port;
  std::optional<MapValue> username;
  std::optional<MapValue> password;
  std::optional<ExpirySpec> expires;
  std::optional<MapValue> country;
  std::optional<MapValue> region;
  std::optional<MapValue> city;
  std::optional<MapValue> carrier;
  std::vector<std::pair<std::string, MapValue>> tags;
};

struct ProviderConfig {
  ProviderType type = ProviderType::Static;
  std::vector<domain::Candidate> proxies;  // static
  std::string path;                        // file; absolute, or as seen from the working directory
  std::vector<std::pair<std::string, SecretString>> secrets;  // http
  RequestConfig request;                                      // http
  ResponseConfig response;                                    // http
  RecordsConfig records;                                      // http
  MapConfig map;                                              // http
};

}  // namespace proxypool::config

template <>
struct proxypool::domain::Spelling<proxypool::config::TimeUnit> {
  static constexpr std::string_view names[] = {"s", "ms", "min", "h"};
};
