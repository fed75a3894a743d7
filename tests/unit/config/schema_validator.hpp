// A validator for the part of JSON Schema 2020-12 that the generated schema uses.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace proxypool::config::test {

// What is wrong, or empty. A keyword that it does not know is wrong too.
std::string schema_complaint(const nlohmann::json& schema, const nlohmann::json& value,
                             const std::string& path = "$");

}  // namespace proxypool::config::test
