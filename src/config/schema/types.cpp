#include "config/schema/types.hpp"

#include <algorithm>

#include "config/address.hpp"
#include "proxypool/base/stored_hash.hpp"

namespace proxypool::config::schema {
namespace {

constexpr std::string_view kDurationPattern = "^(0|[0-9]+(ms|s|m|h))$";
constexpr std::string_view kBytesPattern = "^[0-9]+(B|KiB|MiB|GiB)?$";
constexpr std::string_view kIdentifierPattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";

Node either(std::vector<Node> choices) {
  return Node::map().set("oneOf", Node::list(std::move(choices)));
}

Type<nanoseconds> make_duration(nanoseconds min, nanoseconds max, bool zero) {
  const auto range = shown_range(format_duration(min), format_duration(max));
  Type<nanoseconds> type;
  type.described = "duration, " + range + (zero ? " or 0" : "");
  type.json_schema = either({string_schema(std::string(kDurationPattern)), integer_schema(0, 0)});
  type.read = [=](const Node& node, Reader& reader, nanoseconds& into) {
    const bool scalar = node.kind == NodeKind::Text || node.kind == NodeKind::Number;
    const auto value = scalar ? parse_duration(node.text) : std::nullopt;
    if (!value) {
      return mismatch(node, reader, "a duration",
                      "a number and one of ms, s, m, h: 250ms, 30s, 5m, 2h");
    }
    if ((*value < min || *value > max) && !(zero && value->count() == 0)) {
      return reader.error(node.mark, node.text + " is outside " + range + (zero ? " or 0" : ""));
    }
    into = *value;
    return true;
  };
  type.write = [](const nanoseconds& from, const Writer&) {
    return Node::of(format_duration(from));
  };
  return type;
}

Type<std::uint64_t> make_bytes(std::uint64_t min, std::uint64_t max, bool zero) {
  const auto range = shown_range(format_bytes(min), format_bytes(max));
  Type<std::uint64_t> type;
  type.described = "size, " + range + (zero ? " or 0" : "");
  type.json_schema = either(
      {string_schema(std::string(kBytesPattern)),
       integer_schema(0, static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))});
  type.read = [=](const Node& node, Reader& reader, std::uint64_t& into) {
    const bool scalar = node.kind == NodeKind::Text || node.kind == NodeKind::Number;
    const auto value = scalar ? parse_bytes(node.text) : std::nullopt;
    if (!value) {
      return mismatch(node, reader, "a size", "a number and one of B, KiB, MiB, GiB: 64KiB");
    }
    if ((*value < min || *value > max) && !(zero && *value == 0)) {
      return reader.error(node.mark, node.text + " is outside " + range + (zero ? " or 0" : ""));
    }
    into = *value;
    return true;
  };
  type.write = [](const std::uint64_t& from, const Writer&) {
    return Node::of(format_bytes(from));
  };
  return type;
}

std::string describe_found(const Node& node) {
  const std::string kind(describe(node.kind));
  const bool show = node.kind == NodeKind::Number || node.kind == NodeKind::Bool;
  return show ? kind + " (" + node.text + ")" : kind;
}

// {env: NAME} or {file: PATH}.
std::optional<SecretString> read_secret(const Node& node, Reader& reader) {
  constexpr const char* kHint = "{env: NAME} or {file: PATH}";
  if (node.is_scalar()) {
    reader.error(node.mark, "a secret must not stand in the file", kHint);
    return std::nullopt;
  }
  const Node* value = node.members.size() == 1 ? &node.members[0].value : nullptr;
  const std::string key = value != nullptr ? node.members[0].key : std::string();
  if ((key != "env" && key != "file") || value->kind != NodeKind::Text || value->text.empty()) {
    reader.error(node.mark, "expected a reference to a secret", kHint);
    return std::nullopt;
  }
  const auto step = reader.enter_key(key, value->mark);
  return key == "env" ? reader.secret_from_env(value->text, value->mark)
                      : reader.secret_from_file(value->text, value->mark);
}

Node secret_schema() {
  const auto one = [](const char* key) {
    return Node::map()
        .set("type", Node::of("object"))
        .set("properties", Node::map().set(key, string_schema("^.+$")))
        .set("required", Node::list({Node::of(key)}))
        .set("additionalProperties", Node::of(false));
  };
  return either({one("env"), one("file")});
}

bool looks_hashed(std::string_view text) {
  return text.starts_with("$scrypt$") || text.starts_with("$sha256$");
}

// Takes a hash as it was written down, or reports what is wrong with it.
bool take_hash(std::string_view text, Mark mark, Reader& reader, ClientSecret& into) {
  const auto parsed = StoredHash::parse(text);
  if (!parsed) return reader.error(mark, parsed.error().message);
  into = {SecretString(std::string(text)), true};
  return true;
}

}  // namespace

