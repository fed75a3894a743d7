// `openssl s_server` on a free port, with a certificate of its own for 127.0.0.1.
//
// Thread rule: one thread, that of the test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "support/child_process.hpp"
#include "support/temp_dir.hpp"

namespace proxypool::e2e {

class TlsServer {
 public:
  // Mode: -www tells of the session, -WWW serves the files in folder(), -HTTP takes them for whole
  // answers, head included.
  explicit TlsServer(const std::string& mode) {
    const auto made =
        support::run({"openssl",
                      {"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                       "-nodes", "-days", "2", "-subj", "/CN=process-test", "-addext",
                       "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"},
                      {},
                      folder()});
    EXPECT_EQ(made.code, 0) << made.err;
    process_ = std::make_unique<support::ChildProcess>(support::ChildProcess::Options{
        "openssl",
        {"s_server", "-accept", "127.0.0.1:0", "-key", "key.pem", "-cert", "cert.pem", mode},
        {},
        folder()});
    // "ACCEPT 127.0.0.1:PORT"
    const auto line = process_->wait_for_line("ACCEPT 127.0.0.1:");
    EXPECT_TRUE(line) << process_->err();
    if (line) authority_ = line->substr(line->find(' ') + 1);
  }
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_.path(); }
  [[nodiscard]] std::string certificate() const { return (folder() / "cert.pem").string(); }
  [[nodiscard]] const std::string& authority() const noexcept { return authority_; }
  [[nodiscard]] std::string url(const std::string& path) const {
    return "https://" + authority_ + path;
  }

 private:
  support::TempDir folder_;
  std::unique_ptr<support::ChildProcess> process_;
  std::string authority_;
};

}  // namespace proxypool::e2e
