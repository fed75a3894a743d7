#include "loadgen/tls.hpp"

#include <openssl/ssl.h>

#include <boost/asio/ssl/context.hpp>

namespace proxypool::loadgen {
namespace ssl = boost::asio::ssl;

Result<std::shared_ptr<ClientTls>> ClientTls::make(bool verify, const std::string& ca_file) {
  auto tls = std::make_shared<ClientTls>();
  tls->context_ = std::make_shared<ssl::context>(ssl::context::tls_client);
  tls->verifies_ = verify;
  SSL_CTX_set_min_proto_version(tls->context_->native_handle(), TLS1_2_VERSION);
  if (!verify) return tls;
  boost::system::error_code error;
  if (ca_file.empty()) {
    tls->context_->set_default_verify_paths(error);
  } else {
    tls->context_->load_verify_file(ca_file, error);
  }
  if (!error) tls->context_->set_verify_mode(ssl::verify_peer, error);
  if (!error) return tls;
  const std::string whose = ca_file.empty() ? "this system" : ca_file;
  return Error{ErrorCode::InvalidArgument, Origin::Client,
               "cannot read the authorities of " + whose + ": " + error.message()};
}

}  // namespace proxypool::loadgen
