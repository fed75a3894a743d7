// A wire that speaks TLS, byte by byte, with the other side's session in the test's own hands.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gateway/transport/wire.hpp"
#include "net/event_loop.hpp"
#include "net/tls.hpp"
#include "support/certificates.hpp"
#include "support/temp_dir.hpp"

namespace proxypool::gateway {
namespace {

using Step = net::TlsSession::Step;

class TestWire final : public Wire {
 public:
  using Wire::Wire;
  void on_io(std::uint32_t events) override { note(events); }
};

// What one side has written and the other not yet read.
class Tape final : public net::TlsPipe {
 public:
  ssize_t pull(char* to, std::size_t size) noexcept override {
    if (in.empty()) {
      errno = EAGAIN;
      return ended ? 0 : -1;
    }
    const std::size_t count = std::min(size, in.size());
    in.copy(to, count);
    in.erase(0, count);
    return static_cast<ssize_t>(count);
  }
  bool push(std::string_view ciphertext) override {
    out += ciphertext;
    return true;
  }
  std::string in;
  std::string out;
  bool ended = false;
};

class TlsWire : public ::testing::Test {
 protected:
  TlsWire() {
    const auto files = authority_.write(folder_.path(), "wire", {"DNS:wire.example"});
    server_ = *net::TlsContext::server({files.certificate, files.key, {}});
    client_ = *net::TlsContext::client(authority_.write_authority(folder_.path()));
    std::array<int, 2> fds{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()), 0);
    wire_.open(net::UniqueFd(fds[0]), true);
    peer_ = net::UniqueFd(fds[1]);
  }

  // To the wire, `piece` bytes at a time; `then` after each.
  template <class Then>
  void deliver(std::size_t piece, Then&& then) {
    while (!tape_.out.empty()) {
      const std::size_t size = std::min(piece, tape_.out.size());
      ASSERT_EQ(::send(peer_.get(), tape_.out.data(), size, 0), static_cast<ssize_t>(size));
      tape_.out.erase(0, size);
      wire_.note(EPOLLIN);
      then();
    }
  }
  void fetch() {
    std::array<char, 65536> bytes;
    ssize_t got = 0;
    while ((got = ::recv(peer_.get(), bytes.data(), bytes.size(), 0)) > 0) {
      tape_.in.append(bytes.data(), static_cast<std::size_t>(got));
    }
    tape_.ended = got == 0;
  }
  // The wire is the server.
  void shake_hands(std::size_t piece = 100'000) {
    ASSERT_TRUE(wire_.accept_tls(*server_));
    session_ = net::TlsSession::connect(*client_, tape_, {"wire.example", 1, nullptr});
    Step mine = Step::Waits;
    Step theirs = Step::Waits;
    for (int round = 0; round < 10 && (mine == Step::Waits || theirs == Step::Waits); ++round) {
      if (theirs == Step::Waits) theirs = session_->handshake();
      deliver(piece, [&] {
        if (mine == Step::Waits) mine = wire_.handshake();
      });
      fetch();
    }
    ASSERT_EQ(mine, Step::Done);
    ASSERT_EQ(theirs, Step::Done);
  }
  std::string heard() {
    fetch();
    std::string out(1 << 20, '\0');
    const auto got = session_->read(out.data(), out.size());
    out.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return out;
  }

