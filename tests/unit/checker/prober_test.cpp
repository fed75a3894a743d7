// Probes against proxies made of raw sockets: every outcome, every bound (CT-31, BASIC).
#include "checker/prober.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>

#include <cerrno>

#include "adapters/telemetry/telemetry.hpp"
#include "runtime/blocking_pool.hpp"
#include "support/recording_events.hpp"
#include "unit/checker/fake_proxy.hpp"

namespace proxypool::checker {
namespace {

using domain::FailureKind;
using domain::Phase;
using test::FakeProxy;

// A prober on a loop of its own, with what it reports in a queue.
class Lab {
 public:
  explicit Lab(ProberSettings settings = {})
      : prober(settings,
               {loop, [this](const auto& host, auto port, auto) { return look_up(host, port); },
                [this](std::function<void()> job) { return pool.try_run(std::move(job)); },
                [this](const domain::Observation& seen) { EXPECT_TRUE(reports.try_push(seen)); },
                metrics, events}),
        thread([this] { loop.run(); }) {}
  ~Lab() {
    pool.stop();
    loop.stop();
    thread.join();
  }

  domain::Observation next() {
    auto seen = reports.pop_for(seconds(8));
    EXPECT_TRUE(seen) << "no observation";
    return seen.value_or(domain::Observation{});
  }
  double dropped(Drop drop) {
    return static_cast<double>(registry
                                   ->counter("proxypool_checker_tasks_dropped_total",
                                             "Tasks that led to no observation",
                                             {{"reason", std::string(to_string(drop))}})
                                   .value());
  }

