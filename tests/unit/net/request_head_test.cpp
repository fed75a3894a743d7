#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "net/http/head.hpp"
#include "unit/net/parse_in_pieces.hpp"

namespace proxypool::net {
namespace {

std::string describe(const RequestHead& head) {
  constexpr std::string_view kForms[] = {"origin", "absolute", "authority", "asterisk"};
  constexpr std::string_view kFramings[] = {"none", "length", "chunked", "close", "tunnel"};
  std::string out(head.method_text());
  out += " " + std::string(kForms[static_cast<std::size_t>(head.form())]);
  out += head.scheme() == Scheme::Ws ? " ws" : "";
  out += " " + std::string(head.host()) + (head.host_is_ipv6() ? " v6 " : " ");
  out += std::to_string(head.port()) + " [" + std::string(head.path_and_query()) + "]";
  out += " 1." + std::to_string(head.minor_version());
  out += " " + std::string(kFramings[static_cast<std::size_t>(head.framing())]);
  if (head.framing() == Framing::Length) out += " " + std::to_string(head.content_length());
  out += head.keep_alive() ? " keep" : "";
  out += head.expects_continue() ? " expect" : "";
  out += head.upgrades_to_websocket() ? " websocket" : "";
  out += head.accepts_trailers() ? " trailers" : "";
  for (const Field& field : head.fields()) {
    out += " | " + std::string(head.name(field)) + "=" + std::string(head.value(field));
    out += field.hop_by_hop ? " (hop)" : "";
  }
  return out;
}

std::string parse_once(std::string_view bytes, const std::vector<std::size_t>& cuts) {
  RequestParser parser;
  for (const std::size_t cut : cuts) {
    const test::MovedCopy copy(bytes, cut);
    const ParseState state = parser.parse(copy.view());
    if (state == ParseState::Done) {
      return describe(parser.head()) + " | " + std::string(bytes.substr(parser.head().size()));
    }
    if (state == ParseState::Refused) {
      return std::to_string(parser.refusal().status) + " " + std::string(parser.refusal().reason);
    }
  }
  return "more";
}

std::string parse(std::string_view bytes) {
  return test::same_in_all_pieces(bytes, [&](const auto& cuts) { return parse_once(bytes, cuts); });
}

std::string with_fields(std::string_view fields) {
  return "POST http://a.example/p HTTP/1.1\r\nHost: a.example\r\n" + std::string(fields) + "\r\n";
}
std::string get(std::string_view target) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: h.example\r\n\r\n";
}

TEST(RequestHead, UnderstandsTheFourFormsOfTarget) {
  EXPECT_EQ(parse(get("http://Origin.Example:8080/a?b=c")),
            "GET absolute Origin.Example 8080 [/a?b=c] 1.1 none keep | Host=h.example | ");
  EXPECT_EQ(parse(get("http://origin.example?q=1")).substr(0, 38),
            "GET absolute origin.example 80 [?q=1] ");
  EXPECT_EQ(parse(get("HTTP://origin.example")).substr(0, 34),
            "GET absolute origin.example 80 [] ");
  EXPECT_EQ(parse(get("ws://origin.example:/x")).substr(0, 39),
            "GET absolute ws origin.example 80 [/x] ");
  EXPECT_EQ(parse(get("http://[2001:db8::10]:81/")).substr(0, 37),
            "GET absolute 2001:db8::10 v6 81 [/] 1");
  EXPECT_EQ(parse(get("/a?b")).substr(0, 34), "GET origin h.example 80 [/a?b] 1.1");
  EXPECT_EQ(parse("OPTIONS * HTTP/1.1\r\nHost: h.example:8\r\n\r\n").substr(0, 35),
            "OPTIONS asterisk h.example 8 [] 1.1");
  EXPECT_EQ(parse("CONNECT [2001:db8::10]:443 HTTP/1.1\r\nHost: other.example\r\n\r\nEARLY"),
            "CONNECT authority 2001:db8::10 v6 443 [] 1.1 none keep | Host=other.example | EARLY");
}

TEST(RequestHead, SkipsOneEmptyLineAndCountsIt) {
  EXPECT_EQ(parse("\r\n" + get("/")),
            "GET origin h.example 80 [/] 1.1 none keep | Host=h.example | ");
  EXPECT_EQ(parse("\r\n\r\n" + get("/")), "400 invalid method");
}

TEST(RequestHead, CutsBlanksAroundValuesAndKeepsTheRest) {
  EXPECT_EQ(parse("GET / HTTP/1.0\r\nX-A: \t a\t b \t\r\nx-a:\r\nX-N: \xe4\xb8\xad\r\n\r\n"),
            "GET origin  80 [/] 1.0 none | X-A=a\t b | x-a= | X-N=\xe4\xb8\xad | ");
}

TEST(RequestHead, KnowsHowTheBodyEnds) {
  EXPECT_NE(parse(with_fields("Content-Length: 007\r\n")).find("length 7 "), std::string::npos);
  EXPECT_NE(parse(with_fields("content-length:18446744073709551615\r\n"))
                .find("length 18446744073709551615 "),
            std::string::npos);
  EXPECT_NE(parse(with_fields("Transfer-Encoding: Chunked\r\n")).find(" chunked "),
            std::string::npos);
}

TEST(RequestHead, KnowsWhetherTheConnectionGoesOn) {
  const auto keeps = [](std::string_view version, std::string_view fields) {
    const auto text = parse("GET / HTTP/" + std::string(version) + "\r\nHost: h\r\n" +
                            std::string(fields) + "\r\n");
    return text.find(" keep") != std::string::npos;
  };
  EXPECT_TRUE(keeps("1.1", ""));
  EXPECT_FALSE(keeps("1.1", "Connection: Close\r\n"));
  EXPECT_FALSE(keeps("1.1", "Connection: keep-alive, close\r\n"));
  EXPECT_FALSE(keeps("1.0", ""));
  EXPECT_TRUE(keeps("1.0", "connection: Keep-Alive\r\n"));
}

// GW-5: Connection names what stays here, but never what carries the host or the framing.
TEST(RequestHead, MarksHopByHopFields) {
  EXPECT_EQ(parse(with_fields("Connection: x-a, ,Host , content-length\r\nX-A: 1\r\nX-B: 2\r\n"
                              "Content-Length: 0\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\n"
                              "Proxy-Authorization: y\r\n")),
            "POST absolute a.example 80 [/p] 1.1 length 0 keep | Host=a.example | "
            "Connection=x-a, ,Host , content-length (hop) | X-A=1 (hop) | X-B=2 | "
            "Content-Length=0 | Keep-Alive=5 (hop) | Proxy-Connection=x (hop) | "
            "Proxy-Authorization=y (hop) | ");
  EXPECT_EQ(parse(with_fields("Connection: a b\r\n")), "400 Connection is no list of tokens");
  std::string many = "Connection: a";
  for (int i = 0; i < 100; ++i) many += ",a";
  EXPECT_EQ(parse(with_fields(many + "\r\n")), "431 more than 100 connection options");
}

// GW-7: only a request that can really become a WebSocket asks for one.
TEST(RequestHead, KnowsAWebSocketRequest) {
  const auto asks = [](std::string_view start, std::string_view fields) {
    return parse(std::string(start) + "\r\nHost: h\r\n" + std::string(fields) + "\r\n")
               .find(" websocket |") != std::string::npos;
  };
  constexpr std::string_view kUpgrade = "Connection: Upgrade\r\nUpgrade: WebSocket\r\n";
  EXPECT_TRUE(asks("GET ws://h/ HTTP/1.1", kUpgrade));
  EXPECT_FALSE(asks("POST http://h/ HTTP/1.1", kUpgrade));
  EXPECT_FALSE(asks("GET http://h/ HTTP/1.0", kUpgrade));
  EXPECT_FALSE(asks("GET http://h/ HTTP/1.1", "Upgrade: websocket\r\n"));
  EXPECT_FALSE(asks("GET http://h/ HTTP/1.1", "Connection: Upgrade\r\nUpgrade: h2c\r\n"));
  EXPECT_FALSE(asks("GET http://h/ HTTP/1.1",
                    "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n"));
  EXPECT_FALSE(asks("GET http://h/ HTTP/1.1",
                    "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n"));
}

TEST(RequestHead, KnowsExpectationsTrailersAndHops) {
  EXPECT_NE(parse(with_fields("Expect: 100-Continue\r\n")).find(" expect |"), std::string::npos);
  EXPECT_NE(parse(with_fields("TE: gzip, trailers\r\nConnection: TE\r\n")).find(" trailers |"),
            std::string::npos);
  EXPECT_EQ(parse(with_fields("TE: trailers\r\n")).find(" trailers |"), std::string::npos);
  RequestParser parser;
  const std::string trace = "TRACE http://h/ HTTP/1.1\r\nHost: h\r\nMax-Forwards: 3\r\n\r\n";
  ASSERT_EQ(parser.parse(trace), ParseState::Done);
  EXPECT_EQ(parser.head().max_forwards(), 3U);
  parser.reset();
  const std::string other = "GET http://h/ HTTP/1.1\r\nHost: h\r\nMax-Forwards: 3\r\n\r\n";
  ASSERT_EQ(parser.parse(other), ParseState::Done);
  EXPECT_EQ(parser.head().max_forwards(), std::nullopt);
}

TEST(RequestHead, TakesUnknownMethods) {
  EXPECT_EQ(parse("FOO-B! / HTTP/1.1\r\nHost: h\r\n\r\n").substr(0, 14), "FOO-B! origin ");
  EXPECT_EQ(to_method("get"), Method::Other);
  for (const auto* text :
       {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}) {
    EXPECT_NE(to_method(text), Method::Other) << text;
  }
}

struct Bad {
  std::string bytes;
  std::string_view outcome;
};

// GW-4, and each row of the table in which a lenient parser was found wanting.
TEST(RequestHead, RefusesWhatIsNotHttp) {
  using namespace std::string_literals;
  const Bad cases[] = {
      {"GET http://h/x\nHost: h\r\n\r\n", "400 request line without a version"},
      {"GET http://h/x HTTP/1.1\nHost: h\r\n\r\n", "400 line ends with a bare LF"},
      {"GET / HTTP/1.1\r\nHost: h\n\r\n", "400 line ends with a bare LF"},
      {"GET / HTTP/1.1\r\nHost: h\r\n\n", "400 line ends with a bare LF"},
      {"GET / HTTP/1.1\r\nHost\n: h\r\n\r\n", "400 line ends with a bare LF"},
      {"\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", "400 line ends with a bare LF"},
      {"GET\n / HTTP/1.1\r\nHost: h\r\n\r\n", "400 line ends with a bare LF"},
      {"\rGET / HTTP/1.1\r\nHost: h\r\n\r\n", "400 bare CR"},
      {"GET / HTTP/1.1\rX\r\nHost: h\r\n\r\n", "400 bare CR"},
      {"GET / HTTP/1.1\r\nHost: h\r\n\rX", "400 bare CR"},
      {with_fields("X: a\rb\r\n"), "400 bare CR"},
      {with_fields("X: a\r\n b\r\n"), "400 folded field line"},
      {with_fields("X: a\r\n\tb\r\n"), "400 folded field line"},
      {"GET / HTTP/1.1\r\n Host: h\r\n\r\n", "400 folded field line"},
      {with_fields("Transfer-Encoding:\r\n chunked\r\n"), "400 folded field line"},
      {with_fields("X : a\r\n"), "400 white space in or behind a field name"},
      {with_fields(": a\r\n"), "400 empty field name"},
      {with_fields("X@: a\r\n"), "400 invalid field name"},
      {with_fields("X\x80: a\r\n"), "400 invalid field name"},
      {with_fields("X\r\n"), "400 field line without a colon"},
      {with_fields("X: a\0b\r\n"s), "400 control character in a field value"},
      {with_fields("X: a\x01\r\n"), "400 control character in a field value"},
      {with_fields("X: 1234567\x7f\r\n"), "400 control character in a field value"},
      {"G(ET / HTTP/1.1\r\nHost: h\r\n\r\n", "400 invalid method"},
      {"\x16\x03\x01\x02", "400 invalid method"},
      {" GET / HTTP/1.1\r\nHost: h\r\n\r\n", "400 invalid method"},
      {get("admin"), "400 invalid request target"},
      {get("*"), "400 invalid request target"},
      {get("/a\0.txt"s), "400 invalid request target"},
      {get("/\x80"), "400 invalid request target"},
      {get("/\""), "400 invalid request target"},
      {get("/a#b"), "400 invalid request target"},
      {get("/<x>"), "400 invalid request target"},
      {get(" /"), "400 invalid request target"},
      {get("http:/h/"), "400 invalid request target"},
      {get("//h/"), "GET origin h.example 80 [//h/] 1.1 none keep | Host=h.example | "},
      {get("/ /"), "400 unknown protocol version"},
      {get("ftp://h/"), "400 scheme is neither http nor ws"},
      {get("https://h/"), "400 scheme is neither http nor ws"},
      {get("http://u@h/"), "400 user information in the target"},
      {get("http://u:p@h:80/"), "400 user information in the target"},
      {get("http:///x"), "400 invalid host"},
      {get("http://a..b/"), "400 invalid host"},
      {get("http://a%2eb/"), "400 invalid host"},
      {get("http://a!b/"), "400 invalid host"},
      {get("http://[fe80::1%25eth0]/"), "400 invalid host"},
      {get("http://[v1.x]/"), "400 invalid host"},
      {get("http://[::1/"), "400 invalid host"},
      {get("http://[127.0.0.1]/"), "400 invalid host"},
      {get("http://::1/"), "400 invalid host"},
      {get("http://h:0/"), "400 invalid port"},
      {get("http://h:65536/"), "400 invalid port"},
      {get("http://h:+80/"), "400 invalid port"},
      {get("http://[::1]80/"), "400 invalid host"},
      {"GET / HTTP/1.2\r\nHost: h\r\n\r\n", "400 unknown protocol version"},
      {"GET / HTTP/2.0\r\nHost: h\r\n\r\n", "400 unknown protocol version"},
      {"GET / http/1.1\r\nHost: h\r\n\r\n", "400 unknown protocol version"},
      {"GET /  HTTP/1.1\r\nHost: h\r\n\r\n", "400 unknown protocol version"},
      {"GET / HTTP/1.1 \r\nHost: h\r\n\r\n", "400 unknown protocol version"},
      {"GET / HTTP/1.10\r\nHost: h\r\n\r\n", "400 unknown protocol version"},
      {"GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n", "400 invalid method"},
      {"GET /\r\n\r\n", "400 request line without a version"},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400 unknown protocol version"},
      {"PROXY TCP4 198.51.100.7 203.0.113.1 1 80\r\n", "400 unknown protocol version"},
      {"GET / HTTP/1.1\r\n\r\n", "400 HTTP/1.1 without Host"},
      {with_fields("Host: b.example\r\n"), "400 repeated Host"},
      {with_fields("host: a.example\r\n"), "400 repeated Host"},
      {"GET / HTTP/1.1\r\nHost:\r\n\r\n", "400 invalid host"},
      {"GET http://h/ HTTP/1.1\r\nHost: a b\r\n\r\n", "400 invalid Host"},
      {"GET http://h/ HTTP/1.1\r\nHost: a@b\r\n\r\n", "400 invalid Host"},
      {"CONNECT h HTTP/1.1\r\nHost: h\r\n\r\n", "400 CONNECT without a port"},
      {"CONNECT h: HTTP/1.1\r\nHost: h\r\n\r\n", "400 CONNECT without a port"},
      {"CONNECT /x HTTP/1.1\r\nHost: h\r\n\r\n", "400 invalid host"},
      {"CONNECT http://h:80/ HTTP/1.1\r\nHost: h\r\n\r\n", "400 invalid host"},
      {"CONNECT h%0d%0aX:%201:443 HTTP/1.1\r\nHost: h\r\n\r\n", "400 invalid host"},
      {"CONNECT h:443 HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n", "400 CONNECT with a body"},
      {"CONNECT h:443 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
       "400 CONNECT with a body"},
  };
  for (const auto& [bytes, outcome] : cases) EXPECT_EQ(parse(bytes), outcome) << bytes;
}

// GW-4: two readers of one message must agree where it ends.
TEST(RequestHead, RefusesDoubtfulFraming) {
  const Bad cases[] = {
      {"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
       "400 both Content-Length and Transfer-Encoding"},
      {"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
       "400 both Content-Length and Transfer-Encoding"},
      {"Content-Length: five\r\nTransfer-Encoding: chunked\r\n",
       "400 Content-Length is no decimal number"},
      {"Content-Length: 5\r\nContent-Length: 60\r\n", "400 repeated Content-Length"},
      {"Content-Length: 5\r\nContent-Length: 5\r\n", "400 repeated Content-Length"},
      {"Content-Length: 3, 3\r\n", "400 Content-Length is no decimal number"},
      {"Content-Length: \r\n", "400 Content-Length is no decimal number"},
      {"Content-Length:\r\n6\r\n", "400 field line without a colon"},
      {"Content-Length: +3\r\n", "400 Content-Length is no decimal number"},
      {"Content-Length: -3\r\n", "400 Content-Length is no decimal number"},
      {"Content-Length: 0x3\r\n", "400 Content-Length is no decimal number"},
      {"Content-Length: 3 3\r\n", "400 Content-Length is no decimal number"},
      {"Content-Length: 18446744073709551621\r\n", "400 Content-Length is no decimal number"},
      {"Content-Length : 5\r\nContent-Length: 60\r\n", "400 white space in or behind a field name"},
      {"Transfer-Encoding: identity\r\n", "400 Transfer-Encoding is not chunked"},
      {"Transfer-Encoding: chunked, gzip\r\n", "400 Transfer-Encoding is not chunked"},
      {"Transfer-Encoding: gzip, chunked\r\n", "400 Transfer-Encoding is not chunked"},
      {"Transfer-Encoding: xchunked\r\n", "400 Transfer-Encoding is not chunked"},
      {"Transfer-Encoding:\r\n", "400 Transfer-Encoding is not chunked"},
      {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
       "400 repeated Transfer-Encoding"},
      {"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
       "400 Transfer-Encoding is not chunked"},
  };
  for (const auto& [fields, outcome] : cases) EXPECT_EQ(parse(with_fields(fields)), outcome);
  EXPECT_EQ(parse("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "400 Transfer-Encoding in HTTP/1.0");
}

// GW-4: 414 for the request line, 431 for the section and the number of fields.
TEST(RequestHead, HasLimits) {
  const auto request_line = [](std::size_t size) {
    return "GET /" + std::string(size - 16, 'a') + " HTTP/1.1\r\nHost: h\r\n\r\n";
  };
  constexpr std::size_t kLine = limits::kRequestLineBytesMax;
  EXPECT_EQ(parse(request_line(kLine)).substr(0, 6), "GET or");
  EXPECT_EQ(parse(request_line(kLine + 1)), "414 request line larger than 16 KiB");
  EXPECT_EQ(parse(std::string(kLine + 9, 'A')), "414 request line larger than 16 KiB");
  const auto section = [](std::size_t size) {  // Host line, one long line, the empty line
    return "GET / HTTP/1.1\r\nHost: h\r\nX:" + std::string(size - 15, 'a') + "\r\n\r\n";
  };
  constexpr std::size_t kSection = limits::kHeaderBytesMax;
  EXPECT_EQ(parse(section(kSection)).substr(0, 6), "GET or");
  EXPECT_EQ(parse(section(kSection + 1)), "431 header section larger than 64 KiB");
  EXPECT_EQ(parse("GET / HTTP/1.1\r\n" + std::string(kSection, 'n')),
            "431 header section larger than 64 KiB");
  const auto fields = [](std::size_t count) {
    std::string out = "GET / HTTP/1.1\r\nHost: h\r\n";
    for (std::size_t i = 1; i < count; ++i) out += "a: b\r\n";
    return out + "\r\n";
  };
  EXPECT_EQ(parse(fields(100)).substr(0, 6), "GET or");
  EXPECT_EQ(parse(fields(101)), "431 more than 100 fields");
}

TEST(RequestHead, TellsHowManyBytesItTookOfPipelinedRequests) {
  const std::string first = get("/1");
  const std::string both = first + get("/2");
  RequestParser parser;
  ASSERT_EQ(parser.parse(both), ParseState::Done);
  EXPECT_EQ(parser.head().size(), first.size());
  parser.reset();
  ASSERT_EQ(parser.parse(std::string_view(both).substr(first.size())), ParseState::Done);
  EXPECT_EQ(parser.head().path_and_query(), "/2");
}

TEST(Authority, ComparesHostsInOneSpelling) {
  EXPECT_EQ(canonical_host("WWW.Example.COM."), "www.example.com");
  EXPECT_EQ(canonical_host("2001:DB8::1"), "2001:db8::1");
  EXPECT_TRUE(is_host_name("a_b.example."));
  EXPECT_FALSE(is_host_name("."));
  EXPECT_FALSE(is_host_name("a.."));
  EXPECT_FALSE(is_host_name(std::string(64, 'a')));
  EXPECT_TRUE(is_host_name(std::string(63, 'a')));
  std::string longest;
  for (int i = 0; i < 126; ++i) longest += "a.";
  EXPECT_TRUE(is_host_name(longest + "a"));
  EXPECT_FALSE(is_host_name(longest + "aa"));
}

}  // namespace
}  // namespace proxypool::net
