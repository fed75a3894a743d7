#include "adapters/grpc/section_codec.hpp"

#include "proto/controlplane/v1/controlplane.pb.h"

namespace proxypool::rpc {
namespace {

template <class Field>
void add_all(const std::vector<std::string>& values, Field& field) {
  for (const std::string& value : values) *field.Add() = value;
}

template <class Field>
std::vector<std::string> take_all(Field& field) {
  std::vector<std::string> values;
  values.reserve(static_cast<std::size_t>(field.size()));
  for (std::string& value : field) values.push_back(std::move(value));
  return values;
}

template <class Field>
Result<std::vector<std::uint16_t>> to_ports(const Field& field) {
  std::vector<std::uint16_t> ports;
  for (const std::uint32_t value : field) {
    PP_TRY(const std::uint16_t port, to_port(value));
    ports.push_back(port);
  }
  return ports;
}

template <class Field>
Result<std::vector<Cidr>> to_cidrs(const Field& field) {
  std::vector<Cidr> ranges;
  for (const std::string& text : field) {
    const auto range = Cidr::parse(text);
    if (!range) return corrupt("'" + text + "' is no address range");
    ranges.push_back(*range);
  }
  return ranges;
}

void encode(const domain::RoutingMatch& value, v1::RoutingMatch& wire) {
  add_all(value.hosts, *wire.mutable_hosts());
  add_all(value.host_regex, *wire.mutable_host_regex());
  for (const auto port : value.ports) wire.add_ports(port);
  for (const auto kind : value.kinds) {
    wire.add_kinds(static_cast<v1::RequestKind>(to_wire(kind)));
  }
  add_all(value.methods, *wire.mutable_methods());
  add_all(value.path_prefixes, *wire.mutable_path_prefixes());
  add_all(value.clients, *wire.mutable_clients());
  for (const auto& [key, text] : value.tags) {
    auto* label = wire.add_tags();
    label->set_key(key);
    label->set_value(text);
  }
}

Result<domain::RoutingMatch> decode(v1::RoutingMatch& wire) {
  domain::RoutingMatch value;
  value.hosts = take_all(*wire.mutable_hosts());
  value.host_regex = take_all(*wire.mutable_host_regex());
  PP_TRY(value.ports, to_ports(wire.ports()));
  for (const int kind : wire.kinds()) {
    PP_TRY(const auto known, from_wire<domain::RequestKind>(kind));
    value.kinds.push_back(known);
  }
  value.methods = take_all(*wire.mutable_methods());
  value.path_prefixes = take_all(*wire.mutable_path_prefixes());
  value.clients = take_all(*wire.mutable_clients());
  for (const auto& label : wire.tags()) value.tags.emplace(label.key(), label.value());
  return value;
}

}  // namespace

void encode(const domain::SnapshotCredential& value, v1::ProxyCredential& wire) {
  wire.set_username(value.username);
  wire.set_password(std::string(value.password.reveal()));
  wire.set_version(value.version.str());
}

domain::SnapshotCredential decode(v1::ProxyCredential& wire) {
  return {std::move(*wire.mutable_username()), SecretString(std::move(*wire.mutable_password())),
          domain::CredentialVersion(std::move(*wire.mutable_version()))};
}

void encode(const domain::SnapshotRouting& value, v1::Routing& wire) {
  wire.set_id(value.id.str());
  wire.set_enabled(value.enabled);
  encode(value.match, *wire.mutable_match());
  wire.set_strategy(static_cast<v1::Strategy>(to_wire(value.strategy)));
  wire.set_balancer(static_cast<v1::Balancer>(to_wire(value.balancer)));
  for (const auto& upstream : value.upstreams) {
    auto* out = wire.add_upstreams();
    out->set_id(upstream.id.str());
    out->set_weight(upstream.weight);
  }
  if (value.current) wire.set_current(value.current->str());
  wire.set_on_unavailable(static_cast<v1::OnUnavailable>(to_wire(value.on_unavailable)));
  wire.set_wait_timeout_ms(to_wire_ms(value.wait_timeout));
  wire.set_max_waiters(value.waiters_max);
  wire.set_max_attempts(value.attempts_max);
  wire.set_max_in_flight(value.in_flight_max);
}

Result<domain::SnapshotRouting> decode(v1::Routing& wire) {
  if (wire.id().empty()) return corrupt("a routing without an id");
  domain::SnapshotRouting value;
  value.id = RoutingId(std::move(*wire.mutable_id()));
  value.enabled = wire.enabled();
  PP_TRY(value.match, decode(*wire.mutable_match()));
  PP_TRY(value.strategy, from_wire<domain::Strategy>(wire.strategy()));
  PP_TRY(value.balancer, from_wire<domain::Balancer>(wire.balancer()));
  for (auto& upstream : *wire.mutable_upstreams()) {
    value.upstreams.push_back({UpstreamId(std::move(*upstream.mutable_id())), upstream.weight()});
  }
  if (!wire.current().empty()) value.current = UpstreamId(std::move(*wire.mutable_current()));
  PP_TRY(value.on_unavailable, from_wire<domain::OnUnavailable>(wire.on_unavailable()));
  value.wait_timeout = milliseconds(wire.wait_timeout_ms());
  value.waiters_max = wire.max_waiters();
  value.attempts_max = wire.max_attempts();
  value.in_flight_max = wire.max_in_flight();
  return value;
}

void encode(const domain::SnapshotClient& value, v1::Client& wire) {
  wire.set_name(value.name.str());
  add_all(value.groups, *wire.mutable_groups());
  wire.set_gateway_secret(value.gateway_secret);
  wire.set_rate_per_second(value.rate_per_second);
  wire.set_burst(value.burst);
  wire.set_max_in_flight(value.in_flight_max);
  for (const Cidr& range : value.sources) wire.add_sources(range.str());
}

Result<domain::SnapshotClient> decode(v1::Client& wire) {
  if (wire.name().empty()) return corrupt("a client without a name");
  domain::SnapshotClient value;
  value.name = ClientName(std::move(*wire.mutable_name()));
  value.groups = take_all(*wire.mutable_groups());
  value.gateway_secret = std::move(*wire.mutable_gateway_secret());
  value.rate_per_second = wire.rate_per_second();
  value.burst = wire.burst();
  value.in_flight_max = wire.max_in_flight();
  PP_TRY(value.sources, to_cidrs(wire.sources()));
  return value;
}

void encode(const domain::SnapshotPolicy& value, v1::Policy& wire) {
  wire.set_use_suspect(static_cast<v1::UseSuspect>(to_wire(value.use_suspect)));
  wire.set_unsafe_before_send(value.unsafe_before_send);
  for (const Cidr& range : value.deny_cidrs) wire.add_deny_cidrs(range.str());
  for (const Cidr& range : value.allow_cidrs) wire.add_allow_cidrs(range.str());
  add_all(value.deny_hosts, *wire.mutable_deny_hosts());
  for (const auto port : value.allow_ports) wire.add_allow_ports(port);
  wire.set_username_parameters(value.username_parameters);
  wire.set_session_header(value.session_header);
  wire.set_session_idle_ms(to_wire_ms(value.session_idle));
  wire.set_resolve_before_proxy(value.resolve_before_proxy);
}

Result<domain::SnapshotPolicy> decode(v1::Policy& wire) {
  domain::SnapshotPolicy value;
  PP_TRY(value.use_suspect, from_wire<domain::UseSuspect>(wire.use_suspect()));
  value.unsafe_before_send = wire.unsafe_before_send();
  PP_TRY(value.deny_cidrs, to_cidrs(wire.deny_cidrs()));
  PP_TRY(value.allow_cidrs, to_cidrs(wire.allow_cidrs()));
  value.deny_hosts = take_all(*wire.mutable_deny_hosts());
  PP_TRY(value.allow_ports, to_ports(wire.allow_ports()));
  value.username_parameters = wire.username_parameters();
  value.session_header = std::move(*wire.mutable_session_header());
  value.session_idle = milliseconds(wire.session_idle_ms());
  value.resolve_before_proxy = wire.resolve_before_proxy();
  return value;
}

}  // namespace proxypool::rpc
