#include "net/http_client.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "net/http_server.hpp"
#include "net/inflate.hpp"
#include "net/name_lookup.hpp"
#include "net/url.hpp"
#include "runtime/boot_clock.hpp"

namespace proxypool::net {
namespace {

Deadline soon(nanoseconds budget = seconds{10}) {
  return Deadline::after(runtime::boot_now(), budget);
}

// zlib's windowBits: 15 + 16 gzip, 15 zlib, -15 raw deflate.
std::string compress(const std::string& text, int format) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, format, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

void wait_readable(int fd) {
  pollfd poll{fd, POLLIN, 0};
  ::poll(&poll, 1, 10'000);
}

// Accepts connections one after another and lets `serve` play with each, as a blocking descriptor.
class RawServer {
 public:
  explicit RawServer(std::function<void(int fd)> serve)
      : listener_(listen_tcp({IpAddress::v4(0x7F000001), 0}).value().release()),
        port_(local_port(listener_.get())),
        thread_([this, serve = std::move(serve)] {
          while (!stopping_) {
            wait_readable(listener_.get());
            const Accepted accepted = accept_tcp(listener_.get());
            if (stopping_ || !accepted.fd) continue;
            ::fcntl(accepted.fd.get(), F_SETFL, 0);
            serve(accepted.fd.get());
          }
        }) {}
  ~RawServer() {
    stopping_ = true;
    const Connecting wake = start_connect({IpAddress::v4(0x7F000001), port_});
    thread_.join();
  }
  [[nodiscard]] std::string url(const std::string& target = "/") const {
    return "http://127.0.0.1:" + std::to_string(port_) + target;
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  UniqueFd listener_;
  std::uint16_t port_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

std::string read_head(int fd) {
  std::string head;
  std::array<char, 4096> bytes;
  while (head.find("\r\n\r\n") == std::string::npos) {
    const auto count = ::recv(fd, bytes.data(), bytes.size(), 0);
    if (count <= 0) break;
    head.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return head;
}

// Answers every request with the same bytes and closes.
RawServer always(std::string answer) {
  return RawServer([answer = std::move(answer)](int fd) {
    read_head(fd);
    std::string_view left = answer;
    while (!left.empty()) {
      const auto count = ::send(fd, left.data(), left.size(), MSG_NOSIGNAL);
      if (count <= 0) return;
      left.remove_prefix(static_cast<std::size_t>(count));
    }
  });
}

HttpClient client(const std::string& ca_file = "") {
  return std::move(HttpClient::create({.ca_file = ca_file})).value();
}

HttpFault fault_of(const HttpCall& call, Deadline deadline = soon()) {
  HttpFault fault{};
  const auto answer = client().request(call, deadline, &fault);
  EXPECT_EQ(answer.has_value(), fault == HttpFault::None);
  if (!answer) {
    EXPECT_EQ(answer.error().message.find("secret"), std::string::npos);
  }
  return fault;
}

std::string sized(const std::string& body, const std::string& fields = "") {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + fields +
         "\r\n" + body;
}

TEST(HttpClient, SendsTheRequestAndReadsTheAnswer) {
  std::string seen;
  const RawServer server([&](int fd) {
    seen = read_head(fd);
    const std::string answer = sized("hello", "X-A: 1\r\nx-a: 2\r\n");
    ::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
  });
  const auto answer = client().request({.method = "POST",
                                        .url = server.url("/p?q=1#fragment"),
                                        .fields = {{"Authorization", "Bearer t"}},
                                        .body = "body!"},
                                       soon());
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "hello");
  EXPECT_EQ(answer->field("X-A"), "1");
  EXPECT_EQ(seen.substr(0, 22), "POST /p?q=1 HTTP/1.1\r\n");
  EXPECT_NE(seen.find("Authorization: Bearer t\r\n"), std::string::npos);
  EXPECT_NE(seen.find("Host: 127.0.0.1:"), std::string::npos);
  EXPECT_NE(seen.find("Content-Length: 5\r\n"), std::string::npos);
}

TEST(HttpClient, ReadsBodiesHoweverTheyAreFramed) {
  const std::pair<std::string, std::string> cases[] = {
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
       "abcde"},
      {"HTTP/1.0 200 OK\r\n\r\nuntil the end", "until the end"},
      {"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok"},
      {"HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\nnone", "none"},
  };
  for (const auto& [bytes, body] : cases) {
    const auto server = always(bytes);
    const auto answer = client().request({.url = server.url()}, soon());
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->body, body);
  }
}

TEST(HttpClient, DecompressesWithALimitOnBothSides) {
  const std::string text(100'000, 'x');
  const auto gzip = always(sized(compress(text, 31), "Content-Encoding: gzip\r\n"));
  const auto zlib = always(sized(compress(text, 15), "Content-Encoding: deflate\r\n"));
  const auto raw = always(sized(compress(text, -15), "Content-Encoding: Deflate\r\n"));
  for (const auto* server : {&gzip, &zlib, &raw}) {
    const auto answer = client().request({.url = server->url()}, soon());
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->body, text);
  }
  EXPECT_EQ(fault_of({.url = gzip.url(), .decoded_bytes_max = 99'999}), HttpFault::TooLarge);
  EXPECT_EQ(fault_of({.url = gzip.url(), .body_bytes_max = 10}), HttpFault::TooLarge);
  const std::string cut = compress(text, 31).substr(0, 50);
  EXPECT_EQ(fault_of({.url = always(sized(cut, "Content-Encoding: gzip\r\n")).url()}),
            HttpFault::Truncated);
  EXPECT_EQ(fault_of({.url = always(sized("plain", "Content-Encoding: gzip\r\n")).url()}),
            HttpFault::Protocol);
  EXPECT_EQ(fault_of({.url = always(sized("x", "Content-Encoding: br\r\n")).url()}),
            HttpFault::Protocol);
}

TEST(Inflate, ReadsAllMembersAndRefusesWhatFollows) {
  std::string out;
  EXPECT_EQ(inflate(compress("one", 31) + compress("two", 31), 100, out), InflateResult::Done);
  EXPECT_EQ(out, "onetwo");
  EXPECT_EQ(inflate(compress("one", 31) + "junk", 100, out), InflateResult::Corrupt);
  EXPECT_EQ(inflate("", 100, out), InflateResult::Truncated);
}

TEST(HttpClient, HasOneFaultPerCause) {
  std::uint16_t closed = 0;
  {
    const UniqueFd fd = listen_tcp({IpAddress::v4(0x7F000001), 0}).value();
    closed = local_port(fd.get());
  }
  EXPECT_EQ(fault_of({.url = "http://127.0.0.1:" + std::to_string(closed) + "/?secret"}),
            HttpFault::Connect);
  EXPECT_EQ(fault_of({.url = always("SSH-2.0-secret\r\n").url()}), HttpFault::Protocol);
  EXPECT_EQ(fault_of({.url = always("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").url()}),
            HttpFault::Truncated);
  EXPECT_EQ(fault_of({.url = always("HTTP/1.1 200 OK\r\nContent-").url()}), HttpFault::Truncated);
  EXPECT_EQ(fault_of({.url = always("").url()}), HttpFault::Truncated);
  const auto long_head = "HTTP/1.1 200 OK\r\nX: " + std::string(70'000, 'x') + "\r\n\r\n";
  EXPECT_EQ(fault_of({.url = always(long_head).url()}), HttpFault::TooLarge);
  EXPECT_EQ(fault_of({.url = "ftp://127.0.0.1/secret"}), HttpFault::BadRequest);
  EXPECT_EQ(fault_of({.url = "http://user:secret@127.0.0.1/"}), HttpFault::BadRequest);
  EXPECT_EQ(fault_of({.method = "G T", .url = "http://127.0.0.1/"}), HttpFault::BadRequest);
  EXPECT_EQ(fault_of({.url = "http://127.0.0.1/", .fields = {{"X", "a\r\nY: b"}}}),
            HttpFault::BadRequest);
}

TEST(HttpClient, TriesTheNextAddressAndTellsWhatTheResolverSaid) {
  const auto server = always(sized("second"));
  const auto ask = [&](LookUp look_up, HttpFault& fault) {
    auto with = HttpClient::create({.look_up = std::move(look_up)});
    const std::string url = "http://a.example:" + std::to_string(server.port()) + "/";
    return with->request({.url = url}, soon(), &fault);
  };
  HttpFault fault{};
  const auto answer = ask(
      [](const std::string& host, std::uint16_t port, Deadline) {
        EXPECT_EQ(host, "a.example");
        return std::vector{Endpoint{IpAddress::v4(0x7F000002), port},
                           Endpoint{IpAddress::v4(0x7F000001), port}};
      },
      fault);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "second");
  EXPECT_FALSE(ask(
      [](const std::string&, std::uint16_t, Deadline) {
        return Error{ErrorCode::NotFound, Origin::Target, "no such name"};
      },
      fault));
  EXPECT_EQ(fault, HttpFault::Dns);
  EXPECT_FALSE(ask(
      [](const std::string&, std::uint16_t, Deadline) {
        return Error{ErrorCode::DeadlineExceeded, Origin::Target, "late"};
      },
      fault));
  EXPECT_EQ(fault, HttpFault::Timeout);
}

TEST(LookUp, FindsThisMachineAndTakesLiterals) {
  const auto local = look_up("localhost", 80, soon());
  ASSERT_TRUE(local) << local.error().message;
  EXPECT_EQ(classify(local->front().address), IpClass::Loopback);
  EXPECT_EQ(local->front().port, 80);
  EXPECT_EQ(look_up("::1", 1, Deadline(runtime::boot_now())).value().front().str(), "[::1]:1");
}

TEST(HttpClient, KeepsTheDeadlineWhileConnectingAndWhileReading) {
  const UniqueFd silent = listen_tcp({IpAddress::v4(0x7F000001), 0}).value();  // never accepts
  const std::string url = "http://127.0.0.1:" + std::to_string(local_port(silent.get())) + "/";
  const TimePoint begin = runtime::boot_now();
  EXPECT_EQ(fault_of({.url = url}, soon(milliseconds{60})), HttpFault::Timeout);
  EXPECT_EQ(fault_of({.url = url}, Deadline(begin)), HttpFault::Timeout);
  EXPECT_LT(runtime::boot_now() - begin, seconds{5});
}

TEST(HttpClient, FollowsRedirectsOnTheSameHostOnly) {
  EventLoop loop;
  HttpServer server(loop, listen_tcp({IpAddress::v4(0x7F000001), 0}).value(),
                    [](const HttpRequest& request, Responder responder) {
                      const auto to = request.parameter("to");
                      if (!to) return responder.answer(text_response(200, request.method_text));
                      HttpResponse redirect =
                          text_response(request.method == Method::Post ? 303 : 302, "");
                      redirect.fields.emplace_back("Location", std::string(*to));
                      responder.answer(std::move(redirect));
                    });
  const std::string base = "http://127.0.0.1:" + std::to_string(server.port());
  std::thread thread([&] { loop.run(); });
  const auto body = [&](const HttpCall& call) {
    const auto answer = client().request(call, soon());
    return answer ? answer->body : answer.error().message;
  };
  EXPECT_EQ(body({.url = base + "/a?to=/b"}), "GET");
  EXPECT_EQ(body({.url = base + "/a/b?to=c"}), "GET");
  EXPECT_EQ(body({.url = base + "/?to=" + base + "/x"}), "GET");
  EXPECT_EQ(body({.method = "POST", .url = base + "/?to=/b", .body = "x"}), "GET");
  EXPECT_EQ(body({.method = "PUT", .url = base + "/?to=/b", .body = "x"}), "PUT");
  EXPECT_EQ(fault_of({.url = base + "/?to=http://localhost/"}), HttpFault::Redirect);
  EXPECT_EQ(fault_of({.url = base + "/?to=http://127.0.0.1:1/"}), HttpFault::Redirect);
  EXPECT_EQ(fault_of({.url = base + "/?to=/?to=/", .redirects_max = 1}), HttpFault::Redirect);
  EXPECT_EQ(fault_of({.url = base + "/?to=ftp://x/"}), HttpFault::Redirect);
  loop.stop();
  thread.join();
}

TEST(Url, TakesUrlsApart) {
  const auto url = parse_url("HTTPS://[::1]:8443?a=b#c").value();
  EXPECT_TRUE(url.tls);
  EXPECT_EQ(url.host, "::1");
  EXPECT_EQ(url.port, 8443);
  EXPECT_EQ(url.authority, "[::1]:8443");
  EXPECT_EQ(url.target, "/?a=b");
  EXPECT_EQ(parse_url("https://h").value().port, 443);
  for (const auto* bad : {"", "h/x", "http://", "http://h:0/", "http://h/a b", "http://h/\"",
                          "http://a@h/", "gopher://h/"}) {
    EXPECT_FALSE(parse_url(bad)) << bad;
  }
  const auto base = parse_url("http://h:1/a/b?c").value();
  EXPECT_EQ(resolve(base, "?x").value().target, "/a/b?x");
  EXPECT_EQ(resolve(base, "x?y:z").value().target, "/a/x?y:z");
  EXPECT_EQ(resolve(base, "//o/x").value().host, "o");
  EXPECT_EQ(resolve(base, "https://o/x").value().port, 443);
}

// A certificate of its own authority, for the names given ("DNS:localhost,IP:127.0.0.1").
struct Certificate {
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key{EVP_EC_gen("P-256"), &EVP_PKEY_free};
  std::unique_ptr<X509, decltype(&X509_free)> x509{X509_new(), &X509_free};

  explicit Certificate(const char* names) {
    X509_set_version(x509.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x509.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x509.get()), 3600);
    X509_set_pubkey(x509.get(), key.get());
    X509_NAME* const name = X509_get_subject_name(x509.get());
    const std::string common = "test";
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(common.c_str()), -1, -1, 0);
    X509_set_issuer_name(x509.get(), name);
    X509_EXTENSION* const extension =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names);
    X509_add_ext(x509.get(), extension, -1);
    X509_EXTENSION_free(extension);
    X509_sign(x509.get(), key.get(), EVP_sha256());
  }
  // Its own authority, as a PEM file in `path`.
  void save(const std::string& path) const {
    std::FILE* const file = std::fopen(path.c_str(), "w");
    ASSERT_NE(file, nullptr);
    PEM_write_X509(file, x509.get());
    std::fclose(file);
  }
};

// One TLS answer a connection.
class TlsServer {
 public:
  explicit TlsServer(const Certificate& certificate, int version_max = TLS1_3_VERSION)
      : context_(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free),
        server_([this](int fd) { serve(fd); }) {
    SSL_CTX_use_certificate(context_.get(), certificate.x509.get());
    SSL_CTX_use_PrivateKey(context_.get(), certificate.key.get());
    SSL_CTX_set_security_level(context_.get(), 0);
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context_.get(), version_max);
  }
  [[nodiscard]] std::string url(const std::string& host) const {
    return "https://" + host + ":" + std::to_string(server_.port()) + "/";
  }

 private:
  void serve(int fd) {
    const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context_.get()), &SSL_free);
    SSL_set_fd(ssl.get(), fd);
    std::array<char, 4096> bytes;
    if (SSL_accept(ssl.get()) != 1 || SSL_read(ssl.get(), bytes.data(), bytes.size()) <= 0) return;
    const char* const sni = SSL_get_servername(ssl.get(), TLSEXT_NAMETYPE_host_name);
    const std::string answer = sized(std::string("sni=") + (sni == nullptr ? "" : sni));
    SSL_write(ssl.get(), answer.data(), static_cast<int>(answer.size()));
    SSL_shutdown(ssl.get());
  }

  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  RawServer server_;
};

