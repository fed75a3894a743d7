// The rules on one file, each on texts of a few lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tidy/tidy.hpp"

namespace proxypool::tidy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// "line: message" of each problem.
std::vector<std::string> said(const Problems& problems) {
  std::vector<std::string> out;
  for (const auto& p : problems) out.push_back(std::to_string(p.line) + ": " + p.message);
  return out;
}

std::vector<std::string> includes(std::string_view path, std::string_view text) {
  return said(check_includes(path, text));
}

TEST(CodeOnlyTest, BlanksCommentsAndLiteralsLineForLine) {
  EXPECT_EQ(code_only("a // b\nc /* d\ne */ f"), "a     \nc     \n     f");
  EXPECT_EQ(code_only("x(\"rand(\", 'y');"), "x(\"     \", ' ');");
  EXPECT_EQ(code_only("\"a\\\"b\" c"), "\"    \" c");
  EXPECT_EQ(code_only("R\"(a\" // )\" b"), "R\"        \" b");
  EXPECT_EQ(code_only("1'000'000 + x; // y"), "1'000'000 + x;     ");
  EXPECT_EQ(code_only("'\\'' + \"//\""), "'  ' + \"  \"");
}

TEST(IncludeRuleTest, TheBaseKnowsTheStandardLibraryAlone) {
  const auto* path = "include/proxypool/base/x.hpp";
  EXPECT_THAT(includes(path, "#include <vector>\n#include \"proxypool/base/id.hpp\"\n"), IsEmpty());
  EXPECT_THAT(includes(path, "\n#include \"proxypool/domain/x.hpp\"\n"),
              ElementsAre("2: include/proxypool/base/ must not know proxypool/domain/x.hpp"));
  EXPECT_THAT(includes(path, "#include <unistd.h>\n"),
              ElementsAre("1: include/proxypool/base/ must not know <unistd.h>"));
}

TEST(IncludeRuleTest, TheDomainKnowsNoPortAndNoTechnology) {
  const auto* path = "include/proxypool/domain/proxy/x.hpp";
  EXPECT_THAT(includes(path, "#include \"proxypool/domain/routing/policy.hpp\"\n"), IsEmpty());
  for (const auto* other : {"\"proxypool/ports/crypto.hpp\"", "\"runtime/system.hpp\"",
                            "<boost/asio.hpp>", "<re2/re2.h>", "<hiredis/hiredis.h>"}) {
    EXPECT_THAT(includes(path, std::string("#include ") + other + "\n"),
                ElementsAre(HasSubstr("must not know")));
  }
}

TEST(IncludeRuleTest, TheGatewayKnowsNoStoreAndNoVendor) {
  const auto* path = "src/gateway/dispatch/x.cpp";
  EXPECT_THAT(includes(path, "#include \"proxypool/ports/control_plane.hpp\"\n"), IsEmpty());
  for (const auto* port : {"activity_pool", "coordination", "management_store", "provider_api"}) {
    EXPECT_THAT(includes(path, "#include \"proxypool/ports/" + std::string(port) + ".hpp\"\n"),
                ElementsAre(HasSubstr("must not know")));
  }
  EXPECT_THAT(includes(path, "#include \"adapters/memory/pool.hpp\"\n"), testing::SizeIs(1));
}

TEST(IncludeRuleTest, TheControllerKnowsNoTechnology) {
  EXPECT_THAT(includes("src/controller/x.cpp", "#include \"config/config.hpp\"\n"), IsEmpty());
  for (const auto* other : {"<grpcpp/grpcpp.h>", "<nlohmann/json.hpp>", "\"net/socket.hpp\"",
                            "\"adapters/redis/pool.hpp\"", "<sys/socket.h>"}) {
    EXPECT_THAT(includes("src/controller/x.cpp", std::string("#include ") + other + "\n"),
                testing::SizeIs(1));
  }
}

TEST(IncludeRuleTest, ATechnologyHasOneHome) {
  struct Home {
    std::string_view include;
    std::string_view path;
  };
  for (const auto& [include, path] :
       std::vector<Home>{{"<grpcpp/grpcpp.h>", "src/adapters/grpc/x.cpp"},
                         {"<yaml-cpp/yaml.h>", "src/config/x.cpp"},
                         {"<spdlog/spdlog.h>", "src/adapters/telemetry/x.cpp"},
                         {"<prometheus/registry.h>", "src/adapters/telemetry/x.cpp"},
                         {"<openssl/evp.h>", "src/adapters/crypto/x.cpp"},
                         {"<re2/re2.h>", "src/config/regex.cpp"},
                         {"<sys/epoll.h>", "src/net/x.cpp"}}) {
    const std::string text = "#include " + std::string(include) + "\n";
    EXPECT_THAT(includes(path, text), IsEmpty()) << include;
    EXPECT_THAT(includes("src/controller/x.cpp", text), testing::SizeIs(1)) << include;
    EXPECT_THAT(includes("src/adapters/memory/x.cpp", text), testing::SizeIs(1)) << include;
  }
}

