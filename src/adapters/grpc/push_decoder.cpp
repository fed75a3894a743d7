#include "adapters/grpc/push_decoder.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "adapters/grpc/section_codec.hpp"
#include "proto/controlplane/v1/controlplane.pb.h"
#include "proxypool/base/ip.hpp"
#include "proxypool/base/limits.hpp"

namespace proxypool::rpc {
namespace {

Result<ports::ExtendPush> decode_extend(const v1::SnapshotExtend& wire) {
  const auto revoked = static_cast<std::size_t>(wire.revoked_proxy_ids_size());
  PP_TRY([[maybe_unused]] Unit valid,
         check_count(revoked, limits::kProxiesPerWorkerMax, "revoked proxies"));
  if (!wire.has_version()) return corrupt("an extension without a version");
  ports::ExtendPush push;
  push.version = decode(wire.version());
  push.epoch = Epoch(wire.ownership_epoch());
  push.store_now = from_wire_time(wire.store_now_ms());
  push.valid_for = milliseconds(wire.valid_for_ms());
  push.report_sequence = wire.report_sequence();
  push.revoked.reserve(revoked);
  for (const auto id : wire.revoked_proxy_ids()) push.revoked.emplace_back(id);
  return push;
}

Status check_counts(const v1::SnapshotBegin& begin) {
  return first_error(
      {check_count(begin.upstream_count(), kSectionEntriesMax, "upstreams"),
       check_count(begin.routing_count(), kSectionEntriesMax, "routings"),
       check_count(begin.client_count(), kSectionEntriesMax, "clients"),
       check_count(begin.credential_count(), limits::kProxiesPerWorkerMax, "credentials"),
       check_count(begin.proxy_count(), limits::kProxiesPerWorkerMax, "proxies")});
}

}  // namespace

class PushDecoder::Building {
 public:
  // REQUIRES: the counts of `begin` were checked.
  explicit Building(const v1::SnapshotBegin& begin)
      : base_ms_(static_cast<std::int64_t>(begin.base_time_ms())),
        upstreams_(begin.upstream_count()),
        routings_(begin.routing_count()),
        clients_(begin.client_count()),
        credentials_(begin.credential_count()),
        proxies_(begin.proxy_count()) {
    snapshot_->version = decode(begin.version());
    snapshot_->epoch = Epoch(begin.ownership_epoch());
    snapshot_->intentional_loss = begin.intentional_loss();
    snapshot_->credentials.reserve(credentials_);
    snapshot_->proxies.reserve(proxies_);
  }

  Status add(v1::SnapshotChunk& chunk) {
    const std::size_t bytes = chunk.ByteSizeLong();
    bytes_ += bytes;
    PP_TRY([[maybe_unused]] Unit valid,
           first_error({check_count(bytes, limits::kSnapshotChunkBytesMax, "bytes in a chunk"),
                        check_count(bytes_, kSnapshotBytesMax, "bytes in a snapshot")}));
    if (chunk.removed_proxy_ids_size() > 0) return corrupt("removed ids in a full snapshot");
    for (auto& text : *chunk.mutable_strings()) strings_.push_back(std::move(text));
    if (chunk.has_policy()) {
      if (policy_seen_) return corrupt("a second policy");
      policy_seen_ = true;
      PP_TRY(snapshot_->policy, decode(*chunk.mutable_policy()));
    }
    PP_TRY([[maybe_unused]] Unit small, add_small_sections(chunk));
    if (snapshot_->proxies.size() + static_cast<std::size_t>(chunk.proxies_size()) > proxies_) {
      return corrupt("more proxies than announced");
    }
    for (const auto& wire : chunk.proxies()) {
      PP_TRY([[maybe_unused]] Unit proxy, add_proxy(wire));
    }
    return ok();
  }

  Result<ports::FullPush> commit(const v1::SnapshotCommit& wire) {
    PP_TRY([[maybe_unused]] Unit complete,
           first_error({require(snapshot_->upstreams.size(), upstreams_, "upstreams"),
                        require(snapshot_->routings.size(), routings_, "routings"),
                        require(snapshot_->clients.size(), clients_, "clients"),
                        require(snapshot_->credentials.size(), credentials_, "credentials"),
                        require(snapshot_->proxies.size(), proxies_, "proxies")}));
    if (!policy_seen_) return corrupt("a snapshot without a policy");
    ports::FullPush push;
    PP_TRY(push.digest, from_wire_digest(wire.digest()));
    push.store_now = from_wire_time(wire.store_now_ms());
    push.valid_for = milliseconds(wire.valid_for_ms());
    push.report_sequence = wire.report_sequence();
    push.snapshot = std::move(snapshot_);
    return push;
  }

 private:
  static Status require(std::size_t arrived, std::size_t announced, std::string_view what) {
    if (arrived == announced) return ok();
    return corrupt(std::to_string(arrived) + " " + std::string(what) + " arrived, " +
                   std::to_string(announced) + " were announced");
  }

  Status add_small_sections(v1::SnapshotChunk& chunk) {
    for (auto& upstream : *chunk.mutable_upstreams()) {
      if (upstream.id().empty()) return corrupt("an upstream without an id");
      snapshot_->upstreams.push_back(
          {UpstreamId(std::move(*upstream.mutable_id())), upstream.enabled()});
    }
    for (auto& wire : *chunk.mutable_routings()) {
      PP_TRY(auto routing, decode(wire));
      snapshot_->routings.push_back(std::move(routing));
    }
    for (auto& wire : *chunk.mutable_clients()) {
      PP_TRY(auto client, decode(wire));
      snapshot_->clients.push_back(std::move(client));
    }
    for (auto& wire : *chunk.mutable_credentials()) {
      snapshot_->credentials.push_back(decode(wire));
    }
    if (snapshot_->upstreams.size() > upstreams_ || snapshot_->routings.size() > routings_ ||
        snapshot_->clients.size() > clients_ || snapshot_->credentials.size() > credentials_) {
      return corrupt("more entries than announced");
    }
    return ok();
  }