bool mismatch(const Node& node, Reader& reader, std::string_view expected, std::string hint) {
  std::string message = "expected " + std::string(expected) + ", found ";
  if (node.kind == NodeKind::Text) {
    message += node.text.size() <= 64 ? '"' + node.text + '"' : "a long text";
  } else {
    message += describe_found(node);
  }
  if (node.kind == NodeKind::Null && hint.empty()) hint = "remove the key, or give it a value";
  return reader.error(node.mark, std::move(message), std::move(hint));
}

Node string_schema(std::string pattern) {
  Node out = Node::map().set("type", Node::of("string"));
  if (!pattern.empty()) out.set("pattern", Node::of(pattern));
  return out;
}
Node integer_schema(std::uint64_t min, std::uint64_t max) {
  return Node::map()
      .set("type", Node::of("integer"))
      .set("minimum", Node::of(min))
      .set("maximum", Node::of(max));
}
std::string shown_range(const std::string& min, const std::string& max) {
  return min + " … " + max;
}

std::optional<std::string> scalar_text(const Node& node, Reader& reader,
                                       std::string_view expected) {
  if (node.kind == NodeKind::Text) return node.text;
  const bool unquoted = node.kind == NodeKind::Number || node.kind == NodeKind::Bool;
  mismatch(node, reader, expected, unquoted ? "write it in quotes" : "");
  return std::nullopt;
}

Type<bool> boolean() {
  Type<bool> type;
  type.described = "true or false";
  type.json_schema = Node::map().set("type", Node::of("boolean"));
  type.read = [](const Node& node, Reader& reader, bool& into) {
    if (node.kind != NodeKind::Bool) return mismatch(node, reader, "true or false");
    into = lower(node.text) == "true";
    return true;
  };
  type.write = [](const bool& from, const Writer&) { return Node::of(from); };
  return type;
}

Type<std::string> text(std::size_t bytes_max) {
  Type<std::string> type;
  type.described = "text";
  type.json_schema = string_schema("^.+$");
  type.read = [bytes_max](const Node& node, Reader& reader, std::string& into) {
    auto value = scalar_text(node, reader, "a text");
    if (!value) return false;
    if (value->empty()) return reader.error(node.mark, "is empty");
    if (value->size() > bytes_max) {
      return reader.error(node.mark, "is longer than " + std::to_string(bytes_max) + " bytes");
    }
    into = *std::move(value);
    return true;
  };
  type.write = [](const std::string& from, const Writer&) {
    return from.empty() ? Node() : Node::of(from);
  };
  return type;
}

bool is_identifier(std::string_view text) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  if (text.empty() || text.size() > 64 || !good(text.front())) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return good(c) || c == '.' || c == '_' || c == '-'; });
}

Type<std::string> identifier() {
  Type<std::string> type = text();
  type.described = "name";
  type.json_schema = string_schema(std::string(kIdentifierPattern));
  type.read = [](const Node& node, Reader& reader, std::string& into) {
    auto value = scalar_text(node, reader, "a name");
    if (!value) return false;
    if (!is_identifier(*value)) {
      return reader.error(node.mark, "is no valid name",
                          "1 to 64 of A-Z a-z 0-9 . _ -, beginning with a letter or digit");
    }
    into = *std::move(value);
    return true;
  };
  return type;
}

Type<std::string> file_path() {
  Type<std::string> type = text(4096);
  type.described = "path";
  type.read = [inner = type.read](const Node& node, Reader& reader, std::string& into) {
    if (!inner(node, reader, into)) return false;
    into = reader.resolve_path(into);
    return true;
  };
  return type;
}

Type<nanoseconds> duration(nanoseconds min, nanoseconds max) {
  return make_duration(min, max, false);
}
Type<nanoseconds> duration_or_zero(nanoseconds min, nanoseconds max) {
  return make_duration(min, max, true);
}
Type<std::uint64_t> bytes(std::uint64_t min, std::uint64_t max) {
  return make_bytes(min, max, false);
}
Type<std::uint64_t> bytes_or_zero(std::uint64_t min, std::uint64_t max) {
  return make_bytes(min, max, true);
}

