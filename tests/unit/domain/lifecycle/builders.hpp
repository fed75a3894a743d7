// Builders for the tests of the life cycle: values with sensible defaults, and a keyed hash that
// needs no cryptography.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "proxypool/base/random.hpp"
#include "proxypool/domain/proxy/proxy.hpp"

namespace proxypool::domain::build {

// A moment `s` seconds after an arbitrary start.
constexpr StoreTime at(std::int64_t s) {
  return StoreTime(milliseconds(1'700'000'000'000)) + seconds(s);
}

struct FakeHash {
  std::uint64_t key = 1;
  std::array<std::uint8_t, 32> operator()(std::string_view message) const {
    std::uint64_t h = 0xCBF29CE484222325U ^ key;
    for (const char c : message) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
    SplitMix64 stream(h);
    std::array<std::uint8_t, 32> digest{};
    for (auto& byte : digest) byte = static_cast<std::uint8_t>(stream.next());
    return digest;
  }
};

inline Proxy proxy(std::uint64_t id, ProxyState state = ProxyState::Available,
                   std::string upstream = "acme") {
  Proxy p;
  p.id = ProxyId(id);
  p.endpoint = {Scheme::Http, "proxy-" + std::to_string(id) + ".example", 8080};
  p.upstream = UpstreamId(std::move(upstream));
  p.created_at = at(0);
  p.state = state;
  return p;
}

}  // namespace proxypool::domain::build
