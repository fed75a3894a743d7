// The table: every key of the file, in the order in which it is documented and read.
//
// Thread rule: immutable; built once.
#pragma once

#include <vector>

#include "config/schema/section.hpp"

namespace proxypool::config::schema {

const SectionPtr& root();

// The parts that root() is made of.
Type<GatewayConfig> gateway();
Type<DistributionConfig> distribution();
Type<CheckConfig> check();
Type<std::vector<UpstreamConfig>> upstreams();
Type<std::vector<RoutingConfig>> routings();
Type<std::vector<ClientConfig>> clients();

// Rows that several sections share.
Type<AuthConfig> auth();  // of an API
Type<AccessConfig> access();
Row allow_cidrs_row();  // of AccessConfig, and of what begins with one
std::vector<Row> basic_check_rows();

}  // namespace proxypool::config::schema
