// Objects of one type from chunks that their thread keeps: no heap call for a connection once the
// thread is warm, and neighbours in memory for those that live at the same time.
//
// Thread rule: the loop's thread.
// Limits:      grows by kChunk objects and never shrinks; how far follows from the number of
//              connections.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "proxypool/base/assert.hpp"

namespace proxypool::gateway {

template <class T>
class Slab {
 public:
  static constexpr std::size_t kChunk = 64;

  Slab() = default;
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  ~Slab() { PP_ASSERT(in_use_ == 0); }

  template <class... Arguments>
  [[nodiscard]] T* make(Arguments&&... arguments) {
    if (free_ == nullptr) grow();
    Slot* slot = std::exchange(free_, free_->next);
    ++in_use_;
    return ::new (static_cast<void*>(slot->bytes)) T(std::forward<Arguments>(arguments)...);
  }
  void destroy(T* object) noexcept {
    object->~T();
    auto* slot = reinterpret_cast<Slot*>(object);
    slot->next = std::exchange(free_, slot);
    --in_use_;
  }
  [[nodiscard]] std::size_t in_use() const noexcept { return in_use_; }

 private:
  union Slot {
    Slot* next;
    alignas(T) std::byte bytes[sizeof(T)];
  };

  void grow() {
    chunks_.push_back(std::make_unique<Slot[]>(kChunk));
    for (std::size_t i = kChunk; i-- > 0;) {
      Slot* slot = &chunks_.back()[i];
      slot->next = std::exchange(free_, slot);
    }
  }

  std::vector<std::unique_ptr<Slot[]>> chunks_;
  Slot* free_ = nullptr;
  std::size_t in_use_ = 0;
};

}  // namespace proxypool::gateway
