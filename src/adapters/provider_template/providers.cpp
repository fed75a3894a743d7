#include "adapters/provider_template/providers.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "adapters/provider_template/extract.hpp"
#include "proxypool/base/ip.hpp"
#include "proxypool/base/limits.hpp"
#include "proxypool/base/text.hpp"
#include "proxypool/domain/proxy/list_line.hpp"

namespace proxypool::provider_template {

namespace {

using domain::FetchReason;
using ports::FetchAnswer;
using ports::FetchRequest;

FetchAnswer failure(FetchReason reason, std::string detail) {
  FetchAnswer answer;
  answer.error = reason;
  answer.detail = std::move(detail);
  return answer;
}

// A vendor that hands out addresses of our own network would turn the gateway against it.
std::uint32_t drop_private(std::vector<domain::Candidate>& candidates) {
  const auto inside = [](const domain::Candidate& candidate) {
    const auto address = IpAddress::parse(candidate.endpoint.host);
    if (address) return classify(*address) != IpClass::Public;
    const std::string& host = candidate.endpoint.host;
    constexpr std::string_view kLocal = ".localhost";
    return host == "localhost" ||
           (host.size() > kLocal.size() &&
            std::string_view(host).substr(host.size() - kLocal.size()) == kLocal);
  };
  return static_cast<std::uint32_t>(std::erase_if(candidates, inside));
}

FetchAnswer answer_of(Extracted extracted, bool allow_private) {
  FetchAnswer answer;
  answer.records = extracted.records;
  answer.invalid = extracted.invalid;
  answer.candidates = std::move(extracted.candidates);
  if (!allow_private) answer.refused_private = drop_private(answer.candidates);
  answer.invalid += answer.refused_private;
  if (answer.invalid > 0) {
    answer.detail = std::to_string(answer.invalid) + " of " + std::to_string(answer.records) +
                    " records are no usable proxies";
    if (!extracted.first_invalid.empty()) {
      answer.detail += "; " + extracted.first_invalid + " is the first that cannot be read" +
                       ", see provider.map and the forms of a list line";
    }
    if (answer.refused_private > 0) {
      answer.detail += "; " + std::to_string(answer.refused_private) +
                       " have private addresses, see allowPrivateAddresses";
    }
  }
  return answer;
}

class StaticProvider final : public ports::ProviderApi {
 public:
  StaticProvider(std::vector<domain::Candidate> proxies, bool allow_private)
      : proxies_(std::move(proxies)), allow_private_(allow_private) {}

  FetchAnswer fetch(const FetchRequest&, Deadline) override {
    Extracted all;
    all.records = static_cast<std::uint32_t>(proxies_.size());
    all.candidates = proxies_;
    return answer_of(std::move(all), allow_private_);
  }
  [[nodiscard]] bool authoritative() const noexcept override { return true; }
  [[nodiscard]] std::uint64_t source_version() override { return 0; }

 private:
  const std::vector<domain::Candidate> proxies_;
  const bool allow_private_;
};

// What tells one state of a file from another. A file that is replaced has another inode, one that
// is written has another time or size.
struct FileState {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  std::int64_t changed_ns = 0;
  friend bool operator==(const FileState&, const FileState&) = default;
};

class FileProvider final : public ports::ProviderApi {
 public:
  FileProvider(std::string path, config::MapConfig map, bool allow_private)
      : path_(std::move(path)), map_(std::move(map)), allow_private_(allow_private) {}

