#include "runtime/file_watch.hpp"

#include <sys/stat.h>

#include <utility>

namespace proxypool::runtime {
namespace {

std::int64_t nanoseconds_of(const timespec& time) noexcept {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

FileWatch::Sighting FileWatch::look(const std::string& path) noexcept {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return {};
  return {found.st_dev, found.st_ino, found.st_size, nanoseconds_of(found.st_mtim),
          nanoseconds_of(found.st_ctim)};
}

void FileWatch::watch(const std::vector<std::string>& files) {
  std::map<std::string, File> next;
  for (const std::string& path : files) {
    const auto before = files_.find(path);
    if (before != files_.end()) {
      next.emplace(path, before->second);
    } else {
      const Sighting now = look(path);
      next.emplace(path, File{now, now});
    }
  }
  files_ = std::move(next);
}

void FileWatch::settle() {
  for (auto& [path, file] : files_) file.known = file.seen = look(path);
}

bool FileWatch::changed() {
  bool different = false;
  bool moving = false;
  for (auto& [path, file] : files_) {
    const Sighting before = std::exchange(file.seen, look(path));
    moving = moving || file.seen != before;
    different = different || file.seen != file.known;
  }
  if (!different || moving) return false;
  for (auto& [path, file] : files_) file.known = file.seen;
  return true;
}

}  // namespace proxypool::runtime
