#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "loadgen/load.hpp"
#include "proxypool/base/text.hpp"

namespace proxypool::loadgen {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<const char*, double>, 5> kPercentiles{
    {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p99.9", 99.9}, {"p99.99", 99.99}}};

double in_ms(nanoseconds duration) {
  return static_cast<double>(duration.count()) / 1e6;
}

double per_second(std::uint64_t count, nanoseconds elapsed) {
  const auto s = std::chrono::duration<double>(elapsed).count();
  return s > 0 ? static_cast<double>(count) / s : 0;
}

std::string number(double value, const char* format) {
  std::array<char, 64> text{};
  const int size = std::snprintf(text.data(), text.size(), format, value);
  return {text.data(), static_cast<std::size_t>(size)};
}

std::string url_text(const Url& url) {
  return url.scheme + "://" + to_text(url.authority) + url.target;
}

std::string proxy_text(const Url& proxy) {
  return proxy.scheme + "://" + (proxy.user.empty() ? "" : proxy.user + ":***@") +
         to_text(proxy.authority);
}

std::string line(std::string label, const std::string& text) {
  label.resize(std::max<std::size_t>(13, label.size() + 1), ' ');
  return "  " + label + (text.empty() ? "none" : text) + "\n";
}

std::string durations(const Histogram& histogram) {
  if (histogram.count() == 0) return "none";
  std::string out = "mean " + number(in_ms(histogram.mean()), "%.3f");
  for (const auto& [name, percent] : kPercentiles) {
    out += "  " + std::string(name) + " " + number(in_ms(histogram.percentile(percent)), "%.3f");
  }
  return out + "  max " + number(in_ms(histogram.max()), "%.3f") + "  ms";
}

template <class Counts, class Name>
std::string counted(const Counts& counts, Name name) {
  std::string out;
  for (const auto& [key, count] : counts) {
    out += (out.empty() ? "" : "  ") + std::string(name(key)) + ": " + std::to_string(count);
  }
  return out;
}

Json durations_json(const Histogram& histogram) {
  Json out = {{"count", histogram.count()},
              {"min", in_ms(histogram.min())},
              {"mean", in_ms(histogram.mean())}};
  for (const auto& [name, percent] : kPercentiles) {
    out[name] = in_ms(histogram.percentile(percent));
  }
  out["max"] = in_ms(histogram.max());
  return out;
}

template <class Counts, class Name>
Json counts_json(const Counts& counts, Name name) {
  Json out = Json::object();
  for (const auto& [key, count] : counts) out[std::string(name(key))] = count;
  return out;
}

std::string as_is(const std::string& key) {
  return key;
}
std::string status_name(unsigned status) {
  return std::to_string(status);
}

}  // namespace

std::string report_text(const LoadOptions& options, const LoadReport& report) {
  std::string out = "http " + options.method + " " + url_text(options.url);
  if (options.proxy) out += " through " + proxy_text(*options.proxy);
  out += "\n";
  out += line("load", "closed loop, " + std::to_string(options.concurrency) + " at a time, " +
                          (options.keep_alive ? "keep-alive" : "a connection for each request"));
  out += line("requests",
              std::to_string(report.done) + " in " +
                  number(std::chrono::duration<double>(report.elapsed).count(), "%.2f s, ") +
                  number(per_second(report.done, report.elapsed), "%.0f/s"));
  out += line("failed", std::to_string(report.failed));
  if (report.aborted > 0) out += line("interrupted", std::to_string(report.aborted));
  out += line("latency", durations(report.latency));
  out += line("head", durations(report.head));
  out += line("connect", durations(report.connect));
  out += line("connections", std::to_string(report.connections) + ", reconnected " +
                                 std::to_string(report.reconnects));
  out += line("bytes", std::to_string(report.bytes_in) + " in, " +
                           std::to_string(report.bytes_out) + " out");
  out += line("status", counted(report.statuses, status_name));
  if (!report.codes.empty()) out += line("code", counted(report.codes, as_is));
  if (!report.errors.empty()) out += line("errors", counted(report.errors, to_string));
  if (!options.count_header.empty()) {
    out += line(options.count_header, counted(report.header_values, as_is));
  }
  return out;
}

std::string report_json(const LoadOptions& options, const LoadReport& report) {
  Json out;
  out["scenario"] = "http";
  out["started"] = format_time(report.started);
  out["options"] = {{"url", url_text(options.url)},
                    {"proxy", options.proxy ? Json(proxy_text(*options.proxy)) : Json(nullptr)},
                    {"method", options.method},
                    {"loop", "closed"},
                    {"concurrency", options.concurrency},
                    {"threads", options.threads},
                    {"keep_alive", options.keep_alive},
                    {"requests", options.requests},
                    {"duration_s", std::chrono::duration<double>(options.duration).count()},
                    {"body_bytes", options.body.size()}};
  if (options.requests > 0) out["options"].erase("duration_s");
  out["elapsed_s"] = std::chrono::duration<double>(report.elapsed).count();
  out["requests"] = {{"done", report.done},
                     {"ok", report.done - report.failed},
                     {"failed", report.failed},
                     {"aborted", report.aborted},
                     {"per_second", per_second(report.done, report.elapsed)}};
  out["latency_ms"] = durations_json(report.latency);
  out["head_ms"] = durations_json(report.head);
  out["connect_ms"] = durations_json(report.connect);
  out["connections"] = {{"opened", report.connections}, {"reconnects", report.reconnects}};
  out["bytes"] = {{"in", report.bytes_in}, {"out", report.bytes_out}};
  out["statuses"] = counts_json(report.statuses, status_name);
  out["codes"] = counts_json(report.codes, as_is);
  out["errors"] = counts_json(report.errors, to_string);
  if (!options.count_header.empty()) {
    out["header_values"] = counts_json(report.header_values, as_is);
  }
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace proxypool::loadgen