  FetchAnswer fetch(const FetchRequest& request, Deadline) override {
    std::ifstream in(path_, std::ios::binary);
    if (!in) {
      return failure(FetchReason::Other,
                     "cannot read " + path_ + ": " + std::generic_category().message(errno));
    }
    // Unformatted reading sets a bit where iterators would throw: a folder opens, but cannot be
    // read.
    std::string text(limits::kVendorBodyBytesMax + 1, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (in.bad()) return failure(FetchReason::Other, "cannot read " + path_);
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (text.size() > limits::kVendorBodyBytesMax) {
      return failure(FetchReason::TooLarge, path_ + " is larger than 16 MiB");
    }
    auto extracted = extract_lines(text, map_, request.now);
    if (!extracted) return failure(FetchReason::TooLarge, extracted.error().message);
    return answer_of(*std::move(extracted), allow_private_);
  }
  [[nodiscard]] bool authoritative() const noexcept override { return true; }

  [[nodiscard]] std::uint64_t source_version() override {
    struct ::stat info {};
    FileState state;
    if (::stat(path_.c_str(), &info) == 0) {
      state = {info.st_dev, info.st_ino, info.st_size,
               std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
    }
    if (!(state == seen_)) ++version_;
    seen_ = state;
    return version_;
  }

 private:
  const std::string path_;
  const config::MapConfig map_;
  const bool allow_private_;
  FileState seen_;
  std::uint64_t version_ = 0;
};

class HttpProvider final : public ports::ProviderApi {
 public:
  HttpProvider(const config::UpstreamConfig& upstream, ports::HttpCaller& http)
      : config_(upstream.provider), allow_private_(upstream.allow_private_addresses), http_(http) {}

  FetchAnswer fetch(const FetchRequest& request, Deadline deadline) override {
    auto reply = http_.call(call_for(request.wanted), deadline);
    if (reply.failed) return failure(*reply.failed, reply.detail);
    if (reply.status < 200 || reply.status > 299) return bad_status(reply);
    auto extracted = config_.response.format == config::ResponseFormat::Json
                         ? extract_json(reply.body, config_.records, config_.map, request.now)
                         : extract_lines(reply.body, config_.map, request.now);
    if (!extracted) return failure(FetchReason::Parse, extracted.error().message);
    return answer_of(*std::move(extracted), allow_private_);
  }
  [[nodiscard]] bool authoritative() const noexcept override { return false; }
  [[nodiscard]] std::uint64_t source_version() override { return 0; }

 private:
  [[nodiscard]] ports::HttpCall call_for(std::uint32_t wanted) const {
    ports::HttpCall call;
    call.method = config_.request.method;
    std::string url(config_.request.url.render(wanted).reveal());
    char separator = url.find('?') == std::string::npos ? '?' : '&';
    for (const auto& [name, value] : config_.request.query) {
      url += separator;
      url += domain::detail::percent_encode(name) + "=" +
             domain::detail::percent_encode(value.render(wanted).reveal());
      separator = '&';
    }
    call.url = SecretString(std::move(url));
    for (const auto& [name, value] : config_.request.headers) {
      call.headers.emplace_back(name, value.render(wanted));
    }
    return call;
  }

  static FetchAnswer bad_status(const ports::HttpReply& reply) {
    const FetchReason reason = reply.status == 401 || reply.status == 403 ? FetchReason::Auth
                               : reply.status == 429                      ? FetchReason::RateLimited
                                                                          : FetchReason::Status;
    FetchAnswer answer =
        failure(reason, "the vendor answered with status " + std::to_string(reply.status));
    for (const auto& [name, value] : reply.headers) {
      const auto wait = equal_ignoring_case(name, "retry-after")
                            ? parse_number<std::uint32_t>(trim(value))
                            : std::nullopt;
      if (wait) answer.retry_after = seconds(*wait);
    }
    return answer;
  }

  const config::ProviderConfig config_;
  const bool allow_private_;
  ports::HttpCaller& http_;
};

}  // namespace

std::unique_ptr<ports::ProviderApi> make_provider(const config::UpstreamConfig& upstream,
                                                  ports::HttpCaller& http) {
  const config::ProviderConfig& provider = upstream.provider;
  const bool allow_private = upstream.allow_private_addresses;
  switch (provider.type) {
    case config::ProviderType::Static:
      return std::make_unique<StaticProvider>(provider.proxies, allow_private);
    case config::ProviderType::File:
      return std::make_unique<FileProvider>(provider.path, provider.map, allow_private);
    default:
      return std::make_unique<HttpProvider>(upstream, http);
  }
}

}  // namespace proxypool::provider_template
