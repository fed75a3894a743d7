// A few threads for calls that may wait: stores, disks, password hashes.
//
// Thread rule: any thread.
// Limits:      `threads` jobs at once and `queue_max` waiting; beyond that try_run answers false
// and
//              the caller says "overloaded".
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "proxypool/base/concurrent.hpp"

namespace proxypool::runtime {

class BlockingPool {
 public:
  BlockingPool(const std::string& name, std::size_t threads, std::size_t queue_max);
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;
  ~BlockingPool() { stop(); }

  // Queues `job` (a callable, may be move-only). False when the queue is full or the pool stopped.
  // An exception that leaves a job ends the process.
  template <class F>
  [[nodiscard]] bool try_run(F&& job) {
    return jobs_.try_push(std::make_unique<JobOf<std::decay_t<F>>>(std::forward<F>(job)));
  }

  [[nodiscard]] std::size_t queued() const { return jobs_.size(); }

  // Refuses new jobs, finishes what is queued and joins. May be called twice, not from a job.
  void stop();

 private:
  struct Job {
    virtual ~Job() = default;
    virtual void run() = 0;
  };
  template <class F>
  struct JobOf final : Job {
    explicit JobOf(F f) : function(std::move(f)) {}
    void run() override { function(); }
    F function;
  };

  BoundedQueue<std::unique_ptr<Job>> jobs_;
  std::vector<std::thread> threads_;
};

}  // namespace proxypool::runtime
