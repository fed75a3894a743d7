#include "adapters/memory/lease_note.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace proxypool::memory {
namespace {

constexpr milliseconds kLease{60'000};
constexpr StoreTime kNow{seconds{1'700'000'000}};

struct OneNote final : ports::DurableNotes {
  Result<std::optional<std::string>> load(std::string_view) override { return text; }
  Status save(std::string_view, std::string_view bytes) override {
    text = std::string(bytes);
    return ok();
  }
  [[nodiscard]] std::string damage(std::string_view) override { return {}; }
  std::optional<std::string> text;
};

Status cover(LeaseNote& note, const std::string& instance, StoreTime now) {
  return note.cover(WorkerId("w"), InstanceId(instance), now + kLease, kLease);
}

// C18: after a restart every instance that may hold leases is waited for, as long as they may last.
TEST(LeaseNote, WhoMayHoldLeasesIsKnownAfterARestart) {
  OneNote file;
  LeaseNote note = *LeaseNote::load(&file);
  ASSERT_TRUE(cover(note, "i1", kNow));
  ASSERT_TRUE(cover(note, "i2", kNow + seconds(5)));
  LeaseNote later = *LeaseNote::load(&file);
  EXPECT_EQ(later.missing_until(), kNow + seconds(5) + 2 * kLease);
  later.came_back(WorkerId("w"), InstanceId("i2"));
  EXPECT_EQ(later.missing_until(), kNow + 2 * kLease);
  later.came_back(WorkerId("w"), InstanceId("i1"));
  EXPECT_FALSE(later.missing_until());
}

TEST(LeaseNote, ARenewalIsWrittenOnceALease) {
  OneNote file;
  LeaseNote note = *LeaseNote::load(&file);
  ASSERT_TRUE(cover(note, "i1", kNow));
  const auto written = file.text;
  ASSERT_TRUE(cover(note, "i1", kNow + kLease));
  EXPECT_EQ(file.text, written);
  ASSERT_TRUE(cover(note, "i1", kNow + kLease + milliseconds(1)));
  EXPECT_NE(file.text, written);
}

// A gateway that is started anew has another instance each time.
TEST(LeaseNote, InstancesThatAreLongGoneAreNotKept) {
  OneNote file;
  LeaseNote note = *LeaseNote::load(&file);
  for (int i = 0; i < 1'000; ++i) {
    const StoreTime now = kNow + i * kLease;
    note.forget_ended(now);
    ASSERT_TRUE(cover(note, "instance-" + std::to_string(i), now));
  }
  EXPECT_LT(file.text->size(), 200U);
  EXPECT_EQ(LeaseNote::load(&file)->missing_until(), kNow + 1'001 * kLease);
  // What may still last is kept.
  note.forget_ended(kNow + 1'001 * kLease);
  ASSERT_TRUE(cover(note, "last", kNow + 1'000 * kLease));
  EXPECT_NE(file.text->find("instance-999"), std::string::npos);
}

}  // namespace
}  // namespace proxypool::memory
