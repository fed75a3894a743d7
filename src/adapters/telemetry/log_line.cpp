#include "adapters/telemetry/log_line.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <variant>

#include "proxypool/base/text.hpp"

namespace proxypool::telemetry {
namespace {

using ports::Field;

constexpr std::size_t kValueBytesMax = 1024;

// The length of the UTF-8 character that `text` begins with; 0 when it begins with none.
std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  const bool too_short = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second > 0x9F;
  const bool too_large = first == 0xF4 && second > 0x8F;
  return too_short || surrogate || too_large ? 0 : size;
}

void append_escaped(std::string& out, std::string_view text, bool json) {
  const bool cut = text.size() > kValueBytesMax;
  text = text.substr(0, kValueBytesMax);
  while (!text.empty()) {
    const std::size_t size = utf8_length(text);
    const auto byte = static_cast<unsigned char>(text.front());
    if (size == 0) {
      out += json ? "\\ufffd" : "\\x" + hex(text.substr(0, 1));
    } else if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text.front();
    } else if (byte == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += (json ? "\\u00" : "\\x") + hex(text.substr(0, 1));
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  if (cut) out += "…";
}

template <class Number>
void append_number(std::string& out, Number number) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

// At most three digits after the point.
void append_duration(std::string& out, nanoseconds duration) {
  struct Unit {
    std::int64_t ns;
    std::string_view name;
  };
  constexpr std::array kUnits{Unit{1'000'000'000, "s"}, Unit{1'000'000, "ms"}, Unit{1'000, "us"}};
  for (const auto& [ns, name] : kUnits) {
    if (std::abs(duration.count()) < ns) continue;
    append_number(
        out,
        std::round(static_cast<double>(duration.count()) * 1e3 / static_cast<double>(ns)) / 1e3);
    out += name;
    return;
  }
  append_number(out, duration.count());
  out += duration.count() == 0 ? "s" : "ns";
}

bool needs_quotes(std::string_view text) noexcept {
  if (text.empty()) return true;
  for (const char c : text) {
    if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c == 0x7F) return true;  // also non-ASCII
  }
  return false;
}

class TextWriter {
 public:
  explicit TextWriter(std::string& out) : out_(out) {}

  void operator()(std::string_view key, std::string_view text) {
    start(key);
    const bool quotes = needs_quotes(text);
    if (quotes) out_ += '"';
    append_escaped(out_, text, false);
    if (quotes) out_ += '"';
  }
  void operator()(std::string_view key, bool value) { start(key) += value ? "true" : "false"; }
  void operator()(std::string_view key, nanoseconds value) { append_duration(start(key), value); }
  template <class Number>
  void operator()(std::string_view key, Number value) {
    append_number(start(key), value);
  }

 private:
  std::string& start(std::string_view key) { return ((out_ += ' ') += key) += '='; }
  std::string& out_;
};

class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  void operator()(std::string_view key, std::string_view text) {
    start(key) += '"';
    append_escaped(out_, text, true);
    out_ += '"';
  }
  void operator()(std::string_view key, bool value) { start(key) += value ? "true" : "false"; }
  void operator()(std::string_view key, nanoseconds value) {
    append_number(start(key, "_s"), std::chrono::duration<double>(value).count());
  }
  void operator()(std::string_view key, double value) {
    if (std::isfinite(value))
      append_number(start(key), value);
    else
      start(key) += "null";
  }
  template <class Integer>
  void operator()(std::string_view key, Integer value) {
    append_number(start(key), value);
  }

 private:
  std::string& start(std::string_view key, std::string_view suffix = {}) {
    out_ += out_.empty() ? "{\"" : ",\"";
    return ((out_ += key) += suffix) += "\":";
  }
  std::string& out_;
};

template <class Writer>
void append_fields(Writer& write, const LineHead& head, std::span<const Field> fields) {
  for (const Field& field : fields) {
    std::visit([&](const auto& value) { write(field.key, value); }, field.value);
  }
  if (head.left_out != 0) write("left_out", head.left_out);
}

}  // namespace

std::string compose_line(Format format, const LineHead& head, ports::Event event,
                         std::span<const Field> fields) {
  const ports::EventRow& row = ports::row(event);
  std::string out;
  out.reserve(256);
  if (format == Format::Json) {
    JsonWriter write(out);
    write("ts", std::string_view(format_time(head.time)));
    write("level", to_string(row.level));
    write("process", head.process);
    write("event", row.name);
    append_fields(write, head, fields);
    out += '}';
  } else {
    constexpr std::array<std::string_view, 4> kLevels{"DEBUG", "INFO ", "WARN ", "ERROR"};
    out += format_time(head.time);
    (out += ' ') += kLevels[static_cast<std::size_t>(row.level)];
    (out += ' ') += row.name;
    TextWriter write(out);
    append_fields(write, head, fields);
  }
  out += '\n';
  return out;
}

}  // namespace proxypool::telemetry
