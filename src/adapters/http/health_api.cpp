// Health endpoints, metrics and documents: the same on every listener.
#include <utility>

#include "adapters/http/apis.hpp"
#include "net/problem.hpp"

namespace proxypool::http {

namespace {

std::string list_json(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) {
    if (out.size() > 1) out += ",";
    net::append_json_string(out, text);
  }
  return out + "]";
}

}  // namespace

void add_health(Router& router, std::function<std::vector<std::string>()> not_ready,
                std::function<std::vector<std::string>()> warnings) {
  router.add("GET", "/livez", nullptr,
             [](Call&) { return net::json_response(200, R"({"status":"alive"})"); });
  router.add("GET", "/readyz", nullptr,
             [not_ready = std::move(not_ready), warnings = std::move(warnings)](Call&) {
               const auto reasons = not_ready();
               std::string body = reasons.empty()
                                      ? R"({"status":"ready")"
                                      : R"({"status":"notReady","reasons":)" + list_json(reasons);
               const auto notes = warnings ? warnings() : std::vector<std::string>{};
               if (!notes.empty()) body += ",\"warnings\":" + list_json(notes);
               return net::json_response(reasons.empty() ? 200 : 503, body + "}");
             });
}

void add_metrics(Router& router, const Guard& guard, ports::Metrics& metrics) {
  router.add("GET", "/metrics", guard, [&metrics](Call&) {
    net::HttpResponse response;
    response.fields.emplace_back("Content-Type", std::string(ports::Metrics::kContentType));
    response.body = metrics.render();
    return response;
  });
}

void add_document(Router& router, std::string path, std::string content_type, std::string text) {
  router.add("GET", std::move(path), nullptr,
             [content_type = std::move(content_type), text = std::move(text)](Call&) {
               net::HttpResponse response;
               response.fields.emplace_back("Content-Type", content_type);
               response.body = text;
               return response;
             });
}

}  // namespace proxypool::http