TEST(IncludeRuleTest, ForeignHeadersStayInSources) {
  EXPECT_THAT(includes("src/adapters/telemetry/x.hpp", "#include <spdlog/spdlog.h>\n"),
              ElementsAre(HasSubstr("belongs into a source")));
  EXPECT_THAT(includes("src/net/x.hpp", "#include <sys/epoll.h>\n"), IsEmpty());
}

TEST(IncludeRuleTest, PathsAreWhole) {
  EXPECT_THAT(includes("src/net/a.cpp", "#include \"../runtime/alarm.hpp\"\n"),
              ElementsAre("1: include whole paths, not \"..\""));
  EXPECT_THAT(includes("src/net/a.cpp", "#include \"socket.hpp\"\n"), testing::SizeIs(1));
  EXPECT_THAT(includes("tests/unit/a.cpp", "#include \"helper.hpp\"\n"), IsEmpty());
}

TEST(IncludeRuleTest, EveryFolderHasARow) {
  EXPECT_THAT(includes("src/surprise/a.cpp", ""), testing::SizeIs(1));
  EXPECT_THAT(includes("docs/a.md", "#include <x/y.h>\n"), IsEmpty());
}

std::vector<std::string> bans(std::string_view path, std::string_view text) {
  return said(check_bans(path, text));
}

TEST(BanRuleTest, OnlyTheRuntimeReadsAClock) {
  const auto* text = "int a;\nauto now = std::chrono::steady_clock::now();\n";
  EXPECT_THAT(bans("src/controller/x.cpp", text),
              ElementsAre(HasSubstr("2: `steady_clock::now(` is not for here")));
  EXPECT_THAT(bans("src/runtime/x.cpp", text), IsEmpty());
  EXPECT_THAT(bans("src/gateway/x.cpp", "runtime::boot_now();"), testing::SizeIs(1));
}

TEST(BanRuleTest, NobodyElseSleepsRollsDiceOrLocks) {
  for (const auto* text :
       {"std::this_thread::sleep_for(x);", "::usleep(5);", "sleep(1);", "std::random_device d;",
        "std::mt19937 g;", "int x = rand();", "std::mutex m;", "std::condition_variable c;",
        "asio::co_spawn(x, y, asio::detached);", "std::regex r;", "throw x;",
        "std::atomic<std::shared_ptr<int>> p;", "catch (...) {", "std::cout << x;", "printf(x);",
        "using namespace std;", "volatile int x;"}) {
    EXPECT_FALSE(bans("src/controller/x.cpp", text).empty()) << text;
  }
}

TEST(BanRuleTest, AFunctionMayOpenANamespaceForItself) {
  EXPECT_THAT(bans("src/controller/x.cpp", "  using namespace std::literals;"), IsEmpty());
}

TEST(BanRuleTest, AWordIsNotItsPart) {
  EXPECT_THAT(bans("src/controller/x.cpp", "operand(x); my_throw_count; snprintf(a); throws;"),
              IsEmpty());
}

TEST(BanRuleTest, CommentsAndLiteralsAreNotCode) {
  EXPECT_THAT(bans("src/controller/x.cpp", "// rand()\nx(\"rand()\");\n/* std::mutex */"),
              IsEmpty());
}

TEST(LengthRuleTest, ALineHasAHundredColumns) {
  const std::string fits(100, 'x');
  EXPECT_THAT(check_lengths("src/a.cpp", fits + "\n"), IsEmpty());
  EXPECT_THAT(said(check_lengths("src/a.cpp", "\n" + fits + "x\n")),
              ElementsAre("2: 101 columns, at most 100 are allowed"));
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "ü";
  EXPECT_THAT(check_lengths("src/a.cpp", umlauts), IsEmpty());
  EXPECT_THAT(check_lengths("docs/a.md", fits + fits), IsEmpty());
}

TEST(LengthRuleTest, AFileHasSixHundredLines) {
  std::string text;
  for (int i = 0; i < 600; ++i) text += "x\n";
  EXPECT_THAT(check_lengths("src/a.cpp", text), IsEmpty());
  EXPECT_THAT(check_lengths("src/a.cpp", text + "x\n"), testing::SizeIs(1));
}

TEST(HeaderRuleTest, AHeaderSaysWhatItIsAndIsReadOnce) {
  EXPECT_THAT(check_header("src/a.hpp", "// What it is.\n#pragma once\nint x;\n"), IsEmpty());
  EXPECT_THAT(check_header("src/a.hpp", "#pragma once\nint x;\n"), testing::SizeIs(1));
  EXPECT_THAT(check_header("src/a.hpp", "// What it is.\nint x;\n#pragma once\n"),
              testing::SizeIs(1));
  EXPECT_THAT(check_header("src/a.cpp", "int x;\n"), IsEmpty());
}

}  // namespace
}  // namespace proxypool::tidy