  std::function<Result<std::vector<net::Endpoint>>(const std::string&, std::uint16_t)> look_up =
      [](const std::string& host, std::uint16_t) -> Result<std::vector<net::Endpoint>> {
    return Error{ErrorCode::NotFound, Origin::Target, "no such name: " + host};
  };
  net::EventLoop loop;
  runtime::BlockingPool pool{"look-up", 1, 4};
  std::unique_ptr<ports::Metrics> registry = telemetry::make_metrics();
  ProbeMetrics metrics{*registry};
  test::RecordingEvents events;
  BoundedQueue<domain::Observation> reports{1024};
  Prober prober;
  std::thread thread;
};

domain::CheckTask task_for(std::uint16_t port, std::uint64_t id = 1) {
  domain::CheckTask task;
  task.task_id = id;
  task.proxy = ProxyId(id + 100);
  task.endpoint = {domain::Scheme::Http, "127.0.0.1", port};
  task.credential = {"user", SecretString("pass word")};
  task.target_host = "192.0.2.1";
  task.target_port = 443;
  task.timeout = milliseconds(5'000);
  return task;
}

domain::Observation probe(const domain::CheckTask& task) {
  Lab lab;
  lab.prober.offer({task});
  return lab.next();
}

TEST(Prober, AsksForATunnelWithBasicCredentials) {
  BoundedQueue<std::string> heads{1};
  FakeProxy proxy([&](int connection) {
    EXPECT_TRUE(heads.try_push(FakeProxy::read_head(connection)));
    FakeProxy::write(connection, "HTTP/1.1 200 Connection established\r\n\r\n");
    FakeProxy::wait_for_end(connection);
  });
  const auto seen = probe(task_for(proxy.port(), 7));
  EXPECT_TRUE(seen.passed);
  EXPECT_EQ(seen.task_id, 7U);
  EXPECT_EQ(seen.proxy, ProxyId(107));
  EXPECT_EQ(seen.level, domain::CheckLevel::Basic);
  EXPECT_EQ(seen.failure, domain::Failure{});
  EXPECT_LT(seen.latency, milliseconds(5'000));
  EXPECT_EQ(heads.pop(),
            "CONNECT 192.0.2.1:443 HTTP/1.1\r\nHost: 192.0.2.1:443\r\n"
            "Proxy-Authorization: Basic dXNlcjpwYXNzIHdvcmQ=\r\n\r\n");
}

TEST(Prober, SendsNoCredentialsWhereThereAreNoneAndBracketsIpv6Targets) {
  auto task = task_for(80);
  task.credential = {};
  task.target_host = "2001:db8::1";
  EXPECT_EQ(connect_request(task).reveal(),
            "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n\r\n");
}

// What a proxy answers, and what that means.
struct Answer {
  const char* name;
  const char* text;
  bool passed;
  FailureKind kind;
};
class Answers : public testing::TestWithParam<Answer> {};

TEST_P(Answers, AreJudged) {
  FakeProxy proxy(FakeProxy::answering(GetParam().text));
  const auto seen = probe(task_for(proxy.port()));
  EXPECT_EQ(seen.passed, GetParam().passed);
  EXPECT_EQ(seen.failure.kind, GetParam().kind) << domain::to_string(seen.failure.kind);
  EXPECT_EQ(seen.failure.phase, seen.passed ? Phase::None : Phase::ProxyHandshake);
}

const Answer kAnswers[] = {
    {"Established", "HTTP/1.1 200 OK\r\n\r\n", true, FailureKind::None},
    {"OldVersion", "HTTP/1.0 200 Connection established\r\nProxy-agent: x\r\n\r\n", true,
     FailureKind::None},
    {"RefusedTarget", "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", true,
     FailureKind::None},
    {"DeadTarget", "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", true,
     FailureKind::None},
    {"Limited", "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n", true,
     FailureKind::None},
    {"AfterInterims",
     "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\na: b\r\n\r\n"
     "HTTP/1.1 200 OK\r\n\r\n",
     true, FailureKind::None},
    {"AuthRejected",
     "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n"
     "Content-Length: 0\r\n\r\n",
     false, FailureKind::AuthRejected},
    {"AuthRejectedAfterInterim",
     "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", false,
     FailureKind::AuthRejected},
    {"Garbage", "SSH-2.0-OpenSSH_9.2\r\n", false, FailureKind::Protocol},
    {"BareLineFeeds", "HTTP/1.1 200 OK\n\n", false, FailureKind::Protocol},
    {"BadField", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", false, FailureKind::Protocol},
};
INSTANTIATE_TEST_SUITE_P(Prober, Answers, testing::ValuesIn(kAnswers),
                         [](const auto& tested) { return tested.param.name; });

TEST(Prober, AnAnswerInPiecesIsAnAnswer) {
  FakeProxy proxy([](int connection) {
    FakeProxy::read_head(connection);
    for (const char c : std::string("HTTP/1.1 200 OK\r\nVia: 1.1 x\r\n\r\n")) {
      FakeProxy::write(connection, {&c, 1});
    }
    FakeProxy::wait_for_end(connection);
  });
  EXPECT_TRUE(probe(task_for(proxy.port())).passed);
}

TEST(Prober, AClosedPortIsRefused) {
  const auto closed = test::bound_socket(-1);
  const auto seen = probe(task_for(net::local_port(closed.get())));
  EXPECT_FALSE(seen.passed);
  EXPECT_EQ(seen.failure, (domain::Failure{Phase::Dial, FailureKind::Refused}));
}

TEST(Prober, AConnectThatNobodyAnswersTimesOut) {
  // A listener whose queue is full drops what comes.
  const auto full = test::bound_socket(0);
  const net::Endpoint at{IpAddress::v4(0x7f000001), net::local_port(full.get())};
  const auto first = net::start_connect(at);
  const auto second = net::start_connect(at);
  auto task = task_for(at.port);
  task.timeout = milliseconds(150);
  const auto seen = probe(task);
  EXPECT_EQ(seen.failure, (domain::Failure{Phase::Dial, FailureKind::Timeout}));
  EXPECT_GE(seen.latency, milliseconds(150));
}

TEST(Prober, AProxyThatSaysNothingTimesOut) {
  FakeProxy proxy([](int connection) { FakeProxy::wait_for_end(connection); });
  auto task = task_for(proxy.port());
  task.timeout = milliseconds(150);
  const auto seen = probe(task);
  EXPECT_EQ(seen.failure, (domain::Failure{Phase::ProxyHandshake, FailureKind::Timeout}));
}

TEST(Prober, NoProbeTakesLongerThanTheCheckerAllows) {
  FakeProxy proxy([](int connection) { FakeProxy::wait_for_end(connection); });
  Lab lab({4, 16, milliseconds(100)});
  auto task = task_for(proxy.port());
  task.timeout = std::chrono::hours(1);
  lab.prober.offer({task});
  EXPECT_EQ(lab.next().failure.kind, FailureKind::Timeout);
}

TEST(Prober, AProxyThatHangsUpIsAReset) {
  FakeProxy closing([](int connection) { FakeProxy::read_head(connection); });
  EXPECT_EQ(probe(task_for(closing.port())).failure,
            (domain::Failure{Phase::ProxyHandshake, FailureKind::Reset}));
  FakeProxy resetting([](int connection) {
    FakeProxy::read_head(connection);
    net::reset_on_close(connection);
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ::dup3(nowhere, connection, O_CLOEXEC);  // closes the socket, keeps the number
    ::close(nowhere);
  });
  EXPECT_EQ(probe(task_for(resetting.port())).failure,
            (domain::Failure{Phase::ProxyHandshake, FailureKind::Reset}));
}

TEST(Prober, HalfAnAnswerIsABrokenOne) {
  FakeProxy proxy([](int connection) {
    FakeProxy::read_head(connection);
    FakeProxy::write(connection, "HTTP/1.1 200 OK\r\nVia");
  });
  EXPECT_EQ(probe(task_for(proxy.port())).failure,
            (domain::Failure{Phase::ProxyHandshake, FailureKind::Protocol}));
}

TEST(Prober, WhatConnectSaysIsToldApartFromOurOwnTroubles) {
  EXPECT_EQ(classify_connect(ECONNREFUSED), FailureKind::Refused);
  EXPECT_EQ(classify_connect(ETIMEDOUT), FailureKind::Timeout);
  EXPECT_EQ(classify_connect(ECONNRESET), FailureKind::Reset);
  EXPECT_EQ(classify_connect(EHOSTUNREACH), FailureKind::Unreachable);
  EXPECT_EQ(classify_connect(ENETUNREACH), FailureKind::Unreachable);
  for (const int ours : {EMFILE, ENFILE, ENOBUFS, ENOMEM, ENETDOWN, EADDRNOTAVAIL, EPERM}) {
    EXPECT_FALSE(classify_connect(ours)) << ours;
  }
}

TEST(Prober, NamesAreLookedUpAndEveryAddressIsTried) {
  FakeProxy proxy(FakeProxy::answering("HTTP/1.1 200 OK\r\n\r\n"));
  const auto closed = test::bound_socket(-1);
  Lab lab;
  lab.look_up = [&](const std::string& host, std::uint16_t port) {
    EXPECT_EQ(host, "proxy.test");
    const auto here = IpAddress::v4(0x7f000001);
    return Result(
        std::vector{net::Endpoint{here, net::local_port(closed.get())}, net::Endpoint{here, port}});
  };
  auto task = task_for(proxy.port());
  task.endpoint.host = "proxy.test";
  lab.prober.offer({task});
  EXPECT_TRUE(lab.next().passed);
}

TEST(Prober, ANameWithoutAnAddressIsUnreachableAndABrokenResolverIsOurOwnFault) {
  Lab lab;
  auto task = task_for(80);
  task.endpoint.host = "nobody.test";
  lab.prober.offer({task});
  EXPECT_EQ(lab.next().failure, (domain::Failure{Phase::Dial, FailureKind::Unreachable}));
  lab.look_up = [](const std::string&, std::uint16_t) -> Result<std::vector<net::Endpoint>> {
    return Error{ErrorCode::Unavailable, Origin::Target, "resolver is down", true};
  };
  task.task_id = 2;
  FakeProxy proxy(FakeProxy::answering("HTTP/1.1 200 OK\r\n\r\n"));
  lab.prober.offer({task});
  while (lab.dropped(Drop::OwnFault) < 1) std::this_thread::yield();
  lab.prober.offer({task_for(proxy.port(), 3)});
  EXPECT_EQ(lab.next().task_id, 3U);  // the second task left no observation
}

TEST(Prober, ALookUpThatTakesTooLongIsATimeOut) {
  std::atomic<bool> leave{false};
  Lab lab;
  lab.look_up = [&](const std::string&, std::uint16_t) -> Result<std::vector<net::Endpoint>> {
    while (!leave) std::this_thread::yield();
    return std::vector{net::Endpoint{}};
  };
  auto task = task_for(80);
  task.endpoint.host = "slow.test";
  task.timeout = milliseconds(50);
  lab.prober.offer({task});
  EXPECT_EQ(lab.next().failure, (domain::Failure{Phase::Dial, FailureKind::Timeout}));
  leave = true;
}

TEST(Prober, NeverMoreProbesAtOnceThanAllowed) {
  std::atomic<int> open{0};
  std::atomic<int> most{0};
  std::atomic<int> permits{0};
  FakeProxy proxy([&](int connection) {
    FakeProxy::read_head(connection);
    const int now = ++open;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    for (int left = permits; left <= 0 || !permits.compare_exchange_weak(left, left - 1);) {
      std::this_thread::yield();
      left = permits;
    }
    --open;
    FakeProxy::write(connection, "HTTP/1.1 200 OK\r\n\r\n");
    FakeProxy::wait_for_end(connection);
  });
  Lab lab({4, 64, milliseconds(30'000)});
  std::vector<domain::CheckTask> tasks;
  for (std::uint64_t id = 1; id <= 20; ++id) tasks.push_back(task_for(proxy.port(), id));
  lab.prober.offer(tasks);
  while (open < 4) std::this_thread::yield();
  for (int i = 0; i < 20; ++i) {
    ++permits;
    EXPECT_TRUE(lab.next().passed);
  }
  EXPECT_EQ(most, 4);
  EXPECT_EQ(proxy.accepted(), 20);
}

TEST(Prober, ATaskInFlightIsNotProbedTwiceAndAFullQueueDropsWhatComes) {
  std::atomic<bool> leave{false};
  FakeProxy proxy([&](int connection) {
    FakeProxy::read_head(connection);
    while (!leave) std::this_thread::yield();
    FakeProxy::write(connection, "HTTP/1.1 200 OK\r\n\r\n");
    FakeProxy::wait_for_end(connection);
  });
  Lab lab({1, 2, milliseconds(30'000)});
  const auto first = task_for(proxy.port(), 1);
  lab.prober.offer({first, first, task_for(proxy.port(), 2), task_for(proxy.port(), 2),
                    task_for(proxy.port(), 3), task_for(proxy.port(), 4)});
  while (lab.dropped(Drop::Full) < 1) std::this_thread::yield();
  EXPECT_EQ(lab.dropped(Drop::Duplicate), 2);
  leave = true;
  for (const std::uint64_t id : {1U, 2U, 3U}) EXPECT_EQ(lab.next().task_id, id);
  lab.prober.offer({first});  // it is over: a new round
  EXPECT_EQ(lab.next().task_id, 1U);
  EXPECT_EQ(proxy.accepted(), 4);
}

TEST(Prober, WhatItCannotProbeIsDroppedAndNotCondemned) {
  auto egress = task_for(80, 1);
  egress.level = domain::CheckLevel::Egress;
  auto tls = task_for(80, 2);
  tls.endpoint.scheme = domain::Scheme::Https;
  auto split = task_for(80, 3);
  split.target_host = "x\r\nInjected: yes";
  Lab lab;
  FakeProxy proxy(FakeProxy::answering("HTTP/1.1 200 OK\r\n\r\n"));
  lab.prober.offer({egress, tls, split, task_for(proxy.port(), 4)});
  EXPECT_EQ(lab.next().task_id, 4U);
  EXPECT_EQ(lab.dropped(Drop::Unsupported), 3);
}

TEST(Prober, StoppingLetsRunningProbesEndAndForgetsTheRest) {
  std::atomic<bool> leave{false};
  FakeProxy proxy([&](int connection) {
    FakeProxy::read_head(connection);
    while (!leave) std::this_thread::yield();
    FakeProxy::write(connection, "HTTP/1.1 200 OK\r\n\r\n");
    FakeProxy::wait_for_end(connection);
  });
  Lab lab({1, 8, milliseconds(30'000)});
  lab.prober.offer({task_for(proxy.port(), 1), task_for(proxy.port(), 2)});
  while (proxy.accepted() < 1) std::this_thread::yield();
  lab.prober.stop_intake();
  EXPECT_FALSE(lab.prober.drain(milliseconds(10)));
  leave = true;
  EXPECT_TRUE(lab.prober.drain(seconds(8)));
  EXPECT_EQ(lab.next().task_id, 1U);
  EXPECT_EQ(lab.dropped(Drop::Stopping), 1);
  lab.prober.offer({task_for(proxy.port(), 3)});
  while (lab.dropped(Drop::Stopping) < 2) std::this_thread::yield();
}

// Secrets and addresses stay out of the log (OP-3, OP-4).
TEST(Prober, SaysWhatItFoundWithoutAddressOrSecret) {
  FakeProxy proxy(FakeProxy::answering("HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"));
  Lab lab;
  lab.prober.offer({task_for(proxy.port())});
  static_cast<void>(lab.next());
  const auto lines = lab.events.lines();
  ASSERT_EQ(lines.size(), 1U);
  const std::string expected = "probe_finished proxy=" + to_string(ProxyId(101)) +
                               " level=basic result=auth_rejected reason=proxy_handshake took=";
  EXPECT_EQ(lines[0].substr(0, expected.size()), expected);
}

}  // namespace
}  // namespace proxypool::checker
