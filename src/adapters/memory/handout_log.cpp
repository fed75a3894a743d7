#include "adapters/memory/handout_log.hpp"

#include <algorithm>
#include <utility>

namespace proxypool::memory {

namespace {

constexpr std::string_view kAssociated = "proxypool handout 1";

// A flat encoding: integers as 8 bytes little endian, texts with their length before them.
class Writer {
 public:
  void number(std::uint64_t value) {
    for (unsigned shift = 0; shift < 64; shift += 8) out_ += static_cast<char>(value >> shift);
  }
  void text(std::string_view value) {
    number(value.size());
    out_ += value;
  }
  void time(StoreTime value) {
    number(static_cast<std::uint64_t>(value.time_since_epoch().count()));
  }
  void time(const std::optional<StoreTime>& value) {
    number(value ? 1 : 0);
    if (value) time(*value);
  }
  [[nodiscard]] const std::string& bytes() const noexcept { return out_; }

 private:
  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  std::uint64_t number() {
    if (rest_.size() < 8) {
      good_ = false;
      return 0;
    }
    std::uint64_t value = 0;
    for (unsigned i = 0; i < 8; ++i) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
    }
    rest_.remove_prefix(8);
    return value;
  }
  std::string text() {
    const std::uint64_t size = number();
    if (size > rest_.size()) {
      good_ = false;
      return {};
    }
    std::string value(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return value;
  }
  StoreTime time() { return StoreTime{milliseconds{static_cast<std::int64_t>(number())}}; }
  std::optional<StoreTime> maybe_time() {
    if (number() == 0) return std::nullopt;
    return time();
  }
  [[nodiscard]] bool good() const noexcept { return good_ && rest_.empty(); }
  [[nodiscard]] bool going() const noexcept { return good_; }

 private:
  std::string_view rest_;
  bool good_ = true;
};

void write(Writer& out, const domain::ExtractedProxy& entry) {
  const domain::Proxy& proxy = entry.proxy;
  out.number(proxy.id.value());
  out.number(static_cast<std::uint64_t>(proxy.endpoint.scheme));
  out.text(proxy.endpoint.host);
  out.number(proxy.endpoint.port);
  out.text(proxy.credential_version.str());
  out.text(proxy.upstream.str());
  out.time(proxy.created_at);
  out.time(proxy.expires_at);
  out.number(proxy.vendor_expiry ? 1 : 0);
  out.text(proxy.attributes.country);
  out.text(proxy.attributes.region);
  out.text(proxy.attributes.city);
  out.text(proxy.attributes.carrier);
  out.number(proxy.tags.size());
  for (const auto& [key, value] : proxy.tags) {
    out.text(key);
    out.text(value);
  }
  out.text(entry.credential.username);
  out.text(entry.credential.password.reveal());
}

domain::ExtractedProxy read_proxy(Reader& in) {
  domain::ExtractedProxy entry;
  domain::Proxy& proxy = entry.proxy;
  proxy.id = ProxyId(in.number());
  proxy.endpoint.scheme = static_cast<domain::Scheme>(in.number() % 3);
  proxy.endpoint.host = in.text();
  proxy.endpoint.port = static_cast<std::uint16_t>(in.number());
  proxy.credential_version = domain::CredentialVersion(in.text());
  proxy.upstream = UpstreamId(in.text());
  proxy.created_at = in.time();
  proxy.expires_at = in.maybe_time();
  proxy.vendor_expiry = in.number() != 0;
  proxy.attributes.country = in.text();
  proxy.attributes.region = in.text();
  proxy.attributes.city = in.text();
  proxy.attributes.carrier = in.text();
  for (std::uint64_t tags = in.number(); tags > 0 && in.going(); --tags) {
    std::string key = in.text();
    proxy.tags[std::move(key)] = in.text();
  }
  entry.credential.username = in.text();
  entry.credential.password = SecretString(in.text());
  proxy.username = entry.credential.username;
  proxy.state = domain::ProxyState::Extracted;
  return entry;
}

std::string encode(const Handout& handout) {
  Writer out;
  out.text(handout.client);
  out.text(handout.idempotency_key);
  out.text(handout.request_digest);
  out.time(handout.replay_until);
  out.time(handout.at);
  out.number(handout.proxies.size());
  for (const auto& proxy : handout.proxies) write(out, proxy);
  return out.bytes();
}

std::optional<Handout> decode(std::string_view bytes) {
  Reader in(bytes);
  Handout handout;
  handout.client = in.text();
  handout.idempotency_key = in.text();
  handout.request_digest = in.text();
  handout.replay_until = in.time();
  handout.at = in.time();
  for (std::uint64_t left = in.number(); left > 0 && in.going(); --left) {
    handout.proxies.push_back(read_proxy(in));
  }
  if (!in.good()) return std::nullopt;
  return handout;
}

}  // namespace

HandoutLog::HandoutLog(ports::DurableLog* log, SecretString key, ports::Crypto& crypto)
    : log_(log), key_(std::move(key)), crypto_(crypto) {}

Status HandoutLog::load(const std::function<void(Handout)>& take) {
  if (!log_) return ok();
  bool readable = true;
  PP_TRY(const Unit replayed, log_->replay([&](std::string_view record) {
    const auto plain = crypto_.open(key_.reveal(), kAssociated, record);
    auto handout = plain ? decode(plain->reveal()) : std::nullopt;
    if (handout) {
      take(*std::move(handout));
    } else {
      readable = false;
    }
  }));
  size_after_rewrite_ = log_->size_bytes();
  if (readable) return replayed;
  return Error{ErrorCode::Corrupt, Origin::Store,
               "the hand-out log was sealed with another cluster.identityKey; give the old key "
               "back, or move handouts.log away (what was handed out before is then forgotten)"};
}

Result<std::string> HandoutLog::seal(const Handout& handout) {
  return crypto_.seal(key_.reveal(), kAssociated, encode(handout));
}

Status HandoutLog::append(const Handout& handout) {
  if (!log_) return ok();
  PP_TRY(const std::string record, seal(handout));
  return log_->append(record);
}

bool HandoutLog::worth_rewriting() const {
  constexpr std::size_t kAtLeast = std::size_t{4} << 20U;
  return log_ && log_->size_bytes() > std::max(kAtLeast, 2 * size_after_rewrite_);
}

Status HandoutLog::rewrite(const std::vector<Handout>& handouts) {
  if (!log_) return ok();
  std::vector<std::string> records;
  records.reserve(handouts.size());
  for (const Handout& handout : handouts) {
    PP_TRY(std::string record, seal(handout));
    records.push_back(std::move(record));
  }
  PP_TRY(const Unit rewritten, log_->rewrite(records));
  size_after_rewrite_ = log_->size_bytes();
  return rewritten;
}

}  // namespace proxypool::memory
