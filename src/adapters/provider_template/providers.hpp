// The providers of this release, made from an upstream's configuration.
//
//   static   the proxies stand in the configuration; read once, authoritative
//   file     a list on disk, read again when it changes, authoritative
//   http     one GET, answered by lines of text or by JSON
//
// Thread rule: a provider: any thread, one call at a time.
#pragma once

#include <memory>

#include "config/config.hpp"
#include "proxypool/ports/http_caller.hpp"
#include "proxypool/ports/provider_api.hpp"

namespace proxypool::provider_template {

// `http` must outlive the provider.
std::unique_ptr<ports::ProviderApi> make_provider(const config::UpstreamConfig& upstream,
                                                  ports::HttpCaller& http);

}  // namespace proxypool::provider_template
