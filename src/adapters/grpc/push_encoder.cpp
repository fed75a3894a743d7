#include "adapters/grpc/push_encoder.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "adapters/grpc/section_codec.hpp"
#include "proto/controlplane/v1/controlplane.pb.h"
#include "proxypool/base/ip.hpp"
#include "proxypool/base/limits.hpp"

namespace proxypool::rpc {
namespace {

// What wraps a chunk into an event: one tag and at most four bytes of length.
constexpr std::size_t kEventFrameBytes = 5;
constexpr std::size_t kChunkBytesMax = limits::kSnapshotChunkBytesMax - kEventFrameBytes;

// The earliest time in the snapshot, so that no relative time is negative (minus one would read as
// "no end").
StoreTime base_time(const ports::FullPush& push) {
  StoreTime base = push.store_now;
  for (const auto& proxy : push.snapshot->proxies) {
    if (proxy.usable_until) base = std::min(base, *proxy.usable_until);
    if (proxy.expires_at) base = std::min(base, *proxy.expires_at);
  }
  return base;
}

void encode_extend(const ports::ExtendPush& push, v1::SnapshotExtend& wire) {
  encode(push.version, *wire.mutable_version());
  wire.set_ownership_epoch(push.epoch.value());
  wire.set_valid_for_ms(to_wire_ms(push.valid_for));
  wire.set_report_sequence(push.report_sequence);
  wire.set_store_now_ms(to_wire_time(push.store_now));
  for (const ProxyId id : push.revoked) wire.add_revoked_proxy_ids(id.value());
}

}  // namespace

class PushEncoder::Full {
 public:
  explicit Full(ports::FullPush push)
      : push_(std::move(push)), snapshot_(*push_.snapshot), base_(base_time(push_)) {
    for (const auto& upstream : snapshot_.upstreams) {
      upstreams_.emplace(upstream.id.str(), static_cast<std::uint32_t>(upstreams_.size()));
    }
  }

  Result<bool> next(v1::SnapshotEvent& event) {
    event.Clear();
    if (!begun_) {
      begun_ = true;
      begin(*event.mutable_begin());
      return true;
    }
    if (committed_) return false;
    if (!piece_held_ && section_ == Section::End) {
      committed_ = true;
      commit(*event.mutable_commit());
      return true;
    }
    return fill(*event.mutable_chunk());
  }

 private:
  enum class Section : std::uint8_t {
    Policy,
    Upstreams,
    Routings,
    Clients,
    Credentials,
    Proxies,
    End
  };

  void begin(v1::SnapshotBegin& wire) const {
    encode(snapshot_.version, *wire.mutable_version());
    wire.set_ownership_epoch(snapshot_.epoch.value());
    wire.set_base_time_ms(to_wire_time(base_));
    wire.set_upstream_count(static_cast<std::uint32_t>(snapshot_.upstreams.size()));
    wire.set_routing_count(static_cast<std::uint32_t>(snapshot_.routings.size()));
    wire.set_client_count(static_cast<std::uint32_t>(snapshot_.clients.size()));
    wire.set_credential_count(static_cast<std::uint32_t>(snapshot_.credentials.size()));
    wire.set_proxy_count(static_cast<std::uint32_t>(snapshot_.proxies.size()));
    wire.set_intentional_loss(snapshot_.intentional_loss);
  }

  void commit(v1::SnapshotCommit& wire) const {
    wire.set_digest(to_wire_digest(push_.digest));
    wire.set_valid_for_ms(to_wire_ms(push_.valid_for));
    wire.set_report_sequence(push_.report_sequence);
    wire.set_store_now_ms(to_wire_time(push_.store_now));
  }

  // Pieces until the next one does not fit.
  Result<bool> fill(v1::SnapshotChunk& chunk) {
    std::size_t bytes = 0;
    while (true) {
      if (!piece_held_) {
        PP_TRY(piece_held_, next_piece());
        if (!piece_held_) return true;
      }
      const std::size_t more = piece_.ByteSizeLong();
      if (more > kChunkBytesMax) return too_large(more);
      if (bytes + more > kChunkBytesMax) return true;
      bytes += more;
      chunk.MergeFrom(piece_);
      piece_held_ = false;
    }
  }

  // The next entry of any section as a chunk of its own; false at the end.
  Result<bool> next_piece() {
    piece_.Clear();
    while (section_ != Section::End && index_ == size_of(section_)) {
      section_ = static_cast<Section>(static_cast<int>(section_) + 1);
      index_ = 0;
    }
    if (section_ == Section::End) return false;
    const std::size_t i = index_++;
    switch (section_) {
      case Section::Policy:
        encode(snapshot_.policy, *piece_.mutable_policy());
        break;
      case Section::Upstreams: {
        auto* upstream = piece_.add_upstreams();
        upstream->set_id(snapshot_.upstreams[i].id.str());
        upstream->set_enabled(snapshot_.upstreams[i].enabled);
        break;
      }
      case Section::Routings:
        encode(snapshot_.routings[i], *piece_.add_routings());
        break;
      case Section::Clients:
        encode(snapshot_.clients[i], *piece_.add_clients());
        break;
      case Section::Credentials:
        encode(snapshot_.credentials[i], *piece_.add_credentials());
        break;
      case Section::Proxies: {
        PP_TRY([[maybe_unused]] Unit done, encode_proxy(snapshot_.proxies[i]));
        break;
      }
      case Section::End:
        break;
    }
    return true;
  }

