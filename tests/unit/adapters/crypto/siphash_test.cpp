// Our SipHash against the reference's own figures and against OpenSSL's.
#include "proxypool/base/siphash.hpp"

#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <memory>
#include <string>
#include <string_view>

#include "proxypool/base/random.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool {
namespace {

std::string hex_of(const SipTag& tag) {
  return hex({reinterpret_cast<const char*>(tag.data()), tag.size()});
}

std::string counting(std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(i);
  return out;
}

SipTag by_openssl(std::string_view key, std::string_view text) {
  const std::unique_ptr<EVP_MAC, decltype(&EVP_MAC_free)> mac(
      EVP_MAC_fetch(nullptr, "SIPHASH", nullptr), &EVP_MAC_free);
  const std::unique_ptr<EVP_MAC_CTX, decltype(&EVP_MAC_CTX_free)> context(
      EVP_MAC_CTX_new(mac.get()), &EVP_MAC_CTX_free);
  std::size_t size = sizeof(SipTag);
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
                                   OSSL_PARAM_construct_end()};
  SipTag out{};
  const auto bytes = [](std::string_view of) {
    return reinterpret_cast<const unsigned char*>(of.data());
  };
  EXPECT_EQ(EVP_MAC_init(context.get(), bytes(key), key.size(), parameters), 1);
  EXPECT_EQ(EVP_MAC_update(context.get(), bytes(text), text.size()), 1);
  EXPECT_EQ(EVP_MAC_final(context.get(), out.data(), &size, out.size()), 1);
  return out;
}

// The first rows of the reference's vectors.h for 128 bits.
TEST(SipHash, GivesThePublishedTags) {
  const SipHash hash(counting(16));
  EXPECT_EQ(hex_of(hash("")), "a3817f04ba25a8e66df67214c7550293");
  EXPECT_EQ(hex_of(hash(counting(1))), "da87c1d86b99af44347659119b22fc45");
}

TEST(SipHash, AgreesWithOpensslOverAnyTextOfAnyLength) {
  SplitMix64 random(17);
  const auto bytes = [&](std::size_t count) {
    std::string out(count, '\0');
    for (char& c : out) c = static_cast<char>(random.next());
    return out;
  };
  for (std::size_t size = 0; size < 300; ++size) {
    const std::string key = bytes(16);
    const std::string text = bytes(size);
    ASSERT_EQ(hex_of(SipHash(key)(text)), hex_of(by_openssl(key, text))) << size << " bytes";
  }
}

}  // namespace
}  // namespace proxypool