class HttpClientTls : public testing::Test {
 protected:
  HttpClientTls() : path_(testing::TempDir() + "ca-" + std::to_string(::getpid()) + ".pem") {
    ::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
  }
  ~HttpClientTls() override { std::filesystem::remove(path_); }

  std::string path_;
};

TEST_F(HttpClientTls, VerifiesTheNameAndSendsIt) {
  const Certificate certificate("DNS:localhost,IP:127.0.0.1");
  certificate.save(path_);
  const TlsServer server(certificate);
  const auto named = client(path_).request({.url = server.url("localhost")}, soon());
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_EQ(named->body, "sni=localhost");
  const auto literal = client(path_).request({.url = server.url("127.0.0.1")}, soon());
  ASSERT_TRUE(literal) << literal.error().message;
  EXPECT_EQ(literal->body, "sni=");
}

TEST_F(HttpClientTls, RefusesAWrongNameAndAnUnknownAuthority) {
  const Certificate certificate("DNS:other.example");
  certificate.save(path_);
  const TlsServer server(certificate);
  HttpFault fault{};
  const auto wrong = client(path_).request({.url = server.url("localhost")}, soon(), &fault);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(fault, HttpFault::Tls);
  EXPECT_NE(wrong.error().message.find("ostname mismatch"), std::string::npos)
      << wrong.error().message;
  EXPECT_FALSE(client(path_).request({.url = server.url("127.0.0.1")}, soon(), &fault));
  EXPECT_EQ(fault, HttpFault::Tls);
  EXPECT_FALSE(client().request({.url = server.url("localhost")}, soon(), &fault));
  EXPECT_EQ(fault, HttpFault::Tls);
}

