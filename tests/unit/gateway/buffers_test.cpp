// The parts below a connection: borrowed memory, objects from slabs, bodies, one end of a relay.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gateway/transport/body_flow.hpp"
#include "gateway/transport/buffer.hpp"
#include "gateway/transport/slab.hpp"
#include "gateway/transport/wire.hpp"
#include "net/event_loop.hpp"

namespace proxypool::gateway {
namespace {

TEST(Buffer, HoldsABlockOnlyWhileItHoldsBytes) {
  BufferPool pool;
  Buffer buffer;
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(pool.in_use(), 0U);
  buffer.append(pool, "abc");
  EXPECT_EQ(pool.in_use(), 1U);
  buffer.consume(2);
  EXPECT_EQ(buffer.view(), "c");
  buffer.consume(1);
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(Buffer, GrowsFromBlockToBlockWithoutLosingAnything) {
  BufferPool pool;
  Buffer buffer;
  std::string all;
  for (int i = 0; all.size() < 150'000; ++i) {
    const std::string piece(static_cast<std::size_t>(i % 700), static_cast<char>('a' + i % 26));
    buffer.append(pool, piece);
    all += piece;
    if (i % 5 == 0) {
      const std::size_t front = buffer.size() / 200;
      buffer.consume(front);
      all.erase(0, front);
    }
    ASSERT_EQ(buffer.view(), all);
    ASSERT_EQ(pool.in_use(), buffer.empty() ? 0U : 1U);
  }
}

TEST(Buffer, MovesItsBlockWithItself) {
  BufferPool pool;
  Buffer a;
  a.append(pool, "abc");
  Buffer b = std::move(a);
  EXPECT_EQ(b.view(), "abc");
  Buffer c;
  c.append(pool, "other");
  c = std::move(b);
  EXPECT_EQ(c.view(), "abc");
  EXPECT_EQ(pool.in_use(), 1U);
}

TEST(Slab, GivesTheSameMemoryAgain) {
  Slab<std::string> slab;
  std::vector<std::string*> all;
  for (int i = 0; i < 200; ++i) all.push_back(slab.make("number " + std::to_string(i)));
  EXPECT_EQ(*all[150], "number 150");
  EXPECT_EQ(slab.in_use(), 200U);
  std::string* last = all.back();
  slab.destroy(last);
  EXPECT_EQ(slab.make("again"), last);
  for (std::string* text : all) slab.destroy(text);
  EXPECT_EQ(slab.in_use(), 0U);
}

struct Flowed {
  std::string out;
  std::string left;
  BodyFlow::State state = BodyFlow::State::More;
};

// Feeds a body in pieces, keeping what was not used in front of the next piece.
Flowed flow(BodyFlow body, std::string_view bytes, std::size_t piece) {
  Flowed result;
  std::string pending;
  for (std::size_t at = 0; at < bytes.size() && result.state == BodyFlow::State::More;
       at += piece) {
    pending += bytes.substr(at, piece);
    for (std::size_t used = 1; used != 0 && result.state == BodyFlow::State::More;) {
      const auto step = body.take(pending.data(), pending.size());
      if (step.state != BodyFlow::State::Refused) result.out += pending.substr(0, step.size);
      pending.erase(0, step.used);
      result.state = step.state;
      used = pending.empty() ? 0 : step.used;
    }
  }
  result.left = pending;
  return result;
}

TEST(BodyFlow, ABodyOfKnownLengthEndsWhereItEnds) {
  const auto all = flow({net::Framing::Length, 5}, "helloGET", 100);
  EXPECT_EQ(all.out, "hello");
  EXPECT_EQ(all.left, "GET");
  EXPECT_EQ(all.state, BodyFlow::State::Done);
  EXPECT_TRUE(BodyFlow(net::Framing::Length, 0).done());
  EXPECT_TRUE(BodyFlow(net::Framing::None, 0).done());
}

TEST(BodyFlow, ChunksGoOnAsTheyAreOrDecodedHoweverTheyAreCut) {
  const std::string chunks = "5\r\nhello\r\n3;a=b\r\nyou\r\n0\r\nX-T: 1\r\n\r\n";
  for (std::size_t piece = 1; piece <= chunks.size() + 4; ++piece) {
    const auto raw = flow({net::Framing::Chunked, 0}, chunks + "NEXT", piece);
    EXPECT_EQ(raw.out, chunks) << piece;
    EXPECT_EQ(raw.state, BodyFlow::State::Done);
    const auto decoded = flow({net::Framing::Chunked, 0, true}, chunks + "NEXT", piece);
    EXPECT_EQ(decoded.out, "helloyou") << piece;
    EXPECT_EQ(decoded.state, BodyFlow::State::Done);
    if (piece > chunks.size() + 3) {
      EXPECT_EQ(decoded.left, "NEXT");
    }
  }
}

TEST(BodyFlow, NoByteOfABadElementGoesOn) {
  const std::string bad = "2\r\nok\r\n1junk\r\nZ\r\n0\r\n\r\n";
  for (std::size_t piece = 1; piece <= bad.size(); ++piece) {
    const auto result = flow({net::Framing::Chunked, 0}, bad, piece);
    EXPECT_EQ(result.state, BodyFlow::State::Refused);
    EXPECT_EQ(result.out.find("junk"), std::string::npos);
  }
}

TEST(BodyFlow, MoreThanTheLimitIsRefused) {
  BodyFlow body(net::Framing::Chunked, 0, false, 4);
  std::string bytes = "5\r\nhello\r\n0\r\n\r\n";
  auto step = body.take(bytes.data(), bytes.size());
  EXPECT_EQ(step.state, BodyFlow::State::Refused);
  EXPECT_EQ(body.refusal_status(), 413);
}

class TestWire final : public Wire {
 public:
  using Wire::Wire;
  void on_io(std::uint32_t events) override { note(events); }
};

class WireTest : public ::testing::Test {
 protected:
  WireTest() {
    std::array<int, 2> fds{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()), 0);
    wire_.open(net::UniqueFd(fds[0]), true);
    peer_ = net::UniqueFd(fds[1]);
  }
  void say(std::string_view text) {
    ASSERT_EQ(::send(peer_.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }
  std::string heard() {
    std::string out(1 << 20, '\0');
    const auto count = ::recv(peer_.get(), out.data(), out.size(), 0);
    out.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    return out;
  }

  net::EventLoop loop_;
  Lane lane_{loop_, {}, {}, {}};
  TestWire wire_{lane_};
  net::UniqueFd peer_;
};

TEST_F(WireTest, KeepsWhatWasNotUsedInFrontOfWhatComes) {
  say("one two");
  EXPECT_EQ(wire_.receive(), Wire::Read::Bytes);
  EXPECT_EQ(wire_.bytes(), "one two");
  EXPECT_EQ(lane_.buffers.in_use(), 0U) << "it lies in the thread's memory";
  wire_.consume(4);
  wire_.settle();
  EXPECT_EQ(lane_.buffers.in_use(), 1U);
  EXPECT_EQ(wire_.bytes(), "two");
  EXPECT_FALSE(wire_.readable()) << "a short read has emptied the socket";
  say(" three");
  wire_.note(EPOLLIN);
  EXPECT_EQ(wire_.receive(), Wire::Read::Bytes);
  EXPECT_EQ(wire_.bytes(), "two three");
  wire_.consume(9);
  EXPECT_EQ(lane_.buffers.in_use(), 0U);
}

TEST_F(WireTest, SaysHowAConnectionEnded) {
  say("last");
  peer_.reset();
  wire_.note(EPOLLIN | EPOLLRDHUP);
  EXPECT_EQ(wire_.receive(), Wire::Read::Bytes);
  wire_.consume(4);
  EXPECT_TRUE(wire_.readable()) << "the end is still behind the bytes";
  EXPECT_EQ(wire_.receive(), Wire::Read::End);
  EXPECT_EQ(wire_.send("x"), Wire::Write::Broken);
  EXPECT_EQ(wire_.error(), EPIPE);
}

TEST_F(WireTest, HoldsWhatTheSocketDoesNotTakeAndSendsItInOrder) {
  const std::string large(100'000, 'a');
  std::string all;
  Wire::Write state = Wire::Write::Sent;
  while (state == Wire::Write::Sent) {
    state = wire_.send(large);
    all += large;
  }
  EXPECT_EQ(state, Wire::Write::Held);
  EXPECT_GT(wire_.unsent(), 0U);
  std::array<iovec, 2> pieces{{{const_cast<char*>("b"), 1}, {const_cast<char*>("c"), 1}}};
  EXPECT_EQ(wire_.send(pieces), Wire::Write::Held);
  all += "bc";
  std::string got;
  while (wire_.holding()) {
    got += heard();
    EXPECT_NE(wire_.flush(), Wire::Write::Broken);
  }
  while (got.size() < all.size()) got += heard();
  EXPECT_TRUE(got == all);
  EXPECT_EQ(lane_.buffers.in_use(), 0U);
}

// From one wire to another through a pipe (GW-43).
class BulkTest : public WireTest {
 protected:
  static constexpr std::size_t kBulk = std::size_t{3} << 20U;

  BulkTest() {
    ::signal(SIGPIPE, SIG_IGN);  // as the programs do: splice() knows no MSG_NOSIGNAL
    std::array<int, 2> fds{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()), 0);
    to_.open(net::UniqueFd(fds[0]), true);
    reader_ = net::UniqueFd(fds[1]);
    for (std::uint64_t x = 1; bulk_.size() < kBulk;
         x = x * 6364136223846793005U + 1442695040888963407U) {
      bulk_.push_back(static_cast<char>(x >> 56U));
    }
  }
  // As much as the sockets take, both ways; what comes out is in got_.
  void pump(std::size_t reads) {
    for (bool moves = true; moves;) {
      moves = false;
      const auto sent =
          ::send(peer_.get(), bulk_.data() + said_, bulk_.size() - said_, MSG_NOSIGNAL);
      if (sent > 0) said_ += static_cast<std::size_t>(sent);
      wire_.note(EPOLLIN);
      if (!to_.holding()) moves = move_on();
      for (std::size_t i = 0; i < reads; ++i) {
        const std::string bytes = take();
        got_ += bytes;
        moves = moves || !bytes.empty();
      }
      if (to_.holding()) {
        EXPECT_NE(to_.flush(), Wire::Write::Broken);
      }
    }
  }
  bool move_on() {
    PipePointer pipe;
    if (wire_.in_bulk()) pipe = lane_.pipes.take();
    const auto read = pipe != nullptr ? wire_.receive(*pipe) : wire_.receive();
    if (read != Wire::Read::Bytes) return false;
    if (pipe != nullptr) {
      piped_ += pipe->held();
      return to_.send(std::move(pipe)) != Wire::Write::Broken;
    }
    const std::size_t size = wire_.bytes().size();
    const bool ok = to_.send(wire_.bytes()) != Wire::Write::Broken;
    wire_.consume(size);
    return ok;
  }
  std::string take() {
    std::string out(1 << 16, '\0');
    const auto count = ::recv(reader_.get(), out.data(), out.size(), 0);
    out.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    return out;
  }

  TestWire to_{lane_};
  net::UniqueFd reader_;
  std::string bulk_;
  std::string got_;
  std::size_t said_ = 0;
  std::size_t piped_ = 0;
};

TEST_F(BulkTest, WhatComesInBulkArrivesWholeAndInOrderMostOfItThroughAPipe) {
  pump(1);
  EXPECT_TRUE(got_ == bulk_) << got_.size();
  EXPECT_GT(piped_, kBulk / 2);
  EXPECT_EQ(lane_.pipes.in_use(), 0U) << "an idle direction holds no pipe";
  EXPECT_EQ(lane_.buffers.in_use(), 0U);
}

TEST_F(BulkTest, APipeWaitsForAReaderThatIsSlowAndWhatIsSentMeanwhileComesBehindIt) {
  pump(0);
  EXPECT_TRUE(to_.holding());
  EXPECT_EQ(lane_.pipes.in_use(), 1U);
  const std::size_t before = said_;
  EXPECT_LT(before, kBulk) << "nobody reads on for a reader that does not take";
  EXPECT_EQ(to_.send("last"), Wire::Write::Held);
  while (to_.holding()) {
    got_ += take();
    EXPECT_NE(to_.flush(), Wire::Write::Broken);
  }
  for (std::string bytes = take(); !bytes.empty(); bytes = take()) got_ += bytes;
  ASSERT_GE(got_.size(), 4U);
  EXPECT_EQ(got_.substr(got_.size() - 4), "last");
  EXPECT_TRUE(bulk_.compare(0, got_.size() - 4, got_, 0, got_.size() - 4) == 0);
  EXPECT_EQ(lane_.pipes.in_use(), 0U);
}

TEST_F(BulkTest, AWireThatClosesGivesItsPipeBack) {
  pump(0);
  ASSERT_EQ(lane_.pipes.in_use(), 1U);
  to_.close();
  EXPECT_EQ(lane_.pipes.in_use(), 0U);
  PipePointer next = lane_.pipes.take();
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(next->held(), 0U) << "bytes of a tunnel that ended are in nobody's pipe";
}

TEST_F(BulkTest, AReaderThatHasGoneIsNoticed) {
  pump(0);
  reader_.reset();
  EXPECT_EQ(to_.flush(), Wire::Write::Broken);
  EXPECT_EQ(to_.error(), EPIPE);
}

TEST(PipePoolTest, GivesNoMoreThanItMayAndNoneWithoutDescriptors) {
  PipePool pool;
  std::vector<PipePointer> taken;
  for (std::size_t i = 0; i < PipePool::kMax; ++i) {
    taken.push_back(pool.take());
    if (taken.back() == nullptr) break;  // this user may have no more
  }
  EXPECT_EQ(pool.take(), nullptr);
  taken.clear();
  EXPECT_EQ(pool.in_use(), 0U);

  PipePool other;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_EQ(other.take(), nullptr);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_NE(other.take(), nullptr);
}

}  // namespace
}  // namespace proxypool::gateway
