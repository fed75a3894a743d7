// The answers of a proxy vendor in the shapes that are met in the wild: plain lines in three
// spellings and JSON in five, each with its own way to say "nothing left" and "error".
//
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace proxypool::loadgen {

// One proxy as the vendor offers it.
struct Offer {
  unsigned index = 0;
  std::string scheme = "http";
  std::string host;
  std::uint16_t port = 0;
  std::string user;  // empty: none is needed
  std::string password;
  std::int64_t expires_ms = 0;  // Unix time
  std::int64_t ttl_s = 0;
  std::string country;
  std::string region;
  std::string city;
  std::string carrier;
};

enum class VendorShape : std::uint8_t {
  TextLines,    // /text         host:port
  TextColon,    // /text/colon   host:port:user:password
  TextUrl,      // /text/url     scheme://user:password@host:port
  JsonList,     // /json/list    data.list[], expire_time as RFC 3339, place names
  JsonArray,    // /json/array   bare array, port as text, ttl in seconds
  JsonStrings,  // /json/strings data.proxy_list[] of "host:port,seconds"
  JsonMap,      // /json/map     list{} keyed by id, unixtime_end in seconds
  JsonMillis,   // /json/millis  result.items[] with endpoint "host:port", expired in milliseconds
};
std::optional<VendorShape> shape_at(std::string_view path);

struct VendorAnswer {
  unsigned status = 200;
  std::string content_type;
  std::string body;
  std::optional<unsigned> retry_after_s;
};
VendorAnswer offer_answer(VendorShape shape, std::span<const Offer> offers);
// How that shape says that there is nothing to hand out.
VendorAnswer empty_answer(VendorShape shape);
// How it says "too many calls": mostly with status 200.
VendorAnswer error_answer(VendorShape shape);

}  // namespace proxypool::loadgen
