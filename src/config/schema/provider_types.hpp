// The kinds of values that only a provider has: templates, expressions, proxies in text.
//
// Thread rule: pure functions that make immutable values.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/provider_config.hpp"
#include "config/schema/types.hpp"

namespace proxypool::config::schema {

Type<domain::Candidate> proxy();
Type<Template> template_text();
Type<Template> template_url();
Type<MapValue> map_value();
Type<EndpointExpression> endpoint_expression();
// body.a.b[*]
Type<std::vector<std::string>> records_path();

// What is wrong with a key of provider.secrets, query, headers, map.tags; empty: nothing.
std::string complain_about_member_name(const std::string& key);
std::string complain_about_query_key(const std::string& key);
std::string complain_about_header_name(const std::string& key);

}  // namespace proxypool::config::schema
