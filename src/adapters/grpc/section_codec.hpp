// The entries of a snapshot's smaller sections: credentials, routings, clients, policy.
//
// Proxies are not here: their strings are interned, so that they need the tables of push_encoder
// and push_decoder.
//
// Thread rule: pure functions. decode() may move strings out of the message.
#pragma once

#include "adapters/grpc/wire.hpp"
#include "proxypool/base/result.hpp"
#include "proxypool/domain/cluster/snapshot.hpp"

namespace proxypool::rpc {

void encode(const domain::SnapshotCredential& value, v1::ProxyCredential& wire);
domain::SnapshotCredential decode(v1::ProxyCredential& wire);

void encode(const domain::SnapshotRouting& value, v1::Routing& wire);
Result<domain::SnapshotRouting> decode(v1::Routing& wire);

void encode(const domain::SnapshotClient& value, v1::Client& wire);
Result<domain::SnapshotClient> decode(v1::Client& wire);

void encode(const domain::SnapshotPolicy& value, v1::Policy& wire);
Result<domain::SnapshotPolicy> decode(v1::Policy& wire);

}  // namespace proxypool::rpc
