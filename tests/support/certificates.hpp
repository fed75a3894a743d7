// Certificates for tests, made in memory in a millisecond: an authority, and what it signs.
//
// Thread rule: one thread at a time.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace proxypool::testing {

// PEM.
struct CertificatePair {
  std::string certificate;
  std::string key;
};

struct CertificateFiles {
  std::string certificate;
  std::string key;
};

class Authority {
 public:
  Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;
  ~Authority();

  [[nodiscard]] const std::string& certificate() const noexcept { return pem_; }
  // For subject alternative names as in "DNS:proxy.example" and "IP:127.0.0.1"; valid from an hour
  // ago until `left` from now.
  [[nodiscard]] CertificatePair issue(const std::vector<std::string>& names,
                                      std::chrono::seconds left = std::chrono::hours(1)) const;
  // The same, and this authority's own, as files.
  CertificateFiles write(const std::filesystem::path& folder, const std::string& name,
                         const std::vector<std::string>& names) const;
  std::string write_authority(const std::filesystem::path& folder) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
  std::string pem_;
};

void write_file(const std::filesystem::path& path, const std::string& text);

}  // namespace proxypool::testing
