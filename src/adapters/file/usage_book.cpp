#include "adapters/file/usage_book.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

namespace proxypool::file {
namespace {

using domain::Day;
using domain::DayUsage;
using nlohmann::json;

constexpr std::size_t kRowsOfARecord = 4'000;  // a record has at most 1 MiB

std::int64_t number_of(Day day) {
  return day.time_since_epoch().count();
}
Day day_from(const json& value) {
  return Day{std::chrono::days{value.get<std::int64_t>()}};
}

// [name, day, up, down, requests]
json row_of(const std::string& client, const DayUsage& entry) {
  const domain::Usage& usage = entry.usage;
  return json::array(
      {client, number_of(entry.day), usage.bytes_up, usage.bytes_down, usage.requests});
}
DayUsage entry_of(const json& row) {
  return {day_from(row.at(1)),
          {row.at(2).get<std::uint64_t>(), row.at(3).get<std::uint64_t>(),
           row.at(4).get<std::uint64_t>()}};
}

// Names come from workers; what is no UTF-8 must not end the program.
std::string text_of(const json& record) {
  return record.dump(-1, ' ', false, json::error_handler_t::replace);
}

// A batch, and the fence that it moves; in totals either alone.
std::string record_of(const json& clients, const json& instances) {
  return text_of({{"clients", clients}, {"instances", instances}});
}

}  // namespace

Result<std::unique_ptr<UsageBook>> UsageBook::open(ports::DurableLog* log) {
  std::unique_ptr<UsageBook> book(new UsageBook(log));
  if (log == nullptr) return book;
  bool good = true;
  const Status read = log->replay([&](std::string_view record) {
    good = good && book->state_.with([&](State& state) { return replay(state, record); });
  });
  if (!read) return read.error();
  if (!good) {
    return Error{ErrorCode::Corrupt, Origin::Store,
                 "the usage of clients was written by another version; move usage.log away to "
                 "begin anew"};
  }
  book->rewrite_at_ = std::max(kRewriteBytesMin, 2 * log->size_bytes());
  return book;
}

bool UsageBook::replay(State& state, std::string_view record) {
  try {
    const json read = json::parse(record);
    for (const json& row : read.at("clients")) {
      count(state, row.at(0).get<std::string>(), entry_of(row));
    }
    for (const json& row : read.at("instances")) {
      fence(state, row.at(0).get<std::string>(),
            {row.at(1).get<std::uint64_t>(), day_from(row.at(2))});
    }
    return true;
  } catch (const json::exception&) {
    return false;
  }
}

void UsageBook::count(State& state, const std::string& client, const DayUsage& usage) {
  std::deque<DayUsage>& days = state.clients[client];
  const auto place = std::find_if(days.begin(), days.end(),
                                  [&](const DayUsage& entry) { return entry.day <= usage.day; });
  if (place != days.end() && place->day == usage.day) {
    place->usage += usage.usage;
  } else {
    days.insert(place, usage);
  }
  while (days.size() > domain::kUsageDaysKept) days.pop_back();
}

void UsageBook::fence(State& state, const std::string& instance, const Fence& fence) {
  Fence& known = state.instances[instance];
  known.number = std::max(known.number, fence.number);
  known.day = std::max(known.day, fence.day);
  if (state.instances.size() <= kInstancesMax) return;
  auto oldest = state.instances.end();
  for (auto it = state.instances.begin(); it != state.instances.end(); ++it) {
    if (it->first == instance) continue;
    if (oldest == state.instances.end() || it->second.day < oldest->second.day) oldest = it;
  }
  state.instances.erase(oldest);
}

void UsageBook::forget(State& state, Day today) {
  const Day first = today - std::chrono::days{domain::kUsageDaysKept - 1};
  for (auto& [client, days] : state.clients) {
    while (!days.empty() && days.back().day < first) days.pop_back();
  }
  std::erase_if(state.clients, [](const auto& client) { return client.second.empty(); });
  std::erase_if(state.instances, [&](const auto& known) { return known.second.day < first; });
}

std::vector<std::string> UsageBook::totals(const State& state) {
  std::vector<std::string> records;
  json clients = json::array();
  json instances = json::array();
  const auto flush = [&](std::size_t rows_max) {
    if (clients.size() + instances.size() <= rows_max) return;
    records.push_back(record_of(clients, instances));
    clients.clear();
    instances.clear();
  };
  for (const auto& [client, days] : state.clients) {
    for (const DayUsage& entry : days) clients.push_back(row_of(client, entry));
    flush(kRowsOfARecord);
  }
  for (const auto& [instance, known] : state.instances) {
    instances.push_back(json::array({instance, known.number, number_of(known.day)}));
    flush(kRowsOfARecord);
  }
  flush(0);
  return records;
}

Result<ports::UsageAdded> UsageBook::add(const InstanceId& instance,
                                         const domain::UsageBatch& batch, Day day) {
  return writer_.with([&](const Unit&) -> Result<ports::UsageAdded> {
    const bool fresh = state_.with([&](const State& state) {
      const auto known = state.instances.find(instance.str());
      return known == state.instances.end() || known->second.number < batch.number;
    });
    if (fresh && log_ != nullptr) {
      const json fences =
          json::array({json::array({instance.str(), batch.number, number_of(day)})});
      json clients = json::array();
      for (const auto& row : batch.clients) {
        clients.push_back(row_of(row.client.str(), {day, row.usage}));
      }
      PP_TRY([[maybe_unused]] const Unit kept, log_->append(record_of(clients, fences)));
    }
    auto today = state_.with([&](State& state) {
      if (fresh) {
        for (const auto& row : batch.clients) count(state, row.client.str(), {day, row.usage});
        fence(state, instance.str(), {batch.number, day});
      }
      if (std::exchange(state.today, day) != day) forget(state, day);
      std::vector<domain::Usage> out;
      for (const auto& row : batch.clients) out.push_back(usage_of(state, row.client.str(), day));
      return out;
    });
    // What cannot be made smaller now is made smaller later: the batch is kept all the same.
    if (fresh) static_cast<void>(rewrite_if_due());
    return ports::UsageAdded{fresh, std::move(today)};
  });
}

Status UsageBook::rewrite_if_due() {
  if (log_ == nullptr || log_->size_bytes() < rewrite_at_) return ok();
  const auto records = state_.with([](const State& state) { return totals(state); });
  const Status done = log_->rewrite(records);
  rewrite_at_ = std::max(kRewriteBytesMin, 2 * log_->size_bytes());
  return done;
}

domain::Usage UsageBook::usage_of(const State& state, const std::string& client, Day day) {
  const auto days = state.clients.find(client);
  if (days == state.clients.end()) return {};
  for (const DayUsage& entry : days->second) {
    if (entry.day == day) return entry.usage;
  }
  return {};
}

std::vector<DayUsage> UsageBook::of(const ClientName& client) const {
  return state_.with([&](const State& state) -> std::vector<DayUsage> {
    const auto days = state.clients.find(client.str());
    if (days == state.clients.end()) return {};
    return {days->second.begin(), days->second.end()};
  });
}

std::vector<domain::ClientUsage> UsageBook::on(Day day) const {
  return state_.with([&](const State& state) {
    std::vector<domain::ClientUsage> out;
    for (const auto& [client, days] : state.clients) {
      const domain::Usage usage = usage_of(state, client, day);
      if (!usage.nothing()) out.push_back({ClientName(client), usage});
    }
    return out;
  });
}

}  // namespace proxypool::file
