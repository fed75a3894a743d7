#include "config/schema/reader.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace proxypool::config::schema {
namespace {

constexpr std::size_t kSecretBytesMax = std::size_t{64} << 10U;

}  // namespace

Reader::Reader(const LoadOptions& options, LoadResult& result)
    : options_(options), result_(result) {
  for (const Problem& problem : result.errors) mark_failed(problem.path);
}

Reader::Step::Step(Reader& reader, const std::string& step, Mark mark)
    : reader_(reader), size_before_(reader.path_.size()) {
  reader_.path_ += step;
  reader_.marks_.emplace(reader_.path_, mark);
}

Reader::Step Reader::enter_key(std::string_view key, Mark mark) {
  return {*this, (path_.empty() ? "" : ".") + std::string(key), mark};
}
Reader::Step Reader::enter_item(std::size_t index, Mark mark) {
  return {*this, "[" + std::to_string(index) + "]", mark};
}

bool Reader::error(Mark mark, std::string message, std::string hint) {
  mark_failed(path_);
  result_.errors.push_back({mark, path_, std::move(message), std::move(hint)});
  return false;
}
void Reader::error_at(const std::string& path, std::string message, std::string hint) {
  mark_failed(path);
  result_.errors.push_back({nearest_mark(path), path, std::move(message), std::move(hint)});
}
void Reader::warn_at(const std::string& path, std::string message, std::string hint) {
  result_.warnings.push_back({nearest_mark(path), path, std::move(message), std::move(hint)});
}

void Reader::mark_failed(std::string path) {
  while (failed_.insert(path).second) {
    const auto cut = path.find_last_of(".[");
    if (cut == std::string::npos) return;
    path.resize(cut);
  }
}

Mark Reader::nearest_mark(std::string path) const {
  for (;;) {
    if (const auto found = marks_.find(path); found != marks_.end()) return found->second;
    const auto cut = path.find_last_of(".[");
    if (cut == std::string::npos) return {};
    path.resize(cut);
  }
}

std::optional<SecretString> Reader::checked_secret(std::string value, const std::string& what,
                                                   Mark mark) {
  while (!value.empty() && (value.back() == '\n' || value.back() == '\r')) value.pop_back();
  if (value.empty()) {
    error(mark, what + " is empty");
    return std::nullopt;
  }
  return SecretString(std::move(value));
}

std::optional<SecretString> Reader::secret_from_env(const std::string& name, Mark mark) {
  if (options_.program != Program::Controller) return SecretString();
  auto value = options_.env(name);
  if (!value) {
    error(mark, "the environment variable " + name + " is not set");
    return std::nullopt;
  }
  return checked_secret(*std::move(value), "the environment variable " + name, mark);
}

std::optional<SecretString> Reader::secret_from_file(const std::string& path, Mark mark) {
  if (options_.program != Program::Controller) return SecretString();
  const std::string resolved = resolve_path(path);
  result_.files.push_back(resolved);
  std::error_code failure;
  if (std::filesystem::is_directory(resolved, failure)) {
    error(mark, resolved + " is a folder");
    return std::nullopt;
  }
  std::ifstream in(resolved, std::ios::binary);
  if (!in) {
    error(mark, "cannot read " + resolved + ": " + std::strerror(errno));
    return std::nullopt;
  }
  std::string text(kSecretBytesMax + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kSecretBytesMax) {
    error(mark, resolved + " is larger than 64 KiB");
    return std::nullopt;
  }
  return checked_secret(std::move(text), "the file " + resolved, mark);
}

std::string Reader::resolve_path(const std::string& path) const {
  const std::filesystem::path given(path);
  if (given.is_absolute()) return path;
  return (std::filesystem::path(options_.base_dir) / given).lexically_normal().string();
}

}  // namespace proxypool::config::schema
