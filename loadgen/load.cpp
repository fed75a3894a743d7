#include "loadgen/load.hpp"

#include <netdb.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>
#include <deque>
#include <memory>
#include <thread>
#include <utility>

#include "loadgen/load_user.hpp"
#include "proxypool/base/text.hpp"
#include "runtime/boot_clock.hpp"
#include "runtime/system.hpp"

namespace proxypool::loadgen {
namespace {

constexpr milliseconds kProgressEvery{500};
constexpr seconds kAbortGrace{1};

Result<Tcp::endpoint> resolve(const Authority& target) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(target.port);
  const int code = ::getaddrinfo(target.host.c_str(), port.c_str(), &hints, &found);
  if (code != 0) {
    return Error{ErrorCode::Unavailable, Origin::Client,
                 "cannot resolve '" + target.host + "': " + ::gai_strerror(code)};
  }
  Tcp::endpoint endpoint;
  endpoint.resize(found->ai_addrlen);
  std::copy_n(reinterpret_cast<const char*>(found->ai_addr), found->ai_addrlen,
              reinterpret_cast<char*>(endpoint.data()));
  ::freeaddrinfo(found);
  return endpoint;
}

std::string credentials(const Url& proxy) {
  if (proxy.user.empty()) return {};
  return "Basic " + base64_encode(proxy.user + ":" + proxy.password);
}

Request main_request(const LoadOptions& options) {
  const auto& url = options.url;
  const bool default_port = url.authority.port == (url.scheme == "https" ? 443 : 80);
  std::string host = to_text(url.authority);
  if (default_port) host.erase(host.rfind(':'));
  const bool absolute = options.proxy && url.scheme == "http";
  Request request;
  request.method = options.method;
  request.target = absolute ? "http://" + host + url.target : url.target;
  request.fields.add("Host", host);
  request.fields.add("User-Agent", "proxy-loadgen");
  if (absolute && !options.proxy->user.empty()) {
    request.fields.add("Proxy-Authorization", credentials(*options.proxy));
  }
  if (!options.keep_alive) request.fields.add("Connection", "close");
  if (!options.body.empty()) {
    request.fields.add("Content-Length", std::to_string(options.body.size()));
  }
  for (const auto& given : options.headers) request.fields.erase(given.name);
  for (const auto& given : options.headers) request.fields.add(given.name, given.value);
  return request;
}

std::string connect_request(const LoadOptions& options) {
  if (!options.proxy || options.url.scheme != "https") return {};
  Request request;
  request.method = "CONNECT";
  request.target = to_text(options.url.authority);
  request.fields.add("Host", request.target);
  request.fields.add("User-Agent", "proxy-loadgen");
  if (!options.proxy->user.empty()) {
    request.fields.add("Proxy-Authorization", credentials(*options.proxy));
  }
  return to_text(request);
}

Result<LoadPlan> make_plan(const LoadOptions& options) {
  LoadPlan plan;
  plan.options = options;
  const auto& first = options.proxy ? options.proxy->authority : options.url.authority;
  PP_TRY(plan.connect_to, resolve(first));
  if (options.url.scheme == "https") {
    PP_TRY(plan.tls, ClientTls::make(options.verify_tls, options.ca_file));
  }
  plan.request = to_text(main_request(options)) + options.body;
  plan.connect_request = connect_request(options);
  return plan;
}

// The users of one thread.
class LoadThread {
 public:
  LoadThread(const LoadPlan& plan, Budget& budget, unsigned users) {
    for (unsigned i = 0; i < users; ++i) users_.emplace_back(plan, budget, report_);
    for (auto& user : users_) spawn(io_.get_executor(), user.run());
  }
  void start(unsigned index, std::function<void()> ended) {
    thread_ = std::jthread([this, index, ended = std::move(ended)] {
      runtime::name_this_thread("load-" + std::to_string(index));
      io_.run();
      ended();
    });
  }
  void abort() {
    asio::post(io_, [this] {
      for (auto& user : users_) user.abort();
    });
  }
  void stop() { io_.stop(); }
  // Waits for the thread.
  const LoadReport& report() {
    if (thread_.joinable()) thread_.join();
    return report_;
  }

