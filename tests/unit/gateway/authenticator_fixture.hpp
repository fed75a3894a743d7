// An authenticator without a gateway around it, and the clients that it knows.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "adapters/crypto/openssl_crypto.hpp"
#include "gateway/ingress/authenticator.hpp"
#include "net/event_loop.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::gateway {

// Counts what it verifies, and can be made to fail.
class CountingCrypto final : public ports::Crypto {
 public:
  ports::Digest sha256(std::string_view data) const override { return real_->sha256(data); }
  ports::Digest hmac_sha256(std::string_view key, std::string_view data) const override {
    return real_->hmac_sha256(key, data);
  }
  std::string random_bytes(std::size_t count) const override { return real_->random_bytes(count); }
  Result<StoredHash> hash_password(std::string_view password, ScryptCost cost) const override {
    return real_->hash_password(password, cost);
  }
  Result<bool> verify(std::string_view secret, const StoredHash& stored) const override {
    ++verified;
    while (hold) std::this_thread::yield();
    if (broken) return Error{ErrorCode::Exhausted, Origin::Internal, "no memory"};
    return real_->verify(secret, stored);
  }
  std::string seal(std::string_view key, std::string_view associated,
                   std::string_view plain) const override {
    return real_->seal(key, associated, plain);
  }
  Result<SecretString> open(std::string_view key, std::string_view associated,
                            std::string_view sealed) const override {
    return real_->open(key, associated, sealed);
  }

  mutable std::atomic<int> verified{0};
  std::atomic<bool> hold{false};
  std::atomic<bool> broken{false};

 private:
  std::unique_ptr<ports::Crypto> real_ = crypto::make_openssl_crypto();
};

class AuthenticatorTest : public ::testing::Test {
 protected:
  AuthenticatorTest() {
    domain::SnapshotClient ann;
    ann.name = ClientName("ann");
    ann.gateway_secret = crypto_.hash_password("se:cret", {4, 1, 1})->str();
    domain::SnapshotClient nobody;
    nobody.name = ClientName("nobody");
    domain::SnapshotClient robot;
    robot.name = ClientName("robot");
    robot.gateway_secret = crypto_.hash_api_key(kKey).str();
    robot.sources = {*Cidr::parse("198.51.100.0/24")};
    domain::SnapshotClient office;  // has its addresses alone
    office.name = ClientName("office");
    office.sources = {*Cidr::parse("198.51.100.128/25"), *Cidr::parse("2001:db8::/32")};
    clients_ = ClientTable({nobody, ann, robot, office});
    use({Settings::Auth::UsernamePassword});
  }
  ~AuthenticatorTest() override { verifier_.stop(); }

  static constexpr const char* kKey = "4f1c9a0e7b3d58264f1c9a0e7b3d5826";

  void use(Authenticator::Ways ways) {
    authenticator_ = std::make_unique<Authenticator>(verifier_, asker_, std::move(ways));
  }
  static std::string basic(const std::string& pair) { return "Basic " + base64_encode(pair); }
  Principal check(const std::string& value, std::uint64_t view = 1) {
    return authenticator_->check({clients_, view, parameters_}, value, source_,
                                 TimePoint{} + seconds(100));
  }
  // Turns the loop until a verdict has come.
  Verifier::Verdict verdict() {
    while (!verdict_) loop_.turn(milliseconds(10));
    return *std::exchange(verdict_, std::nullopt);
  }

  CountingCrypto crypto_;
  net::EventLoop loop_;
  Verifier verifier_{crypto_};
  std::optional<Verifier::Verdict> verdict_;
  Verifier::Asker asker_{
      loop_, [this](const CredentialKey&, Verifier::Verdict verdict) { verdict_ = verdict; }};
  std::unique_ptr<Authenticator> authenticator_;
  ClientTable clients_;
  bool parameters_ = true;
  IpAddress source_ = IpAddress::v4(0xCB007107);  // 203.0.113.7: nobody's
};

}  // namespace proxypool::gateway
