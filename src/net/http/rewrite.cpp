#include "net/http/rewrite.hpp"

#include <charconv>
#include <cstring>

#include "proxypool/base/text.hpp"

namespace proxypool::net {
namespace {

// Appends to the caller's buffer, or remembers that it was too small.
class Writer {
 public:
  explicit Writer(std::span<char> out) noexcept : begin_(out.data()), out_(out) {}

  void put(std::string_view text) noexcept {
    if (text.size() > out_.size()) {
      full_ = true;
      return;
    }
    std::memcpy(out_.data(), text.data(), text.size());
    out_ = out_.subspan(text.size());
  }
  template <class... Texts>
  void put(std::string_view first, Texts... rest) noexcept {
    put(first);
    put(rest...);
  }
  void put_number(std::uint32_t value) noexcept {
    char digits[10];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    put({digits, static_cast<std::size_t>(end - digits)});
  }
  [[nodiscard]] std::size_t written() const noexcept {
    return full_ ? 0 : static_cast<std::size_t>(out_.data() - begin_);
  }

 private:
  char* begin_;
  std::span<char> out_;
  bool full_ = false;
};

// Copies field lines as they stand, neighbours in one piece.
class Lines {
 public:
  Lines(const HeadFields& head, Writer& out) noexcept
      : head_(head), out_(out), from_(head.fields_at()) {}

  // Leaves this line out; the next kept line begins behind it.
  void skip(std::size_t index) noexcept {
    flush(head_.fields()[index].name_at);
    from_ = end_of(index);
  }
  // Copies the line's name and colon as they stand; the caller writes the value and the line end.
  void keep_name(std::size_t index) noexcept {
    const Field& field = head_.fields()[index];
    flush(field.name_at + field.name_size + 1U);
    from_ = end_of(index);
    out_.put(" ");
  }
  void finish() noexcept { flush(head_.fields_end()); }

 private:
  [[nodiscard]] std::size_t end_of(std::size_t index) const noexcept {
    const auto fields = head_.fields();
    return index + 1 < fields.size() ? fields[index + 1].name_at : head_.fields_end();
  }
  void flush(std::size_t to) noexcept {
    if (to > from_) out_.put({head_.base() + from_, to - from_});
  }

  const HeadFields& head_;
  Writer& out_;
  std::size_t from_;
};

bool stripped(const HeadFields& head, const Field& field,
              std::span<const std::string_view> names) noexcept {
  if (field.hop_by_hop) return true;
  for (const std::string_view name : names) {
    if (name.size() == field.name_size && equal_ignoring_case(name, head.name(field))) return true;
  }
  return false;
}

void put_target(const RequestHead& head, const RequestRewrite& how, Writer& out) noexcept {
  const auto path = head.path_and_query();
  if (head.form() == TargetForm::Authority || head.form() == TargetForm::Asterisk) {
    out.put(head.form() == TargetForm::Authority ? head.authority() : head.target());
    return;
  }
  if (how.to_proxy) out.put("http://", head.authority());
  if (path.empty() && head.method() == Method::Options) {
    // The whole server is meant: the last hop says so with '*' (RFC 9112 §3.2.4).
    if (!how.to_proxy) out.put("*");
    return;
  }
  if (path.empty() || path.front() == '?') out.put("/");
  out.put(path);
}

// Connection, and what it announces, as this hop means it.
void put_request_connection(const RequestHead& head, const RequestRewrite& how,
                            Writer& out) noexcept {
  if (how.upgrade) out.put("Upgrade: websocket\r\n");
  if (head.accepts_trailers()) out.put("TE: trailers\r\n");
  if (how.upgrade || head.accepts_trailers()) {
    out.put("Connection: ", how.upgrade ? "Upgrade" : "",
            how.upgrade && head.accepts_trailers() ? ", " : "", head.accepts_trailers() ? "TE" : "",
            "\r\n");
  }
}

}  // namespace

std::size_t write_request(const RequestHead& head, const RequestRewrite& how,
                          std::span<char> out) noexcept {
  Writer writer(out);
  writer.put(head.method_text(), " ");
  put_target(head, how, writer);
  writer.put(" HTTP/1.1\r\n");
  const auto hops = head.max_forwards();
  bool has_host = false;
  for (const Field& field : head.fields()) has_host = has_host || field.id == FieldId::Host;
  if (!has_host) writer.put("Host: ", head.authority(), "\r\n");
  Lines lines(head, writer);
  for (std::size_t i = 0; i < head.fields().size(); ++i) {
    const Field& field = head.fields()[i];
    if (stripped(head, field, how.strip)) {
      lines.skip(i);
    } else if (field.id == FieldId::Host) {
      lines.keep_name(i);
      writer.put(head.authority(), "\r\n");
    } else if (field.id == FieldId::MaxForwards && hops && *hops > 0) {
      lines.keep_name(i);
      writer.put_number(*hops - 1);
      writer.put("\r\n");
    } else if (field.id == FieldId::Expect && head.minor_version() == 0) {
      lines.skip(i);  // HTTP/1.0 knows no 100 (RFC 9110 §10.1.1)
    }
  }
  lines.finish();
  if (!how.via.empty()) writer.put("Via: ", how.via, "\r\n");
  if (!how.proxy_authorization.empty()) {
    writer.put("Proxy-Authorization: ", how.proxy_authorization, "\r\n");
  }
  put_request_connection(head, how, writer);
  writer.put("\r\n");
  return writer.written();
}

std::size_t write_response(const ResponseHead& head, const ResponseRewrite& how,
                           std::span<char> out) noexcept {
  Writer writer(out);
  const int status = head.status();
  writer.put("HTTP/1.1 ");
  writer.put_number(static_cast<std::uint32_t>(status));
  writer.put(" ", head.reason(), "\r\n");
  // A message that cannot have a body must not announce one, or two readers disagree.
  const bool no_framing = status < 200 || status == 204 || head.framing() == Framing::Tunnel;
  Lines lines(head, writer);
  for (std::size_t i = 0; i < head.fields().size(); ++i) {
    const Field& field = head.fields()[i];
    const bool chunking = field.id == FieldId::TransferEncoding || field.id == FieldId::Trailer;
    if (stripped(head, field, how.strip) || (chunking && (no_framing || how.http_1_0)) ||
        (field.id == FieldId::ContentLength && no_framing)) {
      lines.skip(i);
    }
  }
  lines.finish();
  if (!how.via.empty()) writer.put("Via: ", how.via, "\r\n");
  if (status == 101) {
    writer.put("Upgrade: websocket\r\nConnection: Upgrade\r\n");
  } else if (!head.interim() && head.framing() != Framing::Tunnel) {
    if (how.close) writer.put("Connection: close\r\n");
    if (!how.close && how.http_1_0) writer.put("Connection: keep-alive\r\n");
  }
  writer.put("\r\n");
  return writer.written();
}

}  // namespace proxypool::net
