#include "loadgen/whole_file.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace proxypool::loadgen {
namespace {

Error file_error(std::string message) {
  return Error{ErrorCode::Unavailable, Origin::Internal, std::move(message)};
}

}  // namespace

Status write_whole_file(const std::string& path, const std::string& text) {
  const std::string draft = path + ".new";
  {
    std::ofstream out(draft, std::ios::trunc | std::ios::binary);
    out << text << std::flush;
    if (!out) return file_error("cannot write " + draft);
  }
  if (std::rename(draft.c_str(), path.c_str()) != 0) return file_error("cannot write " + path);
  return ok();
}

Result<std::string> read_whole_file(const std::string& path, std::size_t bytes_max) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) return file_error("cannot read " + path + ": " + error.message());
  if (size > bytes_max) {
    return file_error(path + " is larger than " + std::to_string(bytes_max) + " bytes");
  }
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad()) return file_error("cannot read " + path);
  return text;
}

}  // namespace proxypool::loadgen