TEST_F(HttpClientTls, RefusesOldVersionsAndPlainPeers) {
  const Certificate certificate("DNS:localhost");
  certificate.save(path_);
  HttpFault fault{};
  const TlsServer old(certificate, TLS1_1_VERSION);
  EXPECT_FALSE(client(path_).request({.url = old.url("localhost")}, soon(), &fault));
  EXPECT_EQ(fault, HttpFault::Tls);
  const TlsServer enough(certificate, TLS1_2_VERSION);
  EXPECT_TRUE(client(path_).request({.url = enough.url("localhost")}, soon(), &fault));
  const RawServer plain([](int fd) {
    std::array<char, 4096> hello;
    ::recv(fd, hello.data(), hello.size(), 0);
    ::send(fd, "HTTP/1.1 400 Bad\r\n\r\n", 20, MSG_NOSIGNAL);
  });
  const std::string url = "https://localhost:" + std::to_string(plain.port()) + "/";
  EXPECT_FALSE(client(path_).request({.url = url}, soon(), &fault));
  EXPECT_EQ(fault, HttpFault::Tls);
}

TEST(HttpClient, NeedsItsAuthorities) {
  const auto none = HttpClient::create({.ca_file = "/nonexistent.pem"});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("/nonexistent.pem"), std::string::npos);
}

}  // namespace
}  // namespace proxypool::net
