// The callers that a view knows, by name, with what their passwords must meet.
//
// Thread rule: immutable once made.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "proxypool/base/stored_hash.hpp"
#include "proxypool/domain/client/user_name.hpp"
#include "proxypool/domain/cluster/snapshot.hpp"

namespace proxypool::gateway {

class ClientTable {
 public:
  struct Entry {
    std::string_view name;    // the table's
    std::uint32_t index = 0;  // in the snapshot
    std::uint64_t tag = 0;    // of the name; the same in every view
    StoredHash secret;
    std::string secret_text;  // as it was written
  };

  ClientTable() = default;
  // Clients without a secret, or with one that cannot be read, cannot use the gateway.
  explicit ClientTable(const std::vector<domain::SnapshotClient>& clients) {
    for (std::uint32_t i = 0; i < clients.size(); ++i) {
      auto secret = StoredHash::parse(clients[i].gateway_secret);
      if (!secret) continue;
      const std::string& name = clients[i].name.str();
      // 0 is nobody.
      const std::uint64_t tag = std::hash<std::string>{}(name) | 1U;
      const auto [place, fresh] =
          entries_.emplace(name, Entry{{}, i, tag, *std::move(secret), clients[i].gateway_secret});
      if (fresh) place->second.name = place->first;
    }
  }

  // Null when there is no such client.
  [[nodiscard]] const Entry* find(std::string_view name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second;
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
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, Entry, Hash, std::equal_to<>> entries_;
};

}  // namespace proxypool::gateway
