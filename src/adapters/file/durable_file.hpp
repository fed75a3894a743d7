// The steps of a durable file, each with its error: write, sync, replace, sync the folder.
//
// Thread rule: any thread; one writer per path is the caller's duty.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "proxypool/base/result.hpp"

namespace proxypool::file {

// "cannot write /path: No space left on device; free some space …": Unavailable, with a remedy.
Error io_error(std::string_view verb, const std::filesystem::path& path, int error_number);

Status make_folder(const std::filesystem::path& folder);
Status sync_folder(const std::filesystem::path& folder);

// Creates `path` (mode 0600) with these bytes, synced. An existing file is replaced only here by
// being truncated, so it must be a temporary name.
Status write_synced(const std::filesystem::path& path, std::string_view bytes);

// The whole file; NotFound when it is not there.
Result<std::string> read_file(const std::filesystem::path& path);

}  // namespace proxypool::file
