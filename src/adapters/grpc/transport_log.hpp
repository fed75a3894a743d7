// gRPC writes what it meets to standard error by itself, in its own form, between our log lines.
//
// Everything of it that matters arrives as a status, which the caller logs once; so its own log is
// switched off.
//
// Thread rule: any thread.
#pragma once

namespace proxypool::rpc {

void silence_transport_log();

}  // namespace proxypool::rpc
