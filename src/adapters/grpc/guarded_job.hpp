// A job for somebody else's executor that cannot get lost: it is run once, or known to be dropped.
//
// Thread rule: run and drop may happen on any thread.
#pragma once

#include <functional>
#include <memory>
#include <utility>

namespace proxypool::rpc {

// Runs a job on a thread that may block. Answers false when it is overloaded.
using Executor = std::function<bool(std::function<void()>)>;

// Gives `run` to the executor. When it refuses, or throws the job away later, `dropped` is called
// in its place, on whatever thread that happens.
inline void submit(const Executor& executor, std::function<void()> run,
                   std::function<void()> dropped) {
  struct Job {
    std::function<void()> run;
    std::function<void()> dropped;
    bool taken = false;
    ~Job() {
      if (!taken) dropped();
    }
  };
  auto job = std::make_shared<Job>();
  job->run = std::move(run);
  job->dropped = std::move(dropped);
  // A refusal destroys the last copy, which is what calls `dropped`.
  static_cast<void>(executor([job = std::move(job)] {
    job->taken = true;
    job->run();
  }));
}

}  // namespace proxypool::rpc
