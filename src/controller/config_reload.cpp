#include "controller/config_reload.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "proxypool/base/text.hpp"

namespace proxypool::controller {

namespace {

constexpr milliseconds kStoreBudget{2'000};
constexpr std::size_t kErrorLinesMax = ports::row(ports::Event::ConfigRejected).per_second_max;

ports::ConfigProblem problem_of(const std::string& file, const config::Problem& problem) {
  std::string place = file;
  if (problem.mark.line > 0) {
    place += ":" + std::to_string(problem.mark.line) + ":" + std::to_string(problem.mark.column);
  }
  return {problem.path,
          place + ": " + problem.message + (problem.hint.empty() ? "" : " (" + problem.hint + ")")};
}

std::vector<ports::ConfigProblem> problems_of(const std::string& file,
                                              const std::vector<config::Problem>& problems) {
  std::vector<ports::ConfigProblem> out;
  for (const config::Problem& problem : problems) out.push_back(problem_of(file, problem));
  return out;
}

ports::ListChange change_of(const config::Changes& changes) {
  return {changes.added, changes.removed, changes.changed};
}

std::vector<ports::RestartNeeded> restarts_of(const config::Diff& diff) {
  std::vector<ports::RestartNeeded> out;
  for (const config::RestartKey& key : diff.restart) out.push_back({key.key, key.program});
  return out;
}

// "upstreams +new -old ~other, check": one line for the log.
std::string summary_of(const ports::ConfigAnswer& answer) {
  std::string out;
  for (const std::string& section : answer.sections) {
    out += (out.empty() ? "" : ", ") + section;
    const auto* change = section == "upstreams"  ? &answer.upstreams
                         : section == "routings" ? &answer.routings
                         : section == "clients"  ? &answer.clients
                                                 : nullptr;
    if (!change) continue;
    for (const auto& name : change->added) out += " +" + name;
    for (const auto& name : change->removed) out += " -" + name;
    for (const auto& name : change->changed) out += " ~" + name;
  }
  return out.empty() ? "nothing" : out;
}

std::string text_of(const ports::ConfigProblem& problem) {
  return (problem.path.empty() ? "" : problem.path + ": ") + problem.message;
}

}  // namespace

ConfigReload::ConfigReload(std::string file, ReloadDeps deps)
    : file_(std::move(file)), deps_(std::move(deps)), started_with_(deps_.controller.active()) {
  const std::string fingerprint = fingerprint_of(*started_with_->config);
  state_.with([&](State& state) { state.fingerprint = fingerprint; });
  static_cast<void>(activate(fingerprint));
}

std::string ConfigReload::digest_of(std::string_view what, std::string_view text) const {
  std::string message(what);
  message += '\0';
  message += text;
  return hex(ports::as_view(deps_.crypto.hmac_sha256(deps_.identity_key.reveal(), message)));
}

std::string ConfigReload::fingerprint_of(const config::Config& config) const {
  return digest_of("config", config::canonical_json(config, [this](const SecretString& secret) {
                     return digest_of("secret", secret.reveal());
                   }));
}

config::Diff ConfigReload::diff_of(const config::Config& a, const config::Config& b) const {
  return config::diff(
      a, b, [this](const SecretString& secret) { return digest_of("secret", secret.reveal()); });
}

ConfigReload::Attempt ConfigReload::attempt(LoadFor purpose) {
  Attempt attempt;
  const ActiveConfigPtr now = deps_.controller.active();
  config::LoadResult loaded = deps_.load(purpose);
  attempt.answer.warnings = problems_of(file_, loaded.warnings);
  attempt.answer.errors = problems_of(file_, loaded.errors);
  if (!loaded.config) return attempt;
  auto config = std::make_shared<const config::Config>(*std::move(loaded.config));
  std::vector<std::string> problems;
  auto next = Controller::prepare(config, now.get(), deps_.crypto, problems);
  for (std::string& problem : problems) {
    attempt.answer.errors.push_back({"clients", file_ + ": " + std::move(problem)});
  }
  if (!next) return attempt;
  attempt.diff = diff_of(*now->config, *config);
  attempt.fingerprint = fingerprint_of(*config);
  attempt.answer.sections = attempt.diff.sections;
  attempt.answer.upstreams = change_of(attempt.diff.upstreams);
  attempt.answer.routings = change_of(attempt.diff.routings);
  attempt.answer.clients = change_of(attempt.diff.clients);
  attempt.answer.restart = restarts_of(attempt.diff);
  attempt.next = std::move(next);
  return attempt;
}

Status ConfigReload::activate(const std::string& fingerprint) {
  const Deadline deadline = Deadline::after(deps_.clock.now(), kStoreBudget);
  PP_TRY(const ports::ConfigRevision revision,
         deps_.management.activate_config(fingerprint, deps_.clock.wall_now(), deadline));
  state_.with([&](State& state) {
    state.fingerprint = fingerprint;
    state.revision = revision.revision;
    state.activated_at = revision.activated_at;
  });
  return ok();
}

void ConfigReload::apply(Attempt& attempt) {
  ports::ConfigAnswer& answer = attempt.answer;
  const State before = state_.with([](const State& state) { return state; });
  const bool same = attempt.fingerprint == before.fingerprint;
  if (!same || before.revision == 0) {
    if (const Status given = activate(attempt.fingerprint); !given) {
      answer.errors.push_back(
          {"", "the management store did not take it: " + given.error().message});
      return;
    }
  }
  if (same) {
    answer.outcome = ports::ConfigOutcome::Unchanged;
    return;
  }
  answer.outcome = ports::ConfigOutcome::Applied;
  deps_.controller.configure(attempt.next);
  if (deps_.applied) deps_.applied(*attempt.next->config, attempt.diff);
  auto waiting = restarts_of(diff_of(*started_with_->config, *attempt.next->config));
  std::erase_if(waiting, [](const ports::RestartNeeded& key) {
    return key.program == "gateways" || key.program == "checkers";
  });
  state_.with([&](State& state) { state.restart = std::move(waiting); });
}

ports::ConfigAnswer ConfigReload::reload_config(const std::string& actor) {
  return one_at_a_time_.with([&](Unit&) {
    Attempt attempt = this->attempt(LoadFor::Use);
    if (attempt.next) apply(attempt);
    ports::ConfigAnswer& answer = attempt.answer;
    state_.with([&](State& state) {
      ++state.attempts[static_cast<std::size_t>(answer.outcome)];
      state.rejected = answer.errors;
      answer.revision = state.revision;
      answer.fingerprint = state.fingerprint;
    });
    tell(answer, actor);
    return std::move(answer);
  });
}

ports::ConfigAnswer ConfigReload::validate_config() {
  return one_at_a_time_.with([&](Unit&) {
    Attempt attempt = this->attempt(LoadFor::Trial);
    ports::ConfigAnswer& answer = attempt.answer;
    if (attempt.next) answer.outcome = ports::ConfigOutcome::Valid;
    state_.with([&](const State& state) {
      answer.revision = state.revision;
      answer.fingerprint = state.fingerprint;
    });
    return std::move(answer);
  });
}

void ConfigReload::tell(const ports::ConfigAnswer& answer, const std::string& actor) {
  using ports::Event;
  if (answer.outcome == ports::ConfigOutcome::Unchanged) return;
  const bool applied = answer.outcome == ports::ConfigOutcome::Applied;
  std::size_t left = answer.errors.size();
  for (const ports::ConfigProblem& problem : answer.errors) {
    // Beyond what the log takes in a second it says where the others are.
    const bool last = left > 1 && answer.errors.size() - left + 1 == kErrorLinesMax;
    deps_.events.emit(Event::ConfigRejected, {{"config", file_},
                                              {"problem", last ? "and " + std::to_string(left) +
                                                                     " more: see GET /v1/config"
                                                               : text_of(problem)}});
    if (last) break;
    --left;
  }
  for (const ports::ConfigProblem& problem : answer.warnings) {
    deps_.events.emit(Event::ConfigWarning, {{"config", file_}, {"problem", text_of(problem)}});
  }
  if (applied) {
    deps_.events.emit(
        Event::ConfigReloaded,
        {{"config", file_}, {"fingerprint", answer.fingerprint}, {"changed", summary_of(answer)}});
    for (const ports::RestartNeeded& key : answer.restart) {
      deps_.events.emit(
          Event::ConfigWarning,
          {{"config", file_},
           {"problem", key.key + " changed, and counts after a restart: " + key.program}});
    }
  }
  const std::string result =
      applied ? "done" : "refused: " + std::to_string(answer.errors.size()) + " errors";
  static_cast<void>(
      deps_.management.append_audit({0, deps_.clock.wall_now(), actor, "config.reload", file_,
                                     "{\"revision\":" + std::to_string(answer.revision) +
                                         ",\"fingerprint\":\"" + answer.fingerprint + "\"}",
                                     result},
                                    Deadline::after(deps_.clock.now(), kStoreBudget)));
}

ports::ConfigReading ConfigReload::config() {
  ports::ConfigReading reading;
  reading.file = file_;
  state_.with([&](const State& state) {
    reading.revision = state.revision;
    reading.fingerprint = state.fingerprint;
    reading.activated_at = state.activated_at;
    reading.restart = state.restart;
    reading.rejected = state.rejected;
  });
  reading.text = config::redacted_yaml(*deps_.controller.active()->config);
  return reading;
}

ReloadCounters ConfigReload::counters() const {
  return state_.with([](const State& state) {
    ReloadCounters counters;
    counters.attempts = state.attempts;
    counters.errors = state.rejected.size();
    counters.revision = state.revision;
    counters.restart_waiting = state.restart.size();
    counters.activated_at = state.activated_at;
    const std::string_view front = std::string_view(state.fingerprint).substr(0, 12);
    std::from_chars(front.data(), front.data() + front.size(), counters.hash, 16);
    return counters;
  });
}

std::vector<std::string> ConfigReload::warnings() const {
  return state_.with([&](const State& state) {
    std::vector<std::string> out;
    if (!state.rejected.empty()) {
      out.push_back(
          "the configuration file has " + std::to_string(state.rejected.size()) +
          " errors and was not taken over; the first: " + text_of(state.rejected.front()));
    }
    for (const ports::RestartNeeded& key : state.restart) {
      out.push_back(key.key + " was changed and counts after a restart: " + key.program);
    }
    return out;
  });
}

}  // namespace proxypool::controller
