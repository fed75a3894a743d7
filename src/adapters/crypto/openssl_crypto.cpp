#include "adapters/crypto/openssl_crypto.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "proxypool/base/assert.hpp"

namespace proxypool::crypto {
namespace {

using ports::as_view;
using ports::Digest;

constexpr std::size_t kNonceBytes = 12;
constexpr std::size_t kTagBytes = 16;

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* pointer) const noexcept {
    Free(pointer);
  }
};
using MacPtr = std::unique_ptr<EVP_MAC, Freed<EVP_MAC_free>>;
using MacContextPtr = std::unique_ptr<EVP_MAC_CTX, Freed<EVP_MAC_CTX_free>>;
using DigestPtr = std::unique_ptr<EVP_MD, Freed<EVP_MD_free>>;
using DigestContextPtr = std::unique_ptr<EVP_MD_CTX, Freed<EVP_MD_CTX_free>>;
using CipherPtr = std::unique_ptr<EVP_CIPHER, Freed<EVP_CIPHER_free>>;
using CipherContextPtr = std::unique_ptr<EVP_CIPHER_CTX, Freed<EVP_CIPHER_CTX_free>>;

const unsigned char* bytes(std::string_view text) noexcept {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* bytes(std::string& text) noexcept {
  return reinterpret_cast<unsigned char*>(text.data());
}
int length(std::string_view text) noexcept {
  PP_ASSERT(text.size() <= (std::size_t{1} << 30U));
  return static_cast<int>(text.size());
}

// What one thread keeps: a context costs more to make than a small message costs to hash.
class ThreadContexts {
 public:
  static ThreadContexts& mine() {
    thread_local ThreadContexts contexts;
    return contexts;
  }

  Digest sha256(std::string_view data) {
    Digest out{};
    unsigned size = 0;
    PP_ASSERT(EVP_DigestInit_ex2(digest_.get(), sha256_.get(), nullptr) == 1 &&
              EVP_DigestUpdate(digest_.get(), data.data(), data.size()) == 1 &&
              EVP_DigestFinal_ex(digest_.get(), out.data(), &size) == 1 && size == out.size());
    return out;
  }

  // Starting again with the key of the last call costs a fifth of setting a key.
  Digest hmac_sha256(std::string_view key, std::string_view data) {
    if (!has_key_ || key_.reveal() != key) {
      // A null key would mean "the one before"; an empty one needs an address.
      const unsigned char* start = key.empty() ? bytes(std::string_view("")) : bytes(key);
      std::string name = "SHA256";
      const std::array parameters{
          OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name.data(), 0),
          OSSL_PARAM_construct_end()};
      PP_ASSERT(EVP_MAC_init(mac_.get(), start, key.size(), parameters.data()) == 1);
      key_ = SecretString(std::string(key));
      has_key_ = true;
    } else {
      PP_ASSERT(EVP_MAC_init(mac_.get(), nullptr, 0, nullptr) == 1);
    }
    Digest out{};
    std::size_t size = 0;
    PP_ASSERT(EVP_MAC_update(mac_.get(), bytes(data), data.size()) == 1 &&
              EVP_MAC_final(mac_.get(), out.data(), &size, out.size()) == 1 && size == out.size());
    return out;
  }

  EVP_CIPHER_CTX* cipher_context() { return cipher_context_.get(); }
  const EVP_CIPHER* aes256_gcm() { return cipher_.get(); }

 private:
  ThreadContexts() {
    const MacPtr hmac(EVP_MAC_fetch(nullptr, "HMAC", nullptr));
    PP_ASSERT(hmac && sha256_ && cipher_);
    mac_.reset(EVP_MAC_CTX_new(hmac.get()));
    PP_ASSERT(mac_ && digest_ && cipher_context_);
  }

  DigestPtr sha256_{EVP_MD_fetch(nullptr, "SHA256", nullptr)};
  DigestContextPtr digest_{EVP_MD_CTX_new()};
  MacContextPtr mac_;
  SecretString key_;
  bool has_key_ = false;
  CipherPtr cipher_{EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr)};
  CipherContextPtr cipher_context_{EVP_CIPHER_CTX_new()};
};

class OpensslCrypto final : public ports::Crypto {
 public:
  Digest sha256(std::string_view data) const override {
    return ThreadContexts::mine().sha256(data);
  }
  Digest hmac_sha256(std::string_view key, std::string_view data) const override {
    return ThreadContexts::mine().hmac_sha256(key, data);
  }
  std::string random_bytes(std::size_t count) const override {
    std::string out(count, '\0');
    PP_ASSERT(RAND_bytes(bytes(out), length(out)) == 1);
    return out;
  }