std::optional<std::uint64_t> read_integer(const Node& node, Reader& reader, std::uint64_t min,
                                          std::uint64_t max) {
  if (node.kind != NodeKind::Number) {
    mismatch(node, reader, "a number", node.kind == NodeKind::Text ? "without unit or quotes" : "");
    return std::nullopt;
  }
  const bool leading_zero = node.text.size() > 1 && node.text.front() == '0';
  if (leading_zero || node.text.find_first_not_of("-0123456789") != std::string::npos) {
    reader.error(node.mark, node.text + " is no decimal whole number");
    return std::nullopt;
  }
  const auto value = parse_number<std::uint64_t>(node.text);
  if (!value || *value < min || *value > max) {
    reader.error(node.mark, node.text + " is outside " +
                                shown_range(std::to_string(min), std::to_string(max)));
    return std::nullopt;
  }
  return value;
}

Type<std::uint32_t> threads() {
  constexpr std::uint32_t kMax = 256;
  Type<std::uint32_t> type;
  type.described = "auto, or number, 1 … 256";
  type.json_schema = either({words_schema({"auto"}), integer_schema(1, kMax)});
  type.read = [](const Node& node, Reader& reader, std::uint32_t& into) {
    if (node.kind == NodeKind::Text && node.text == "auto") {
      into = 0;
      return true;
    }
    if (node.kind != NodeKind::Number) return mismatch(node, reader, "auto or a number");
    const auto value = read_integer(node, reader, 1, kMax);
    if (value) into = static_cast<std::uint32_t>(*value);
    return value.has_value();
  };
  type.write = [](const std::uint32_t& from, const Writer&) {
    return from == 0 ? Node::of("auto") : Node::of(std::uint64_t{from});
  };
  return type;
}

Type<ListenAddress> listen_address() {
  Type<ListenAddress> type;
  type.described = "address:port";
  type.json_schema = string_schema("^(\\[[0-9A-Fa-f:.]+\\]|[0-9.]+):[0-9]{1,5}$");
  type.read = [](const Node& node, Reader& reader, ListenAddress& into) {
    const auto value = node.kind == NodeKind::Text ? parse_listen_address(node.text) : std::nullopt;
    if (!value) {
      return mismatch(node, reader, "an address and a port",
                      "127.0.0.1:8080, 0.0.0.0:8080 or \"[::1]:8080\"; no host names");
    }
    into = *value;
    return true;
  };
  type.write = [](const ListenAddress& from, const Writer&) { return Node::of(from.str()); };
  return type;
}

Type<HostPort> host_port() {
  Type<HostPort> type;
  type.described = "host:port";
  type.json_schema = string_schema("^(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9._-]+):[0-9]{1,5}$");
  type.read = [](const Node& node, Reader& reader, HostPort& into) {
    auto value = node.kind == NodeKind::Text ? parse_host_port(node.text) : std::nullopt;
    if (!value) return mismatch(node, reader, "a host and a port", "controller.example:9443");
    into = *std::move(value);
    return true;
  };
  type.write = [](const HostPort& from, const Writer&) { return Node::of(from.str()); };
  return type;
}

Type<std::vector<Cidr>> cidrs() {
  Type<Cidr> type;
  type.described = "address range";
  type.json_schema = string_schema("^[0-9A-Fa-f.:]+(/[0-9]{1,3})?$");
  type.read = [](const Node& node, Reader& reader, Cidr& into) {
    const auto range = node.kind == NodeKind::Text ? Cidr::parse(node.text) : std::nullopt;
    if (!range) {
      return mismatch(node, reader, "an address range",
                      "10.0.0.0/8 or fd00::/8; no bits set behind the prefix");
    }
    into = *range;
    return true;
  };
  type.write = [](const Cidr& from, const Writer&) { return Node::of(from.str()); };
  return list_of<Cidr>(type, 0, 1000, [](const Node&, Reader&) { return Cidr(IpAddress(), 32); });
}

Type<SecretString> secret() {
  Type<SecretString> type;
  type.described = "secret: {env: NAME} or {file: PATH}";
  type.json_schema = secret_schema();
  type.read = [](const Node& node, Reader& reader, SecretString& into) {
    auto value = read_secret(node, reader);
    if (!value) return false;
    into = *std::move(value);
    return true;
  };
  type.write = [](const SecretString& from, const Writer& writer) {
    return Node::of(writer.secret(from));
  };
  return type;
}

