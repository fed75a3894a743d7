#include "unit/config/schema_validator.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <functional>
#include <map>

namespace proxypool::config::test {
namespace {

using nlohmann::json;
using Check = std::function<std::string(const json& rule, const json& value, const json& schema,
                                        const std::string& path)>;

bool has_type(const std::string& type, const json& value) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  return false;
}

std::string check_type(const json& rule, const json& value, const json&, const std::string&) {
  if (rule.is_string()) return has_type(rule, value) ? "" : "is no " + rule.get<std::string>();
  for (const auto& type : rule) {
    if (has_type(type, value)) return "";
  }
  return "has none of the types";
}

std::string check_properties(const json& rule, const json& value, const json&,
                             const std::string& path) {
  if (!value.is_object()) return "";
  for (const auto& [key, schema] : rule.items()) {
    if (!value.contains(key)) continue;
    const auto complaint = schema_complaint(schema, value[key], path + "." + key);
    if (!complaint.empty()) return complaint;
  }
  return "";
}

std::string check_additional(const json& rule, const json& value, const json& schema,
                             const std::string& path) {
  if (!value.is_object()) return "";
  const json known = schema.value("properties", json::object());
  for (const auto& [key, member] : value.items()) {
    if (known.contains(key)) continue;
    if (rule.is_boolean()) {
      if (!rule.get<bool>()) return "has the unknown key " + key;
      continue;
    }
    const auto complaint = schema_complaint(rule, member, path + "." + key);
    if (!complaint.empty()) return complaint;
  }
  return "";
}

std::string check_items(const json& rule, const json& value, const json&, const std::string& path) {
  if (!value.is_array()) return "";
  for (const auto& item : value) {
    const auto complaint = schema_complaint(rule, item, path + "[]");
    if (!complaint.empty()) return complaint;
  }
  return "";
}

std::string check_one_of(const json& rule, const json& value, const json&,
                         const std::string& path) {
  int matches = 0;
  for (const auto& choice : rule) matches += schema_complaint(choice, value, path).empty() ? 1 : 0;
  return matches == 1 ? "" : "fits " + std::to_string(matches) + " of the choices";
}

std::string check_required(const json& rule, const json& value, const json&, const std::string&) {
  for (const auto& key : rule) {
    if (value.is_object() && !value.contains(key)) return "lacks " + key.get<std::string>();
  }
  return "";
}

std::string when(bool good, const char* complaint) {
  return good ? "" : complaint;
}

const std::map<std::string, Check>& checks() {
  static const std::map<std::string, Check> table = {
      {"type", check_type},
      {"properties", check_properties},
      {"additionalProperties", check_additional},
      {"items", check_items},
      {"oneOf", check_one_of},
      {"required", check_required},
      {"enum",
       [](const json& r, const json& v, const json&, const std::string&) {
         return when(std::find(r.begin(), r.end(), v) != r.end(), "is none of the words");
       }},
      {"const", [](const json& r, const json& v, const json&,
                   const std::string&) { return when(r == v, "is not the constant"); }},
      {"pattern",
       [](const json& r, const json& v, const json&, const std::string&) {
         return when(
             !v.is_string() || RE2::PartialMatch(v.get<std::string>(), r.get<std::string>()),
             "does not match the pattern");
       }},
      {"minimum",
       [](const json& r, const json& v, const json&, const std::string&) {
         return when(!v.is_number() || v >= r, "is too small");
       }},
      {"maximum",
       [](const json& r, const json& v, const json&, const std::string&) {
         return when(!v.is_number() || v <= r, "is too large");
       }},
      {"minItems",
       [](const json& r, const json& v, const json&, const std::string&) {
         return when(!v.is_array() || v.size() >= r.get<std::size_t>(), "has too few elements");
       }},
      {"maxItems",
       [](const json& r, const json& v, const json&, const std::string&) {
         return when(!v.is_array() || v.size() <= r.get<std::size_t>(), "has too many elements");
       }},
  };
  return table;
}

}  // namespace

std::string schema_complaint(const json& schema, const json& value, const std::string& path) {
  for (const auto& [keyword, rule] : schema.items()) {
    if (keyword == "description" || keyword == "default" || keyword == "$schema" ||
        keyword == "title") {
      continue;
    }
    const auto check = checks().find(keyword);
    if (check == checks().end()) return path + ": the validator does not know " + keyword;
    const auto complaint = check->second(rule, value, schema, path);
    if (complaint.empty()) continue;
    return complaint.starts_with('$') ? complaint : path + ": " + complaint;
  }
  return "";
}

}  // namespace proxypool::config::test
