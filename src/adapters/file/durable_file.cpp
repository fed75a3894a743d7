#include "adapters/file/durable_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace proxypool::file {

namespace {

// Closes a descriptor that is only read, or whose write was already synced.
class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

const char* remedy(int error_number) noexcept {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space on this file system";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; make the folder writable for this user, or set storage.stateDir";
    case ENOENT:
      return "; create the folder, or set storage.stateDir";
    default:
      return "";
  }
}

}  // namespace

Error io_error(std::string_view verb, const std::filesystem::path& path, int error_number) {
  return {ErrorCode::Unavailable, Origin::Store,
          "cannot " + std::string(verb) + " " + path.string() + ": " +
              std::generic_category().message(error_number) + remedy(error_number),
          true};
}

Status make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return io_error("create", folder, error.value());
  return ok();
}

Status sync_folder(const std::filesystem::path& folder) {
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return io_error("open", folder, errno);
  if (::fsync(fd.get()) != 0) return io_error("sync", folder, errno);
  return ok();
}

Status write_synced(const std::filesystem::path& path, std::string_view bytes) {
  const Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (fd.get() < 0) return io_error("create", path, errno);
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error_number = errno;
      ::unlink(path.c_str());
      return io_error("write", path, error_number);
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(fd.get()) != 0) {
    const int error_number = errno;
    ::unlink(path.c_str());
    return io_error("sync", path, error_number);
  }
  return ok();
}

Result<std::string> read_file(const std::filesystem::path& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0 && errno == ENOENT) {
    return Error{ErrorCode::NotFound, Origin::Store, path.string() + " does not exist"};
  }
  if (fd.get() < 0) return io_error("open", path, errno);
  std::string bytes;
  std::array<char, 65536> block;
  for (;;) {
    const ssize_t got = ::read(fd.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error("read", path, errno);
    if (got == 0) return bytes;
    bytes.append(block.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace proxypool::file
