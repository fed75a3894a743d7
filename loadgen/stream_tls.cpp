#include <openssl/ssl.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "loadgen/stream.hpp"
#include "loadgen/tls.hpp"
#include "proxypool/base/ip.hpp"

namespace proxypool::loadgen {
namespace {

constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

}  // namespace

struct Stream::Tls {
  Tls(Tcp::socket& socket, asio::ssl::context& context) : stream(socket, context) {}

  asio::ssl::stream<Tcp::socket&> stream;
  std::array<char, 16'384> record{};  // TLS reads wait in the middle, so each needs its own space
};

awaitable<IoError> Stream::start_tls(std::shared_ptr<ClientTls> tls, std::string host) {
  tls_ = std::make_shared<Tls>(socket_, tls->context());
  SSL* session = tls_->stream.native_handle();
  // What the macro SSL_set_tlsext_host_name does, without its C cast.
  if (!IpAddress::parse(host) && SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME,
                                          TLSEXT_NAMETYPE_host_name, host.data()) != 1) {
    co_return asio::error::invalid_argument;
  }
  if (tls->verifies()) {
    IoError failed;
    tls_->stream.set_verify_callback(asio::ssl::host_name_verification(host), failed);
    if (failed) co_return failed;
  }
  const auto [error] =
      co_await tls_->stream.async_handshake(asio::ssl::stream_base::client, kAsTuple);
  co_return error;
}

awaitable<IoError> Stream::fill_tls() {
  const auto space = asio::buffer(tls_->record);
  const auto [error, bytes] = co_await tls_->stream.async_read_some(space, kAsTuple);
  if (!error) add(tls_->record.data(), bytes);
  co_return error;
}

awaitable<IoError> Stream::write_tls(std::string_view bytes) {
  const auto all = asio::buffer(bytes.data(), bytes.size());
  const auto [error, written] = co_await asio::async_write(tls_->stream, all, kAsTuple);
  co_return error;
}

}  // namespace proxypool::loadgen
