// Identity, list spellings and life times of proxies (rulings "Identity" and C19, CT-21, CT-22).
#include "proxypool/domain/proxy/identity.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "proxypool/base/host.hpp"
#include "proxypool/domain/proxy/list_line.hpp"
#include "proxypool/domain/proxy/ttl.hpp"
#include "unit/domain/lifecycle/builders.hpp"

namespace proxypool::domain {
namespace {

using build::at;
using build::FakeHash;

TEST(CanonicalHost, OneHostHasOneSpelling) {
  EXPECT_EQ(canonical_host("Proxy.Example."), "proxy.example");
  EXPECT_EQ(canonical_host("192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(canonical_host("[2001:DB8:0:0::1]"), "2001:db8::1");
  EXPECT_EQ(canonical_host("2001:db8::1"), "2001:db8::1");
  EXPECT_EQ(canonical_host("xn--bcher-kva.example"), "xn--bcher-kva.example");
  EXPECT_EQ(canonical_host("a_b.example"), "a_b.example");
  EXPECT_EQ(canonical_host(std::string(63, 'a') + ".example"), std::string(63, 'a') + ".example");
}

TEST(CanonicalHost, WhatIsNoHostIsRefused) {
  const std::string label(63, 'a');
  for (const std::string& text :
       std::vector<std::string>{"",
                                ".",
                                "a..b",
                                ".a",
                                "-a.example",
                                "a-.example",
                                "a.b-",
                                "a b",
                                "a%41",
                                "b\xC3\xBC.de",
                                "[192.0.2.1]",
                                "[2001:db8::1",
                                "2001:db8::1]",
                                "[]",
                                "fe80::1%eth0",
                                "127.1",
                                "0x7f.1",
                                "0177.0.0.1",
                                "2130706433",
                                "192.168.001.010",
                                "1.2.3.4.5",
                                "192.0.2.1.",
                                "name.0x1f",
                                "name.123",
                                "0x",
                                "a\r\nb",
                                std::string(64, 'a') + ".example",
                                label + "." + label + "." + label + "." + label,
                                std::string("a\0b", 3),
                                "a/b",
                                "a@b"}) {
    EXPECT_FALSE(canonical_host(text).has_value()) << text;
  }
}

TEST(HostPattern, AStarMatchesAnyDepthBelowAndNeverTheSuffixItself) {
  EXPECT_TRUE(host_matches("a.example", "a.example"));
  EXPECT_TRUE(host_matches("x.y.example", "*.example"));
  EXPECT_FALSE(host_matches("example", "*.example"));
  EXPECT_FALSE(host_matches("notexample", "*.example"));
  EXPECT_FALSE(host_matches(".example", "*.example"));
}

TEST(UniqueKey, FieldsCannotRunIntoEachOther) {
  const Endpoint endpoint{Scheme::Http, "a.example", 80};
  std::set<std::string> keys;
  keys.insert(unique_key(endpoint, "ab", CredentialVersion("c")));
  keys.insert(unique_key(endpoint, "a", CredentialVersion("bc")));
  keys.insert(unique_key(endpoint, "", CredentialVersion("abc")));
  keys.insert(unique_key(endpoint, "abc", CredentialVersion("")));
  keys.insert(unique_key({Scheme::Https, "a.example", 80}, "ab", CredentialVersion("c")));
  keys.insert(unique_key({Scheme::Http, "a.exampl", 80}, "ab", CredentialVersion("c")));
  keys.insert(unique_key({Scheme::Http, "a.example", 8080}, "ab", CredentialVersion("c")));
  EXPECT_EQ(keys.size(), 7U);
}

TEST(ProxyIdentity, TheIdDependsOnTheKeyAndTheClusterOnly) {
  const auto key = unique_key({Scheme::Http, "a.example", 80}, "u", CredentialVersion("v"));
  EXPECT_EQ(proxy_id(key, FakeHash{1}), proxy_id(key, FakeHash{1}));
  EXPECT_NE(proxy_id(key, FakeHash{1}), proxy_id(key, FakeHash{2}));
}

TEST(ProxyIdentity, TheIdIsTheFirstEightBytesInOrder) {
  const auto hash = [](std::string_view) {
    std::array<std::uint8_t, 32> digest{};
    for (std::size_t i = 0; i < 32; ++i) digest[i] = static_cast<std::uint8_t>(i + 1);
    return digest;
  };
  EXPECT_EQ(proxy_id("key", hash).value(), 0x0102030405060708U);
}

TEST(ProxyIdentity, TheSameEndpointFromTwoVendorsIsTheSameProxyCT21) {
  Proxy a = build::proxy(1, ProxyState::Available, "acme");
  Proxy b = build::proxy(2, ProxyState::Fetched, "zenith");
  b.endpoint = a.endpoint;
  EXPECT_TRUE(same_identity(a, b));
  b.credential_version = CredentialVersion("other");
  EXPECT_FALSE(same_identity(a, b));
}

TEST(CredentialVersion, CoversUserNameAndPasswordUnambiguously) {
  std::string seen;
  const auto recording = [&seen](std::string_view message) {
    seen = message;
    return FakeHash{}(message);
  };
  const auto version = credential_version({"user", SecretString("pass")}, recording);
  EXPECT_EQ(seen, std::string("user\0pass", 9));
  EXPECT_EQ(version.str().size(), 22U);
  EXPECT_EQ(version.str().find_first_of("+/="), std::string::npos);
  const auto of = [](std::string user, std::string pass) {
    return credential_version({std::move(user), SecretString(std::move(pass))}, FakeHash{});
  };
  EXPECT_NE(of("ab", "c"), of("a", "bc"));
  EXPECT_NE(of("a", "old"), of("a", "new"));
  EXPECT_TRUE(of("", "").empty());
}

struct Line {
  std::string text;
  Scheme scheme;
  std::string host;
  std::uint16_t port;
  std::string user;
  std::string pass;
};

TEST(ListLine, EverySpellingIsRead) {
  const std::vector<Line> lines = {
      {"192.0.2.1:8080", Scheme::Http, "192.0.2.1", 8080, "", ""},
      {"  proxy.Example:1 ", Scheme::Http, "proxy.example", 1, "", ""},
      {"[2001:db8::1]:8080", Scheme::Http, "2001:db8::1", 8080, "", ""},
      {"192.0.2.1:8080:alice:s3cret", Scheme::Http, "192.0.2.1", 8080, "alice", "s3cret"},
      {"192.0.2.1:8080:alice:a:b:c", Scheme::Http, "192.0.2.1", 8080, "alice", "a:b:c"},
      {"192.0.2.1:8080:alice:p@ss", Scheme::Http, "192.0.2.1", 8080, "alice", "p@ss"},
      {"192.0.2.1:8080:alice:a6%6qgx", Scheme::Http, "192.0.2.1", 8080, "alice", "a6%6qgx"},
      {"[2001:db8::1]:80:u:p", Scheme::Http, "2001:db8::1", 80, "u", "p"},
      {"user:p@ss@192.0.2.1:8080", Scheme::Http, "192.0.2.1", 8080, "user", "p@ss"},
      {"user:a:b@192.0.2.1:8080", Scheme::Http, "192.0.2.1", 8080, "user", "a:b"},
      {"user@192.0.2.1:8080", Scheme::Http, "192.0.2.1", 8080, "user", ""},
      {"u:p%41@[2001:db8::2]:9", Scheme::Http, "2001:db8::2", 9, "u", "p%41"},
      {"u:x://y@192.0.2.1:80", Scheme::Http, "192.0.2.1", 80, "u", "x://y"},
      {"http://192.0.2.1:8080", Scheme::Http, "192.0.2.1", 8080, "", ""},
      {"HTTP://192.0.2.1:8080/", Scheme::Http, "192.0.2.1", 8080, "", ""},
      {"https://u:p@Proxy.Example.:443", Scheme::Https, "proxy.example", 443, "u", "p"},
      {"http://%40dm:p%40@192.0.2.1:8080", Scheme::Http, "192.0.2.1", 8080, "@dm", "p@"},
      {"http://u:a:b%3ac@[::1]:8080", Scheme::Http, "::1", 8080, "u", "a:b:c"},
      {"http://u:%70%C3%A4@h.example:8080", Scheme::Http, "h.example", 8080, "u", "p\xC3\xA4"},
      {"http://user@h.example:8080", Scheme::Http, "h.example", 8080, "user", ""},
  };
  for (const Line& line : lines) {
    const auto candidate = parse_list_line(line.text);
    ASSERT_TRUE(candidate.has_value()) << line.text << ": " << candidate.error().message;
    EXPECT_EQ(candidate->endpoint, (Endpoint{line.scheme, line.host, line.port})) << line.text;
    EXPECT_EQ(candidate->credential.username, line.user) << line.text;
    EXPECT_EQ(candidate->credential.password.reveal(), line.pass) << line.text;
  }
  EXPECT_EQ(parse_list_line("h.example:443", Scheme::Https)->endpoint.scheme, Scheme::Https);
}

TEST(ListLine, AMistakeIsNamedAndTheLineIsNeverQuoted) {
  const std::vector<std::pair<std::string, std::string>> lines = {
      {"", "empty"},
      {"h.example", "port is missing"},
      {"h.example:0", "port"},
      {"h.example:65536", "port"},
      {"h.example:080", "port"},
      {"h.example:8o8o", "port"},
      {"h.example:8080:s3cret", "three fields"},
      {"192.0.2.1:alice:s3cret", "port"},
      {"2001:db8::1:8080", "brackets"},
      {"2001:db8:0:0:0:0:0:1:8080", "brackets"},
      {"[2001:db8::1]8080", "port is missing"},
      {"[2001:db8::1:8080", "bracket"},
      {"0177.0.0.1:80", "host"},
      {"a b:80", "host"},
      {"socks5://u:s3cret@192.0.2.1:1080", "SOCKS"},
      {"socks4://192.0.2.1:1080", "SOCKS"},
      {"ftp://u:s3cret@192.0.2.1:21", "unknown scheme"},
      {"http://u:s3cret@192.0.2.1", "port is missing"},
      {"http://u:s3cret%6@192.0.2.1:80", "%"},
      {"http://u:s3cret%zz@192.0.2.1:80", "%"},
      {"http://192.0.2.1:80/s3cret", "path"},
      {"http://192.0.2.1:80?s3cret", "path"},
      {"http://u:s3/cret@192.0.2.1:80", "path"},
      {"http://u%3Ax:s3cret@192.0.2.1:80", "colon"},
      {"http://u:s3cret%0d%0a@192.0.2.1:80", "control"},
      {"http://:s3cret@192.0.2.1:80", "no user name"},
      {"u:s3cret@fe80::1:80", "colon"},
      {"u:s3cret@h.example", "port is missing"},
      {"h.example:80:u:" + std::string(1025, 's'), "1024"},
  };
  for (const auto& [text, part] : lines) {
    const auto candidate = parse_list_line(text);
    ASSERT_FALSE(candidate.has_value()) << text;
    const auto& error = candidate.error();
    EXPECT_EQ(error.code, ErrorCode::InvalidArgument);
    EXPECT_EQ(error.origin, Origin::Provider);
    EXPECT_NE(error.message.find(part), std::string::npos) << text << ": " << error.message;
    EXPECT_EQ(error.message.find("s3"), std::string::npos) << error.message;
  }
}

TEST(ListLine, CommentsAndBlankLinesAreNoRecords) {
  EXPECT_FALSE(is_list_record(""));
  EXPECT_FALSE(is_list_record("  \t\r"));
  EXPECT_FALSE(is_list_record("  # a comment"));
  EXPECT_TRUE(is_list_record(" h.example:80 # not a comment"));
}

TEST(ListLine, WhatIsWrittenReadsBackByteForByte) {
  SplitMix64 random(11);
  for (int round = 0; round < 3'000; ++round) {
    Endpoint endpoint{random.below(2) != 0 ? Scheme::Https : Scheme::Http,
                      random.below(2) != 0 ? "2001:db8::7" : "h.example",
                      static_cast<std::uint16_t>(1 + random.below(65'535))};
    const auto text = [&](bool user) {
      std::string out;
      for (auto n = 1 + random.below(12); n > 0; --n) {
        const char c = static_cast<char>(0x20 + random.below(0x5F));
        out += user && c == ':' ? '%' : c;
      }
      return out;
    };
    const Credential credential{text(true), SecretString(text(false))};
    const auto url = format_url(endpoint, credential);
    const auto back = parse_list_line(url.reveal());
    ASSERT_TRUE(back.has_value()) << url.reveal() << " " << back.error().message;
    EXPECT_EQ(back->endpoint, endpoint);
    EXPECT_EQ(back->credential, credential) << url.reveal();
  }
}

TEST(ListLine, FormatsForListsAndLogs) {
  const Endpoint endpoint{Scheme::Http, "2001:db8::1", 8080};
  EXPECT_EQ(format_url(endpoint), "http://[2001:db8::1]:8080");
  EXPECT_EQ(format_url(endpoint, Credential{}).reveal(), "http://[2001:db8::1]:8080");
  const Credential credential{"u", SecretString("p:/ \xC3\xA4")};
  EXPECT_EQ(format_url(endpoint, credential).reveal(),
            "http://u:p%3A%2F%20%C3%A4@[2001:db8::1]:8080");
  EXPECT_EQ(format_fields(endpoint, Credential{}).reveal(), "[2001:db8::1]:8080");
  EXPECT_EQ(format_fields(endpoint, credential).reveal(), "[2001:db8::1]:8080:u:p:/ \xC3\xA4");
}

TEST(ListLine, FieldsThatAreApartAreCheckedLikeALine) {
  const auto candidate = make_candidate(Scheme::Http, "H.example", "80", "u", "p%41");
  ASSERT_TRUE(candidate.has_value());
  EXPECT_EQ(candidate->endpoint.host, "h.example");
  EXPECT_EQ(candidate->credential.password.reveal(), "p%41");
  EXPECT_FALSE(make_candidate(Scheme::Http, "h.example", "80", "u", std::string(1, '\0')));
  EXPECT_FALSE(make_candidate(Scheme::Http, "127.1", "80", "", ""));
}

TtlPolicy policy() {
  return {seconds(300), seconds(3600), seconds(30)};
}

TEST(Ttl, TheMarginComesOffTheExpiryCT22) {
  const Life vendor = life_from(at(100), policy(), at(0), at(0));
  EXPECT_EQ(vendor, (Life{at(100), at(70), true}));
  EXPECT_EQ(life_from({}, policy(), at(0), at(0)), (Life{at(300), at(270), false}));
  EXPECT_EQ(life_from(at(99'999), policy(), at(0), at(0)), (Life{at(3600), at(3570), true}));
}

TEST(Ttl, AListEntryWithoutAnExpiryHasNoneC19) {
  TtlPolicy list = policy();
  list.default_ttl.reset();
  const Life life = life_from({}, list, at(0), at(0));
  EXPECT_EQ(life, Life{});
  EXPECT_TRUE(admissible(life, at(1'000'000)));
}

TEST(Ttl, WhatArrivesPastItsMarginIsNotAdmitted) {
  EXPECT_TRUE(admissible(life_from(at(31), policy(), at(0), at(0)), at(0)));
  EXPECT_FALSE(admissible(life_from(at(30), policy(), at(0), at(0)), at(0)));
  EXPECT_FALSE(admissible(life_from(at(-5), policy(), at(0), at(0)), at(0)));
}

Proxy living(bool vendor_expiry) {
  Proxy p = build::proxy(1);
  p.expires_at = at(100);
  p.usable_until = at(70);
  p.vendor_expiry = vendor_expiry;
  return p;
}

TEST(Ttl, TheOwnersResightingRenewsADefaultAndTakesALaterVendorExpiryC19) {
  EXPECT_EQ(renewed(living(false), {}, policy(), at(50)), (Life{at(350), at(320), false}));
  EXPECT_FALSE(renewed(living(true), {}, policy(), at(50)).has_value());
  EXPECT_EQ(renewed(living(true), at(200), policy(), at(50)), (Life{at(200), at(170), true}));
  EXPECT_EQ(renewed(living(false), at(200), policy(), at(50)), (Life{at(200), at(170), true}));
  EXPECT_FALSE(renewed(living(true), at(100), policy(), at(50)).has_value());
  EXPECT_FALSE(renewed(living(false), at(99), policy(), at(50)).has_value());
}

TEST(Ttl, NoRenewalMakesALifeLongerThanTheMaximumCT22) {
  Proxy p = living(false);
  p.expires_at = at(3'500);
  EXPECT_EQ(renewed(p, {}, policy(), at(3'400)), (Life{at(3'600), at(3'570), false}));
  p.expires_at = at(3'600);
  EXPECT_FALSE(renewed(p, at(9'999), policy(), at(3'500)).has_value());
}

TEST(Ttl, NothingRenewsAProxyThatIsExtractedOrLeavingC19) {
  for (std::size_t s = 0; s < kProxyStates; ++s) {
    Proxy p = living(false);
    p.state = static_cast<ProxyState>(s);
    const bool stays = managed(p.state) && p.state != ProxyState::Draining;
    EXPECT_EQ(renewed(p, at(900), policy(), at(1)).has_value(),
              stays || p.state == ProxyState::Unhealthy)
        << to_string(p.state);
  }
  EXPECT_FALSE(renewed(living(false), at(900), policy(), at(100)).has_value());
  Proxy endless = build::proxy(1);
  EXPECT_FALSE(renewed(endless, at(900), policy(), at(1)).has_value());
}

}  // namespace
}  // namespace proxypool::domain