Type<ClientSecret> client_secret() {
  Type<ClientSecret> type;
  type.described = "secret: {env: NAME}, {file: PATH}, or a hash: $scrypt$…, $sha256$…";
  type.json_schema = secret_schema();
  type.json_schema.members[0].value.items.push_back(string_schema("^\\$(scrypt|sha256)\\$.+$"));
  type.read = [](const Node& node, Reader& reader, ClientSecret& into) {
    if (node.kind == NodeKind::Text && looks_hashed(node.text)) {
      return take_hash(node.text, node.mark, reader, into);
    }
    if (node.is_scalar()) {
      return reader.error(node.mark, "a plain secret must not stand in the file",
                          "{env: NAME}, {file: PATH}, or what `proxy-controller --hash-key` or "
                          "`--hash-password` prints");
    }
    auto value = read_secret(node, reader);
    if (!value) return false;
    if (looks_hashed(value->reveal())) {
      return take_hash(value->reveal(), node.mark, reader, into);
    }
    into = {*std::move(value), false};
    return true;
  };
  type.write = [](const ClientSecret& from, const Writer& writer) {
    return Node::of(writer.secret(from.value));
  };
  return type;
}

Type<domain::Tags> tags() {
  const auto values = text(64);
  Type<domain::Tags> type;
  type.described = "mapping of names to texts";
  type.json_schema = keyed_schema(values.json_schema);
  type.read = [values](const Node& node, Reader& reader, domain::Tags& into) {
    if (!check_keyed(node, reader, 16)) return false;
    bool good = true;
    for (const Member& member : node.members) {
      const auto step = reader.enter_key(member.key, member.value.mark);
      if (!is_identifier(member.key)) good = reader.error(member.mark, "is no valid name");
      good = values.read(member.value, reader, into[member.key]) && good;
    }
    return good;
  };
  type.write = [](const domain::Tags& from, const Writer&) {
    Node out = Node::map();
    for (const auto& [key, value] : from) out.set(key, Node::of(value));
    return out;
  };
  return type;
}

bool read_word(const Node& node, Reader& reader, const std::vector<std::string>& all,
               const std::vector<std::string>& built, std::size_t& index) {
  const auto word = scalar_text(node, reader, "a word");
  if (!word) return false;
  const auto found = std::find(all.begin(), all.end(), *word);
  if (found == all.end()) {
    return reader.error(node.mark, "unknown value \"" + word->substr(0, 64) + "\"",
                        name_hint(*word, built));
  }
  if (std::find(built.begin(), built.end(), *word) == built.end()) {
    return reader.error(node.mark, *word + " is not supported in this version",
                        "supported: " + shown_words(built));
  }
  index = static_cast<std::size_t>(found - all.begin());
  return true;
}
Node words_schema(const std::vector<std::string>& built) {
  Node words = Node::list();
  for (const auto& word : built) words.items.push_back(Node::of(word));
  return Node::map().set("enum", std::move(words));
}
std::string shown_words(const std::vector<std::string>& built) {
  std::string out;
  for (const auto& word : built) out += (out.empty() ? "" : ", ") + word;
  return out;
}

Node list_schema(const Node& items, std::size_t items_min, std::size_t items_max) {
  Node out = Node::map().set("type", Node::of("array"));
  if (items_min > 0) out.set("minItems", Node::of(std::uint64_t{items_min}));
  out.set("maxItems", Node::of(std::uint64_t{items_max}));
  if (!items.members.empty()) out.set("items", items);
  return out;
}
bool check_list(const Node& node, Reader& reader, std::size_t items_min, std::size_t items_max) {
  if (node.kind != NodeKind::List) {
    const bool scalar = node.is_scalar() && node.kind != NodeKind::Null;
    return mismatch(node, reader, "a list", scalar ? "write [" + node.text + "]" : "");
  }
  if (node.items.size() < items_min) {
    return reader.error(node.mark, "needs at least " + std::to_string(items_min) + " " +
                                       (items_min == 1 ? "element" : "elements"));
  }
  if (node.items.size() > items_max) {
    return reader.error(node.mark, "has more than " + std::to_string(items_max) + " elements");
  }
  return true;
}

Node keyed_schema(const Node& values) {
  return Node::map().set("type", Node::of("object")).set("additionalProperties", values);
}
bool check_keyed(const Node& node, Reader& reader, std::size_t items_max) {
  if (node.kind != NodeKind::Map) return mismatch(node, reader, "a mapping");
  if (node.members.size() > items_max) {
    return reader.error(node.mark, "has more than " + std::to_string(items_max) + " keys");
  }
  return true;
}

}  // namespace proxypool::config::schema
