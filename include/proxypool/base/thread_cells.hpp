// ThreadCells: numbers that many threads add to without meeting, summed when somebody asks.
//
// Each thread has a block of its own with one cell per number; adding is a load and a store of that
// cell (1.5 ns, where a shared one costs 6 ns alone and 43 ns with two threads). A sum walks the
// blocks. The block of a thread that ended goes on counting for the next thread that starts.
//
// Thread rule: any thread.
// Limits:      kCellsMax numbers. A block takes 128 KiB of address space, of which only the pages
//              that were written become memory.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "proxypool/base/assert.hpp"
#include "proxypool/base/concurrent.hpp"

namespace proxypool {

class ThreadCells {
 public:
  static constexpr std::size_t kCellsMax = 16'384;

  ThreadCells() = default;
  ThreadCells(const ThreadCells&) = delete;
  ThreadCells& operator=(const ThreadCells&) = delete;

  // The first of `count` new neighbouring cells; nothing when they would not fit.
  [[nodiscard]] std::optional<std::size_t> allocate(std::size_t count) {
    return blocks_->with([&](Blocks& blocks) -> std::optional<std::size_t> {
      if (count > kCellsMax - blocks.cells_used) return std::nullopt;
      return std::exchange(blocks.cells_used, blocks.cells_used + count);
    });
  }

  // REQUIRES: cell came from allocate().
  void add(std::size_t cell, std::uint64_t n) noexcept {
    const std::atomic_ref<std::uint64_t> value(mine()[cell]);
    value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  // For a cell that holds a double; never mix the two.
  void add_double(std::size_t cell, double n) noexcept {
    const std::atomic_ref<std::uint64_t> value(mine()[cell]);
    const double sum = std::bit_cast<double>(value.load(std::memory_order_relaxed)) + n;
    value.store(std::bit_cast<std::uint64_t>(sum), std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t sum(std::size_t cell) const {
    return fold<std::uint64_t>(cell, [](std::uint64_t bits) { return bits; });
  }
  [[nodiscard]] double sum_double(std::size_t cell) const {
    return fold<double>(cell, [](std::uint64_t bits) { return std::bit_cast<double>(bits); });
  }
  // One for each thread that adds, or one that was left by a thread that ended.
  [[nodiscard]] std::size_t blocks() const {
    return blocks_->with([](const Blocks& blocks) { return blocks.all.size(); });
  }

 private:
  struct Freed {
    void operator()(std::uint64_t* cells) const noexcept { std::free(cells); }  // NOLINT
  };
  struct Blocks {
    std::size_t cells_used = 0;
    std::vector<std::unique_ptr<std::uint64_t[], Freed>> all;  // NOLINT: sized at run time
    std::vector<std::uint64_t*> free;
  };
  using Shared = std::shared_ptr<Guarded<Blocks>>;

  // What a thread holds: its blocks, one for each ThreadCells it has met (one in a program, some
  // in a test), given back when it ends.
  struct Held {
    struct Block {
      Shared owner;
      std::uint64_t* cells;
    };
    std::vector<Block> blocks;
    Held() = default;
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() {
      for (const Block& block : blocks) {
        block.owner->with([&](Blocks& all) { all.free.push_back(block.cells); });
      }
    }
  };
  // The last block looked up. Owners are compared by an address that cannot be used again while
  // the thread holds a share of it.
  struct Last {
    const void* owner;
    std::uint64_t* cells;
  };

  [[nodiscard]] std::uint64_t* mine() noexcept {
    thread_local constinit Last last{nullptr, nullptr};
    if (last.owner != blocks_.get()) last = {blocks_.get(), look_up()};
    return last.cells;
  }

  [[nodiscard]] std::uint64_t* look_up() const {
    thread_local Held held;
    for (const auto& block : held.blocks) {
      if (block.owner == blocks_) return block.cells;
    }
    std::uint64_t* const cells = blocks_->with([](Blocks& blocks) {
      if (!blocks.free.empty()) {
        auto* const reused = blocks.free.back();
        blocks.free.pop_back();
        return reused;
      }
      // calloc asks the kernel for a block of this size: pages stay absent until written.
      auto* const fresh =
          static_cast<std::uint64_t*>(std::calloc(kCellsMax, sizeof(std::uint64_t)));  // NOLINT
      PP_ASSERT(fresh != nullptr);
      blocks.all.emplace_back(fresh);
      return fresh;
    });
    held.blocks.push_back({blocks_, cells});
    return cells;
  }

  template <class Number, class Read>
  [[nodiscard]] Number fold(std::size_t cell, Read read) const {
    return blocks_->with([&](const Blocks& blocks) {
      Number total{};
      for (const auto& block : blocks.all) {
        total += read(std::atomic_ref<std::uint64_t>(block[cell]).load(std::memory_order_relaxed));
      }
      return total;
    });
  }

  Shared blocks_ = std::make_shared<Guarded<Blocks>>();
};

}  // namespace proxypool
