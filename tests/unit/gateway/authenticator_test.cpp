// Credentials without a gateway around them: what is asked of whom, and how often (GW-10).
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "gateway/ingress/answer.hpp"
#include "net/event_loop.hpp"
#include "unit/gateway/authenticator_fixture.hpp"

namespace proxypool::gateway {
namespace {

using Verdict = Principal::Verdict;

TEST_F(AuthenticatorTest, IsWarmAfterOneVerification) {
  EXPECT_EQ(check(basic("ann:se:cret")).verdict, Verdict::Pending);
  EXPECT_EQ(verdict(), Verifier::Verdict::Accepted);
  for (int i = 0; i < 100; ++i) {
    const Principal ann = check(basic("ann:se:cret"));
    EXPECT_EQ(ann.verdict, Verdict::Accepted);
    EXPECT_EQ(ann.client, 1U) << "the number in the snapshot";
    EXPECT_NE(ann.tag, 0U);
  }
  EXPECT_EQ(check(basic("ann:se:cret"), 2).verdict, Verdict::Accepted) << "another view";
  EXPECT_EQ(crypto_.verified, 1);
}

TEST_F(AuthenticatorTest, WrongPasswordsAreRememberedToo) {
  EXPECT_EQ(check(basic("ann:wrong")).verdict, Verdict::Pending);
  EXPECT_EQ(verdict(), Verifier::Verdict::Rejected);
  EXPECT_EQ(check(basic("ann:wrong")).verdict, Verdict::Rejected);
  EXPECT_EQ(crypto_.verified, 1);
}

TEST_F(AuthenticatorTest, WhatCannotBeRightIsNotVerified) {
  EXPECT_EQ(check("").verdict, Verdict::Missing);
  for (const std::string& value :
       {std::string("Bearer x"), std::string("Basic"), std::string("Basic %%%"), basic("no colon"),
        basic("unknown:x"), basic("nobody:x"), basic(":")}) {
    EXPECT_EQ(check(value).verdict, Verdict::Rejected) << value;
  }
  EXPECT_EQ(crypto_.verified, 0);
}

TEST_F(AuthenticatorTest, AVerificationThatFailsSaysNothingAboutThePassword) {
  crypto_.broken = true;
  EXPECT_EQ(check(basic("ann:se:cret")).verdict, Verdict::Pending);
  EXPECT_EQ(verdict(), Verifier::Verdict::Failed);
  crypto_.broken = false;
  EXPECT_EQ(check(basic("ann:se:cret")).verdict, Verdict::Pending) << "asked again";
  EXPECT_EQ(verdict(), Verifier::Verdict::Accepted);
}

TEST_F(AuthenticatorTest, AFullQueueIsSaidAndNotWaitedFor) {
  crypto_.hold = true;
  std::size_t pending = 0;
  Verdict last = Verdict::Pending;
  for (int i = 0; last == Verdict::Pending; ++i) {
    last = check(basic("ann:" + std::to_string(i))).verdict;
    pending += last == Verdict::Pending ? 1U : 0U;
  }
  EXPECT_EQ(last, Verdict::Full);
  EXPECT_GE(pending, Verifier::kQueueMax);
  EXPECT_LE(pending, Verifier::kQueueMax + Verifier::kThreads);
  EXPECT_LE(crypto_.verified.load(), static_cast<int>(Verifier::kThreads)) << "at most two at once";
  crypto_.hold = false;
}

// One password, many user names: GW-13.
TEST_F(AuthenticatorTest, ParametersAreReadOnceThePasswordIsRightAndVerifiedOnceForAll) {
  EXPECT_EQ(check(basic("ann-country-us:wrong")).verdict, Verdict::Pending);
  EXPECT_EQ(verdict(), Verifier::Verdict::Rejected);
  EXPECT_EQ(check(basic("ann-colour-red:wrong")).verdict, Verdict::Rejected);
  EXPECT_EQ(check(basic("ann-colour-red:wrong")).asked, nullptr) << "nothing is told before";
  EXPECT_EQ(crypto_.verified, 1);
  EXPECT_EQ(check(basic("ann-country-us:se:cret")).verdict, Verdict::Pending);
  EXPECT_EQ(verdict(), Verifier::Verdict::Accepted);
  for (int i = 0; i < 100; ++i) {
    const Principal ann = check(basic("ann-country-us-session-s" + std::to_string(i) + ":se:cret"));
    ASSERT_EQ(ann.verdict, Verdict::Accepted);
    ASSERT_NE(ann.asked, nullptr);
    EXPECT_EQ(ann.asked->parameters.session, "s" + std::to_string(i));
    EXPECT_EQ(ann.asked->parameters.filter.attributes.country, "US");
  }
  const Principal again = check(basic("ann-country-us-session-s99:se:cret"));
  EXPECT_EQ(again.asked->parameters.session, "s99") << "warm";
  EXPECT_EQ(check(basic("ann:se:cret")).asked, nullptr);
  const Principal wrong = check(basic("ann-colour-red:se:cret"));
  EXPECT_EQ(wrong.verdict, Verdict::Accepted);
  EXPECT_NE(wrong.asked->fault.find("\"colour\""), std::string::npos) << wrong.asked->fault;
  EXPECT_EQ(crypto_.verified, 2);
}

TEST_F(AuthenticatorTest, WithoutParametersAUserNameIsANameAndNothingElse) {
  parameters_ = false;
  EXPECT_EQ(check(basic("ann-country-us:se:cret")).verdict, Verdict::Rejected);
  EXPECT_EQ(check(basic("ann:se:cret")).verdict, Verdict::Pending);
  EXPECT_EQ(verdict(), Verifier::Verdict::Accepted);
}

TEST_F(AuthenticatorTest, ASourceRunsOutOfTriesAndGetsThemBack) {
  const TimePoint now = TimePoint{} + seconds(100);
  for (std::uint32_t i = 0; i < Authenticator::kTokens; ++i) authenticator_->charge(source_, now);
  EXPECT_EQ(check(basic("ann:se:cret")).verdict, Verdict::Limited);
  const auto other =
      authenticator_->check({clients_, 1}, basic("ann:se:cret"), IpAddress::v4(0xCB007108), now);
  EXPECT_EQ(other.verdict, Verdict::Pending) << "another source is not meant";
  EXPECT_EQ(verdict(), Verifier::Verdict::Accepted);
  EXPECT_EQ(check(basic("ann:se:cret")).verdict, Verdict::Accepted) << "what is known needs no try";
  const auto later = authenticator_->check({clients_, 1}, basic("ann:third"), source_,
                                           now + 2 * Authenticator::kTokenEvery);
  EXPECT_EQ(later.verdict, Verdict::Pending);
  EXPECT_EQ(verdict(), Verifier::Verdict::Rejected);
}

// Each row of the error contract as it stands on the wire.
TEST(Answer, HasItsStatusCodeAndFields) {
  for (const auto& row : domain::kErrorContract) {
    Answer answer;
    answer.refusal = row.refusal;
    answer.request_id = 255;
    answer.method = net::Method::Connect;
    const std::string text = write_answer(answer);
    const auto status = std::to_string(row.status);
    EXPECT_EQ(text.substr(0, 13), "HTTP/1.1 " + status + " ");
    const auto line = text.substr(0, text.find("\r\n"));
    EXPECT_EQ(line.find("Error"), std::string::npos) << "every status has its phrase";
    EXPECT_NE(line.find("(" + std::string(row.code) + ")"), std::string::npos) << line;
    EXPECT_NE(text.find("\"code\":\"" + std::string(row.code) + "\""), std::string::npos);
    EXPECT_NE(text.find("\"requestId\":\"00000000000000ff\""), std::string::npos);
    EXPECT_EQ(text.find("Proxy-Status") != std::string::npos, !row.proxy_status.empty());
    EXPECT_EQ(text.find("Retry-After") != std::string::npos, row.retry_after);
    EXPECT_EQ(text.find("Proxy-Authenticate") != std::string::npos, row.status == 407);
    const auto body = text.substr(text.find("\r\n\r\n") + 4);
    EXPECT_NE(text.find("Content-Length: " + std::to_string(body.size()) + "\r\n"),
              std::string::npos);
  }
}

TEST(Answer, ToHeadHasNoBodyAndTheReasonOfOthersIsPlain) {
  const std::string text = write_answer({.refusal = domain::Refusal::NoCandidate,
                                         .kind = domain::FailureKind::None,
                                         .method = net::Method::Head,
                                         .close = false,
                                         .request_id = 1,
                                         .detail = "a \"quoted\" detail"});
  EXPECT_EQ(text.substr(0, 34), "HTTP/1.1 503 Service Unavailable\r\n");
  EXPECT_EQ(text.substr(text.size() - 4), "\r\n\r\n");
  EXPECT_EQ(text.find("Connection: close"), std::string::npos);
}

}  // namespace
}  // namespace proxypool::gateway
