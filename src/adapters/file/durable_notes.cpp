// One note is one file: a line with digest, length and generation number, then the bytes.
//
// A save writes a temporary file, syncs it, shifts the older generations by one, hard-links the
// current one beside itself as generation 1, renames the temporary one over the current, and syncs
// the folder. The current name never goes missing: killed between any two steps, a reader finds the
// old bytes or the new.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "adapters/file/durable_file.hpp"
#include "adapters/file/file_stores.hpp"
#include "proxypool/base/concurrent.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::file {

namespace {

namespace fs = std::filesystem;

constexpr int kGenerations = 5;
constexpr std::size_t kNoteBytesMax = std::size_t{64} << 20U;
constexpr std::string_view kMagic = "proxypool-note 1 ";

struct Note {
  std::uint64_t number = 0;  // grows by every save
  std::string bytes;
};

std::string digest_of(ports::Crypto& crypto, std::uint64_t number, std::string_view bytes) {
  const auto digest = crypto.sha256(std::to_string(number) + "\n" + std::string(bytes));
  return hex({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

std::string encode(ports::Crypto& crypto, const Note& note) {
  std::string out(kMagic);
  out += digest_of(crypto, note.number, note.bytes) + " " + std::to_string(note.bytes.size()) +
         " " + std::to_string(note.number) + "\n";
  out += note.bytes;
  return out;
}

// Nothing when the text is not a whole, undamaged note.
std::optional<Note> decode(ports::Crypto& crypto, std::string_view text) {
  if (text.substr(0, kMagic.size()) != kMagic) return std::nullopt;
  text.remove_prefix(kMagic.size());
  const auto line_end = text.find('\n');
  if (line_end == std::string_view::npos) return std::nullopt;
  const auto fields = split(text.substr(0, line_end), ' ');
  const auto bytes = text.substr(line_end + 1);
  if (fields.size() != 3) return std::nullopt;
  const auto size = parse_number<std::size_t>(fields[1]);
  const auto number = parse_number<std::uint64_t>(fields[2]);
  if (!size || !number || *size != bytes.size()) return std::nullopt;
  if (digest_of(crypto, *number, bytes) != fields[0]) return std::nullopt;
  return Note{*number, std::string(bytes)};
}

class FileNotes final : public ports::DurableNotes {
 public:
  FileNotes(fs::path folder, ports::Crypto& crypto, StepHook hook)
      : folder_(std::move(folder)), crypto_(crypto), hook_(std::move(hook)) {}

  Result<std::optional<std::string>> load(std::string_view name) override {
    PP_TRY(const Unit named, check_name(name));
    static_cast<void>(named);
    return slots_.with([&](Slots& slots) -> Result<std::optional<std::string>> {
      PP_TRY(Slot * slot, open_locked(slots, name));
      if (!slot->note) return std::optional<std::string>{};
      return std::optional(slot->note->bytes);
    });
  }

  Status save(std::string_view name, std::string_view bytes) override {
    PP_TRY(const Unit named, check_name(name));
    static_cast<void>(named);
    if (bytes.size() > kNoteBytesMax) {
      return Error{ErrorCode::Exhausted, Origin::Internal, "a note holds at most 64 MiB"};
    }
    return slots_.with([&](Slots& slots) -> Status {
      PP_TRY(Slot * slot, open_locked(slots, name));
      if (!slot->damage.empty()) {
        return Error{ErrorCode::Corrupt, Origin::Store, slot->damage};
      }
      Note next{slot->note ? slot->note->number + 1 : 1, std::string(bytes)};
      PP_TRY(const Unit replaced, replace(name, next));
      slot->note = std::move(next);
      return replaced;
    });
  }

  [[nodiscard]] std::string damage(std::string_view name) override {
    return slots_.with([&](Slots& slots) {
      const auto found = slots.find(name);
      return found == slots.end() ? std::string{} : found->second.damage;
    });
  }

 private:
  struct Slot {
    std::optional<Note> note;
    std::string damage;  // not empty: writes are refused until a person acted
  };
  using Slots = std::map<std::string, Slot, std::less<>>;

  static Status check_name(std::string_view name) {
    constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-";
    const bool good = !name.empty() && name.size() <= 64 &&
                      name.find_first_not_of(kAllowed) == std::string_view::npos;
    if (!good) return Error{ErrorCode::InvalidArgument, Origin::Internal, "bad note name"};
    return ok();
  }

  [[nodiscard]] fs::path path(std::string_view name, int generation) const {
    std::string file = std::string(name) + ".note";
    if (generation > 0) file += "." + std::to_string(generation);
    return folder_ / file;
  }

  Result<Slot*> open_locked(Slots& slots, std::string_view name) {
    const auto found = slots.find(name);
    if (found != slots.end()) return &found->second;
    Slot slot;
    for (int generation = 0; generation < kGenerations && !slot.note; ++generation) {
      auto text = read_file(path(name, generation));
      if (!text && text.error().code != ErrorCode::NotFound) return text.error();
      if (!text) continue;
      slot.note = decode(crypto_, *text);
      if (!slot.note && slot.damage.empty()) {
        slot.damage = path(name, generation).string() +
                      " is damaged; the newest good generation is served and nothing is written. "
                      "Move the damaged file away and start again to go on from what is shown";
      }
    }
    if (!slot.damage.empty() && !slot.note) {
      return Error{ErrorCode::Corrupt, Origin::Store,
                   path(name, 0).string() +
                       " and its older generations are damaged; move them "
                       "away to begin anew"};
    }
    return &slots.emplace(std::string(name), std::move(slot)).first->second;
  }

  void step(std::string_view what) const {
    if (hook_) hook_(what);
  }

  Status replace(std::string_view name, const Note& note) {
    const fs::path temporary = folder_ / (std::string(name) + ".note.tmp");
    const fs::path current = path(name, 0);
    step("write");
    PP_TRY(const Unit written, write_synced(temporary, encode(crypto_, note)));
    static_cast<void>(written);
    for (int generation = kGenerations - 1; generation > 1; --generation) {
      step("shift");
      const fs::path older = path(name, generation);
      if (::rename(path(name, generation - 1).c_str(), older.c_str()) != 0 && errno != ENOENT) {
        return io_error("rename to", older, errno);
      }
    }
    step("keep");
    const fs::path previous = path(name, 1);
    if (::link(current.c_str(), previous.c_str()) != 0 && errno != ENOENT && errno != EEXIST) {
      return io_error("link", previous, errno);
    }
    step("rename");
    if (::rename(temporary.c_str(), current.c_str()) != 0) {
      return io_error("rename to", current, errno);
    }
    step("sync");
    return sync_folder(folder_);
  }

  const fs::path folder_;
  ports::Crypto& crypto_;
  const StepHook hook_;
  Guarded<Slots> slots_;
};

class HeldLock final : public FolderLock {
 public:
  explicit HeldLock(int fd) noexcept : fd_(fd) {}
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;
  ~HeldLock() override { ::close(fd_); }

 private:
  int fd_;
};

}  // namespace

Result<std::unique_ptr<FolderLock>> lock_folder(const fs::path& folder) {
  PP_TRY(const Unit made, make_folder(folder));
  static_cast<void>(made);
  const fs::path path = folder / "lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return io_error("open", path, errno);
  auto lock = std::make_unique<HeldLock>(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return io_error("lock", path, errno);
    return Error{ErrorCode::Conflict, Origin::Store,
                 "another process uses " + folder.string() +
                     "; stop it, or give this one its own storage.stateDir"};
  }
  return std::unique_ptr<FolderLock>(std::move(lock));
}

Result<std::unique_ptr<ports::DurableNotes>> open_notes(const fs::path& folder,
                                                        ports::Crypto& crypto, StepHook hook) {
  PP_TRY(const Unit made, make_folder(folder));
  static_cast<void>(made);
  return std::unique_ptr<ports::DurableNotes>(
      std::make_unique<FileNotes>(folder, crypto, std::move(hook)));
}

}  // namespace proxypool::file
