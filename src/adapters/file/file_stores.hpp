// Embedded durable stores in files of one folder (storage.stateDir).
//
// Each opens its file at once and says so when it is damaged. Two processes on one folder would
// overwrite each other: lock_folder() refuses the second.
//
// Thread rule: the stores: any thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "proxypool/base/result.hpp"
#include "proxypool/ports/crypto.hpp"
#include "proxypool/ports/durable_log.hpp"
#include "proxypool/ports/durable_notes.hpp"
#include "proxypool/ports/management_store.hpp"

namespace proxypool::file {

// Held as long as the object lives; the kernel drops it when the process dies. Conflict when
// another process has the folder.
class FolderLock {
 public:
  virtual ~FolderLock() = default;
};
Result<std::unique_ptr<FolderLock>> lock_folder(const std::filesystem::path& folder);

// Called between the steps of a save, with the name of the step that is next. Tests stop there.
using StepHook = std::function<void(std::string_view step)>;

// Notes as files `<name>.note`, four older generations beside each (RS-11).
Result<std::unique_ptr<ports::DurableNotes>> open_notes(const std::filesystem::path& folder,
                                                        ports::Crypto& crypto,
                                                        StepHook hook = nullptr);

Result<std::unique_ptr<ports::DurableLog>> open_log(const std::filesystem::path& file,
                                                    ports::Crypto& crypto);

// Management state as one note, `management`; what clients moved in the log `usage` (null: in
// memory alone). Both outlive the store.
Result<std::unique_ptr<ports::ManagementStore>> open_management_store(
    ports::DurableNotes& notes, ports::DurableLog* usage = nullptr);

}  // namespace proxypool::file
