// Files that change in the ways in which people and machines change them.
#include "runtime/file_watch.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temp_dir.hpp"

namespace proxypool::runtime {
namespace {

namespace fs = std::filesystem;

class FileWatchTest : public ::testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) const {
    const fs::path path = folder_.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path;
  }
  // A change is told of at the second look, and once.
  static bool tells(FileWatch& watch) {
    const bool at_once = watch.changed();
    const bool then = watch.changed();
    return !at_once && then && !watch.changed();
  }
  support::TempDir folder_;
};

TEST_F(FileWatchTest, NothingHappensToAFileThatStaysAsItIs) {
  FileWatch watch({write("a", "one")});
  EXPECT_FALSE(watch.changed());
  EXPECT_FALSE(watch.changed());
}

TEST_F(FileWatchTest, AFileThatIsWrittenToHasChangedOnce) {
  FileWatch watch({write("a", "one")});
  write("a", "three");
  EXPECT_TRUE(tells(watch));
}

TEST_F(FileWatchTest, AChangeThatGoesOnDoesNotCountYet) {
  FileWatch watch({write("a", "one")});
  for (const char* text : {"three", "seventeen", "twenty-three"}) {
    write("a", text);
    EXPECT_FALSE(watch.changed());
  }
  EXPECT_TRUE(watch.changed());
}

TEST_F(FileWatchTest, AFileThatIsRenamedOverAnotherHasChanged) {
  const auto path = write("a", "one");
  FileWatch watch({path});
  fs::rename(write("b", "two"), path);
  EXPECT_TRUE(tells(watch));
}

// As Kubernetes does: file → ..data/file, and ..data is turned to a new folder.
TEST_F(FileWatchTest, ALinkFurtherUpThatIsTurnedIsAChange) {
  write("v1/a", "one");
  write("v2/a", "two");
  const auto data = folder_.path() / "..data";
  fs::create_directory_symlink("v1", data);
  fs::create_symlink("..data/a", folder_.path() / "a");
  FileWatch watch({folder_.path() / "a"});
  fs::create_directory_symlink("v2", folder_.path() / "..next");
  fs::rename(folder_.path() / "..next", data);
  EXPECT_TRUE(tells(watch));
}

TEST_F(FileWatchTest, AFileThatGoesAndComesIsAChangeEachTime) {
  const auto path = write("a", "one");
  FileWatch watch({path});
  fs::remove(path);
  EXPECT_TRUE(tells(watch));
  write("a", "one");
  EXPECT_TRUE(tells(watch));
}

TEST_F(FileWatchTest, WhatSomebodyIsAboutToReadIsNotToldOf) {
  FileWatch watch({write("a", "one")});
  write("a", "three");
  watch.settle();
  EXPECT_FALSE(watch.changed());
  EXPECT_FALSE(watch.changed());
}

TEST_F(FileWatchTest, OtherFilesToWatchDoNotHideAChangeOfThoseThatStay) {
  const auto a = write("a", "one");
  FileWatch watch({a});
  write("a", "three");
  watch.watch({a, write("b", "two")});
  EXPECT_TRUE(tells(watch));
}

}  // namespace
}  // namespace proxypool::runtime