  [[nodiscard]] std::size_t size_of(Section section) const noexcept {
    switch (section) {
      case Section::Policy:
        return 1;
      case Section::Upstreams:
        return snapshot_.upstreams.size();
      case Section::Routings:
        return snapshot_.routings.size();
      case Section::Clients:
        return snapshot_.clients.size();
      case Section::Credentials:
        return snapshot_.credentials.size();
      case Section::Proxies:
        return snapshot_.proxies.size();
      case Section::End:
        break;
    }
    return 0;
  }

  Status encode_proxy(const domain::SnapshotProxy& proxy) {
    auto& wire = *piece_.add_proxies();
    const auto upstream = upstreams_.find(proxy.upstream.str());
    if (upstream == upstreams_.end()) return misuse(proxy, "names an upstream that is not in it");
    if (proxy.credential > snapshot_.credentials.size()) {
      return misuse(proxy, "names a credential that is not in it");
    }
    wire.set_id(proxy.id.value());
    wire.set_upstream(upstream->second);
    wire.set_scheme(static_cast<v1::Scheme>(to_wire(proxy.endpoint.scheme)));
    encode_host(proxy.endpoint.host, wire);
    wire.set_port(proxy.endpoint.port);
    wire.set_credential(proxy.credential);
    wire.set_max_concurrency(proxy.max_concurrency);
    wire.set_suspect(proxy.suspect);
    wire.set_lease_epoch(proxy.lease_epoch.value());
    wire.set_usable_until_ms(relative(proxy.usable_until));
    wire.set_expires_at_ms(relative(proxy.expires_at));
    wire.set_country(intern(proxy.attributes.country));
    wire.set_region(intern(proxy.attributes.region));
    wire.set_city(intern(proxy.attributes.city));
    wire.set_carrier(intern(proxy.attributes.carrier));
    for (const auto& [key, value] : proxy.tags) {
      wire.add_tags(intern(key));
      wire.add_tags(intern(value));
    }
    return ok();
  }

  // As an address only where that reads back as the same text.
  void encode_host(const std::string& host, v1::Proxy& wire) {
    const auto address = IpAddress::parse(host);
    if (address && address->is_v4()) {
      wire.set_ipv4(address->low32());
    } else if (address && address->str() == host) {
      wire.set_ipv6(address->bytes().data(), address->bytes().size());
    } else {
      wire.set_name(intern(host));
    }
  }

  [[nodiscard]] std::int64_t relative(const std::optional<StoreTime>& time) const noexcept {
    return time ? (*time - base_).count() + 1 : 0;
  }

  // 0 is the empty string; a new one travels in the piece that first needs it.
  std::uint32_t intern(const std::string& text) {
    if (text.empty()) return 0;
    const auto next = static_cast<std::uint32_t>(strings_.size() + 1);
    const auto [entry, fresh] = strings_.try_emplace(text, next);
    if (fresh) piece_.add_strings(text);
    return entry->second;
  }

  Error too_large(std::size_t bytes) const {
    static constexpr std::string_view kNames[] = {"policy",     "upstream", "routing", "client",
                                                  "credential", "proxy",    ""};
    return refused("the snapshot's " + std::string(kNames[static_cast<std::size_t>(section_)]) +
                   " " + std::to_string(index_) + " takes " + std::to_string(bytes) +
                   " bytes encoded, at most " + std::to_string(kChunkBytesMax));
  }

  static Error misuse(const domain::SnapshotProxy& proxy, std::string_view what) {
    return {ErrorCode::Internal, Origin::Internal,
            "proxy " + to_string(proxy.id) + " of a snapshot " + std::string(what)};
  }

  ports::FullPush push_;
  const domain::WorkerSnapshot& snapshot_;  // held by push_; the views below point into it
  StoreTime base_;
  std::unordered_map<std::string_view, std::uint32_t> upstreams_;
  std::unordered_map<std::string_view, std::uint32_t> strings_;
  v1::SnapshotChunk piece_;
  bool piece_held_ = false;
  bool begun_ = false;
  bool committed_ = false;
  Section section_ = Section::Policy;
  std::size_t index_ = 0;  // of the next entry in section_
};

PushEncoder::PushEncoder(ports::Push push) {
  if (auto* full = std::get_if<ports::FullPush>(&push)) {
    PP_ASSERT(full->snapshot != nullptr);
    full_ = std::make_unique<Full>(std::move(*full));
  } else {
    extend_ = std::move(std::get<ports::ExtendPush>(push));
  }
}
PushEncoder::PushEncoder(PushEncoder&&) noexcept = default;
PushEncoder& PushEncoder::operator=(PushEncoder&&) noexcept = default;
PushEncoder::~PushEncoder() = default;

Result<bool> PushEncoder::next(v1::SnapshotEvent& event) {
  if (full_) return full_->next(event);
  if (!extend_) return false;
  event.Clear();
  encode_extend(*extend_, *event.mutable_extend());
  extend_.reset();
  return true;
}

}  // namespace proxypool::rpc
