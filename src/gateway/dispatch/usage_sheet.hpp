// What each client moved, counted by each serving thread on its own. (GW-14)
//
// A thread adds to cells that nobody else writes: a load and a store, no lock, no shared line. Who
// reports reads the cells of all threads and adds them up; what it reads is a moment old at most.
//
// Thread rule: UsageSheet::cell(): its thread; UsageSheets::sheet() and total(): any thread.
// Limits:      kClientsMax clients; 12 KiB for every 512 of which a thread has seen one.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "proxypool/base/concurrent.hpp"
#include "proxypool/domain/client/usage.hpp"

namespace proxypool::gateway {

struct UsageCell {
  std::atomic<std::uint64_t> bytes_up{0};
  std::atomic<std::uint64_t> bytes_down{0};
  std::atomic<std::uint64_t> requests{0};

  // The cell's own thread.
  void add(const domain::Usage& more) noexcept {
    add(bytes_up, more.bytes_up);
    add(bytes_down, more.bytes_down);
    add(requests, more.requests);
  }
  [[nodiscard]] domain::Usage read() const noexcept {
    return {bytes_up.load(std::memory_order_relaxed), bytes_down.load(std::memory_order_relaxed),
            requests.load(std::memory_order_relaxed)};
  }

 private:
  static void add(std::atomic<std::uint64_t>& number, std::uint64_t n) noexcept {
    number.store(number.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
};

class UsageSheet {
 public:
  static constexpr std::size_t kClientsMax = 262'144;

  UsageSheet() = default;
  UsageSheet(const UsageSheet&) = delete;
  UsageSheet& operator=(const UsageSheet&) = delete;
  ~UsageSheet() {
    for (auto& page : pages_) delete page.load(std::memory_order_relaxed);  // NOLINT: its owner
  }

  // REQUIRES: client < kClientsMax.
  [[nodiscard]] UsageCell& cell(std::uint32_t client) {
    std::atomic<Page*>& place = pages_[client / kPage];
    Page* page = place.load(std::memory_order_relaxed);
    if (page == nullptr) {
      page = new Page;  // NOLINT: owned by pages_
      place.store(page, std::memory_order_release);
    }
    return (*page)[client % kPage];
  }
  [[nodiscard]] domain::Usage read(std::uint32_t client) const noexcept {
    const Page* page = pages_[client / kPage].load(std::memory_order_acquire);
    return page == nullptr ? domain::Usage{} : (*page)[client % kPage].read();
  }

 private:
  static constexpr std::size_t kPage = 512;
  using Page = std::array<UsageCell, kPage>;
  std::array<std::atomic<Page*>, kClientsMax / kPage> pages_{};
};

class UsageSheets {
 public:
  // Of a serving thread; made when it is first asked for, and kept.
  [[nodiscard]] UsageSheet& sheet(std::size_t thread) {
    return sheets_.with([&](Sheets& sheets) -> UsageSheet& {
      while (sheets.size() <= thread) sheets.push_back(std::make_unique<UsageSheet>());
      return *sheets[thread];
    });
  }
  [[nodiscard]] domain::Usage total(std::uint32_t client) const {
    return sheets_.with([&](const Sheets& sheets) {
      domain::Usage sum;
      for (const auto& sheet : sheets) sum += sheet->read(client);
      return sum;
    });
  }

 private:
  using Sheets = std::vector<std::unique_ptr<UsageSheet>>;
  Guarded<Sheets> sheets_;
};

}  // namespace proxypool::gateway