  support::TempDir folder_;
  testing::Authority authority_;
  std::shared_ptr<const net::TlsContext> server_;
  std::shared_ptr<const net::TlsContext> client_;
  net::EventLoop loop_;
  Lane lane_{loop_, {}, {}, {}};
  TestWire wire_{lane_};
  net::UniqueFd peer_;
  Tape tape_;
  std::unique_ptr<net::TlsSession> session_;
};

TEST_F(TlsWire, ShakesHandsAndReadsByteByByte) {
  shake_hands(1);
  ASSERT_TRUE(session_->write("one two"));
  int reads = 0;
  deliver(1, [&] {
    const auto read = wire_.receive();
    if (read == Wire::Read::Bytes) {
      ++reads;
    } else {
      EXPECT_EQ(read, Wire::Read::Starved);
    }
  });
  EXPECT_EQ(reads, 1) << "a record is read as a whole";
  EXPECT_EQ(wire_.bytes(), "one two");
  EXPECT_EQ(wire_.send("three"), Wire::Write::Sent);
  EXPECT_EQ(heard(), "three");
  wire_.consume(7);
  EXPECT_EQ(lane_.buffers.in_use(), 0U) << "an idle connection holds no buffer";
}

// Everything that the session has decrypted or holds is read before anybody waits for an edge.
TEST_F(TlsWire, ForgetsNoByteThatTheSocketNoLongerHas) {
  shake_hands();
  std::string all;
  for (int i = 0; i < 40; ++i) {
    const std::string record(5000, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(session_->write(record));
    all += record;
  }
  // One edge for all of it.
  ASSERT_EQ(::send(peer_.get(), tape_.out.data(), tape_.out.size(), 0),
            static_cast<ssize_t>(tape_.out.size()));
  tape_.out.clear();
  wire_.note(EPOLLIN);
  std::string got;
  while (wire_.readable()) {
    if (wire_.receive() != Wire::Read::Bytes) continue;
    got += wire_.bytes();
    wire_.consume(wire_.bytes().size());
  }
  EXPECT_TRUE(got == all) << got.size() << " of " << all.size();
}

TEST_F(TlsWire, CloseNotifyIsTheEndAndABareEndIsNone) {
  for (const bool notify : {true, false}) {
    std::array<int, 2> fds{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()), 0);
    wire_.close();
    wire_.open(net::UniqueFd(fds[0]), true);
    peer_ = net::UniqueFd(fds[1]);
    tape_ = {};
    shake_hands();
    ASSERT_TRUE(session_->write("last"));
    ASSERT_TRUE(!notify || session_->write_end());
    deliver(100'000, [] {});
    ::shutdown(peer_.get(), SHUT_WR);
    wire_.note(EPOLLIN | EPOLLRDHUP);
    EXPECT_EQ(wire_.receive(), Wire::Read::Bytes);
    EXPECT_EQ(wire_.bytes(), "last");
    wire_.consume(4);
    ASSERT_TRUE(wire_.readable());
    EXPECT_EQ(wire_.receive(), notify ? Wire::Read::End : Wire::Read::Broken);
    EXPECT_EQ(wire_.truncated(), !notify);
    EXPECT_EQ(wire_.error(), notify ? 0 : ECONNRESET);
    EXPECT_EQ(wire_.ended(), notify);
  }
}

// No end of the connection follows: the peer still listens.
TEST_F(TlsWire, ACloseNotifyBehindBytesNeedsNoEdgeOfItsOwn) {
  shake_hands();
  ASSERT_TRUE(session_->write("last"));
  ASSERT_TRUE(session_->write_end());
  deliver(100'000, [] {});
  EXPECT_EQ(wire_.receive(), Wire::Read::Bytes);
  wire_.consume(4);
  ASSERT_TRUE(wire_.readable());
  EXPECT_EQ(wire_.receive(), Wire::Read::End);
  EXPECT_EQ(wire_.send("answer"), Wire::Write::Sent) << "this direction is still open";
  EXPECT_EQ(heard(), "answer");
}

TEST_F(TlsWire, EndsItsOwnDirectionOnceWhatWasHeldHasLeft) {
  shake_hands();
  const std::string large(100'000, 'a');
  std::string all;
  while (wire_.send(large) == Wire::Write::Sent) all += large;
  all += large;
  EXPECT_TRUE(wire_.holding());
  wire_.shut_write();
  std::string got;
  while (wire_.holding()) {
    got += heard();
    ASSERT_NE(wire_.flush(), Wire::Write::Broken);
  }
  for (std::string more = heard(); !more.empty(); more = heard()) got += more;
  EXPECT_TRUE(got == all);
  char byte = 0;
  EXPECT_EQ(session_->read(&byte, 1), 0) << "close_notify";
  EXPECT_TRUE(tape_.ended) << "and the end of the connection";
  // The other direction goes on.
  ASSERT_TRUE(session_->write("still here"));
  deliver(100'000, [] {});
  EXPECT_EQ(wire_.receive(), Wire::Read::Bytes);
  EXPECT_EQ(wire_.bytes(), "still here");
}

TEST_F(TlsWire, SendsPiecesInOrderAndInOneGo) {
  shake_hands();
  heard();
  std::array<iovec, 3> pieces{
      {{const_cast<char*>("head"), 4}, {const_cast<char*>(""), 0}, {const_cast<char*>("body"), 4}}};
  EXPECT_EQ(wire_.send(pieces), Wire::Write::Sent);
  EXPECT_EQ(wire_.send(std::string_view{}), Wire::Write::Sent);
  EXPECT_FALSE(wire_.holding());
  EXPECT_EQ(heard(), "headbody");
}

TEST_F(TlsWire, ClosesWithCloseNotifyUnlessItIsAReset) {
  for (const bool reset : {false, true}) {
    std::array<int, 2> fds{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()), 0);
    wire_.open(net::UniqueFd(fds[0]), true);
    peer_ = net::UniqueFd(fds[1]);
    tape_ = {};
    shake_hands();
    heard();
    wire_.close(reset);
    fetch();
    char byte = 0;
    EXPECT_EQ(session_->read(&byte, 1), reset ? -1 : 0);
  }
}

// A peer that makes the session talk and does not listen.
TEST_F(TlsWire, HoldsABoundedAmountOfWhatTheSessionItselfSays) {
  shake_hands();
  const std::string large(100'000, 'a');
  while (wire_.send(large) == Wire::Write::Sent) {
  }
  auto outcome = Wire::Write::Held;
  for (int i = 0; i < 100 && outcome == Wire::Write::Held; ++i) outcome = wire_.send(large);
  EXPECT_EQ(outcome, Wire::Write::Broken);
}

}  // namespace
}  // namespace proxypool::gateway
