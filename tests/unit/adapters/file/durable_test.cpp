// The crash-safe files (RS-11, ST-4): killed between any two steps, the old or the new is there.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "adapters/crypto/openssl_crypto.hpp"
#include "adapters/file/file_stores.hpp"
#include "support/temp_dir.hpp"

namespace proxypool::file {
namespace {

namespace fs = std::filesystem;

class DurableTest : public ::testing::Test {
 protected:
  std::unique_ptr<ports::DurableNotes> notes(StepHook hook = nullptr) {
    return *open_notes(folder_.path(), *crypto_, std::move(hook));
  }
  std::unique_ptr<ports::DurableLog> log() {
    auto opened = open_log(folder_.path() / "log", *crypto_);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    return opened ? *std::move(opened) : nullptr;
  }
  static std::vector<std::string> replay(ports::DurableLog& log) {
    std::vector<std::string> records;
    EXPECT_TRUE(log.replay([&](std::string_view record) { records.emplace_back(record); }));
    return records;
  }
  void damage(const fs::path& file, std::streamoff at) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(at, at < 0 ? std::ios::end : std::ios::beg);
    stream.put('#');
  }

  support::TempDir folder_;
  std::unique_ptr<ports::Crypto> crypto_ = crypto::make_openssl_crypto();
};

TEST_F(DurableTest, ANoteIsReadBackAfterReopening) {
  ASSERT_FALSE(*notes()->load("a"));
  ASSERT_TRUE(notes()->save("a", std::string("x\0y", 3)));
  EXPECT_EQ(**notes()->load("a"), std::string("x\0y", 3));
}

TEST_F(DurableTest, ABadNameIsRefused) {
  EXPECT_FALSE(notes()->save("../a", "x"));
  EXPECT_FALSE(notes()->load(""));
}

// A child is killed before the n-th step of its second save; every n leaves "old" or "new".
TEST_F(DurableTest, KilledBetweenAnyTwoStepsTheOldOrTheNewNoteIsThere) {
  int olds = 0;
  int news = 0;
  for (int kill_at = 1; kill_at <= 8; ++kill_at) {
    support::TempDir folder;
    ASSERT_TRUE((*open_notes(folder.path(), *crypto_))->save("a", "old"));
    const pid_t child = ::fork();
    if (child == 0) {
      int steps = 0;
      auto store = open_notes(folder.path(), *crypto_, [&](std::string_view) {
        if (++steps == kill_at) ::_exit(0);
      });
      (void)(*store)->save("a", "new");
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    auto store = *open_notes(folder.path(), *crypto_);
    const auto note = store->load("a");
    ASSERT_TRUE(note && *note) << "step " << kill_at;
    ASSERT_TRUE(**note == "old" || **note == "new") << "step " << kill_at;
    (**note == "old" ? olds : news) += 1;
    EXPECT_TRUE(store->save("a", "next"));
  }
  EXPECT_GT(olds, 0);
  EXPECT_GT(news, 0);
}

TEST_F(DurableTest, ADamagedNoteServesTheGenerationBeforeAndRefusesWrites) {
  {
    auto store = notes();
    ASSERT_TRUE(store->save("a", "one"));
    ASSERT_TRUE(store->save("a", "two"));
  }
  const fs::path current = folder_.path() / "a.note";
  damage(current, -1);
  auto store = notes();
  EXPECT_EQ(**store->load("a"), "one");
  EXPECT_NE(store->damage("a").find("damaged"), std::string::npos);
  const auto refused = store->save("a", "three");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::Corrupt);
  EXPECT_TRUE(fs::exists(current));
  fs::rename(current, folder_.path() / "damaged");  // what a person does
  auto mended = notes();
  EXPECT_EQ(**mended->load("a"), "one");
  EXPECT_TRUE(mended->save("a", "three"));
}

TEST_F(DurableTest, AReadOnlyFolderNamesTheRemedyAndKeepsTheNote) {
  auto store = notes();
  ASSERT_TRUE(store->save("a", "one"));
  fs::create_directory(folder_.path() / "a.note.tmp");  // the temporary file cannot be made
  const auto refused = store->save("a", "two");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::Unavailable);
  EXPECT_EQ(**store->load("a"), "one");
}

TEST_F(DurableTest, ALogReplaysWhatWasAppendedInOrder) {
  {
    auto first = log();
    ASSERT_TRUE(first->append("one"));
    ASSERT_TRUE(first->append(""));
    ASSERT_TRUE(first->append("three"));
  }
  auto second = log();
  EXPECT_EQ(replay(*second), (std::vector<std::string>{"one", "", "three"}));
  ASSERT_TRUE(second->append("four"));
  auto third = log();
  EXPECT_EQ(replay(*third).size(), 4U);
}

TEST_F(DurableTest, ATornLastRecordIsDroppedAtEveryLength) {
  ASSERT_TRUE(log()->append("first record"));
  const auto whole = fs::file_size(folder_.path() / "log");
  ASSERT_TRUE(log()->append("second record"));
  const auto both = fs::file_size(folder_.path() / "log");
  const std::string bytes = [&] {
    std::ifstream in(folder_.path() / "log", std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(in)), {});
  }();
  for (auto size = whole; size < both; ++size) {
    std::ofstream(folder_.path() / "log", std::ios::binary) << bytes.substr(0, size);
    auto cut = log();
    ASSERT_EQ(replay(*cut), std::vector<std::string>{"first record"}) << size;
    ASSERT_TRUE(cut->append("again"));
    auto again = log();
    ASSERT_EQ(replay(*again), (std::vector<std::string>{"first record", "again"})) << size;
  }
}

TEST_F(DurableTest, DamageInTheMiddleOfALogIsNotTakenForATornEnd) {
  {
    auto first = log();
    ASSERT_TRUE(first->append("first record"));
    ASSERT_TRUE(first->append("second record"));
  }
  damage(folder_.path() / "log", 30);
  const auto opened = open_log(folder_.path() / "log", *crypto_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::Corrupt);
}

TEST_F(DurableTest, ConcurrentAppendsAreAllThere) {
  constexpr int kThreads = 8;
  constexpr int kEach = 25;
  auto shared = log();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        ASSERT_TRUE(shared->append(std::to_string(t) + ":" + std::to_string(i)));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  auto again = log();
  auto records = replay(*again);
  ASSERT_EQ(records.size(), std::size_t{kThreads * kEach});
  // Each caller's records keep their order.
  std::vector<int> next(kThreads, 0);
  for (const auto& record : records) {
    const auto colon = record.find(':');
    const auto t = static_cast<std::size_t>(std::stoi(record.substr(0, colon)));
    EXPECT_EQ(std::stoi(record.substr(colon + 1)), next[t]++);
  }
}

TEST_F(DurableTest, RewritingReplacesEverythingAtOnce) {
  {
    auto first = log();
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(first->append("old"));
    const auto before = first->size_bytes();
    ASSERT_TRUE(first->rewrite({"kept"}));
    EXPECT_LT(first->size_bytes(), before);
    ASSERT_TRUE(first->append("new"));
  }
  auto again = log();
  EXPECT_EQ(replay(*again), (std::vector<std::string>{"kept", "new"}));
}

TEST_F(DurableTest, ASecondProcessOnTheSameFolderIsRefused) {
  const auto first = lock_folder(folder_.path());
  ASSERT_TRUE(first);
  const auto second = lock_folder(folder_.path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::Conflict);
  EXPECT_NE(second.error().message.find("stateDir"), std::string::npos);
}

}  // namespace
}  // namespace proxypool::file
