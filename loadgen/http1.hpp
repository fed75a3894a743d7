// HTTP/1.1 messages as the load generator and its fixture servers see them: heads, body framing,
// and a scanner that finds the end of a body without holding it.
//
// Independent of the gateway's codec on purpose: an instrument that shared the parser would share
// its errors and see nothing.
//
// Thread rule: plain values, one thread at a time.
// Limits:      a head has at most kHeadBytesMax bytes, a chunk-size or trailer line 4 KiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxypool/base/result.hpp"

namespace proxypool::loadgen {

inline constexpr std::size_t kHeadBytesMax = std::size_t{256} << 10U;

struct Field {
  std::string name;
  std::string value;
};

// Header fields in the order and spelling in which they came; look-up ignores case.
class Fields {
 public:
  void add(std::string name, std::string value);
  void erase(std::string_view name);
  // The first value of that name.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;
  // Whether a comma-separated list in any field of that name holds the token.
  [[nodiscard]] bool has_token(std::string_view name, std::string_view token) const;
  // Removes what is meant for one connection only (RFC 9110 §7.6.1), and the proxy's credentials.
  void erase_hop_by_hop();

  [[nodiscard]] const std::vector<Field>& all() const noexcept { return fields_; }

 private:
  std::vector<Field> fields_;
};

struct Request {
  std::string method;
  std::string target;
  unsigned minor = 1;  // of HTTP/1.x
  Fields fields;
};

struct Response {
  unsigned status = 200;
  std::string reason;
  unsigned minor = 1;
  Fields fields;
};

// `head` reaches up to and with the empty line.
Result<Request> parse_request(std::string_view head);
Result<Response> parse_response(std::string_view head);
std::string to_text(const Request& request);
std::string to_text(const Response& response);

// The length of the head at the front of `bytes`, with its empty line; nothing while incomplete.
// `searched` bytes are known to hold no end.
std::optional<std::size_t> head_size(std::string_view bytes, std::size_t searched = 0);

bool keeps_alive(const Request& request);
bool keeps_alive(const Response& response);

struct Framing {
  enum class Kind : std::uint8_t { None, Length, Chunked, UntilClose };
  Kind kind = Kind::None;
  std::uint64_t length = 0;
};
Result<Framing> framing_of(const Request& request);
Result<Framing> framing_of(const Response& response, std::string_view request_method);

// Walks through a body. The raw bytes that it consumed are the message as it was framed; `payload`
// is the content inside them.
class BodyScanner {
 public:
  explicit BodyScanner(Framing framing);

  struct Step {
    std::size_t consumed = 0;
    std::string_view payload;  // a part of the input
    bool malformed = false;
  };
  // Takes one piece from the front of `input`. REQUIRES: !done().
  Step take(std::string_view input);
  [[nodiscard]] bool done() const noexcept { return done_; }
  // Whether the end of the connection is the regular end of this body.
  [[nodiscard]] bool ends_with_connection() const noexcept {
    return framing_.kind == Framing::Kind::UntilClose;
  }

 private:
  enum class Expect : std::uint8_t { Size, Data, DataEnd, Trailer };

  Step take_chunked(std::string_view input);
  bool finish_line();  // false: malformed

  Framing framing_;
  std::uint64_t left_ = 0;
  Expect expect_ = Expect::Size;
  std::string line_;
  bool done_ = false;
};

}  // namespace proxypool::loadgen
