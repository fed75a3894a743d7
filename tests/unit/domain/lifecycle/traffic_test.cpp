// Destinations (GW-20), retries (GW-35, R6), the meaning of outcomes (GW-41), the error contract.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "proxypool/domain/traffic/error_contract.hpp"
#include "proxypool/domain/traffic/outcome.hpp"
#include "proxypool/domain/traffic/retry.hpp"
#include "proxypool/domain/traffic/target_policy.hpp"

namespace proxypool::domain {
namespace {

using V = TargetVerdict;

struct Spelling {
  std::string_view host;
  TargetVerdict verdict;
};

constexpr Spelling kSpellings[] = {
    // Public hosts, documentation ranges included.
    {"example.com", V::Allowed},
    {"EXAMPLE.com.", V::Allowed},
    {"a_b.example", V::Allowed},
    {"xn--bcher-kva.example", V::Allowed},
    {"203.0.113.7", V::Allowed},
    {"192.0.2.1", V::Allowed},
    {"8.8.8.8", V::Allowed},
    {"172.32.0.1", V::Allowed},
    {"172.15.255.255", V::Allowed},
    {"100.128.0.1", V::Allowed},
    {"100.63.255.255", V::Allowed},
    {"9.255.255.255", V::Allowed},
    {"11.0.0.0", V::Allowed},
    {"126.255.255.255", V::Allowed},
    {"128.0.0.1", V::Allowed},
    {"168.63.129.17", V::Allowed},
    {"169.253.255.255", V::Allowed},
    {"169.255.0.1", V::Allowed},
    {"192.167.255.255", V::Allowed},
    {"192.169.0.1", V::Allowed},
    {"223.255.255.255", V::Allowed},
    {"[2001:db8::1]", V::Allowed},
    {"2606:4700::1111", V::Allowed},
    {"[::ffff:8.8.8.8]", V::Allowed},
    {"[64:ff9b::8.8.8.8]", V::Allowed},
    {"notlocalhost", V::Allowed},
    {"localhost.example.com", V::Allowed},
    // Loopback and unspecified.
    {"127.0.0.1", V::DeniedAddress},
    {"127.255.255.254", V::DeniedAddress},
    {"0.0.0.0", V::DeniedAddress},
    {"0.1.2.3", V::DeniedAddress},
    {"[::1]", V::DeniedAddress},
    {"::1", V::DeniedAddress},
    {"[::]", V::DeniedAddress},
    {"[0:0:0:0:0:0:0:1]", V::DeniedAddress},
    // Private, shared, link-local, unique-local, multicast, broadcast, metadata.
    {"10.0.0.1", V::DeniedAddress},
    {"172.16.0.1", V::DeniedAddress},
    {"172.31.255.255", V::DeniedAddress},
    {"192.168.1.1", V::DeniedAddress},
    {"100.64.0.1", V::DeniedAddress},
    {"169.254.1.1", V::DeniedAddress},
    {"169.254.169.254", V::DeniedAddress},
    {"100.100.100.200", V::DeniedAddress},
    {"169.254.170.2", V::DeniedAddress},
    {"192.0.0.192", V::DeniedAddress},
    {"168.63.129.16", V::DeniedAddress},
    {"[::ffff:168.63.129.16]", V::DeniedAddress},
    {"[64:ff9b::168.63.129.16]", V::DeniedAddress},
    {"224.0.0.1", V::DeniedAddress},
    {"255.255.255.255", V::DeniedAddress},
    {"240.0.0.1", V::DeniedAddress},
    {"[fe80::1]", V::DeniedAddress},
    {"[fec0::1]", V::DeniedAddress},
    {"[fc00::1]", V::DeniedAddress},
    {"[fd12:3456::1]", V::DeniedAddress},
    {"[fd00:ec2::254]", V::DeniedAddress},
    {"[ff02::1]", V::DeniedAddress},
    // IPv4 inside IPv6: mapped, compatible, translated, NAT64, 6to4, Teredo, ISATAP.
    {"[::ffff:127.0.0.1]", V::DeniedAddress},
    {"[::ffff:a9fe:a9fe]", V::DeniedAddress},
    {"[0:0:0:0:0:ffff:7f00:1]", V::DeniedAddress},
    {"[::127.0.0.1]", V::DeniedAddress},
    {"[::10.0.0.1]", V::DeniedAddress},
    {"[::ffff:0:127.0.0.1]", V::DeniedAddress},
    {"[64:ff9b::127.0.0.1]", V::DeniedAddress},
    {"[64:ff9b:1::10.0.0.1]", V::DeniedAddress},
    {"[2002:7f00:1::]", V::DeniedAddress},
    {"[2002:a9fe:a9fe::1]", V::DeniedAddress},
    {"[2001:0:7f00:1::1]", V::DeniedAddress},
    {"[2001:0:808:808:0:0:80ff:fffe]", V::DeniedAddress},
    {"[2001:db8::5efe:10.0.0.1]", V::DeniedAddress},
    {"[2001:db8::200:5efe:127.0.0.1]", V::DeniedAddress},
    // localhost by name.
    {"localhost", V::LocalName},
    {"LOCALHOST", V::LocalName},
    {"LocalHost.", V::LocalName},
    {"a.localhost", V::LocalName},
    {"A.B.LOCALHOST.", V::LocalName},
    // IPv4 in any spelling but four plain decimal parts, whatever it denotes.
    {"127.1", V::NumericHost},
    {"127.0.1", V::NumericHost},
    {"2130706433", V::NumericHost},
    {"017700000001", V::NumericHost},
    {"0x7f000001", V::NumericHost},
    {"0X7F.0.0.1", V::NumericHost},
    {"0x7f.0x0.0x0.0x1", V::NumericHost},
    {"0177.0.0.1", V::NumericHost},
    {"010.8.8.8", V::NumericHost},
    {"8.8.8.08", V::NumericHost},
    {"8.8.8.8.", V::NumericHost},
    {"8.8.8.256", V::NumericHost},
    {"8.8.8.8.8", V::NumericHost},
    {"8", V::NumericHost},
    {"0", V::NumericHost},
    {"0x", V::NumericHost},
    {"example.0x7f", V::NumericHost},
    {"example.1", V::NumericHost},
    // No hosts at all.
    {"", V::BadHost},
    {".", V::BadHost},
    {"[127.0.0.1]", V::BadHost},
    {"[::1", V::BadHost},
    {"[fe80::1%25eth0]", V::BadHost},
    {"fe80::1%eth0", V::BadHost},
    {"127.0.0.1%00", V::BadHost},
    {"loc%61lhost", V::BadHost},
    {"a..b", V::BadHost},
    {"user@example.com", V::BadHost},
    {"example.com:80", V::BadHost},
    {"\xEF\xBC\x91.example", V::BadHost},
    {"\xE2\x93\x9B\xE2\x93\x9E", V::BadHost},
    {std::string_view("a\0b", 3), V::BadHost},
};

TEST(TargetPolicy, EverySpellingOfAHostIsJudgedGW20) {
  ASSERT_GE(std::size(kSpellings), 60U);
  const TargetPolicy policy;
  for (const Spelling& s : kSpellings) {
    EXPECT_EQ(policy.check_host(s.host, 443), s.verdict)
        << s.host << ": " << to_string(policy.check_host(s.host, 443));
  }
  EXPECT_EQ(policy.check_host(std::string(254, 'a'), 443), V::BadHost);
}

TEST(TargetPolicy, AResolvedAddressIsJudgedLikeAWrittenOneGW20) {
  const TargetPolicy policy;
  EXPECT_EQ(policy.check_address(*IpAddress::parse("127.0.0.1")), V::DeniedAddress);
  EXPECT_EQ(policy.check_address(*IpAddress::parse("::ffff:10.0.0.1")), V::DeniedAddress);
  EXPECT_EQ(policy.check_address(*IpAddress::parse("203.0.113.7")), V::Allowed);
}

TargetPolicy configured() {
  TargetRules rules;
  rules.deny_cidrs = {*Cidr::parse("203.0.113.0/24"), *Cidr::parse("2001:db8:bad::/48")};
  rules.allow_cidrs = {*Cidr::parse("127.0.0.0/8"), *Cidr::parse("fd00:1::/32"),
                       *Cidr::parse("203.0.113.9")};
  rules.deny_hosts = {"blocked.example", "*.internal"};
  rules.allow_ports = {443, 80};
  return TargetPolicy(rules);
}

TEST(TargetPolicy, ConfiguredDenialsHoldGW20) {
  const TargetPolicy policy = configured();
  EXPECT_EQ(policy.check_host("203.0.113.7", 443), V::DeniedCidr);
  EXPECT_EQ(policy.check_host("[::ffff:203.0.113.7]", 443), V::DeniedCidr);
  EXPECT_EQ(policy.check_host("[64:ff9b::203.0.113.7]", 443), V::DeniedCidr);
  EXPECT_EQ(policy.check_host("[2001:db8:bad::1]", 443), V::DeniedCidr);
  EXPECT_EQ(policy.check_host("BLOCKED.example.", 443), V::DeniedHost);
  EXPECT_EQ(policy.check_host("db.internal", 443), V::DeniedHost);
  EXPECT_EQ(policy.check_host("internal", 443), V::Allowed);
  EXPECT_EQ(policy.check_host("free.example", 8443), V::DeniedPort);
  EXPECT_EQ(policy.check_host("free.example", 80), V::Allowed);
  EXPECT_EQ(TargetPolicy().check_host("free.example", 0), V::DeniedPort);
  EXPECT_EQ(TargetPolicy().check_host("free.example", 25), V::Allowed);
}

TEST(TargetPolicy, ExceptionsOpenAddressesAndNeverNamesOrOddSpellingsGW20) {
  const TargetPolicy policy = configured();
  EXPECT_EQ(policy.check_host("127.0.0.1", 80), V::Allowed);
  EXPECT_EQ(policy.check_host("[::ffff:127.0.0.1]", 80), V::Allowed);
  EXPECT_EQ(policy.check_host("[fd00:1::7]", 80), V::Allowed);
  EXPECT_EQ(policy.check_host("203.0.113.9", 80), V::Allowed);
  EXPECT_EQ(policy.check_host("[::1]", 80), V::DeniedAddress);
  EXPECT_EQ(policy.check_host("[64:ff9b::127.0.0.1]", 80), V::DeniedAddress);
  EXPECT_EQ(policy.check_host("localhost", 80), V::LocalName);
  EXPECT_EQ(policy.check_host("127.1", 80), V::NumericHost);
  EXPECT_EQ(policy.check_host("127.0.0.1", 8080), V::DeniedPort);
}

FailedAttempt failed(std::string_view method, Phase phase, FailureKind kind) {
  FailedAttempt attempt;
  attempt.method = method;
  attempt.failure = {phase, kind};
  attempt.bytes_sent = phase == Phase::ResponseHeaders;
  return attempt;
}

TEST(Retry, SafeRequestsWithoutABodyGoToAnotherProxyGW35) {
  for (const std::string_view method : {"GET", "HEAD", "OPTIONS"}) {
    for (const Phase phase : {Phase::Dial, Phase::ProxyHandshake, Phase::ResponseHeaders}) {
      FailedAttempt attempt = failed(method, phase, FailureKind::Timeout);
      EXPECT_EQ(decide_retry(attempt, {}), RetryDecision::OtherProxy);
      attempt.attempts = 2;
      EXPECT_EQ(decide_retry(attempt, {}), RetryDecision::Stop);
      EXPECT_EQ(decide_retry(attempt, {3, false}), RetryDecision::OtherProxy);
    }
  }
  EXPECT_EQ(decide_retry(failed("GET", Phase::Dial, FailureKind::Refused), {1, false}),
            RetryDecision::Stop);
}

// Every combination, against the sentences of GW-35 written once more in another shape.
TEST(Retry, NothingUnsafeIsEverRepeatedThatMayHaveLeftGW35) {
  for (const std::string_view method :
       {"GET", "HEAD", "OPTIONS", "TRACE", "POST", "PUT", "PATCH", "DELETE", "BREW", "get"}) {
    for (unsigned bits = 0; bits < 128; ++bits) {
      for (const Phase phase : {Phase::None, Phase::Dial, Phase::ProxyHandshake,
                                Phase::ResponseHeaders, Phase::Tunnel}) {
        for (const FailureKind kind : {FailureKind::Refused, FailureKind::Reset}) {
          FailedAttempt a = failed(method, phase, kind);
          a.has_body = (bits & 1U) != 0;
          a.bytes_sent = (bits & 2U) != 0;
          a.answer_started = (bits & 4U) != 0;
          a.committed = (bits & 8U) != 0;
          a.reused_connection = (bits & 16U) != 0;
          a.fresh_retry_used = (bits & 32U) != 0;
          a.attempts = (bits & 64U) != 0 ? 2 : 1;
          const bool safe =
              (method == "GET" || method == "HEAD" || method == "OPTIONS") && !a.has_body;
          for (const bool unsafe_allowed : {false, true}) {
            const auto decision = decide_retry(a, {2, unsafe_allowed});
            if (decision == RetryDecision::Stop) continue;
            EXPECT_FALSE(a.committed);
            EXPECT_NE(method, "TRACE");
            EXPECT_TRUE(phase != Phase::None && phase != Phase::Tunnel);
            if (!safe) {
              EXPECT_TRUE(unsafe_allowed && !a.bytes_sent && phase != Phase::ResponseHeaders);
            }
            if (decision == RetryDecision::OtherProxy) {
              EXPECT_EQ(a.attempts, 1U);
            } else {
              EXPECT_TRUE(safe && a.reused_connection && !a.answer_started && !a.fresh_retry_used &&
                          phase == Phase::ResponseHeaders && kind == FailureKind::Reset);
            }
          }
        }
      }
    }
  }
}

TEST(Retry, APostIsRepeatedOnlyWhenAllowedAndBeforeAnyByteLeftGW35) {
  FailedAttempt attempt = failed("POST", Phase::Dial, FailureKind::Refused);
  attempt.has_body = true;
  EXPECT_EQ(decide_retry(attempt, {}), RetryDecision::Stop);
  EXPECT_EQ(decide_retry(attempt, {2, true}), RetryDecision::OtherProxy);
  attempt.bytes_sent = true;
  EXPECT_EQ(decide_retry(attempt, {2, true}), RetryDecision::Stop);
}

TEST(Retry, AReusedConnectionThatDiedIdleIsTriedOnceFreshOnTheSameProxyGW35) {
  FailedAttempt attempt = failed("GET", Phase::ResponseHeaders, FailureKind::Reset);
  attempt.reused_connection = true;
  attempt.attempts = 2;  // it is no attempt, so the maximum does not matter
  EXPECT_EQ(decide_retry(attempt, {}), RetryDecision::SameProxyFresh);
  attempt.fresh_retry_used = true;
  EXPECT_EQ(decide_retry(attempt, {}), RetryDecision::Stop);
  attempt.attempts = 1;
  EXPECT_EQ(decide_retry(attempt, {}), RetryDecision::OtherProxy);
  attempt.fresh_retry_used = false;
  attempt.method = "POST";
  EXPECT_EQ(decide_retry(attempt, {}), RetryDecision::Stop);
}

TEST(Retry, AConnectIsRepeatedUntilItsAnswerWasWrittenGW35) {
  FailedAttempt attempt = failed("CONNECT", Phase::ProxyHandshake, FailureKind::AuthRejected);
  attempt.kind = RequestKind::Connect;
  attempt.bytes_sent = true;
  EXPECT_EQ(decide_retry(attempt, {}), RetryDecision::OtherProxy);
  attempt.committed = true;
  EXPECT_EQ(decide_retry(attempt, {}), RetryDecision::Stop);
}

TrafficOutcome outcome(RequestKind kind, Phase phase, std::uint16_t status) {
  TrafficOutcome o;
  o.kind = kind;
  o.failure.phase = phase;
  o.status = status;
  return o;
}

TEST(Outcome, OnAbsoluteFormOnlyReachingAndBeingAcceptedCountsGW41) {
  using M = HealthMeaning;
  const auto of = [](Phase phase, int status) {
    return meaning_of(outcome(RequestKind::Http, phase, static_cast<std::uint16_t>(status)));
  };
  EXPECT_EQ(of(Phase::Dial, 0), M::Failure);
  EXPECT_EQ(of(Phase::ProxyHandshake, 0), M::Failure);
  EXPECT_EQ(of(Phase::ResponseHeaders, 0), M::Neutral);
  EXPECT_EQ(of(Phase::ResponseHeaders, 407), M::Failure);
  EXPECT_EQ(of(Phase::None, 407), M::Failure);
  for (const int status : {0, 100, 199, 429, 502, 503, 504}) {
    EXPECT_EQ(of(Phase::None, status), M::Neutral) << status;
  }
  for (const int status : {200, 204, 301, 401, 403, 404, 500, 501, 505}) {
    EXPECT_EQ(of(Phase::None, status), M::Success) << status;
  }
}

TEST(Outcome, ATunnelCountsOnceAByteCameBackGW41) {
  using M = HealthMeaning;
  TrafficOutcome tunnel = outcome(RequestKind::Connect, Phase::None, 200);
  EXPECT_EQ(meaning_of(tunnel), M::Neutral);
  tunnel.first_byte = true;
  EXPECT_EQ(meaning_of(tunnel), M::Success);
  tunnel.failure = {Phase::Tunnel, FailureKind::Reset};
  EXPECT_EQ(meaning_of(tunnel), M::Success);
  tunnel.first_byte = false;
  EXPECT_EQ(meaning_of(tunnel), M::Neutral);
}

TEST(Outcome, AConnectRefusedWithAnAnswerSaysNothingBut407) {
  using M = HealthMeaning;
  const auto of = [](std::uint16_t status) {
    return meaning_of(outcome(RequestKind::Connect, Phase::ProxyHandshake, status));
  };
  EXPECT_EQ(of(0), M::Failure);
  EXPECT_EQ(of(407), M::Failure);
  EXPECT_EQ(of(502), M::Neutral);
  EXPECT_EQ(of(403), M::Neutral);
}

TEST(ErrorContract, RowsStandAtTheirRefusalAndAreComplete) {
  const std::set<std::string_view> rfc9209 = {"dns_timeout",
                                              "dns_error",
                                              "destination_unavailable",
                                              "destination_ip_prohibited",
                                              "connection_refused",
                                              "connection_terminated",
                                              "connection_timeout",
                                              "connection_read_timeout",
                                              "http_request_error",
                                              "http_request_denied",
                                              "http_response_timeout",
                                              "http_protocol_error",
                                              "proxy_internal_response"};
  std::set<std::string_view> codes;
  std::set<std::string_view> titles;
  for (std::size_t i = 0; i < kRefusals; ++i) {
    const RefusalRow& row = contract(static_cast<Refusal>(i));
    EXPECT_EQ(row.refusal, static_cast<Refusal>(i)) << row.code;
    EXPECT_EQ(row.retry_after, row.status == 429 || row.status == 503) << row.code;
    EXPECT_EQ(row.proxy_status.empty(), row.status == 407) << row.code;
    EXPECT_TRUE(row.proxy_status.empty() || rfc9209.count(row.proxy_status) == 1) << row.code;
    EXPECT_EQ(row.closes, row.status == 400 || row.status == 408 || row.status == 413 ||
                              row.status == 414 || row.status == 431)
        << row.code;
    EXPECT_TRUE(titles.insert(row.title).second) << row.title;
    codes.insert(row.code);
  }
  EXPECT_EQ(codes.size(), kRefusals - 2);  // three ways of too_large
}

TEST(ErrorContract, EachCodeHasTheStatusOfTheTableInTheSpecification) {
  const std::vector<std::pair<int, std::vector<std::string_view>>> specified = {
      {400, {"bad_request"}},
      {407, {"auth_required", "auth_rejected", "bad_parameter"}},
      {403, {"source_denied", "target_forbidden", "no_routing"}},
      {408, {"request_timeout"}},
      {429, {"client_limited", "quota_exceeded"}},
      {503,
       {"overloaded", "not_ready", "draining", "no_candidate", "wait_timeout", "session_lost"}},
      {502,
       {"proxy_connect_failed", "proxy_refused", "proxy_auth_rejected", "proxy_protocol_error",
        "dns_failed", "target_connect_failed", "target_protocol_error"}},
      {504,
       {"resolve_timeout", "connect_timeout", "tls_timeout", "proxy_connect_timeout",
        "first_byte_timeout", "idle_timeout", "total_timeout"}},
  };
  std::size_t seen = 0;
  for (const auto& [status, codes] : specified) {
    for (const std::string_view code : codes) {
      for (const RefusalRow& row : kErrorContract) {
        if (row.code != code) continue;
        EXPECT_EQ(row.status, status) << code;
        ++seen;
      }
    }
  }
  EXPECT_EQ(seen, kRefusals - 3);
  EXPECT_EQ(contract(Refusal::RequestLineTooLarge).status, 414);
  EXPECT_EQ(contract(Refusal::HeadersTooLarge).status, 431);
  EXPECT_EQ(contract(Refusal::BodyTooLarge).status, 413);
}

TEST(ErrorContract, ALostConnectionIsToldFromAWrongAnswer) {
  EXPECT_EQ(proxy_status(Refusal::ProxyProtocolError, FailureKind::Reset), "connection_terminated");
  EXPECT_EQ(proxy_status(Refusal::ProxyProtocolError, FailureKind::Protocol),
            "http_protocol_error");
  EXPECT_EQ(proxy_status(Refusal::NoRouting, FailureKind::Reset), "http_request_denied");
}

}  // namespace
}  // namespace proxypool::domain
