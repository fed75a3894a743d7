#include "loadgen/digest.hpp"

#include <openssl/evp.h>

#include "proxypool/base/assert.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::loadgen {

struct Sha256::Context {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> evp{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  PP_ASSERT(EVP_DigestInit_ex(context_->evp.get(), EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;

void Sha256::add(std::string_view bytes) {
  PP_ASSERT(EVP_DigestUpdate(context_->evp.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::finish() {
  std::string out(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  auto* bytes = reinterpret_cast<unsigned char*>(out.data());
  PP_ASSERT(EVP_DigestFinal_ex(context_->evp.get(), bytes, &size) == 1);
  out.resize(size);
  return hex(out);
}

}  // namespace proxypool::loadgen
