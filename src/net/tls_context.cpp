#include <openssl/err.h>
#include <openssl/ssl.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <utility>

#include "net/socket.hpp"
#include "net/tls.hpp"
#include "runtime/boot_clock.hpp"

namespace proxypool::net {
namespace {

// Four records a read; the memory is given back when the socket is empty.
constexpr std::size_t kReadBytes = 4 * (SSL3_RT_MAX_PLAIN_LENGTH + 512);

constexpr std::array<unsigned char, 9> kHttp11{8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

int choose_http(SSL*, const unsigned char** chosen, unsigned char* size,
                const unsigned char* offered, unsigned offered_size, void*) {
  unsigned char* found = nullptr;
  const int result =
      SSL_select_next_proto(&found, size, kHttp11.data(), kHttp11.size(), offered, offered_size);
  *chosen = found;
  // Who can only speak something else learns it now and not from garbage.
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// OpenSSL would ask the terminal.
int no_pass_phrase(char*, int, int, void*) {
  return -1;
}

ssl_ctx_st* make_context(const SSL_METHOD* method, TlsVersion version_min) {
  SSL_CTX* const context = SSL_CTX_new(method);
  if (context == nullptr) return nullptr;
  SSL_CTX_set_min_proto_version(context,
                                version_min == TlsVersion::Tls13 ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kReadBytes);
  SSL_CTX_set_default_passwd_cb(context, no_pass_phrase);
  return context;
}

// The reason of the last OpenSSL call, of which only the first error says something.
std::string reason() {
  const auto code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "unknown error";
  if (ERR_SYSTEM_ERROR(code)) return errno_text(ERR_GET_REASON(code));
  const char* const text = ERR_reason_error_string(code);
  return text == nullptr ? "error " + std::to_string(code) : text;
}

Error bad_file(const std::string& what, const std::string& file, const std::string& why) {
  return Error{ErrorCode::InvalidArgument, Origin::Client, what + " " + file + ": " + why};
}

WallTime to_wall_time(const ASN1_TIME* time) noexcept {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
  return WallTime(seconds(::timegm(&parts)));
}

}  // namespace

TlsContext::~TlsContext() {
  SSL_CTX_free(context_);
}

Result<std::shared_ptr<const TlsContext>> TlsContext::server(const TlsServerOptions& options) {
  ERR_clear_error();
  const std::shared_ptr<TlsContext> made(
      new TlsContext(make_context(TLS_server_method(), options.version_min)));
  SSL_CTX* const context = made->context_;
  if (context == nullptr) return Error{ErrorCode::Internal, Origin::Internal, reason()};
  SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Tickets carry the sessions: nothing to keep, nothing to lock.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_select_cb(context, choose_http, nullptr);
  const std::string& certificate_file = options.certificate_file;
  if (SSL_CTX_use_certificate_chain_file(context, certificate_file.c_str()) != 1) {
    return bad_file("certificate", certificate_file, reason());
  }
  if (SSL_CTX_use_PrivateKey_file(context, options.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    return bad_file("key", options.key_file, reason());
  }
  if (SSL_CTX_check_private_key(context) != 1) {
    return bad_file("key", options.key_file, "is not the one of " + certificate_file);
  }
  const X509* const certificate = SSL_CTX_get0_certificate(context);
  made->valid_until_ = to_wall_time(X509_get0_notAfter(certificate));
  const WallTime now = runtime::wall_now();
  if (now >= made->valid_until_) {
    return bad_file("certificate", certificate_file,
                    "has ended on " + format_time(made->valid_until_));
  }
  const WallTime begin = to_wall_time(X509_get0_notBefore(certificate));
  if (now < begin) {
    return bad_file("certificate", certificate_file, "is not valid before " + format_time(begin));
  }
  return std::shared_ptr<const TlsContext>(made);
}

Result<std::shared_ptr<const TlsContext>> TlsContext::client(const std::string& ca_file) {
  ERR_clear_error();
  const std::shared_ptr<TlsContext> made(
      new TlsContext(make_context(TLS_client_method(), TlsVersion::Tls12)));
  SSL_CTX* const context = made->context_;
  if (context == nullptr) return Error{ErrorCode::Internal, Origin::Internal, reason()};
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  const int loaded = ca_file.empty()
                         ? SSL_CTX_set_default_verify_paths(context)
                         : SSL_CTX_load_verify_locations(context, ca_file.c_str(), nullptr);
  if (loaded != 1) return bad_file("authorities", ca_file, reason());
  SSL_CTX_set_alpn_protos(context, kHttp11.data(), kHttp11.size());
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, &TlsSession::on_new_ticket);
  return std::shared_ptr<const TlsContext>(made);
}

}  // namespace proxypool::net
