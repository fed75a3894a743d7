// What reading a document carries along: where we are, what went wrong, where secrets come from.
//
// Thread rule: one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "config/load.hpp"
#include "config/node.hpp"
#include "config/problem.hpp"

namespace proxypool::config::schema {

class Reader {
 public:
  // What `result` already reports counts as failed.
  Reader(const LoadOptions& options, LoadResult& result);
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Goes one step down for the life of the returned object.
  class Step {
   public:
    Step(Reader& reader, const std::string& step, Mark mark);
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;
    ~Step() { reader_.path_.resize(size_before_); }

   private:
    Reader& reader_;
    std::size_t size_before_;
  };
  [[nodiscard]] Step enter_key(std::string_view key, Mark mark);
  [[nodiscard]] Step enter_item(std::size_t index, Mark mark);

  // Reports at the current path; always false, so that a reader can return it.
  bool error(Mark mark, std::string message, std::string hint = {});
  // Reports at any path; the place is that of the nearest part of the path that the file has.
  void error_at(const std::string& path, std::string message, std::string hint = {});
  void warn_at(const std::string& path, std::string message, std::string hint = {});

  // Was this path written in the file?
  [[nodiscard]] bool given(const std::string& path) const { return marks_.contains(path); }
  // Did anything at this path, or below it, fail?
  [[nodiscard]] bool failed(const std::string& path) const { return failed_.contains(path); }

  // The value behind {env: NAME} or {file: PATH}; empty where this program needs no secrets.
  std::optional<SecretString> secret_from_env(const std::string& name, Mark mark);
  std::optional<SecretString> secret_from_file(const std::string& path, Mark mark);
  // A path of the file as the process can open it: relative paths start at the file's folder.
  [[nodiscard]] std::string resolve_path(const std::string& path) const;
  [[nodiscard]] const LoadOptions& options() const noexcept { return options_; }

  // What the parts read so far offer to those that follow.
  Config* root = nullptr;
  const std::vector<std::pair<std::string, SecretString>>* provider_secrets = nullptr;

 private:
  [[nodiscard]] Mark nearest_mark(std::string path) const;
  std::optional<SecretString> checked_secret(std::string value, const std::string& what, Mark mark);
  void mark_failed(std::string path);

  const LoadOptions& options_;
  LoadResult& result_;
  std::string path_;
  std::unordered_map<std::string, Mark> marks_;
  std::unordered_set<std::string> failed_;  // with every path above
};

// How secrets are shown: as three stars, or as a keyed digest for the fingerprint.
class Writer {
 public:
  Writer() = default;
  explicit Writer(SecretDigest digest) : digest_(std::move(digest)) {}
  [[nodiscard]] std::string secret(const SecretString& value) const {
    return digest_ ? digest_(value) : "***";
  }

 private:
  SecretDigest digest_;
};

}  // namespace proxypool::config::schema
