// A log file is a line with its version, then records: length (4 bytes, little endian), the first 8
// bytes of SHA-256 over the payload, payload.
//
// Appending callers form groups: the first to arrive writes and syncs everything that is waiting,
// the others wait for it. So one sync serves as many callers as arrived during the one before.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <utility>

#include "adapters/file/durable_file.hpp"
#include "adapters/file/file_stores.hpp"

namespace proxypool::file {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "proxypool-log 1\n";
constexpr std::size_t kRecordBytesMax = std::size_t{1} << 20U;
constexpr std::size_t kHeadBytes = 12;

std::string frame(ports::Crypto& crypto, std::string_view record) {
  std::string out;
  out.reserve(kHeadBytes + record.size());
  const auto size = static_cast<std::uint32_t>(record.size());
  for (unsigned shift = 0; shift < 32; shift += 8) out += static_cast<char>(size >> shift);
  const auto digest = crypto.sha256(record);
  out.append(reinterpret_cast<const char*>(digest.data()), 8);
  out += record;
  return out;
}

class FileLog final : public ports::DurableLog {
 public:
  FileLog(fs::path path, ports::Crypto& crypto) : path_(std::move(path)), crypto_(crypto) {}
  FileLog(const FileLog&) = delete;
  FileLog& operator=(const FileLog&) = delete;
  ~FileLog() override {
    if (fd_ >= 0) ::close(fd_);
  }

  // Opens the file, checks every record, and cuts a torn one off the end.
  Status open() {
    auto text = read_file(path_);
    if (!text && text.error().code != ErrorCode::NotFound) return text.error();
    if (!text) {
      PP_TRY(const Unit created, replace_with(std::string(kMagic)));
      static_cast<void>(created);
      return reopen();
    }
    std::string_view rest = *text;
    // A crash inside the very first write may leave less than the first line; it held nothing.
    if (rest.substr(0, kMagic.size()) != kMagic) {
      if (kMagic.substr(0, rest.size()) != rest) return damaged();
      PP_TRY(const Unit created, replace_with(std::string(kMagic)));
      static_cast<void>(created);
      return reopen();
    }
    rest.remove_prefix(kMagic.size());
    size_ = kMagic.size();
    while (!rest.empty()) {
      const auto record = next(rest);
      if (!record) break;
      records_.emplace_back(*record);
      size_ += kHeadBytes + record->size();
      rest.remove_prefix(kHeadBytes + record->size());
    }
    // Only the last record can be torn: anything whole after a bad one means damage.
    if (!rest.empty() && !torn(rest)) return damaged();
    PP_TRY(const Unit opened, reopen());
    static_cast<void>(opened);
    if (::ftruncate(fd_, static_cast<off_t>(size_)) != 0) return io_error("cut", path_, errno);
    return ok();
  }

  Status replay(const std::function<void(std::string_view record)>& take) override {
    for (const std::string& record : std::exchange(records_, {})) take(record);
    return ok();
  }

  Status append(std::string_view record) override {
    if (record.size() > kRecordBytesMax) {
      return Error{ErrorCode::Exhausted, Origin::Internal, "a record holds at most 1 MiB"};
    }
    const std::string framed = frame(crypto_, record);
    std::unique_lock lock(mutex_);
    waiting_ += framed;
    const std::uint64_t mine = ++arrived_;
    while (done_ < mine && writing_) written_.wait(lock);
    if (done_ >= mine) return result_of(mine);
    writing_ = true;
    const std::string batch = std::exchange(waiting_, {});
    const std::uint64_t last = arrived_;
    lock.unlock();
    Status status = write_batch(batch);
    lock.lock();
    writing_ = false;
    if (!status) {
      failed_from_ = done_ + 1;
      failed_to_ = last;
      failure_ = status.error();
    }
    done_ = last;
    written_.notify_all();
    return status;
  }

