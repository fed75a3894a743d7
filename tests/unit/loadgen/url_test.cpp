#include "loadgen/url.hpp"

#include <gtest/gtest.h>

namespace proxypool::loadgen {
namespace {

TEST(UrlTest, AUrlFallsIntoItsParts) {
  const auto url = parse_url("HTTP://us%40er:p:w%2F@proxy.example:8080/a/b?c=d#frag");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->scheme, "http");
  EXPECT_EQ(url->user, "us@er");
  EXPECT_EQ(url->password, "p:w/");
  EXPECT_EQ(url->authority, (Authority{"proxy.example", 8080}));
  EXPECT_EQ(url->target, "/a/b?c=d");
}

TEST(UrlTest, MissingPartsHaveTheirDefaults) {
  EXPECT_EQ(parse_url("http://h")->authority.port, 80);
  EXPECT_EQ(parse_url("https://h")->authority.port, 443);
  EXPECT_EQ(parse_url("http://h")->target, "/");
  EXPECT_EQ(parse_url("http://h?q")->target, "/?q");
  EXPECT_EQ(parse_url("http://[::1]:81/")->authority, (Authority{"::1", 81}));
  EXPECT_EQ(to_text(Authority{"::1", 81}), "[::1]:81");
}

TEST(UrlTest, WhatIsNoUrlIsRefused) {
  for (const auto* text :
       {"", "h:80", "socks5://h", "http://", "http://:80", "http://h:", "http://h:0",
        "http://h:65536", "http://::1/", "http://[::1", "http://h:8x"}) {
    EXPECT_FALSE(parse_url(text)) << text;
  }
}

TEST(UrlTest, AQueryValueIsFoundByItsWholeNameAndDecoded) {
  EXPECT_EQ(query_value("/a?xkind=1&kind=slow%3A1s&kind=2", "kind"), "slow:1s");
  EXPECT_EQ(query_value("/a?flag&b=1", "flag"), "");
  EXPECT_EQ(query_value("/a", "flag"), std::nullopt);
  EXPECT_EQ(path_of("/a/b?c=/d"), "/a/b");
}

}  // namespace
}  // namespace proxypool::loadgen
