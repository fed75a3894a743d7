#include "proxy-controller/reloading.hpp"

#include <algorithm>
#include <utility>

namespace proxypool {
namespace {

std::vector<std::string> local_names(const IpAddress& address) {
  return {"localhost", "127.0.0.1", "[::1]", address.str()};
}

http::Guard distribution_guard(const config::Config& config, const http::GuardNeeds& needs) {
  std::vector<http::Guard> guards{http::allow_sources(config.distribution.access.allow_cidrs)};
  if (config.distribution.auth.mode == config::AuthMode::UsernamePassword) {
    std::vector<http::RealmClient> clients;
    for (const config::ClientConfig& client : config.clients) {
      if (!client.distribution_secret) continue;
      const auto plain = client.distribution_secret->value.reveal();
      auto stored = client.distribution_secret->hashed
                        ? StoredHash::parse(plain)
                        : Result<StoredHash>(needs.crypto.hash_api_key(plain));
      if (stored) clients.push_back({client.name.str(), *std::move(stored)});
    }
    guards.push_back(http::require_client("distribution", std::move(clients), needs));
  } else {
    const IpAddress& address = config.distribution.listen.address;
    const bool here = classify(address) == IpClass::Loopback;
    guards.push_back(
        http::require_local_page(here ? local_names(address) : std::vector<std::string>{}));
  }
  return http::all_of(std::move(guards));
}

http::Guard admin_guard(const config::Config& config, http::Role role,
                        const http::GuardNeeds& needs) {
  const config::AdminConfig& admin = config.admin;
  std::vector<http::Guard> guards{http::allow_sources(admin.access.allow_cidrs)};
  if (admin.has_token()) {
    std::vector<http::RealmToken> tokens;
    const auto add = [&](const char* name, const auto& token, http::Role may) {
      if (token) tokens.push_back({name, *token, may});
    };
    add("readToken", admin.read_token, http::Role::Read);
    add("writeToken", admin.write_token, http::Role::Write);
    add("adminToken", admin.admin_token, http::Role::Admin);
    guards.push_back(http::require_token("admin", std::move(tokens), role, needs));
  } else {
    guards.push_back(http::require_local_page(local_names(admin.listen.address)));
    if (role != http::Role::Read) guards.push_back(http::require_requested_by());
  }
  return http::all_of(std::move(guards));
}

}  // namespace

config::LoadResult ConfigSource::load(controller::LoadFor purpose) {
  const bool use = purpose == controller::LoadFor::Use;
  if (use) watch_.with([](runtime::FileWatch& watch) { watch.settle(); });
  config::LoadResult loaded = config::load_configuration(line_, config::process_environment);
  if (use) watch_.with([&](runtime::FileWatch& watch) { watch.watch(loaded.files); });
  return loaded;
}

ApiGuards::ApiGuards(const config::Config& config, const http::GuardNeeds& needs)
    : needs_(needs),
      distribution_(distribution_guard(config, needs)),
      read_(admin_guard(config, http::Role::Read, needs)),
      write_(admin_guard(config, http::Role::Write, needs)),
      admin_(admin_guard(config, http::Role::Admin, needs)) {}

void ApiGuards::configure(const config::Config& config, const config::Diff& changed) {
  const auto touched = [&](std::initializer_list<const char*> sections) {
    return std::any_of(changed.sections.begin(), changed.sections.end(), [&](const auto& name) {
      return std::find(sections.begin(), sections.end(), name) != sections.end();
    });
  };
  // Otherwise those who have proved who they are need not do so again.
  if (touched({"distribution", "clients"})) distribution_.set(distribution_guard(config, needs_));
  if (!touched({"admin"})) return;
  read_.set(admin_guard(config, http::Role::Read, needs_));
  write_.set(admin_guard(config, http::Role::Write, needs_));
  admin_.set(admin_guard(config, http::Role::Admin, needs_));
}

void Services::reconcile() {
  std::vector<std::unique_ptr<runtime::Stepper>> ended;
  auto steps = controller_.steps();
  state_.with([&](State& state) {
    if (state.stopped) return;
    for (auto it = state.steppers.begin(); it != state.steppers.end();) {
      const bool wanted = std::any_of(steps.begin(), steps.end(),
                                      [&](const auto& step) { return step.name == it->first; });
      if (!wanted) ended.push_back(std::move(it->second));
      it = wanted ? std::next(it) : state.steppers.erase(it);
    }
    for (controller::NamedStep& step : steps) {
      if (state.steppers.contains(step.name)) continue;
      auto stepper = std::make_unique<runtime::Stepper>(step.name, step.step);
      if (step.on_work) step.on_work([raw = stepper.get()] { raw->wake(); });
      state.steppers.emplace(step.name, std::move(stepper));
    }
  });
  for (auto& stepper : ended) stepper->stop();
}

void Services::stop() {
  auto steppers = state_.with([](State& state) {
    state.stopped = true;
    return std::exchange(state.steppers, {});
  });
  for (auto& [name, stepper] : steppers) stepper->stop();
}

void ConfigWatcher::start() {
  auto stepper =
      std::make_shared<runtime::Stepper>("config", [this](TimePoint now) { return step(now); });
  stepper_.with([&](auto& current) { current = std::move(stepper); });
}

void ConfigWatcher::stop() {
  const auto stepper = stepper_.with([](auto& current) { return std::exchange(current, nullptr); });
  if (stepper) stepper->stop();
}

void ConfigWatcher::ask() {
  asked_ = true;
  wake();
}

void ConfigWatcher::wake() {
  const auto stepper = stepper_.with([](const auto& current) { return current; });
  if (stepper) stepper->wake();
}

TimePoint ConfigWatcher::step(TimePoint now) {
  const nanoseconds every = controller_.active()->config->controller.watch;
  if (asked_.exchange(false)) {
    static_cast<void>(reload_.reload_config("SIGHUP"));
  } else if (every > nanoseconds{0} && source_.changed()) {
    static_cast<void>(reload_.reload_config("watch of the file"));
  }
  const nanoseconds next = controller_.active()->config->controller.watch;
  return next > nanoseconds{0} ? now + next : kNever;
}

}  // namespace proxypool
