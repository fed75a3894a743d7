#include "gateway/transport/upstream.hpp"

namespace proxypool::gateway {

void Upstream::on_io(std::uint32_t events) {
  note(events);
  if (user_ == nullptr) {
    // A TLS session may get a ticket when it likes: that is neither bytes nor an end.
    if (!secure() || receive() != Read::Starved) pool_.drop_idle(*this);
    return;
  }
  user_->on_upstream(events);
}

UpstreamPool::UpstreamPool(Lane& lane, std::size_t idle_max, nanoseconds idle_time,
                           std::atomic<std::uint32_t>& idle)
    : lane_(lane),
      idle_max_(idle_max),
      idle_time_(idle_time),
      idle_(idle),
      timer_(lane.loop.timers(), *this) {}

UpstreamPool::~UpstreamPool() {
  clear();
}

Upstream* UpstreamPool::make(const UpstreamKey& key, UpstreamUser& user) {
  Upstream* upstream = slab_.make(lane_, *this, key);
  upstream->user_ = &user;
  return upstream;
}

Upstream* UpstreamPool::take(const UpstreamKey& key, UpstreamUser& user) noexcept {
  Upstream* found = buckets_[key.hash() % kBuckets];
  while (found != nullptr && found->key_ != key) found = found->next_in_bucket_;
  if (found == nullptr) return nullptr;
  unlink(*found);
  found->user_ = &user;
  return found;
}

void UpstreamPool::give(Upstream& upstream) {
  if (idle() >= idle_max_ && oldest_ != nullptr) drop_idle(*oldest_);
  if (idle_max_ == 0) {
    discard(upstream);
    return;
  }
  upstream.user_ = nullptr;
  upstream.idle_until_ = lane_.loop.now() + idle_time_;
  Upstream*& bucket = buckets_[upstream.key_.hash() % kBuckets];
  upstream.next_in_bucket_ = bucket;
  bucket = &upstream;
  upstream.older_ = newest_;
  upstream.newer_ = nullptr;
  (newest_ == nullptr ? oldest_ : newest_->newer_) = &upstream;
  newest_ = &upstream;
  count(1);
  if (!timer_.armed()) timer_.arm(oldest_->idle_until_);
}

void UpstreamPool::discard(Upstream& upstream, bool reset) noexcept {
  upstream.close(reset);
  slab_.destroy(&upstream);
}

void UpstreamPool::drop_idle(Upstream& upstream) noexcept {
  unlink(upstream);
  discard(upstream);
}

void UpstreamPool::clear() noexcept {
  while (oldest_ != nullptr) drop_idle(*oldest_);
}

void UpstreamPool::unlink(Upstream& upstream) noexcept {
  Upstream** place = &buckets_[upstream.key_.hash() % kBuckets];
  while (*place != &upstream) place = &(*place)->next_in_bucket_;
  *place = upstream.next_in_bucket_;
  (upstream.older_ == nullptr ? oldest_ : upstream.older_->newer_) = upstream.newer_;
  (upstream.newer_ == nullptr ? newest_ : upstream.newer_->older_) = upstream.older_;
  count(UINT32_MAX);
}

void UpstreamPool::on_timer() {
  while (oldest_ != nullptr && oldest_->idle_until_ <= lane_.loop.now()) drop_idle(*oldest_);
  if (oldest_ != nullptr) timer_.arm(oldest_->idle_until_);
}

}  // namespace proxypool::gateway
