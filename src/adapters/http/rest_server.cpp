#include "adapters/http/rest_server.hpp"

#include <atomic>
#include <thread>
#include <utility>

#include "net/event_loop.hpp"
#include "net/http_server.hpp"
#include "runtime/alarm.hpp"
#include "runtime/blocking_pool.hpp"
#include "runtime/system.hpp"

namespace proxypool::http {

namespace {

constexpr std::size_t kThreads = 4;
constexpr std::size_t kWaitingMax = 256;

class LoopServer final : public RestServer {
 public:
  LoopServer(std::string name, net::Endpoint listen, std::unique_ptr<Router> router)
      : name_(std::move(name)), listen_(listen), router_(std::move(router)) {}
  LoopServer(const LoopServer&) = delete;
  LoopServer& operator=(const LoopServer&) = delete;
  ~LoopServer() override { LoopServer::stop(); }

  Status start() override {
    PP_TRY(net::UniqueFd listener, net::listen_tcp(listen_));
    pool_ = std::make_unique<runtime::BlockingPool>(name_, kThreads, kWaitingMax);
    net::HttpServerOptions options;
    options.request_id = [this](const net::HttpRequest& request) {
      return router_->request_id(request);
    };
    server_ = std::make_unique<net::HttpServer>(
        loop_, std::move(listener),
        [this](net::HttpRequest request, net::Responder responder) {
          serve(std::move(request), std::move(responder));
        },
        std::move(options));
    port_ = server_->port();
    thread_ = std::thread([this] {
      runtime::name_this_thread(name_);
      loop_.run();
    });
    return ok();
  }

  [[nodiscard]] std::uint16_t port() const noexcept override { return port_; }

  bool drain(Deadline deadline) override {
    if (!thread_.joinable()) return true;
    loop_.post([this] {
      server_->stop([this] {
        drained_ = true;
        alarm_.wake();
      });
    });
    while (!drained_ && !deadline.passed(runtime::system_clock().now())) {
      alarm_.wait_until(deadline.at());
    }
    return drained_;
  }

  void stop() override {
    if (!thread_.joinable()) return;
    // What still runs in the pool answers into the loop; the loop ends after it.
    pool_->stop();
    loop_.post([this] { server_.reset(); });
    loop_.stop();
    thread_.join();
  }

 private:
  // On the loop's thread.
  void serve(net::HttpRequest request, net::Responder responder) {
    struct Job {
      const Router& router;
      net::HttpRequest request;
      net::Responder responder;
      void operator()() { responder.answer(router.handle(request)); }
    };
    auto job = std::make_shared<Job>(Job{*router_, std::move(request), std::move(responder)});
    if (pool_->try_run([job] { (*job)(); })) return;
    Refusal refusal{503, "overloaded", "too many requests are waiting"};
    refusal.fields.emplace_back("Retry-After", "1");
    job->responder.answer(router_->refuse(job->request, refusal));
  }

  const std::string name_;
  const net::Endpoint listen_;
  const std::unique_ptr<Router> router_;
  net::EventLoop loop_;
  std::unique_ptr<runtime::BlockingPool> pool_;
  std::unique_ptr<net::HttpServer> server_;  // of the loop's thread, once it runs
  std::thread thread_;
  runtime::Alarm alarm_;
  std::atomic<bool> drained_{false};
  std::uint16_t port_ = 0;
};

}  // namespace

std::unique_ptr<RestServer> make_rest_server(std::string name, net::Endpoint listen,
                                             std::unique_ptr<Router> router) {
  return std::make_unique<LoopServer>(std::move(name), listen, std::move(router));
}

}  // namespace proxypool::http
