#include "loadgen/fixture.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "loadgen/fixture_json.hpp"
#include "loadgen/fixture_state.hpp"
#include "loadgen/whole_file.hpp"
#include "net/tls.hpp"

namespace proxypool::loadgen {
namespace {

Error start_error(std::string message) {
  return Error{ErrorCode::Unavailable, Origin::Internal, std::move(message)};
}

// Two descriptors per connection add up quickly; take what the system allows.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Result<std::shared_ptr<Listener>> listen(asio::io_context& io, const FixtureOptions& options,
                                         std::uint16_t port, Listener::Session session) {
  IoError error;
  const auto address = asio::ip::make_address(options.host, error);
  if (error || !address.is_loopback()) {
    return start_error("the fixture listens on loopback only, not on '" + options.host + "'");
  }
  try {
    return std::make_shared<Listener>(io.get_executor(), Tcp::endpoint(address, port),
                                      std::move(session));
  } catch (const boost::system::system_error& failed) {
    return start_error("cannot listen on " + options.host + ":" + std::to_string(port) + ": " +
                       failed.code().message() + "; choose another port or 0 for a free one");
  }
}

Status open_listeners(asio::io_context& io, const FixtureStatePtr& state) {
  const auto& options = state->options;
  const std::weak_ptr<FixtureState> weak = state;  // listeners are part of the state
  PP_TRY(state->vendor, listen(io, options, options.vendor_port, [weak](StreamPtr stream) {
           return serve_vendor(weak.lock(), std::move(stream));
         }));
  PP_TRY(state->origin, listen(io, options, options.origin_port, [weak](StreamPtr stream) {
           return serve_origin(weak.lock(), std::move(stream));
         }));
  for (unsigned i = 0; i < options.proxies; ++i) {
    auto proxy = std::make_shared<FixtureProxy>();
    proxy->index = i;
    const auto base = options.proxy_port_base;
    const auto port = static_cast<std::uint16_t>(base == 0 ? 0 : base + i);
    PP_TRY(proxy->listener, listen(io, options, port, [weak, i](StreamPtr stream) {
             auto locked = weak.lock();
             auto served = locked->proxies[i];
             return serve_proxy(std::move(locked), std::move(served), std::move(stream));
           }));
    state->proxies.push_back(std::move(proxy));
  }
  return ok();
}

Status apply_faults(FixtureState& state) {
  for (const auto& rule : state.options.faults) {
    if (rule.proxy && *rule.proxy >= state.proxies.size()) {
      return Error{ErrorCode::InvalidArgument, Origin::Client,
                   "a fault for proxy " + std::to_string(*rule.proxy) +
                       ", but there are only 0 to " + std::to_string(state.proxies.size() - 1)};
    }
    for (auto& proxy : state.proxies) {
      if (!rule.proxy || *rule.proxy == proxy->index) proxy->fault = rule.fault;
    }
  }
  return ok();
}

std::string proxy_url(const FixtureState& state, const FixtureProxy& proxy) {
  const auto& options = state.options;
  std::string account;
  if (options.require_auth) {
    account = options.user + ":" + std::string(options.password.reveal()) + "@";
  }
  const Tcp::endpoint endpoint(asio::ip::make_address(options.host), proxy.listener->port());
  return state.proxy_scheme() + ("://" + account) + to_text(endpoint);
}

Status announce(const FixtureState& state) {
  const auto& options = state.options;
  if (!options.upstreams_file.empty()) {
    std::string lines;
    for (const auto& proxy : state.proxies) lines += proxy_url(state, *proxy) + "\n";
    PP_TRY([[maybe_unused]] Unit done, write_whole_file(options.upstreams_file, lines));
  }
  const std::string line = ready_json(state).dump() + "\n";
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
  if (!options.ready_file.empty()) {
    PP_TRY([[maybe_unused]] Unit done, write_whole_file(options.ready_file, line));
  }
  if (::isatty(STDERR_FILENO) == 0) return ok();
  const std::string host = "http://" + options.host + ":";
  std::fprintf(stderr, "\n  vendor API and control  %s%u/\n  origin                  %s%u/\n",
               host.c_str(), state.vendor->port(), host.c_str(), state.origin->port());
  for (const auto& proxy : state.proxies) {
    std::fprintf(stderr, "  proxy %-4u              %s  %s\n", proxy->index,
                 proxy_url(state, *proxy).c_str(), to_text(proxy->fault).c_str());
  }
  std::fprintf(stderr, "\n  Ctrl-C ends it.\n");
  return ok();
}

void stop_all(FixtureState& state) {
  state.vendor->stop();
  state.origin->stop();
  for (auto& proxy : state.proxies) proxy->listener->stop();
}

}  // namespace

Status run_fixture(const FixtureOptions& options) {
  raise_descriptor_limit();
  asio::io_context io(1);
  const auto state = std::make_shared<FixtureState>();
  state->options = options;
  if (!options.tls_cert.empty()) {
    PP_TRY(state->tls, net::TlsContext::server({options.tls_cert, options.tls_key, {}}));
  }
  PP_TRY([[maybe_unused]] Unit listening, open_listeners(io, state));
  PP_TRY([[maybe_unused]] Unit faults, apply_faults(*state));

  asio::signal_set signals(io, SIGINT, SIGTERM);
  signals.async_wait([&io](const IoError& error, int) {
    if (!error) io.stop();
  });
  state->vendor->start();
  state->origin->start();
  for (auto& proxy : state->proxies) proxy->apply();
  PP_TRY([[maybe_unused]] Unit announced, announce(*state));
  io.run();

  stop_all(*state);
  io.restart();
  io.run_for(std::chrono::seconds(1));  // sessions see their connections end
  return ok();
}

}  // namespace proxypool::loadgen
