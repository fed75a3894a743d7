// TLS for a Peer, straight on OpenSSL: a second opinion beside the product's own use of it.
//
// Thread rule: that of the Peer.
#pragma once

#include <string>

#include "support/certificates.hpp"
#include "support/raw_sockets.hpp"

namespace proxypool::testing {

struct PeerTlsOptions {
  int version = 0;            // 0: any; else 12 or 13, and no other
  std::string server_name{};  // a client's SNI, and what the certificate must name; empty: neither
  std::string alpn{};         // one protocol that a client offers
  std::string session{};      // to be resumed, as tls_session() gave it; empty: none
};

// Blocks until the handshake is done; false when it fails.
bool start_tls_client(Peer& peer, const std::string& authority, const PeerTlsOptions& options = {});
bool start_tls_server(Peer& peer, const CertificatePair& pair, const PeerTlsOptions& options = {});

// REQUIRES: started.
std::string tls_version(Peer& peer);  // "TLSv1.3"
std::string tls_alpn(Peer& peer);
std::string tls_server_name(Peer& peer);  // what a client asked for
std::string tls_certificate(Peer& peer);  // the other side's, as PEM
bool tls_resumed(Peer& peer);
// In TLS 1.3 good only once something was read.
std::string tls_session(Peer& peer);
// Asks for new keys in the middle of a TLS 1.2 session; whether the other side agreed.
bool renegotiate(Peer& peer);

// The script behind a TLS server that presents this pair.
FakeProxy::Script over_tls(CertificatePair pair, FakeProxy::Script script,
                           PeerTlsOptions options = {});

}  // namespace proxypool::testing
