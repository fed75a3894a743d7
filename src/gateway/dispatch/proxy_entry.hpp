// What the transport must know of one proxy, ready to use, and a counted pointer to it.
//
// Entries are small, immutable and shared between views as long as nothing about the proxy changes.
// An allocation holds its entry, never its view: a tunnel of hours keeps 200 bytes alive, not a
// picture of 100,000 proxies.
//
// Thread rule: immutable; the count is atomic.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "proxypool/base/id.hpp"
#include "proxypool/base/ip.hpp"
#include "proxypool/base/secret.hpp"
#include "proxypool/domain/proxy/proxy.hpp"

namespace proxypool::gateway {

struct ProxyCredential {
  domain::CredentialVersion version;
  SecretString authorization;  // "Proxy-Authorization: Basic …\r\n"
};

struct ProxyEntry {
 private:
  friend class EntryPointer;
  mutable std::atomic<std::uint32_t> references_{1};  // first: beside what is read first

 public:
  ProxyId id;
  Epoch lease_epoch;
  const UpstreamId* upstream = nullptr;  // the registry's
  domain::Endpoint endpoint;
  std::optional<IpAddress> address;  // when the host is a literal: nothing to resolve
  std::shared_ptr<const ProxyCredential> credential;  // null: the proxy wants none

  // The header line with its end, or nothing.
  [[nodiscard]] std::string_view authorization() const noexcept {
    return credential ? credential->authorization.reveal() : std::string_view{};
  }
};

// Owns a share of an entry. Copying one costs an atomic increment of the entry's own count, which
// no other proxy's requests touch.
class EntryPointer {
 public:
  EntryPointer() = default;
  static EntryPointer adopt(std::unique_ptr<ProxyEntry> entry) noexcept {
    EntryPointer pointer;
    pointer.entry_ = entry.release();
    return pointer;
  }
  EntryPointer(const EntryPointer& other) noexcept : entry_(other.entry_) {
    if (entry_ != nullptr) entry_->references_.fetch_add(1, std::memory_order_relaxed);
  }
  EntryPointer(EntryPointer&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  EntryPointer& operator=(EntryPointer other) noexcept {
    std::swap(entry_, other.entry_);
    return *this;
  }
  ~EntryPointer() {
    if (entry_ == nullptr) return;
    if (entry_->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete entry_;
  }

  // It will be copied soon.
  void prefetch() const noexcept { __builtin_prefetch(entry_, 1); }
  [[nodiscard]] const ProxyEntry* get() const noexcept { return entry_; }
  const ProxyEntry& operator*() const noexcept { return *entry_; }
  const ProxyEntry* operator->() const noexcept { return entry_; }
  explicit operator bool() const noexcept { return entry_ != nullptr; }

 private:
  const ProxyEntry* entry_ = nullptr;
};

}  // namespace proxypool::gateway
