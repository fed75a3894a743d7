#include "config/schema/values.hpp"

#include <algorithm>

#include "config/regex.hpp"
#include "config/schema/types.hpp"
#include "proxypool/base/host.hpp"

namespace proxypool::config::schema {

Type<std::string> host_pattern() {
  Type<std::string> type = text();
  type.described = "host or *.suffix";
  type.json_schema = string_schema("^(\\*\\.)?[A-Za-z0-9.:_-]+$");
  type.read = [](const Node& node, Reader& reader, std::string& into) {
    const auto value = scalar_text(node, reader, "a host");
    if (!value) return false;
    const bool suffix = value->starts_with("*.");
    const auto host = canonical_host(suffix ? value->substr(2) : *value);
    if (!host) {
      return mismatch(node, reader, "a host in ASCII form", "www.example.com or *.example.com");
    }
    into = (suffix ? "*." : "") + *host;
    return true;
  };
  return type;
}

Type<std::string> host_regex() {
  Type<std::string> type = text();
  type.described = "regular expression (RE2)";
  type.read = [inner = type.read](const Node& node, Reader& reader, std::string& into) {
    if (!inner(node, reader, into)) return false;
    const auto complaint = complain_about_regex(into);
    return complaint.empty() ||
           reader.error(node.mark, "the expression does not compile: " + complaint);
  };
  return type;
}

Type<std::string> method() {
  Type<std::string> type = text();
  type.described = "method in capital letters";
  type.json_schema = string_schema("^[A-Z]{1,32}$");
  type.read = [](const Node& node, Reader& reader, std::string& into) {
    auto value = scalar_text(node, reader, "a method");
    if (!value) return false;
    const bool good =
        !value->empty() && value->size() <= 32 &&
        std::all_of(value->begin(), value->end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    if (!good) return mismatch(node, reader, "a method in capital letters", "GET, POST, …");
    into = *std::move(value);
    return true;
  };
  return type;
}

Type<std::string> field_name() {
  Type<std::string> type = text();
  type.described = "field name, or empty";
  type.json_schema = string_schema("^[A-Za-z0-9!#$%&'*+.^_`|~-]{0,64}$");
  type.read = [](const Node& node, Reader& reader, std::string& into) {
    auto value = scalar_text(node, reader, "a field name");
    if (!value) return false;
    const bool token = value->find_first_not_of(
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                           "0123456789!#$%&'*+.^_`|~-") == std::string::npos;
    if (!token || value->size() > 64) {
      return mismatch(node, reader, "a field name", "such as X-Proxy-Session");
    }
    constexpr std::string_view kOfHttp[] = {
        "host",   "connection", "content-length",      "transfer-encoding",  "te",
        "expect", "upgrade",    "proxy-authorization", "proxy-authenticate", "keep-alive",
        "via",    "trailer",    "authorization",       "max-forwards",       "proxy-connection"};
    for (const std::string_view name : kOfHttp) {
      if (equal_ignoring_case(name, *value)) {
        return reader.error(node.mark, *value + " has a meaning of its own",
                            "take a name such as X-Proxy-Session");
      }
    }
    into = *std::move(value);
    return true;
  };
  return type;
}

Type<std::string> path_prefix() {
  Type<std::string> type = text();
  type.described = "path";
  type.json_schema = string_schema("^/[!-~]*$");
  type.read = [](const Node& node, Reader& reader, std::string& into) {
    auto value = scalar_text(node, reader, "a path");
    if (!value) return false;
    const bool good =
        value->starts_with('/') && value->size() <= 1024 &&
        std::all_of(value->begin(), value->end(), [](char c) { return c > 0x20 && c < 0x7f; });
    if (!good) {
      return mismatch(node, reader, "a path",
                      "begins with /, holds no blank, ASCII with percent-encoding alone");
    }
    into = *std::move(value);
    return true;
  };
  return type;
}

}  // namespace proxypool::config::schema
