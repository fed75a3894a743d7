// The client side of TLS for the load generator: verified unless told otherwise.
//
// Thread rule: one context for all threads once it is made; a session belongs to its stream.
#pragma once

#include <memory>
#include <string>

#include "proxypool/base/result.hpp"

namespace boost::asio::ssl {
class context;
}

namespace proxypool::loadgen {

class ClientTls {
 public:
  // `ca_file` empty: the system's authorities.
  static Result<std::shared_ptr<ClientTls>> make(bool verify, const std::string& ca_file);

  [[nodiscard]] boost::asio::ssl::context& context() noexcept { return *context_; }
  [[nodiscard]] bool verifies() const noexcept { return verifies_; }

 private:
  std::shared_ptr<boost::asio::ssl::context> context_;
  bool verifies_ = true;
};

}  // namespace proxypool::loadgen
