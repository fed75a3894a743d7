#include "loadgen/http1.hpp"

#include <algorithm>
#include <charconv>

#include "proxypool/base/text.hpp"

namespace proxypool::loadgen {
namespace {

constexpr std::size_t kLineBytesMax = 4096;

Error malformed(std::string message) {
  return Error{ErrorCode::InvalidArgument, Origin::Client, std::move(message)};
}

// The first line of `rest`, without its line end; takes it off.
std::string_view take_line(std::string_view& rest) {
  const auto end = rest.find('\n');
  auto line = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

Result<Fields> parse_fields(std::string_view rest) {
  Fields fields;
  while (!rest.empty()) {
    const auto line = take_line(rest);
    if (line.empty()) break;
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) return malformed("a header without a name");
    fields.add(std::string(line.substr(0, colon)), std::string(trim(line.substr(colon + 1))));
  }
  return fields;
}

std::optional<unsigned> parse_version(std::string_view text) {
  if (text == "HTTP/1.1") return 1;
  if (text == "HTTP/1.0") return 0;
  return std::nullopt;
}

std::string with_fields(std::string text, const Fields& fields) {
  for (const auto& [name, value] : fields.all()) {
    text.append(name).append(": ").append(value).append("\r\n");
  }
  return text.append("\r\n");
}

bool keeps_alive(const Fields& fields, unsigned minor) {
  if (fields.has_token("connection", "close")) return false;
  return minor >= 1 || fields.has_token("connection", "keep-alive");
}

Result<Framing> framing_of(const Fields& fields, Framing otherwise) {
  if (fields.find("transfer-encoding")) {
    if (!fields.has_token("transfer-encoding", "chunked")) {
      return malformed("a transfer coding other than chunked");
    }
    return Framing{Framing::Kind::Chunked, 0};
  }
  const auto length = fields.find("content-length");
  if (!length) return otherwise;
  const auto bytes = parse_number<std::uint64_t>(*length);
  if (!bytes) return malformed("a Content-Length that is no number");
  if (*bytes == 0) return Framing{};
  return Framing{Framing::Kind::Length, *bytes};
}

}  // namespace

void Fields::add(std::string name, std::string value) {
  fields_.push_back(Field{std::move(name), std::move(value)});
}

void Fields::erase(std::string_view name) {
  std::erase_if(fields_, [&](const Field& f) { return equal_ignoring_case(f.name, name); });
}

std::optional<std::string_view> Fields::find(std::string_view name) const {
  for (const auto& field : fields_) {
    if (equal_ignoring_case(field.name, name)) return field.value;
  }
  return std::nullopt;
}

bool Fields::has_token(std::string_view name, std::string_view token) const {
  for (const auto& field : fields_) {
    if (!equal_ignoring_case(field.name, name)) continue;
    for (const auto part : split(field.value, ',')) {
      if (equal_ignoring_case(trim(part), token)) return true;
    }
  }
  return false;
}

void Fields::erase_hop_by_hop() {
  std::vector<std::string> named;
  for (const auto& field : fields_) {
    if (!equal_ignoring_case(field.name, "connection")) continue;
    for (const auto part : split(field.value, ',')) named.emplace_back(trim(part));
  }
  for (const auto& name : named) erase(name);
  for (const auto* name : {"connection", "proxy-connection", "keep-alive", "proxy-authorization",
                           "proxy-authenticate", "te", "upgrade"}) {
    erase(name);
  }
}

Result<Request> parse_request(std::string_view head) {
  const auto line = take_line(head);
  const auto parts = split(line, ' ');
  if (parts.size() != 3 || parts[0].empty() || parts[1].empty()) {
    return malformed("a request line without three parts");
  }
  const auto minor = parse_version(parts[2]);
  if (!minor) return malformed("not HTTP/1.x");
  PP_TRY(Fields fields, parse_fields(head));
  return Request{std::string(parts[0]), std::string(parts[1]), *minor, std::move(fields)};
}

Result<Response> parse_response(std::string_view head) {
  const auto line = take_line(head);
  const auto minor = parse_version(line.substr(0, 8));
  if (!minor || line.size() < 12 || line[8] != ' ') return malformed("not an HTTP/1.x status line");
  const auto status = parse_number<unsigned>(line.substr(9, 3));
  if (!status || *status < 100 || (line.size() > 12 && line[12] != ' ')) {
    return malformed("a status that is not three digits");
  }
  PP_TRY(Fields fields, parse_fields(head));
  return Response{*status, std::string(line.size() > 13 ? line.substr(13) : std::string_view{}),
                  *minor, std::move(fields)};
}

std::string to_text(const Request& request) {
  std::string line =
      request.method + " " + request.target + " HTTP/1." + std::to_string(request.minor) + "\r\n";
  return with_fields(std::move(line), request.fields);
}

std::string to_text(const Response& response) {
  std::string line = "HTTP/1." + std::to_string(response.minor) + " " +
                     std::to_string(response.status) + " " + response.reason + "\r\n";
  return with_fields(std::move(line), response.fields);
}

std::optional<std::size_t> head_size(std::string_view bytes, std::size_t searched) {
  std::size_t at = searched > 3 ? searched - 3 : 0;
  while ((at = bytes.find('\n', at)) != std::string_view::npos) {
    if (bytes.substr(at + 1, 1) == "\n") return at + 2;
    if (bytes.substr(at + 1, 2) == "\r\n") return at + 3;
    ++at;
  }
  return std::nullopt;
}

bool keeps_alive(const Request& request) {
  return keeps_alive(request.fields, request.minor);
}
bool keeps_alive(const Response& response) {
  return keeps_alive(response.fields, response.minor);
}

Result<Framing> framing_of(const Request& request) {
  return framing_of(request.fields, Framing{});
}

Result<Framing> framing_of(const Response& response, std::string_view request_method) {
  const auto status = response.status;
  const bool tunnel = request_method == "CONNECT" && status / 100 == 2;
  if (request_method == "HEAD" || tunnel || status / 100 == 1 || status == 204 || status == 304) {
    return Framing{};
  }
  return framing_of(response.fields, Framing{Framing::Kind::UntilClose, 0});
}

BodyScanner::BodyScanner(Framing framing)
    : framing_(framing),
      left_(framing.length),
      done_(framing.kind == Framing::Kind::None ||
            (framing.kind == Framing::Kind::Length && framing.length == 0)) {}

BodyScanner::Step BodyScanner::take(std::string_view input) {
  if (framing_.kind == Framing::Kind::UntilClose) return {input.size(), input, false};
  if (framing_.kind == Framing::Kind::Chunked) return take_chunked(input);
  const auto payload = input.substr(0, std::min<std::uint64_t>(left_, input.size()));
  left_ -= payload.size();
  done_ = left_ == 0;
  return {payload.size(), payload, false};
}

BodyScanner::Step BodyScanner::take_chunked(std::string_view input) {
  if (expect_ == Expect::Data) {
    const auto payload = input.substr(0, std::min<std::uint64_t>(left_, input.size()));
    left_ -= payload.size();
    if (left_ == 0) expect_ = Expect::DataEnd;
    return {payload.size(), payload, false};
  }
  const auto end = input.find('\n');
  const auto piece = input.substr(0, end);
  line_.append(piece);
  if (line_.size() > kLineBytesMax) return {0, {}, true};
  if (end == std::string_view::npos) return {piece.size(), {}, false};
  if (line_.ends_with('\r')) line_.pop_back();
  const bool good = finish_line();
  line_.clear();
  return {end + 1, {}, !good};
}

bool BodyScanner::finish_line() {
  if (expect_ == Expect::DataEnd) {
    expect_ = Expect::Size;
    return line_.empty();
  }
  if (expect_ == Expect::Trailer) {
    done_ = line_.empty();
    return true;
  }
  const auto digits = trim(std::string_view(line_).substr(0, line_.find(';')));
  const auto [stop, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), left_, 16);
  if (digits.empty() || error != std::errc{} || stop != digits.data() + digits.size()) return false;
  expect_ = left_ == 0 ? Expect::Trailer : Expect::Data;
  return true;
}

}  // namespace proxypool::loadgen
