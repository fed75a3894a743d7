// The Crypto port over OpenSSL 3.
//
// Thread rule: any thread; each thread keeps its own contexts.
#pragma once

#include <memory>

#include "proxypool/ports/crypto.hpp"

namespace proxypool::crypto {

std::unique_ptr<ports::Crypto> make_openssl_crypto();

}  // namespace proxypool::crypto
