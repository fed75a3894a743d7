// When the kernel tells of bytes that come in bulk, and when of every byte again (GW-43).
#include "gateway/transport/bulk_flows.hpp"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "net/event_loop.hpp"
#include "net/socket.hpp"
#include "support/raw_sockets.hpp"

namespace proxypool::gateway {
namespace {

using testing::Peer;

class BulkFlowsTest : public ::testing::Test, public net::IoHandler {
 protected:
  BulkFlowsTest() {
    auto listener = net::listen_tcp({IpAddress::v4(0x7F000001), 0}, {});
    EXPECT_TRUE(listener);
    peer_ = std::make_unique<Peer>(Peer::dial(net::local_port(listener->get())));
    socket_ = net::UniqueFd(::accept4(listener->get(), nullptr, nullptr, SOCK_NONBLOCK));
    EXPECT_TRUE(loop_.add(socket_.get(), EPOLLIN | EPOLLET, *this));
  }
  ~BulkFlowsTest() override { loop_.remove(socket_.get(), *this); }
  void on_io(std::uint32_t events) override { told_ += (events & EPOLLIN) != 0 ? 1 : 0; }

  void bulk() { flows_.moved(flow_, socket_.get()); }

  net::EventLoop loop_;
  BulkFlows flows_{loop_.timers()};
  BulkFlow flow_;
  std::unique_ptr<Peer> peer_;
  net::UniqueFd socket_;
  int told_ = 0;
};

TEST_F(BulkFlowsTest, WhileItMovesItIsToldOfManyBytesAlone) {
  bulk();
  peer_->send(std::string(10'000, 'x'));
  for (int i = 0; i < 10; ++i) {
    bulk();
    loop_.turn(BulkFlows::kTick);
  }
  EXPECT_EQ(told_, 0);
  std::size_t sent = 0;
  for (int i = 0; i < 1'000 && told_ == 0; ++i) {
    sent += peer_->send_some(std::string(100'000, 'x'));
    bulk();
    loop_.turn(BulkFlows::kTick);
  }
  EXPECT_GT(told_, 0);
  EXPECT_GT(sent, 500'000U);
  flows_.forget(flow_);
  EXPECT_EQ(flows_.size(), 0U);
}

TEST_F(BulkFlowsTest, OnceItStandsStillItIsToldOfTheLastBytes) {
  bulk();
  peer_->send("last");
  EXPECT_EQ(flows_.size(), 1U);
  for (int i = 0; i < 1'000 && told_ == 0; ++i) loop_.turn(BulkFlows::kTick);
  EXPECT_EQ(told_, 1);
  EXPECT_EQ(flows_.size(), 0U);
}

TEST_F(BulkFlowsTest, ASmallPieceBringsItBackAtOnce) {
  bulk();
  flows_.leave(flow_);
  EXPECT_EQ(flows_.size(), 0U);
  flows_.leave(flow_);
  peer_->send("x");
  loop_.turn(seconds(10));
  EXPECT_EQ(told_, 1);
}

TEST_F(BulkFlowsTest, AreBounded) {
  std::vector<BulkFlow> others(BulkFlows::kMax);
  for (BulkFlow& other : others) flows_.moved(other, socket_.get());
  bulk();
  EXPECT_EQ(flows_.size(), BulkFlows::kMax);
  flows_.forget(flow_);  // it is none of them
  for (BulkFlow& other : others) flows_.forget(other);
  EXPECT_EQ(flows_.size(), 0U);
}

}  // namespace
}  // namespace proxypool::gateway