  Status add_proxy(const v1::Proxy& wire) {
    if (wire.upstream() >= snapshot_->upstreams.size()) return bad_index(wire, "upstream");
    if (wire.credential() > snapshot_->credentials.size()) return bad_index(wire, "credential");
    domain::SnapshotProxy proxy;
    proxy.id = ProxyId(wire.id());
    proxy.upstream = snapshot_->upstreams[wire.upstream()].id;
    PP_TRY(proxy.endpoint.scheme, from_wire<domain::Scheme>(wire.scheme()));
    PP_TRY(proxy.endpoint.host, host(wire));
    PP_TRY(proxy.endpoint.port, to_port(wire.port()));
    proxy.credential = wire.credential();
    proxy.max_concurrency = wire.max_concurrency();
    proxy.suspect = wire.suspect();
    proxy.lease_epoch = Epoch(wire.lease_epoch());
    PP_TRY(proxy.usable_until, absolute(wire.usable_until_ms()));
    PP_TRY(proxy.expires_at, absolute(wire.expires_at_ms()));
    PP_TRY(proxy.attributes.country, string(wire.country()));
    PP_TRY(proxy.attributes.region, string(wire.region()));
    PP_TRY(proxy.attributes.city, string(wire.city()));
    PP_TRY(proxy.attributes.carrier, string(wire.carrier()));
    if (wire.tags_size() % 2 != 0) return bad_index(wire, "tag");
    for (int i = 0; i < wire.tags_size(); i += 2) {
      PP_TRY(auto key, string(wire.tags(i)));
      PP_TRY(auto value, string(wire.tags(i + 1)));
      proxy.tags.emplace(std::move(key), std::move(value));
    }
    snapshot_->proxies.push_back(std::move(proxy));
    return ok();
  }

  Result<std::string> host(const v1::Proxy& wire) const {
    switch (wire.host_case()) {
      case v1::Proxy::kIpv4:
        return IpAddress::v4(wire.ipv4()).str();
      case v1::Proxy::kIpv6: {
        IpAddress::Bytes bytes{};
        if (wire.ipv6().size() != bytes.size()) return corrupt("an IPv6 address of wrong length");
        std::transform(wire.ipv6().begin(), wire.ipv6().end(), bytes.begin(),
                       [](char c) { return static_cast<std::uint8_t>(c); });
        return IpAddress::v6(bytes).str();
      }
      case v1::Proxy::kName:
        if (wire.name() != 0) return string(wire.name());
        break;
      case v1::Proxy::HOST_NOT_SET:
        break;
    }
    return corrupt("proxy " + to_hex(wire.id()) + " has no host");
  }

  Result<std::string> string(std::uint32_t index) const {
    if (index >= strings_.size()) return corrupt("string index " + std::to_string(index));
    return strings_[index];
  }

  Result<std::optional<StoreTime>> absolute(std::int64_t relative) const {
    if (relative == 0) return std::optional<StoreTime>();
    std::int64_t ms = 0;
    if (__builtin_add_overflow(base_ms_, relative - 1, &ms)) return corrupt("time out of range");
    return std::optional(StoreTime(milliseconds(ms)));
  }

  static Error bad_index(const v1::Proxy& wire, std::string_view what) {
    return corrupt("proxy " + to_hex(wire.id()) + ": " + std::string(what) + " out of range");
  }

  std::shared_ptr<domain::WorkerSnapshot> snapshot_ = std::make_shared<domain::WorkerSnapshot>();
  std::vector<std::string> strings_ = {""};
  std::int64_t base_ms_;
  std::size_t upstreams_;  // announced
  std::size_t routings_;
  std::size_t clients_;
  std::size_t credentials_;
  std::size_t proxies_;
  std::size_t bytes_ = 0;
  bool policy_seen_ = false;
};

PushDecoder::PushDecoder() = default;
PushDecoder::PushDecoder(PushDecoder&&) noexcept = default;
PushDecoder& PushDecoder::operator=(PushDecoder&&) noexcept = default;
PushDecoder::~PushDecoder() = default;

Result<std::optional<ports::Push>> PushDecoder::feed(v1::SnapshotEvent& event) {
  switch (event.event_case()) {
    case v1::SnapshotEvent::kBegin: {
      building_.reset();
      if (!event.begin().has_version()) return corrupt("a snapshot without a version");
      PP_TRY([[maybe_unused]] Unit valid, check_counts(event.begin()));
      building_ = std::make_unique<Building>(event.begin());
      return std::optional<ports::Push>();
    }
    case v1::SnapshotEvent::kChunk: {
      if (!building_) return corrupt("a chunk without a begin");
      PP_TRY([[maybe_unused]] Unit added, building_->add(*event.mutable_chunk()));
      return std::optional<ports::Push>();
    }
    case v1::SnapshotEvent::kCommit: {
      if (!building_) return corrupt("a commit without a begin");
      PP_TRY(auto push, building_->commit(event.commit()));
      building_.reset();
      return std::optional<ports::Push>(std::move(push));
    }
    case v1::SnapshotEvent::kExtend: {
      PP_TRY(auto push, decode_extend(event.extend()));
      return std::optional<ports::Push>(std::move(push));
    }
    case v1::SnapshotEvent::kDeltaBegin:
      return refused("a delta was not asked for");
    case v1::SnapshotEvent::EVENT_NOT_SET:
      break;
  }
  return refused("an event of an unknown kind");
}

}  // namespace proxypool::rpc
