// The certificate of the clients' listener and its renewal (GW-2, B231).
#include "gateway/certificate.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "adapters/telemetry/telemetry.hpp"
#include "support/certificates.hpp"
#include "support/recording_events.hpp"
#include "support/temp_dir.hpp"

namespace proxypool::gateway {
namespace {

using testing::Authority;
using testing::write_file;

class Certificate : public ::testing::Test {
 protected:
  Certificate() {
    const auto files = authority_.write(folder_.path(), "gateway", {"DNS:gw"});
    options_ = {files.certificate, files.key, {}};
    keeper_ = std::make_unique<CertificateKeeper>(
        options_, [&](auto context) { used_.push_back(std::move(context)); }, events_, *metrics_);
  }
  void step() { now_ = keeper_->step(now_); }
  void replace(const testing::CertificatePair& pair) {
    write_file(options_.certificate_file, pair.certificate);
    write_file(options_.key_file, pair.key);
  }
  double count(const std::string& outcome) {
    const std::string series =
        "proxypool_gateway_certificate_loads_total{outcome=\"" + outcome + "\"} ";
    const std::string text = metrics_->render();
    const auto at = text.find(series);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size()));
  }

  support::TempDir folder_;
  Authority authority_;
  net::TlsServerOptions options_;
  test::RecordingEvents events_;
  std::unique_ptr<ports::Metrics> metrics_ = telemetry::make_metrics();
  std::vector<std::shared_ptr<const net::TlsContext>> used_;
  std::unique_ptr<CertificateKeeper> keeper_;
  TimePoint now_{};
};

TEST_F(Certificate, IsReadAtTheStartAndLeftAloneWhileItStaysTheSame) {
  ASSERT_TRUE(keeper_->load());
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(used_.size(), 1U);
  EXPECT_EQ(now_, TimePoint{} + 5 * CertificateKeeper::kLook);
}

TEST_F(Certificate, IsReadAgainOnceAChangeStandsStill) {
  ASSERT_TRUE(keeper_->load());
  const auto next = authority_.issue({"DNS:gw"});
  write_file(options_.certificate_file, next.certificate);
  step();
  write_file(options_.key_file, next.key);  // between two looks
  step();
  EXPECT_EQ(used_.size(), 1U) << "it has not stood still yet";
  step();
  EXPECT_EQ(used_.size(), 2U);
  EXPECT_EQ(events_.count(ports::Event::CertificateLoaded), 2U);
  EXPECT_EQ(events_.count(ports::Event::CertificateRefused), 0U);
  step();
  EXPECT_EQ(used_.size(), 2U);
}

TEST_F(Certificate, ThatIsBrokenIsRefusedOnceAndTheOldOneStays) {
  ASSERT_TRUE(keeper_->load());
  const std::vector<std::pair<std::string, testing::CertificatePair>> wrong{
      {"no start line", {"garbage", "garbage"}},
      {"key values mismatch",
       {authority_.issue({"DNS:gw"}).certificate, authority_.issue({"DNS:gw"}).key}},
      {"has ended on", authority_.issue({"DNS:gw"}, std::chrono::seconds(-60))},
  };
  std::size_t refusals = 0;
  for (const auto& [reason, pair] : wrong) {
    replace(pair);
    for (int i = 0; i < 4; ++i) step();
    EXPECT_EQ(used_.size(), 1U);
    EXPECT_EQ(events_.count(ports::Event::CertificateRefused), ++refusals);
    EXPECT_NE(events_.lines().back().find(reason), std::string::npos) << events_.lines().back();
  }
  std::filesystem::remove(options_.key_file);
  for (int i = 0; i < 4; ++i) step();
  EXPECT_NE(events_.lines().back().find("No such file"), std::string::npos)
      << events_.lines().back();
  EXPECT_EQ(count("refused"), 4);
  replace(authority_.issue({"DNS:gw"}));
  for (int i = 0; i < 4; ++i) step();
  EXPECT_EQ(used_.size(), 2U) << "a good one heals it";
  EXPECT_EQ(count("loaded"), 2);
}

TEST_F(Certificate, IsReadAtOnceWhenSomebodyAsks) {
  ASSERT_TRUE(keeper_->load());
  replace(authority_.issue({"DNS:gw"}));
  keeper_->ask();
  step();
  EXPECT_EQ(used_.size(), 2U);
}

TEST_F(Certificate, ThatIsNoneIsAnErrorAtTheStart) {
  write_file(options_.certificate_file, "garbage");
  const auto loaded = keeper_->load();
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find(options_.certificate_file), std::string::npos);
  EXPECT_TRUE(used_.empty());
}

// Nobody sits at the terminal to type a pass phrase.
TEST_F(Certificate, WithAKeyThatWantsAPassPhraseIsAnError) {
  const std::string locked = folder_.path() / "locked.key";
  ASSERT_EQ(std::system(("openssl pkey -in " + options_.key_file +
                         " -aes256 -passout pass:x -out " + locked)
                            .c_str()),
            0);
  std::filesystem::rename(locked, options_.key_file);
  EXPECT_FALSE(keeper_->load());
}

}  // namespace
}  // namespace proxypool::gateway