  Result<StoredHash> hash_password(std::string_view password, ScryptCost cost) const override {
    constexpr std::size_t kSaltBytes = 16;
    StoredHash stored;
    stored.cost = cost;
    stored.salt = random_bytes(kSaltBytes);
    PP_TRY(stored.hash, scrypt(password, stored, sizeof(Digest)));
    return stored;
  }
  Result<bool> verify(std::string_view secret, const StoredHash& stored) const override {
    if (stored.kind == StoredHash::Kind::Sha256) {
      return SecretString::equal_in_constant_time(as_view(sha256(secret)), stored.hash);
    }
    PP_TRY(const std::string hash, scrypt(secret, stored, stored.hash.size()));
    return SecretString::equal_in_constant_time(hash, stored.hash);
  }

  std::string seal(std::string_view key, std::string_view associated,
                   std::string_view plain) const override {
    PP_ASSERT(key.size() == kSealKeyBytes);
    auto& mine = ThreadContexts::mine();
    auto* context = mine.cipher_context();
    std::string out = random_bytes(kNonceBytes);
    out.resize(kSealOverheadBytes + plain.size());
    unsigned char* const cipher = bytes(out) + kNonceBytes;
    int written = 0;
    PP_ASSERT(EVP_EncryptInit_ex2(context, mine.aes256_gcm(), bytes(key), bytes(out), nullptr) ==
              1);
    PP_ASSERT(add(context, nullptr, associated) && add(context, cipher, plain));
    PP_ASSERT(EVP_EncryptFinal_ex(context, cipher + plain.size(), &written) == 1 && written == 0);
    PP_ASSERT(
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, kTagBytes, cipher + plain.size()) == 1);
    EVP_CIPHER_CTX_reset(context);
    return out;
  }

  Result<SecretString> open(std::string_view key, std::string_view associated,
                            std::string_view sealed) const override {
    PP_ASSERT(key.size() == kSealKeyBytes);
    if (sealed.size() < kSealOverheadBytes) return corrupt();
    auto& mine = ThreadContexts::mine();
    auto* context = mine.cipher_context();
    const auto nonce = sealed.substr(0, kNonceBytes);
    const auto cipher = sealed.substr(kNonceBytes, sealed.size() - kSealOverheadBytes);
    std::string tag(sealed.substr(sealed.size() - kTagBytes));
    std::string plain(cipher.size(), '\0');
    PP_ASSERT(EVP_DecryptInit_ex2(context, mine.aes256_gcm(), bytes(key), bytes(nonce), nullptr) ==
              1);
    PP_ASSERT(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, kTagBytes, tag.data()) == 1);
    PP_ASSERT(add(context, nullptr, associated) && add(context, bytes(plain), cipher));
    int written = 0;
    unsigned char rest = 0;
    const bool genuine = EVP_DecryptFinal_ex(context, &rest, &written) == 1;
    EVP_CIPHER_CTX_reset(context);
    SecretString secret(
        std::move(plain));  // wiped below: it was written before the tag was checked
    if (!genuine) {
      ERR_clear_error();
      return corrupt();
    }
    return secret;
  }

 private:
  static Error corrupt() {
    return {ErrorCode::Corrupt, Origin::Store, "a sealed value does not open with this key"};
  }
  static bool add(EVP_CIPHER_CTX* context, unsigned char* out, std::string_view in) {
    int written = 0;
    return in.empty() || EVP_CipherUpdate(context, out, &written, bytes(in), length(in)) == 1;
  }

  // The packaged library refuses 32 MiB unless it is told a limit.
  static Result<std::string> scrypt(std::string_view password, const StoredHash& stored,
                                    std::size_t hash_bytes) {
    if (!stored.cost.acceptable()) {
      return Error{ErrorCode::InvalidArgument, Origin::Client, "a cost of scrypt is out of range"};
    }
    std::string out(hash_bytes, '\0');
    const char* const text = password.empty() ? "" : password.data();
    const int done = EVP_PBE_scrypt(text, password.size(), bytes(stored.salt), stored.salt.size(),
                                    stored.cost.rounds(), stored.cost.r, stored.cost.p,
                                    ScryptCost::kMemoryBytesMax, bytes(out), out.size());
    if (done != 1) {
      ERR_clear_error();
      return Error{ErrorCode::Exhausted, Origin::Internal, "scrypt: not enough memory", true};
    }
    return out;
  }
};

}  // namespace

std::unique_ptr<ports::Crypto> make_openssl_crypto() {
  return std::make_unique<OpensslCrypto>();
}

}  // namespace proxypool::crypto
