// How a hashed secret is written down: in the configuration, in the store, on the wire.
//
//   $scrypt$ln=15,r=8,p=1$<salt>$<hash>   passwords: slow on purpose
//   $sha256$<hash>                        API keys of at least 128 random bits: fast
//
// Salt and hash are base64 without padding (RFC 4648 §4). Parsing is strict and bounds the work
// that a verification may cost, so that a stored text cannot ask for gigabytes.
//
// Thread rule: immutable values, pure functions.
// Limits: scrypt with 2^ln ≤ 2^20, and at most 256 MiB of memory; over: InvalidArgument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proxypool/base/result.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool {

// The cost of scrypt (RFC 7914): 2^15 blocks of 8 take 32 MiB and about 70 ms.
struct ScryptCost {
  unsigned ln = 15;
  unsigned r = 8;
  unsigned p = 1;

  [[nodiscard]] std::uint64_t rounds() const noexcept { return std::uint64_t{1} << ln; }
  // What scrypt needs: V, B and one working block.
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept {
    return 128ULL * r * (rounds() + p + 2ULL);
  }
  [[nodiscard]] bool acceptable() const noexcept {
    return ln >= 1 && ln <= 20 && r >= 1 && r <= 64 && p >= 1 && p <= 16 &&
           memory_bytes() <= kMemoryBytesMax;
  }
  static constexpr std::uint64_t kMemoryBytesMax = std::uint64_t{256} << 20U;
  friend bool operator==(const ScryptCost&, const ScryptCost&) = default;
};

struct StoredHash {
  enum class Kind : std::uint8_t { Scrypt, Sha256 };
  static constexpr std::size_t kSaltBytesMax = 64;
  static constexpr std::size_t kHashBytesMin = 16;
  static constexpr std::size_t kHashBytesMax = 64;

  Kind kind = Kind::Scrypt;
  ScryptCost cost;   // Scrypt only
  std::string salt;  // raw bytes; Scrypt only
  std::string hash;  // raw bytes

  static Result<StoredHash> parse(std::string_view text) {
    const auto parts = split(text, '$');
    if (parts.size() == 3 && parts[0].empty() && parts[1] == "sha256") {
      auto hash = base64_decode(parts[2]);
      if (!hash || hash->size() != 32) return invalid("the hash must be 32 bytes in base64");
      StoredHash stored;
      stored.kind = Kind::Sha256;
      stored.hash = *std::move(hash);
      return stored;
    }
    if (parts.size() == 5 && parts[0].empty() && parts[1] == "scrypt") {
      return parse_scrypt(parts[2], parts[3], parts[4]);
    }
    return invalid("expected $scrypt$ln=…,r=…,p=…$salt$hash or $sha256$hash");
  }

  [[nodiscard]] std::string str() const {
    if (kind == Kind::Sha256) return "$sha256$" + unpadded(hash);
    return "$scrypt$ln=" + std::to_string(cost.ln) + ",r=" + std::to_string(cost.r) +
           ",p=" + std::to_string(cost.p) + "$" + unpadded(salt) + "$" + unpadded(hash);
  }

 private:
  static Error invalid(std::string why) {
    return {ErrorCode::InvalidArgument, Origin::Client, "stored hash: " + std::move(why)};
  }
  static std::string unpadded(std::string_view bytes) {
    std::string text = base64_encode(bytes);
    while (!text.empty() && text.back() == '=') text.pop_back();
    return text;
  }
  // "name=NUMBER".
  static std::optional<unsigned> setting(std::string_view text, std::string_view name) {
    if (text.substr(0, name.size()) != name) return std::nullopt;
    return parse_number<unsigned>(text.substr(name.size()));
  }
  static Result<StoredHash> parse_scrypt(std::string_view costs, std::string_view salt,
                                         std::string_view hash) {
    const auto settings = split(costs, ',');
    if (settings.size() != 3) return invalid("expected ln=…,r=…,p=…");
    const auto ln = setting(settings[0], "ln=");
    const auto r = setting(settings[1], "r=");
    const auto p = setting(settings[2], "p=");
    if (!ln || !r || !p) return invalid("expected ln=…,r=…,p=…");
    StoredHash stored;
    stored.cost = {*ln, *r, *p};
    if (!stored.cost.acceptable()) return invalid("a cost is out of range");
    auto raw_salt = base64_decode(salt);
    auto raw_hash = base64_decode(hash);
    if (!raw_salt || raw_salt->size() > kSaltBytesMax) return invalid("bad salt");
    if (!raw_hash || raw_hash->size() < kHashBytesMin || raw_hash->size() > kHashBytesMax) {
      return invalid("bad hash");
    }
    stored.salt = *std::move(raw_salt);
    stored.hash = *std::move(raw_hash);
    return stored;
  }
};

}  // namespace proxypool
