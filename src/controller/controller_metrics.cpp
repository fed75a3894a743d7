// What a controller shows to Prometheus. Labels come from configuration and closed lists alone.
#include <algorithm>
#include <chrono>
#include <string>

#include "controller/config_reload.hpp"
#include "controller/controller.hpp"

namespace proxypool::controller {

namespace {

using ports::Metrics;

template <class Counters>
using Reading = std::function<Counters()>;

// One counter that is a member of a struct of counters.
template <class Counters>
void counter(Metrics& metrics, std::string_view name, std::string_view help,
             const Reading<Counters>& read, std::uint64_t Counters::*member) {
  metrics.counter_from(name, help, [read, member] { return static_cast<double>(read().*member); });
}

void register_upstream(const Controller& controller, const UpstreamId& id, Metrics& metrics) {
  const auto read = [&controller, id] { return controller.upstream(id); };
  const Metrics::Labels labels{{"upstream", id.str()}};
  for (std::size_t i = 0; i < domain::kProxyStates; ++i) {
    const auto state = static_cast<domain::ProxyState>(i);
    metrics.gauge_from(
        "proxypool_upstream_proxies", "Proxies by life-cycle state",
        [read, state] { return static_cast<double>(read().inventory.in_state(state)); },
        {{"upstream", id.str()}, {"state", std::string(domain::to_string(state))}});
  }
  const auto inventory = [&](std::string_view name, std::string_view help,
                             std::uint64_t domain::Inventory::*member) {
    metrics.gauge_from(
        name, help, [read, member] { return static_cast<double>(read().inventory.*member); },
        labels);
  };
  inventory("proxypool_upstream_managed", "Proxies that count against pool.maxSize",
            &domain::Inventory::managed);
  inventory("proxypool_upstream_owned", "Managed proxies that a worker owns",
            &domain::Inventory::owned);
  inventory("proxypool_upstream_unowned", "Managed proxies that nobody owns",
            &domain::Inventory::unowned);
  inventory("proxypool_upstream_revoking", "Managed proxies on their way back from a worker",
            &domain::Inventory::revoking);
  inventory("proxypool_upstream_active", "Requests in flight, as last reported",
            &domain::Inventory::active);
  inventory("proxypool_upstream_reserved", "Places taken and not yet connected, as last reported",
            &domain::Inventory::reserved);
  metrics.gauge_from(
      "proxypool_upstream_slots_available", "Free places that are known to be free",
      [read] { return static_cast<double>(read().inventory.slots.available); }, labels);
  metrics.gauge_from(
      "proxypool_upstream_slots_unknown", "Places of proxies whose owner has not reported",
      [read] { return static_cast<double>(read().inventory.slots.unknown); }, labels);
  metrics.gauge_from(
      "proxypool_upstream_enabled", "Whether it is enabled by configuration and operator",
      [read] { return read().enabled ? 1.0 : 0.0; }, labels);
  metrics.gauge_from(
      "proxypool_upstream_backoff_seconds", "How long the vendor is left alone",
      [read] { return static_cast<double>(read().backoff_left.count()) / 1000; }, labels);
}

void register_fetches(const Controller& controller, const UpstreamId& id, Metrics& metrics) {
  const auto read = [&controller, id] { return controller.upstream(id); };
  const Metrics::Labels labels{{"upstream", id.str()}};
  for (const auto kind : {domain::FetchClass::Success, domain::FetchClass::Empty,
                          domain::FetchClass::DuplicateOnly, domain::FetchClass::Error}) {
    metrics.counter_from("proxypool_fetches_total", "Calls to vendors and readings of lists",
                         [read, kind] { return static_cast<double>(read().counters.of(kind)); },
                         {{"upstream", id.str()}, {"class", std::string(to_string(kind))}});
  }
  for (std::size_t i = 1; i < domain::kFetchReasons; ++i) {
    const auto reason = static_cast<domain::FetchReason>(i);
    metrics.counter_from(
        "proxypool_fetch_errors_total", "Calls and readings that failed, by reason",
        [read, i] { return static_cast<double>(read().counters.errors_by_reason[i]); },
        {{"upstream", id.str()}, {"reason", std::string(to_string(reason))}});
  }
  metrics.counter_from(
      "proxypool_fetch_seconds_total", "Time spent in calls and readings",
      [read] { return std::chrono::duration<double>(read().fetch_time).count(); }, labels);
  metrics.gauge_from(
      "proxypool_fetches_in_flight", "Calls to the vendor under way from here",
      [read] { return read().fetching ? 1.0 : 0.0; }, labels);
  const auto fetched = [&](std::string_view name, std::string_view help,
                           std::uint64_t domain::FetchCounters::*member) {
    metrics.counter_from(
        name, help, [read, member] { return static_cast<double>(read().counters.*member); },
        labels);
  };
  fetched("proxypool_fetch_records_total", "Records that vendors answered",
          &domain::FetchCounters::records);
  fetched("proxypool_fetch_invalid_total", "Records that were no usable proxy",
          &domain::FetchCounters::invalid);
  fetched("proxypool_fetch_duplicates_total", "Proxies that were known already",
          &domain::FetchCounters::duplicates);
  fetched("proxypool_fetch_admitted_total", "Proxies that entered the pool",
          &domain::FetchCounters::admitted);
  fetched("proxypool_fetch_expired_on_arrival_total", "Proxies that came past their margin",
          &domain::FetchCounters::expired_on_arrival);
}

// Peers whose session stands. A registry that does not answer shows none.
void register_workers(Controller& controller, Metrics& metrics) {
  metrics.gauge_from("proxypool_workers_live", "Gateways whose session stands", [&controller] {
    const auto rows = controller.workers(Deadline{});
    if (!rows) return 0.0;
    return static_cast<double>(
        std::count_if(rows->begin(), rows->end(), [](const auto& row) { return row.live; }));
  });
}

void register_routings(Controller& controller, Metrics& metrics) {
  const auto active = controller.active();
  for (const config::RoutingConfig& routing : active->config->routings) {
    const auto read = [&controller, id = routing.id] { return controller.routing(id); };
    metrics.gauge_from(
        "proxypool_routing_enabled", "Whether it is enabled by configuration and operator",
        [read] { return read().enabled ? 1.0 : 0.0; }, {{"routing", routing.id.str()}});
    if (routing.strategy != domain::Strategy::Sequential) continue;
    for (const domain::RoutingUpstream& upstream : routing.upstreams) {
      metrics.gauge_from("proxypool_routing_current",
                         "Whether a sequential routing stands at this upstream",
                         [read, id = upstream.id] { return read().current == id ? 1.0 : 0.0; },
                         {{"routing", routing.id.str()}, {"upstream", upstream.id.str()}});
    }
    for (std::size_t i = 0; i < kSwitchReasons; ++i) {
      const auto reason = static_cast<SwitchReason>(i);
      metrics.counter_from(
          "proxypool_routing_switches_total",
          "How often a sequential routing went from one upstream to another, or to its end",
          [&controller, id = routing.id, reason] {
            return static_cast<double>(controller.switches(id, reason));
          },
          {{"routing", routing.id.str()}, {"reason", std::string(to_string(reason))}});
    }
  }
}

void register_usage(Controller& controller, Metrics& metrics) {
  const auto counter = [&](std::string_view name, std::string_view help,
                           std::uint64_t UsageCounters::*member, const Metrics::Labels& labels) {
    metrics.counter_from(
        name, help,
        [&controller, member] { return static_cast<double>(controller.usage_counters().*member); },
        labels);
  };
  constexpr std::string_view kBytes = "proxypool_usage_bytes_total";
  constexpr std::string_view kMeaning = "Bytes of clients that workers reported and that are kept";
  counter(kBytes, kMeaning, &UsageCounters::bytes_up, {{"direction", "up"}});
  counter(kBytes, kMeaning, &UsageCounters::bytes_down, {{"direction", "down"}});
  counter("proxypool_usage_unknown_clients_total",
          "Entries of usage for names that are no clients; not counted", &UsageCounters::unknown,
          {});
  counter("proxypool_usage_failures_total",
          "Batches of usage that could not be kept; they are sent again", &UsageCounters::failures,
          {});
  metrics.gauge_from("proxypool_clients_over_quota", "Clients that have used up their day",
                     [&] { return static_cast<double>(controller.clients_over_quota()); });
}

}  // namespace

void register_metrics(Controller& controller, ports::Metrics& metrics) {
  for (const UpstreamId& id : controller.upstream_ids()) {
    register_upstream(controller, id, metrics);
    register_fetches(controller, id, metrics);
  }
  register_routings(controller, metrics);
  register_workers(controller, metrics);
  const Reading<WorkerSessionCounters> workers = [&] { return controller.worker_counters(); };
  using Workers = WorkerSessionCounters;
  counter(metrics, "proxypool_worker_registrations_total", "Sessions that workers opened", workers,
          &Workers::registrations);
  counter(metrics, "proxypool_snapshots_issued_total", "Full snapshots sent to workers", workers,
          &Workers::snapshots_issued);
  counter(metrics, "proxypool_snapshots_rejected_total", "Snapshots that workers refused", workers,
          &Workers::snapshots_rejected);
  counter(metrics, "proxypool_snapshot_extends_total", "Prolongations sent to workers", workers,
          &Workers::extends);
  counter(metrics, "proxypool_snapshot_build_failures_total",
          "Snapshots that could not be built because a store did not answer", workers,
          &Workers::build_failures);
  counter(metrics, "proxypool_runtime_reports_refused_total", "Reports that lost their fence",
          workers, &Workers::reports_refused);

  register_usage(controller, metrics);
  const Reading<OwnershipCounters> ownership = [&] { return controller.ownership_counters(); };
  using Ownership = OwnershipCounters;
  counter(metrics, "proxypool_ownership_assigned_total", "Proxies given to workers", ownership,
          &Ownership::assigned);
  counter(metrics, "proxypool_ownership_revoked_total", "Proxies asked back from workers",
          ownership, &Ownership::revoked);
  counter(metrics, "proxypool_ownership_failures_total",
          "Plans that failed because a store did not answer", ownership, &Ownership::failures);
  metrics.gauge_from("proxypool_ownership_unplaced", "Proxies for which no worker had room",
                     [&] { return static_cast<double>(controller.ownership_counters().unplaced); });

  const Reading<HealthCounters> health = [&] { return controller.health_counters(); };
  using Health = HealthCounters;
  counter(metrics, "proxypool_check_tasks_total", "Checks given to checkers", health,
          &Health::tasks);
  counter(metrics, "proxypool_check_passed_total", "Checks that passed", health, &Health::passed);
  counter(metrics, "proxypool_check_failed_total", "Checks that failed", health, &Health::failed);
  counter(metrics, "proxypool_check_ignored_total", "Observations that came late or twice", health,
          &Health::ignored);
  counter(metrics, "proxypool_check_conflicts_total",
          "Verdicts that were reached anew because the proxy had changed", health,
          &Health::conflicts);
  counter(metrics, "proxypool_check_lost_total", "Checks that no checker answered in time", health,
          &Health::lost);
  const auto told = [&](std::string_view meaning, std::uint64_t Health::*member) {
    metrics.counter_from("proxypool_outcomes_total",
                         "Outcomes of traffic that workers told of, by what they meant",
                         [health, member] { return static_cast<double>(health().*member); },
                         {{"meaning", std::string(meaning)}});
  };
  told("success", &Health::traffic_successes);
  told("failure", &Health::traffic_failures);
  told("ignored", &Health::traffic_ignored);
  metrics.gauge_from("proxypool_checks_in_flight", "Checks given out and not yet answered",
                     [&] { return static_cast<double>(controller.health_counters().in_flight); });
  metrics.gauge_from("proxypool_checkers_connected", "Checkers with an open task stream",
                     [&] { return static_cast<double>(controller.health_counters().checkers); });

  const Reading<ExtractionCounters> extraction = [&] { return controller.extraction_counters(); };
  using Extraction = ExtractionCounters;
  counter(metrics, "proxypool_extractions_total", "Extractions asked for", extraction,
          &Extraction::calls);
  counter(metrics, "proxypool_extraction_requested_total", "Proxies asked for", extraction,
          &Extraction::requested);
  counter(metrics, "proxypool_extraction_returned_total", "Proxies handed out", extraction,
          &Extraction::returned);
  counter(metrics, "proxypool_extraction_insufficient_total",
          "Extractions that got less than they asked for", extraction, &Extraction::insufficient);
  counter(metrics, "proxypool_extraction_failures_total",
          "Extractions that failed because a store did not answer", extraction,
          &Extraction::failed);
}

void register_metrics(const ConfigReload& reload, ports::Metrics& metrics) {
  const auto read = [&reload] { return reload.counters(); };
  for (const auto outcome : {ports::ConfigOutcome::Applied, ports::ConfigOutcome::Unchanged,
                             ports::ConfigOutcome::Rejected}) {
    metrics.counter_from(
        "proxypool_config_reloads_total", "Attempts to take the configuration file over again",
        [read, outcome] {
          return static_cast<double>(read().attempts[static_cast<std::size_t>(outcome)]);
        },
        {{"outcome", std::string(to_string(outcome))}});
  }
  const auto gauge = [&](std::string_view name, std::string_view help,
                         std::uint64_t ReloadCounters::*member) {
    metrics.gauge_from(name, help, [read, member] { return static_cast<double>(read().*member); });
  };
  gauge("proxypool_config_errors", "Errors for which the last attempt was refused",
        &ReloadCounters::errors);
  gauge("proxypool_config_revision", "The revision of the configuration that counts",
        &ReloadCounters::revision);
  gauge("proxypool_config_hash", "The first 48 bits of its fingerprint, as a number",
        &ReloadCounters::hash);
  gauge("proxypool_config_restart_waiting",
        "Keys that were changed and count after a restart of the controller",
        &ReloadCounters::restart_waiting);
  metrics.gauge_from("proxypool_config_activated_seconds",
                     "When it began to count, in seconds since 1970", [read] {
                       const auto at = read().activated_at;
                       return at ? std::chrono::duration<double>(at->time_since_epoch()).count()
                                 : 0.0;
                     });
}

}  // namespace proxypool::controller
