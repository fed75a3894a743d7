// The callers that a view knows: by name, by what their API key hashes to, and by address; with
// what their secrets must meet.
//
// Thread rule: immutable once made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gateway/dispatch/source_table.hpp"
#include "proxypool/base/secret.hpp"
#include "proxypool/base/stored_hash.hpp"
#include "proxypool/domain/client/user_name.hpp"
#include "proxypool/domain/cluster/snapshot.hpp"

namespace proxypool::gateway {

class ClientTable {
 public:
  struct Entry {
    std::string_view name;             // the table's
    std::uint32_t index = 0;           // in the snapshot
    std::uint64_t tag = 0;             // of the name; the same in every view
    std::optional<StoredHash> secret;  // none, or none that can be read: it has only its sources
    std::string secret_text;           // as it was written
  };

  ClientTable() = default;
  // The tables point into each other.
  ClientTable(const ClientTable&) = delete;
  ClientTable& operator=(const ClientTable&) = delete;
  ClientTable(ClientTable&&) = default;
  ClientTable& operator=(ClientTable&&) = default;
  ~ClientTable() = default;

  explicit ClientTable(const std::vector<domain::SnapshotClient>& clients) {
    for (std::uint32_t i = 0; i < clients.size(); ++i) {
      const domain::SnapshotClient& client = clients[i];
      auto secret = StoredHash::parse(client.gateway_secret);
      if (!secret && client.sources.empty()) continue;
      const std::string& name = client.name.str();
      const auto [place, fresh] = entries_.try_emplace(name);
      if (!fresh) continue;
      Entry& entry = place->second;
      entry.name = place->first;
      entry.index = i;
      entry.tag = std::hash<std::string>{}(name) | 1U;  // 0 is nobody
      if (secret) {
        entry.secret = *std::move(secret);
        entry.secret_text = client.gateway_secret;
        if (entry.secret->kind == StoredHash::Kind::Sha256) {
          keys_.emplace(entry.secret->hash, &entry);
        }
      }
      for (const Cidr& range : client.sources) sources_.add(range, &entry);
    }
  }

  // Null when there is no such client, or it has no secret.
  [[nodiscard]] const Entry* find(std::string_view name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() || !found->second.secret ? nullptr : &found->second;
  }
  // Who shows this user name, which may go on with parameters if `parameters` (R5); what follows
  // the client's name is left to be read. Null when it begins with no client's name.
  [[nodiscard]] const Entry* find_in(std::string_view user, bool parameters,
                                     std::string_view& rest) const {
    const Entry* found = nullptr;
    if (!parameters) {
      found = find(user);
    } else {
      (void)domain::client_in(user, [&](std::string_view name) {
        found = find(name);
        return found != nullptr;
      });
    }
    if (found != nullptr) rest = user.substr(found->name.size());
    return found;
  }
  // Whose API key has this SHA-256; null: nobody's.
  [[nodiscard]] const Entry* find_key(std::string_view sha256) const {
    const auto found = keys_.find(sha256);
    return found == keys_.end() ? nullptr : found->second;
  }
  // Whose address this is; null: nobody's.
  [[nodiscard]] const Entry* find_source(const IpAddress& address) const {
    return sources_.find(address);
  }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  // A digest is as good as chance: its first bytes are a hash.
  struct DigestHash {
    std::size_t operator()(std::string_view digest) const noexcept {
      std::size_t out = 0;
      std::memcpy(&out, digest.data(), std::min(sizeof out, digest.size()));
      return out;
    }
  };
  struct SameDigest {
    bool operator()(std::string_view a, std::string_view b) const noexcept {
      return SecretString::equal_in_constant_time(a, b);
    }
  };

  std::unordered_map<std::string, Entry, Hash, std::equal_to<>> entries_;
  // Keys: what the entries have.
  std::unordered_map<std::string_view, const Entry*, DigestHash, SameDigest> keys_;
  SourceTable<Entry> sources_;
};

}  // namespace proxypool::gateway
