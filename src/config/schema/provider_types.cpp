#include "config/schema/provider_types.hpp"

#include <algorithm>

#include "proxypool/base/host.hpp"
#include "proxypool/base/text.hpp"
#include "proxypool/domain/proxy/list_line.hpp"

namespace proxypool::config::schema {
namespace {

constexpr std::size_t kTemplateBytesMax = 4096;
constexpr std::size_t kPathDepthMax = 16;

struct FormName {
  ProxyForm form;
  std::string_view name;
};
constexpr FormName kForms[] = {
    {ProxyForm::HostPort, "host:port"},
    {ProxyForm::HostPortUserPass, "host:port:user:pass"},
    {ProxyForm::Url, "url"},
    {ProxyForm::Url, "user:pass@host:port"},
    {ProxyForm::UserPassHostPort, "user:pass:host:port"},
    {ProxyForm::HostPortAtUserPass, "host:port@user:pass"},
};

bool is_member_name(std::string_view text) {
  if (text.empty() || text.size() > 64 || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// "name.name.name"; nothing when one of them is no member name.
std::optional<std::vector<std::string>> split_path(std::string_view text) {
  std::vector<std::string> path;
  for (const auto part : split(text, '.')) {
    if (!is_member_name(part)) return std::nullopt;
    path.emplace_back(part);
  }
  if (path.size() > kPathDepthMax) return std::nullopt;
  return path;
}

std::string join_path(std::string_view root, const std::vector<std::string>& path) {
  std::string out(root);
  for (const auto& name : path) out += "." + name;
  return out;
}

std::optional<SecretString> find_secret(const std::string& name, const Node& node, Reader& reader) {
  std::vector<std::string> known;
  if (reader.provider_secrets != nullptr) {
    for (const auto& [key, value] : *reader.provider_secrets) {
      if (key == name) return value;
      known.push_back(key);
    }
  }
  const auto hint = known.empty() ? "declare it under provider.secrets" : name_hint(name, known);
  reader.error(node.mark, "there is no secret named " + name.substr(0, 64), hint);
  return std::nullopt;
}

// The expression between {{ and }}.
std::optional<Template::Part> read_hole(std::string_view expression, const Node& node,
                                        Reader& reader) {
  if (expression == "batch") return Template::Batch{};
  if (expression.starts_with("secret.") && is_member_name(expression.substr(7))) {
    const std::string name(expression.substr(7));
    auto value = find_secret(name, node, reader);
    if (!value) return std::nullopt;
    return Template::SecretRef{name, *std::move(value)};
  }
  reader.error(node.mark, "{{ " + std::string(expression.substr(0, 64)) + " }} is not known",
               "{{ secret.NAME }} or {{ batch }}");
  return std::nullopt;
}

bool printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
}

bool read_template(const Node& node, Reader& reader, Template& into) {
  const bool scalar = node.is_scalar() && node.kind != NodeKind::Null;
  if (!scalar) return mismatch(node, reader, "a text");
  if (node.text.size() > kTemplateBytesMax) {
    return reader.error(node.mark, "is longer than 4096 bytes");
  }
  if (!printable(node.text)) return reader.error(node.mark, "holds a control character");
  Template out;
  std::string_view rest = node.text;
  while (!rest.empty()) {
    const auto open = rest.find("{{");
    if (open != 0) out.parts.emplace_back(Template::Literal{std::string(rest.substr(0, open))});
    if (open == std::string_view::npos) break;
    const auto close = rest.find("}}", open);
    if (close == std::string_view::npos) return reader.error(node.mark, "{{ without }}");
    auto part = read_hole(trim(rest.substr(open + 2, close - open - 2)), node, reader);
    if (!part) return false;
    out.parts.push_back(*std::move(part));
    rest.remove_prefix(close + 2);
  }
  into = std::move(out);
  return true;
}

std::string show_template(const Template& from) {
  std::string out;
  for (const auto& part : from.parts) {
    if (const auto* literal = std::get_if<Template::Literal>(&part)) out += literal->text;
    if (const auto* secret = std::get_if<Template::SecretRef>(&part)) {
      out += "{{ secret." + secret->name + " }}";
    }
    if (std::holds_alternative<Template::Batch>(part)) out += "{{ batch }}";
  }
  return out;
}

// What is wrong with the literal beginning of a URL, which must hold scheme and host; empty:
// nothing.
std::string complain_about_url(const Template& url) {
  const auto* first = url.parts.empty() ? nullptr : std::get_if<Template::Literal>(&url.parts[0]);
  std::string_view text = first == nullptr ? std::string_view() : first->text;
  const auto scheme_end = text.find("://");
  const auto scheme = text.substr(0, scheme_end);
  if (scheme_end == std::string_view::npos || (scheme != "http" && scheme != "https")) {
    return "must begin with http:// or https://";
  }
  text.remove_prefix(scheme_end + 3);
  const auto end = text.find_first_of("/?#");
  if (end == std::string_view::npos && url.parts.size() > 1) {
    return "the host must be written out, and a / must follow it";
  }
  const auto authority = text.substr(0, end);
  if (authority.find('@') != std::string_view::npos) {
    return "a user name or password must not stand in the URL";
  }
  const auto port_at =
      authority.find(':', authority.find(']') == std::string_view::npos ? 0 : authority.find(']'));
  if (!canonical_host(authority.substr(0, port_at))) {
    return "the host is neither an address nor a valid name";
  }
  if (port_at != std::string_view::npos && !parse_port(authority.substr(port_at + 1))) {
    return "the port is not a number from 1 to 65535";
  }
  return {};
}

std::optional<MapValue> read_expression(std::string_view text, const Node& node, Reader& reader) {
  text = trim(text);
  MapValue out;
  if (text == "item") return out;
  if (text.starts_with("item.")) {
    if (auto path = split_path(text.substr(5))) {
      out.path = *std::move(path);
      return out;
    }
  }
  if (text.starts_with("secret.") && is_member_name(text.substr(7))) {
    out.kind = MapValue::Kind::Secret;
    out.text = text.substr(7);
    auto value = find_secret(out.text, node, reader);
    if (!value) return std::nullopt;
    out.secret = *std::move(value);
    return out;
  }
  out.kind = MapValue::Kind::Constant;
  if (text.size() >= 2 && text.front() == '\'' && text.find('\'', 1) == text.size() - 1) {
    out.text = text.substr(1, text.size() - 2);
    return out;
  }
  if (parse_number<std::uint64_t>(text)) {
    out.text = text;
    return out;
  }
  reader.error(node.mark, "is no expression that this version knows",
               "item.NAME.NAME, secret.NAME, 'text' or a number");
  return std::nullopt;
}

std::string show_expression(const MapValue& from) {
  switch (from.kind) {
    case MapValue::Kind::Item:
      return join_path("item", from.path);
    case MapValue::Kind::Secret:
      return "secret." + from.text;
    case MapValue::Kind::Constant:
      return "'" + from.text + "'";
  }
  return {};
}

std::string_view show_form(ProxyForm form) {
  for (const auto& known : kForms) {
    if (known.form == form) return known.name;
  }
  return {};
}

// proxy(EXPRESSION, 'FORM')
bool read_endpoint(const Node& node, Reader& reader, EndpointExpression& into) {
  constexpr const char* kHint = "proxy(item, 'host:port') or proxy(item.NAME, 'FORM')";
  std::string_view text = trim(node.text);
  const auto comma = text.rfind(',');
  if (node.kind != NodeKind::Text || !text.starts_with("proxy(") || !text.ends_with(')') ||
      comma == std::string_view::npos) {
    return mismatch(node, reader, "a proxy(…) expression", kHint);
  }
  const auto form = trim(text.substr(comma + 1, text.size() - comma - 2));
  std::vector<std::string> names;
  std::optional<ProxyForm> found;
  for (const auto& known : kForms) {
    names.emplace_back(known.name);
    if (form == "'" + std::string(known.name) + "'") found = known.form;
  }
  if (!found) {
    return reader.error(node.mark, "the form of the proxy is not known", name_hint("", names));
  }
  auto source = read_expression(text.substr(6, comma - 6), node, reader);
  if (!source) return false;
  into = {*std::move(source), *found};
  return true;
}

}  // namespace

Type<domain::Candidate> proxy() {
  Type<domain::Candidate> type;
  type.described = "proxy: http://user:pass@host:port or host:port[:user:pass]";
  type.json_schema = string_schema("^.+$");
  type.read = [](const Node& node, Reader& reader, domain::Candidate& into) {
    if (node.kind != NodeKind::Text) {
      return mismatch(node, reader, "a proxy", "write it in quotes: \"host:port\"");
    }
    auto value = parse_proxy(node.text);
    if (!value) {
      return reader.error(node.mark, value.error().message,
                          "http://user:pass@host:port or host:port[:user:pass]");
    }
    into = *std::move(value);
    return true;
  };
  type.write = [](const domain::Candidate& from, const Writer& writer) {
    std::string shown = domain::format_url(from.endpoint);
    const auto& credential = from.credential;
    if (!credential.username.empty()) {
      const auto digest = writer.secret(
          SecretString(credential.username + ":" + std::string(credential.password.reveal())));
      shown.insert(shown.find("://") + 3, digest + "@");
    }
    return Node::of(shown);
  };
  return type;
}

Type<Template> template_text() {
  Type<Template> type;
  type.described = "text with {{ secret.NAME }} and {{ batch }}";
  type.json_schema = Node::map().set(
      "type", Node::list({Node::of("string"), Node::of("number"), Node::of("boolean")}));
  type.read = read_template;
  type.write = [](const Template& from, const Writer&) { return Node::of(show_template(from)); };
  return type;
}

Type<Template> template_url() {
  Type<Template> type = template_text();
  type.described = "URL with {{ secret.NAME }} and {{ batch }} behind the host";
  type.json_schema = string_schema("^https?://.+$");
  type.read = [](const Node& node, Reader& reader, Template& into) {
    if (node.kind != NodeKind::Text) return mismatch(node, reader, "a URL");
    if (!read_template(node, reader, into)) return false;
    const auto complaint = complain_about_url(into);
    if (!complaint.empty()) return reader.error(node.mark, complaint);
    if (node.text.find_first_of(" #\"<>") != std::string::npos) {
      // Blanks may stand in the holes alone.
      for (const auto& part : into.parts) {
        const auto* literal = std::get_if<Template::Literal>(&part);
        if (literal != nullptr && literal->text.find_first_of(" #\"<>") != std::string::npos) {
          return reader.error(node.mark, "holds a character that no URL has");
        }
      }
    }
    return true;
  };
  return type;
}

Type<MapValue> map_value() {
  Type<MapValue> type;
  type.described = "expression: item.NAME, secret.NAME, 'text' or a number";
  type.json_schema = Node::map().set("type", Node::list({Node::of("string"), Node::of("integer")}));
  type.read = [](const Node& node, Reader& reader, MapValue& into) {
    if (node.kind != NodeKind::Text && node.kind != NodeKind::Number) {
      return mismatch(node, reader, "an expression");
    }
    auto value = read_expression(node.text, node, reader);
    if (!value) return false;
    into = *std::move(value);
    return true;
  };
  type.write = [](const MapValue& from, const Writer&) { return Node::of(show_expression(from)); };
  return type;
}

Type<EndpointExpression> endpoint_expression() {
  Type<EndpointExpression> type;
  type.described = "proxy(EXPRESSION, 'FORM')";
  type.json_schema = string_schema("^proxy\\(.+\\)$");
  type.read = read_endpoint;
  type.write = [](const EndpointExpression& from, const Writer&) {
    return Node::of("proxy(" + show_expression(from.source) + ", '" +
                    std::string(show_form(from.form)) + "')");
  };
  return type;
}

Type<std::vector<std::string>> records_path() {
  Type<std::vector<std::string>> type;
  type.described = "path, body.NAME.NAME[*]";
  type.json_schema = string_schema("^body(\\.[A-Za-z_][A-Za-z0-9_]*)*\\[\\*\\]$");
  type.read = [](const Node& node, Reader& reader, std::vector<std::string>& into) {
    std::string_view text = node.text;
    std::optional<std::vector<std::string>> path;
    if (node.kind == NodeKind::Text && text.starts_with("body") && text.ends_with("[*]")) {
      text = text.substr(4, text.size() - 7);
      if (text.empty()) path.emplace();
      if (text.starts_with('.')) path = split_path(text.substr(1));
    }
    if (!path) return mismatch(node, reader, "the path of a list", "body[*] or body.data.list[*]");
    into = *std::move(path);
    return true;
  };
  type.write = [](const std::vector<std::string>& from, const Writer&) {
    return Node::of(join_path("body", from) + "[*]");
  };
  return type;
}

std::string complain_about_member_name(const std::string& key) {
  return is_member_name(key) ? "" : "is no valid name: letters, digits and _, no digit first";
}

std::string complain_about_query_key(const std::string& key) {
  if (key.empty() || key.size() > 128) return "is empty or longer than 128 bytes";
  return printable(key) ? "" : "holds a control character";
}

std::string complain_about_header_name(const std::string& key) {
  constexpr std::string_view kTokenMarks = "!#$%&'*+-.^_`|~";
  const bool token =
      !key.empty() && key.size() <= 128 && std::all_of(key.begin(), key.end(), [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               kTokenMarks.find(c) != std::string_view::npos;
      });
  if (!token) return "is no valid header name";
  const auto name = lower(key);
  for (const std::string_view own : {"host", "connection", "content-length", "transfer-encoding",
                                     "te", "upgrade", "trailer", "expect"}) {
    if (name == own) return "this header is set by the client itself";
  }
  return {};
}

}  // namespace proxypool::config::schema
