// Have these files changed? Found out by looking at them from time to time.
//
// The idea: what a path leads to now, against what it led to then. That sees a file that is written
// to, one that is renamed over another, and a symbolic link further up that is turned to a new
// folder (Kubernetes), on every file system; notifications of the kernel do not. Nobody writes a
// file, or two, in one moment: a change counts once it has stood still from one look to the next.
//
// Thread rule: one thread at a time.
// Limits:      a change that keeps device, inode, size and both times is not seen.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace proxypool::runtime {

class FileWatch {
 public:
  explicit FileWatch(const std::vector<std::string>& files = {}) { watch(files); }

  // These and no others from now on. What was watched before is still compared with what it was;
  // the others with what they are now.
  void watch(const std::vector<std::string>& files);
  // What is there now is known: somebody is about to read it.
  void settle();
  // Whether something has changed and stands still. Once for each change.
  [[nodiscard]] bool changed();

 private:
  // What tells one state of a file from another; all zero: there is none.
  struct Sighting {
    dev_t device = 0;
    ino_t number = 0;
    off_t size = 0;
    std::int64_t written_ns = 0;
    std::int64_t changed_ns = 0;
    friend bool operator==(const Sighting&, const Sighting&) = default;
  };
  struct File {
    Sighting known;  // what somebody has been told of
    Sighting seen;   // at the last look
  };
  static Sighting look(const std::string& path) noexcept;

  std::map<std::string, File> files_;
};

}  // namespace proxypool::runtime
