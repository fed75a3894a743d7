// DurableNotes: a few named byte strings that survive kill -9.
//
// The embedded stores keep in it what a restart must not forget: the cluster's identity, which
// workers may still hold leases, and which proxies were handed out. Each save replaces one note
// whole: a reader sees the old or the new, never a mixture.
//
// Adapter: file (temporary file, fsync, rename, fsync of the folder; five generations, RS-11).
//
// Thread rule: any thread; saves of one name are ordered.
// Errors:      Unavailable (disk full, read-only): the old note stands. Corrupt: no good
//              generation is left.
// Limits:      names [a-z0-9-]{1,64}; 64 MiB a note.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "proxypool/base/result.hpp"

namespace proxypool::ports {

class DurableNotes {
 public:
  virtual ~DurableNotes() = default;
  // Nothing when the note was never saved.
  virtual Result<std::optional<std::string>> load(std::string_view name) = 0;
  // Durable when it answers ok. Corrupt while a damaged file waits for a person.
  virtual Status save(std::string_view name, std::string_view bytes) = 0;
  // What is wrong with a note that was loaded, with its remedy; empty: nothing.
  [[nodiscard]] virtual std::string damage(std::string_view name) = 0;
};

}  // namespace proxypool::ports
