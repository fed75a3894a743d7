#include "support/peer_tls.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <csignal>
#include <memory>

namespace proxypool::testing {
namespace {

class Session final : public PeerTls {
 public:
  explicit Session(const SSL_METHOD* method) : context(SSL_CTX_new(method)) {
    SSL_CTX_set_options(context, SSL_OP_ALLOW_CLIENT_RENEGOTIATION);
  }
  ~Session() override {
    SSL_free(ssl);
    SSL_CTX_free(context);
  }
  ssize_t read(char* to, std::size_t size) override {
    ERR_clear_error();
    const int got = SSL_read(ssl, to, static_cast<int>(size));
    if (got > 0) return got;
    return SSL_get_error(ssl, got) == SSL_ERROR_ZERO_RETURN ? 0 : -1;
  }
  ssize_t write(const char* data, std::size_t size) override {
    ERR_clear_error();
    return SSL_write(ssl, data, static_cast<int>(size));
  }
  void end() override { SSL_shutdown(ssl); }

  SSL_CTX* context;
  SSL* ssl = nullptr;
};

SSL* ssl_of(Peer& peer) {
  return static_cast<Session*>(peer.tls())->ssl;
}

void limit_version(SSL_CTX* context, int version) {
  if (version == 0) return;
  const int number = version == 12 ? TLS1_2_VERSION : TLS1_3_VERSION;
  SSL_CTX_set_min_proto_version(context, number);
  SSL_CTX_set_max_proto_version(context, number);
}

bool begin(Peer& peer, std::unique_ptr<Session> session, const PeerTlsOptions& options,
           bool client) {
  ::signal(SIGPIPE, SIG_IGN);  // OpenSSL's own sockets know no MSG_NOSIGNAL
  limit_version(session->context, options.version);
  session->ssl = SSL_new(session->context);
  SSL* const ssl = session->ssl;
  SSL_set_fd(ssl, peer.fd());
  if (!options.server_name.empty()) {
    std::string name = options.server_name;
    SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
    SSL_set1_host(ssl, name.c_str());
  }
  if (!options.alpn.empty()) {
    const std::string list = static_cast<char>(options.alpn.size()) + options.alpn;
    SSL_set_alpn_protos(ssl, reinterpret_cast<const unsigned char*>(list.data()),
                        static_cast<unsigned>(list.size()));
  }
  if (!options.session.empty()) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(options.session.data());
    SSL_SESSION* const before =
        d2i_SSL_SESSION(nullptr, &bytes, static_cast<long>(options.session.size()));
    SSL_set_session(ssl, before);
    SSL_SESSION_free(before);
  }
  const int done = client ? SSL_connect(ssl) : SSL_accept(ssl);
  peer.use(std::move(session));
  return done == 1;
}

}  // namespace

bool start_tls_client(Peer& peer, const std::string& authority, const PeerTlsOptions& options) {
  auto session = std::make_unique<Session>(TLS_client_method());
  BIO* const bio = BIO_new_mem_buf(authority.data(), static_cast<int>(authority.size()));
  X509* const certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(session->context), certificate);
  X509_free(certificate);
  BIO_free(bio);
  SSL_CTX_set_verify(session->context, SSL_VERIFY_PEER, nullptr);
  return begin(peer, std::move(session), options, true);
}

bool start_tls_server(Peer& peer, const CertificatePair& pair, const PeerTlsOptions& options) {
  auto session = std::make_unique<Session>(TLS_server_method());
  BIO* const first = BIO_new_mem_buf(pair.certificate.data(), -1);
  X509* const certificate = PEM_read_bio_X509(first, nullptr, nullptr, nullptr);
  SSL_CTX_use_certificate(session->context, certificate);
  X509_free(certificate);
  BIO_free(first);
  BIO* const second = BIO_new_mem_buf(pair.key.data(), -1);
  EVP_PKEY* const key = PEM_read_bio_PrivateKey(second, nullptr, nullptr, nullptr);
  SSL_CTX_use_PrivateKey(session->context, key);
  EVP_PKEY_free(key);
  BIO_free(second);
  // One key for all connections of the program, so that a ticket opens the next one.
  std::array<unsigned char, 80> keys{};
  keys.fill(7);
  SSL_CTX_ctrl(session->context, SSL_CTRL_SET_TLSEXT_TICKET_KEYS, keys.size(), keys.data());
  return begin(peer, std::move(session), options, false);
}

std::string tls_version(Peer& peer) {
  return SSL_get_version(ssl_of(peer));
}

std::string tls_alpn(Peer& peer) {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_of(peer), &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

std::string tls_server_name(Peer& peer) {
  const char* const name = SSL_get_servername(ssl_of(peer), TLSEXT_NAMETYPE_host_name);
  return name == nullptr ? "" : name;
}

std::string tls_certificate(Peer& peer) {
  X509* const certificate = SSL_get1_peer_certificate(ssl_of(peer));
  if (certificate == nullptr) return {};
  BIO* const bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, certificate);
  std::string out(BIO_ctrl_pending(bio), '\0');
  BIO_read(bio, out.data(), static_cast<int>(out.size()));
  BIO_free(bio);
  X509_free(certificate);
  return out;
}

bool tls_resumed(Peer& peer) {
  return SSL_session_reused(ssl_of(peer)) == 1;
}

std::string tls_session(Peer& peer) {
  SSL_SESSION* const session = SSL_get0_session(ssl_of(peer));
  std::string out(static_cast<std::size_t>(i2d_SSL_SESSION(session, nullptr)), '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(out.data());
  i2d_SSL_SESSION(session, &bytes);
  return out;
}

bool renegotiate(Peer& peer) {
  ERR_clear_error();
  return SSL_renegotiate(ssl_of(peer)) == 1 && SSL_do_handshake(ssl_of(peer)) == 1;
}

FakeProxy::Script over_tls(CertificatePair pair, FakeProxy::Script script, PeerTlsOptions options) {
  return [pair = std::move(pair), script = std::move(script), options = std::move(options)](
             Peer& peer, int number) {
    if (start_tls_server(peer, pair, options)) script(peer, number);
  };
}

}  // namespace proxypool::testing