  Status rewrite(const std::vector<std::string>& records) override {
    std::string text(kMagic);
    for (const std::string& record : records) text += frame(crypto_, record);
    std::unique_lock lock(mutex_);
    while (writing_) written_.wait(lock);
    PP_TRY(const Unit replaced, replace_with(text));
    static_cast<void>(replaced);
    size_ = text.size();
    return reopen();
  }

  [[nodiscard]] std::size_t size_bytes() const override {
    const std::lock_guard lock(mutex_);
    return size_;
  }

 private:
  [[nodiscard]] Error damaged() const {
    return {ErrorCode::Corrupt, Origin::Store,
            path_.string() +
                " is damaged; restore it from a backup, or move it away to begin "
                "anew (what was handed out before is then forgotten)"};
  }

  // The payload of the first record of `text`, if it is whole and good.
  [[nodiscard]] std::optional<std::string_view> next(std::string_view text) const {
    if (text.size() < kHeadBytes) return std::nullopt;
    std::uint32_t size = 0;
    for (unsigned i = 0; i < 4; ++i) {
      size |= static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])) << (8 * i);
    }
    if (size > kRecordBytesMax || text.size() - kHeadBytes < size) return std::nullopt;
    const auto payload = text.substr(kHeadBytes, size);
    const auto digest = crypto_.sha256(payload);
    if (std::memcmp(digest.data(), text.data() + 4, 8) != 0) return std::nullopt;
    return payload;
  }

  // Whether no whole record begins anywhere in what is left after a bad one.
  [[nodiscard]] bool torn(std::string_view rest) const {
    for (std::size_t at = 1; at + kHeadBytes < rest.size(); ++at) {
      const auto record = next(rest.substr(at));
      if (record && !record->empty()) return false;
    }
    return true;
  }

  Status replace_with(const std::string& text) {
    const fs::path temporary = path_.string() + ".tmp";
    PP_TRY(const Unit written, write_synced(temporary, text));
    static_cast<void>(written);
    if (::rename(temporary.c_str(), path_.c_str()) != 0) return io_error("rename to", path_, errno);
    size_ = text.size();
    return sync_folder(path_.parent_path());
  }

  Status reopen() {
    const int fd = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0) return io_error("open", path_, errno);
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
    return ok();
  }

  // All or nothing: after an error the file is cut back to what was good.
  Status write_batch(std::string_view batch) {
    std::string_view rest = batch;
    int error_number = 0;
    while (!rest.empty() && error_number == 0) {
      const ssize_t written = ::write(fd_, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) error_number = errno;
      if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
    }
    if (error_number == 0 && ::fdatasync(fd_) != 0) error_number = errno;
    const std::lock_guard lock(mutex_);
    if (error_number == 0) {
      size_ += batch.size();
      return ok();
    }
    if (::ftruncate(fd_, static_cast<off_t>(size_)) != 0) return io_error("cut", path_, errno);
    return io_error("write", path_, error_number);
  }

  [[nodiscard]] Status result_of(std::uint64_t number) const {
    if (number >= failed_from_ && number <= failed_to_) return failure_;
    return ok();
  }

  const fs::path path_;
  ports::Crypto& crypto_;
  std::vector<std::string> records_;  // found at the start, until replay()
  mutable std::mutex mutex_;
  std::condition_variable written_;
  std::string waiting_;        // framed, not yet written
  std::uint64_t arrived_ = 0;  // callers so far
  std::uint64_t done_ = 0;     // callers whose record was written or has failed
  std::uint64_t failed_from_ = 0;
  std::uint64_t failed_to_ = 0;
  Error failure_;
  bool writing_ = false;
  std::size_t size_ = 0;
  int fd_ = -1;
};

}  // namespace

Result<std::unique_ptr<ports::DurableLog>> open_log(const fs::path& file, ports::Crypto& crypto) {
  PP_TRY(const Unit made, make_folder(file.parent_path()));
  static_cast<void>(made);
  auto log = std::make_unique<FileLog>(file, crypto);
  PP_TRY(const Unit opened, log->open());
  static_cast<void>(opened);
  return std::unique_ptr<ports::DurableLog>(std::move(log));
}

}  // namespace proxypool::file