 private:
  asio::io_context io_{1};  // outlives the users, whose connections have timers in it
  LoadReport report_;
  std::deque<LoadUser> users_;
  std::jthread thread_;
};

// Progress, signals and the end of the threads, on the calling thread.
class Conductor {
 public:
  Conductor(Budget& budget, std::deque<LoadThread>& threads)
      : budget_(budget), threads_(threads), signals_(io_, SIGINT, SIGTERM), timer_(io_) {}

  void run() {
    begin_ = runtime::boot_now();
    running_ = threads_.size();
    unsigned index = 0;
    for (auto& thread : threads_) {
      thread.start(index++, [this] {
        asio::post(io_, [this] {
          if (--running_ == 0) io_.stop();
        });
      });
    }
    signals_.async_wait([this](const IoError& error, int) {
      if (!error) interrupt();
    });
    if (::isatty(STDERR_FILENO) == 1) show_progress();
    io_.run();
    if (shown_) std::fputc('\n', stderr);
  }

 private:
  void interrupt() {
    budget_.interrupted = true;
    for (auto& thread : threads_) thread.abort();
    timer_.expires_after(kAbortGrace);  // whatever still waits, for a connection perhaps, is left
    timer_.async_wait([this](const IoError& error) {
      if (error) return;
      for (auto& thread : threads_) thread.stop();
    });
  }

  void show_progress() {
    timer_.expires_after(kProgressEvery);
    timer_.async_wait([this](const IoError& error) {
      if (error) return;
      const auto passed = std::chrono::duration<double>(runtime::boot_now() - begin_).count();
      const auto done = budget_.done.load(std::memory_order_relaxed);
      const auto per_second = static_cast<double>(done - last_done_) /
                              std::chrono::duration<double>(kProgressEvery).count();
      last_done_ = done;
      std::fprintf(stderr, "\r%7.1f s  %10lu done  %8.0f/s  %8lu failed ", passed,
                   static_cast<unsigned long>(done), per_second,
                   static_cast<unsigned long>(budget_.failed.load(std::memory_order_relaxed)));
      std::fflush(stderr);
      shown_ = true;
      show_progress();
    });
  }

  Budget& budget_;
  std::deque<LoadThread>& threads_;
  asio::io_context io_{1};
  asio::signal_set signals_;
  asio::steady_timer timer_;
  TimePoint begin_{};
  std::size_t running_ = 0;
  std::uint64_t last_done_ = 0;
  bool shown_ = false;
};

}  // namespace

std::string_view to_string(LoadError error) {
  constexpr std::string_view kNames[] = {"none",  "connect",   "proxy_status", "tls",   "timeout",
                                         "reset", "truncated", "protocol",     "status"};
  return kNames[static_cast<std::size_t>(error)];
}

void LoadReport::merge(const LoadReport& other) {
  done += other.done;
  failed += other.failed;
  aborted += other.aborted;
  bytes_in += other.bytes_in;
  bytes_out += other.bytes_out;
  connections += other.connections;
  reconnects += other.reconnects;
  latency.merge(other.latency);
  head.merge(other.head);
  connect.merge(other.connect);
  for (const auto& [key, count] : other.errors) errors[key] += count;
  for (const auto& [key, count] : other.statuses) statuses[key] += count;
  for (const auto& [key, count] : other.codes) codes[key] += count;
  for (const auto& [key, count] : other.header_values) header_values[key] += count;
}

Result<LoadReport> run_load(const LoadOptions& options) {
  PP_TRY(const LoadPlan plan, make_plan(options));
  Budget budget;
  budget.left = options.requests == 0 ? UINT64_MAX : options.requests;
  LoadReport report;
  report.started = runtime::wall_now();
  const auto begin = runtime::boot_now();
  if (options.requests == 0) budget.end = begin + options.duration;
  const auto count = std::min(options.threads, options.concurrency);
  std::deque<LoadThread> threads;
  for (unsigned i = 0; i < count; ++i) {
    const auto share = options.concurrency / count + (i < options.concurrency % count ? 1 : 0);
    threads.emplace_back(plan, budget, share);
  }
  Conductor(budget, threads).run();
  report.elapsed = runtime::boot_now() - begin;
  for (auto& thread : threads) report.merge(thread.report());
  return report;
}

}  // namespace proxypool::loadgen
