// What is generated from the table and committed: a test compares, `config_docs` writes.
//
// Thread rule: pure functions.
#pragma once

#include <string>

namespace proxypool::config {

std::string configuration_markdown();  // docs/configuration.md
std::string json_schema();             // configs/config.schema.json
std::string embedded_yaml();           // configs/embedded.yaml

}  // namespace proxypool::config
