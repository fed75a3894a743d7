// Memory that a connection borrows from its thread while bytes are in it, and only then.
//
// A Buffer is one pointer wide when empty. Blocks come in three sizes and go back to the thread's
// free lists; a Buffer that outgrows its block moves to the next size.
//
// Thread rule: the loop's thread; a Buffer goes back to the pool that it came from.
// Invariant:   a Buffer that holds no bytes holds no block.
// Limits:      kBytesMax in one Buffer (REQUIRES of append); a free list keeps kSpareMax blocks,
// the
//              rest goes back to the heap. How many Buffers there can be follows from the number of
//              connections.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "proxypool/base/assert.hpp"

namespace proxypool::gateway {

class BufferPool {
 public:
  static constexpr std::array<std::uint32_t, 3> kSizes{2048, 16'384, 163'840};
  static constexpr std::array<std::uint32_t, 3> kSpareMax{2048, 256, 16};

  BufferPool() = default;
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool() {
    PP_ASSERT(in_use_ == 0);
    for (Block* list : spare_) {
      while (list != nullptr) ::operator delete(std::exchange(list, list->next));
    }
  }

  // Blocks that are lent out. Zero when every connection is idle.
  [[nodiscard]] std::size_t in_use() const noexcept { return in_use_; }

 private:
  friend class Buffer;
  struct Block {
    BufferPool* pool;
    Block* next;
    std::uint32_t size_class;
    std::uint32_t begin;  // of the bytes that are held
    std::uint32_t end;

    [[nodiscard]] char* data() noexcept { return reinterpret_cast<char*>(this + 1); }
    [[nodiscard]] std::uint32_t capacity() const noexcept {
      return kSizes[size_class] - static_cast<std::uint32_t>(sizeof(Block));
    }
  };

  Block* take(std::size_t bytes) {
    std::uint32_t size_class = 0;
    while (size_class < kSizes.size() && kSizes[size_class] - sizeof(Block) < bytes) ++size_class;
    PP_ASSERT(size_class < kSizes.size());
    Block* block = spare_[size_class];
    if (block != nullptr) {
      spare_[size_class] = block->next;
      --spares_[size_class];
    } else {
      block = static_cast<Block*>(::operator new(kSizes[size_class]));
    }
    ++in_use_;
    *block = {this, nullptr, size_class, 0, 0};
    return block;
  }
  void give(Block* block) noexcept {
    --in_use_;
    if (spares_[block->size_class] == kSpareMax[block->size_class]) {
      ::operator delete(block);
      return;
    }
    ++spares_[block->size_class];
    block->next = std::exchange(spare_[block->size_class], block);
  }

  std::array<Block*, 3> spare_{};
  std::array<std::uint32_t, 3> spares_{};
  std::size_t in_use_ = 0;
};

class Buffer {
 public:
  static constexpr std::size_t kBytesMax = BufferPool::kSizes[2] - 32;

  Buffer() = default;
  Buffer(Buffer&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    if (this != &other) {
      clear();
      block_ = std::exchange(other.block_, nullptr);
    }
    return *this;
  }
  ~Buffer() { clear(); }

  [[nodiscard]] bool empty() const noexcept { return block_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept {
    return block_ == nullptr ? 0 : block_->end - block_->begin;
  }
  [[nodiscard]] std::string_view view() const noexcept {
    if (block_ == nullptr) return {};
    return {block_->data() + block_->begin, block_->end - block_->begin};
  }
  [[nodiscard]] char* data() const noexcept { return block_->data() + block_->begin; }

  // REQUIRES: size() + bytes.size() ≤ kBytesMax.
  void append(BufferPool& pool, std::string_view bytes) {
    if (bytes.empty()) return;
    std::memcpy(room(pool, bytes.size()), bytes.data(), bytes.size());
    grew(bytes.size());
  }
  // Space for `bytes` more, to be filled and then declared by grew().
  // REQUIRES: size() + bytes ≤ kBytesMax.
  [[nodiscard]] char* room(BufferPool& pool, std::size_t bytes) {
    if (block_ == nullptr) block_ = pool.take(bytes);
    if (block_->capacity() - block_->end < bytes) make_room(pool, bytes);
    return block_->data() + block_->end;
  }
  // How much room() gave at least, and what came with it.
  [[nodiscard]] std::size_t spare() const noexcept {
    return block_ == nullptr ? 0 : block_->capacity() - block_->end;
  }
  void grew(std::size_t bytes) noexcept {
    block_->end += static_cast<std::uint32_t>(bytes);
    if (block_->end == block_->begin) clear();
  }
  // Takes bytes away from the front.
  void consume(std::size_t bytes) noexcept {
    if (bytes == 0) return;
    block_->begin += static_cast<std::uint32_t>(bytes);
    if (block_->begin == block_->end) clear();
  }
  void clear() noexcept {
    if (block_ != nullptr) block_->pool->give(std::exchange(block_, nullptr));
  }

 private:
  void make_room(BufferPool& pool, std::size_t bytes) {
    const std::string_view held = view();
    if (held.size() + bytes <= block_->capacity()) {
      std::memmove(block_->data(), held.data(), held.size());
      block_->begin = 0;
      block_->end = static_cast<std::uint32_t>(held.size());
      return;
    }
    Buffer larger;
    larger.block_ = pool.take(held.size() + bytes);
    std::memcpy(larger.block_->data(), held.data(), held.size());
    larger.block_->end = static_cast<std::uint32_t>(held.size());
    *this = std::move(larger);
  }

  BufferPool::Block* block_ = nullptr;
};

}  // namespace proxypool::gateway
