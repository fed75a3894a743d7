#include "adapters/crypto/openssl_crypto.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "proxypool/base/text.hpp"

namespace proxypool {
namespace {

const ports::Crypto& crypto() {
  static const auto instance = crypto::make_openssl_crypto();
  return *instance;
}
std::string hex_of(const ports::Digest& digest) {
  return hex(ports::as_view(digest));
}

// FIPS 180-2, appendix B.
TEST(OpensslCryptoTest, Sha256GivesThePublishedDigests) {
  EXPECT_EQ(hex_of(crypto().sha256("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex_of(crypto().sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex_of(crypto().sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex_of(crypto().sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// RFC 4231, cases 1, 2 and 6; the order makes the kept key change, repeat and change back.
TEST(OpensslCryptoTest, HmacGivesThePublishedFiguresWhileTheKeyChanges) {
  const std::string first_key(20, '\x0b');
  const auto first = [&] { return hex_of(crypto().hmac_sha256(first_key, "Hi There")); };
  const std::string expected = "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7";
  EXPECT_EQ(first(), expected);
  EXPECT_EQ(first(), expected);
  EXPECT_EQ(hex_of(crypto().hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(first(), expected);
  EXPECT_EQ(hex_of(crypto().hmac_sha256(std::string(131, '\xaa'),
                                        "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(OpensslCryptoTest, HmacTakesAnEmptyKeyAtAnyTime) {
  const std::string expected = "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad";
  EXPECT_EQ(hex_of(crypto().hmac_sha256("", "")), expected);
  (void)crypto().hmac_sha256("other", "data");
  EXPECT_EQ(hex_of(crypto().hmac_sha256({}, {})), expected);
  std::thread([&] { EXPECT_EQ(hex_of(crypto().hmac_sha256("", "")), expected); }).join();
}

TEST(OpensslCryptoTest, EveryThreadHasItsOwnContexts) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      const std::string key(32, static_cast<char>('a' + t));
      const auto expected = crypto().hmac_sha256(key, "data");
      const auto digest = crypto().sha256(key);
      for (int i = 0; i < 500; ++i) {
        ASSERT_EQ(crypto().hmac_sha256(key, "data"), expected);
        ASSERT_EQ(crypto().sha256(key), digest);
        const auto sealed = crypto().seal(key, "", "value");
        ASSERT_EQ(crypto().open(key, "", sealed).value().reveal(), "value");
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(OpensslCryptoTest, RandomBytesDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) seen.insert(crypto().random_bytes(16));
  EXPECT_EQ(seen.size(), 100U);
  EXPECT_EQ(crypto().random_bytes(33).size(), 33U);
  EXPECT_TRUE(crypto().random_bytes(0).empty());
}

std::string from_hex(std::string_view digits) {
  std::string out;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    out += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  }
  return out;
}

// RFC 7914 §12.
TEST(OpensslCryptoTest, ScryptAcceptsThePublishedHashes) {
  StoredHash stored;
  stored.cost = {.ln = 14, .r = 8, .p = 1};
  stored.salt = "SodiumChloride";
  stored.hash = from_hex(
      "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
      "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887");
  EXPECT_TRUE(crypto().verify("pleaseletmein", stored).value());
  EXPECT_FALSE(crypto().verify("pleaseletmeIn", stored).value());
  stored.cost = {.ln = 4, .r = 1, .p = 1};
  stored.salt = "";
  stored.hash = from_hex(
      "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442"
      "fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906");
  EXPECT_TRUE(crypto().verify("", stored).value());
}

// GW-10: secrets are stored hashed. The default cost is the one that must work (it needs 32 MiB).
TEST(OpensslCryptoTest, AHashedPasswordSurvivesBeingWrittenDown) {
  const auto stored = crypto().hash_password("correct horse", ScryptCost{});
  ASSERT_TRUE(stored);
  const auto text = stored->str();
  EXPECT_TRUE(text.starts_with("$scrypt$ln=15,r=8,p=1$")) << text;
  const auto read = StoredHash::parse(text);
  ASSERT_TRUE(read);
  EXPECT_TRUE(crypto().verify("correct horse", *read).value());
  EXPECT_FALSE(crypto().verify("correct horses", *read).value());
}

TEST(OpensslCryptoTest, TheSamePasswordIsNeverStoredTwiceTheSameWay) {
  const ScryptCost cheap{.ln = 4, .r = 1, .p = 1};
  EXPECT_NE(crypto().hash_password("x", cheap)->str(), crypto().hash_password("x", cheap)->str());
}

TEST(OpensslCryptoTest, AnApiKeyIsStoredAsItsDigest) {
  const auto stored = StoredHash::parse(crypto().hash_api_key("abc").str());
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->str(), "$sha256$ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0");
  EXPECT_TRUE(crypto().verify("abc", *stored).value());
  EXPECT_FALSE(crypto().verify("abd", *stored).value());
}

TEST(OpensslCryptoTest, AnExcessiveCostIsRefusedBeforeAnyMemoryIsTaken) {
  for (const ScryptCost cost : {ScryptCost{20, 64, 1}, {200, 8, 1}, {15, 0, 1}, {15, 8, 99}}) {
    const auto hash = crypto().hash_password("x", cost);
    ASSERT_FALSE(hash);
    EXPECT_EQ(hash.error().code, ErrorCode::InvalidArgument);
  }
}

const std::string kKey(32, 'k');

TEST(OpensslCryptoTest, ASealedValueOpensWithItsKeyAndAssociatedDataAlone) {
  const auto sealed = crypto().seal(kKey, "proxy 7", "user:pass");
  EXPECT_EQ(sealed.size(), 9 + ports::Crypto::kSealOverheadBytes);
  EXPECT_EQ(crypto().open(kKey, "proxy 7", sealed).value().reveal(), "user:pass");
  EXPECT_FALSE(crypto().open(std::string(32, 'K'), "proxy 7", sealed));
  EXPECT_FALSE(crypto().open(kKey, "proxy 8", sealed));
  EXPECT_FALSE(crypto().open(kKey, "", sealed));
}

TEST(OpensslCryptoTest, EveryFlippedBitIsNoticed) {
  const auto sealed = crypto().seal(kKey, "a", "secret");
  for (std::size_t i = 0; i < sealed.size() * 8; ++i) {
    auto changed = sealed;
    changed[i / 8] = static_cast<char>(changed[i / 8] ^ (1 << (i % 8)));
    const auto opened = crypto().open(kKey, "a", changed);
    ASSERT_FALSE(opened) << "bit " << i;
    ASSERT_EQ(opened.error().code, ErrorCode::Corrupt);
  }
  for (std::size_t size = 0; size < sealed.size(); ++size) {
    ASSERT_FALSE(crypto().open(kKey, "a", sealed.substr(0, size)));
  }
}

TEST(OpensslCryptoTest, SealingTwiceGivesTwoTexts) {
  EXPECT_NE(crypto().seal(kKey, "a", "x"), crypto().seal(kKey, "a", "x"));
}

TEST(OpensslCryptoTest, AnEmptyValueCanBeSealed) {
  EXPECT_EQ(crypto().open(kKey, "", crypto().seal(kKey, "", "")).value().reveal(), "");
}

// The NIST test case 16 of the GCM submission (96-bit nonce, 160-bit associated data).
TEST(OpensslCryptoTest, OpensWhatTheGcmPaperSealed) {
  const auto key = from_hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
  const auto associated = from_hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
  const auto sealed = from_hex(
      "cafebabefacedbaddecaf888"
      "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
      "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
      "76fc6ece0f4e1768cddf8853bb2d551b");
  const auto plain = crypto().open(key, associated, sealed);
  ASSERT_TRUE(plain);
  EXPECT_EQ(hex(plain->reveal()),
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
            "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39");
}

}  // namespace
}  // namespace proxypool
