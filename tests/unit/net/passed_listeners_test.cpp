// Which sockets a service manager has passed on (GW-53). The real thing is Upgrade, with programs.
#include "net/passed_listeners.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace proxypool::net {
namespace {

class PassedListeners : public ::testing::Test {
 protected:
  static void say(pid_t pid, const char* count) {
    ::setenv("LISTEN_PID", std::to_string(pid).c_str(), 1);
    ::setenv("LISTEN_FDS", count, 1);
    ::setenv("LISTEN_FDNAMES", "gateway", 1);
  }
  static bool said() {
    return std::getenv("LISTEN_PID") != nullptr || std::getenv("LISTEN_FDS") != nullptr ||
           std::getenv("LISTEN_FDNAMES") != nullptr;
  }
};

TEST_F(PassedListeners, AreNoneWhereNobodySaysSo) {
  const auto taken = take_passed_listeners();
  ASSERT_TRUE(taken);
  EXPECT_TRUE(taken->empty());
}

TEST_F(PassedListeners, OfAnotherProcessAreNotOursAndChildrenDoNotHearOfThem) {
  say(::getppid(), "1");
  const auto taken = take_passed_listeners();
  ASSERT_TRUE(taken);
  EXPECT_TRUE(taken->empty());
  EXPECT_FALSE(said());
}

TEST_F(PassedListeners, AreRefusedWhenTheyAreTooMany) {
  say(::getpid(), "257");
  const auto taken = take_passed_listeners();
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().message.find("LISTEN_FDS=257"), std::string::npos);
  EXPECT_FALSE(said());
}

}  // namespace
}  // namespace proxypool::net
