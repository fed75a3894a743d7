#include "config/schema/provider_types.hpp"
#include "config/schema/tables.hpp"
#include "config/schema/types.hpp"

namespace proxypool::config::schema {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr std::uint32_t kListProxiesMax = 100'000;

template <class T, class M>
Row optional_field(std::string key, std::optional<M> T::*member, Type<M> type, std::string sentence,
                   std::string sample) {
  return field(std::move(key), member, optional(std::move(type)), std::move(sentence))
      .sample(std::move(sample));
}

Type<ExpirySpec> expires() {
  using E = ExpirySpec;
  return object<E>(section<E>({
      optional_field("after", &E::after, map_value(),
                     "How many units from the receipt of the answer on.", "item.ttl"),
      optional_field("epoch", &E::epoch, map_value(), "When, in units since 1970.",
                     "item.expires_at"),
      field("unit", &E::unit,
            word<TimeUnit>({TimeUnit::S, TimeUnit::Ms, TimeUnit::Min, TimeUnit::H}),
            "What one of the number means."),
  }));
}

Type<MapConfig> map() {
  using M = MapConfig;
  return object<M>(section<M>({
      optional_field("as", &M::as, endpoint_expression(),
                     "Reads a whole proxy out of one text. Forms: host:port, "
                     "host:port:user:pass, url, user:pass@host:port, user:pass:host:port, "
                     "host:port@user:pass.",
                     "\"proxy(item.endpoint, 'host:port')\""),
      optional_field("scheme", &M::scheme, map_value(),
                     "What the proxy speaks; http or https; a record with another one is invalid.",
                     "item.protocol"),
      optional_field("host", &M::host, map_value(), "Host of the proxy.", "item.ip"),
      optional_field("port", &M::port, map_value(), "Port of the proxy.", "item.port"),
      optional_field("username", &M::username, map_value(), "User name at the proxy.", "item.user"),
      optional_field("password", &M::password, map_value(), "Password at the proxy.", "item.pass"),
      field("expires", &M::expires, optional(expires()),
            "When the proxy ends; exactly one of after and epoch."),
      optional_field("country", &M::country, map_value(), "Country of the exit.", "item.country"),
      optional_field("region", &M::region, map_value(), "Region of the exit.", "item.region"),
      optional_field("city", &M::city, map_value(), "City of the exit.", "item.city"),
      optional_field("carrier", &M::carrier, map_value(), "Carrier of the exit.", "item.isp"),
      field("tags", &M::tags, keyed(map_value(), 16, complain_about_member_name),
            "Further labels of the proxy.")
          .sample("{plan: item.plan}"),
  }));
}

Type<RequestConfig> request() {
  using R = RequestConfig;
  Type<std::string> get = text();
  get.described = "GET";
  get.json_schema = words_schema({"GET"});
  get.read = [](const Node& node, Reader& reader, std::string& into) {
    std::size_t index = 0;
    if (!read_word(node, reader, {"GET", "POST"}, {"GET"}, index)) return false;
    into = "GET";
    return true;
  };
  return object<R>(section<R>({
      field("method", &R::method, get, "Method of the request."),
      field("url", &R::url, template_url(), "Where the vendor answers.")
          .must("https://api.vendor.example/proxies"),
      field("query", &R::query, keyed(template_text(), 100, complain_about_query_key),
            "Added to the URL, percent-encoded, in this order.")
          .sample("{num: \"{{ batch }}\", key: \"{{ secret.key }}\"}"),
      field("headers", &R::headers, keyed(template_text(), 50, complain_about_header_name),
            "Header fields of the request.")
          .sample("{Authorization: \"Bearer {{ secret.key }}\"}"),
  }));
}

Type<ProviderConfig> provider() {
  using P = ProviderConfig;
  const auto response = object<ResponseConfig>(section<ResponseConfig>({
      field("format", &ResponseConfig::format,
            word<ResponseFormat>({ResponseFormat::Text, ResponseFormat::Json}),
            "text: one proxy a line; json: a list of records."),
  }));
  const auto records = object<RecordsConfig>(section<RecordsConfig>({
      field("from", &RecordsConfig::from, records_path(), "Where the list is in a JSON answer."),
  }));
  auto rows = std::make_shared<Section>(*section<P>({
      field("type", &P::type,
            word<ProviderType>({ProviderType::Static, ProviderType::File, ProviderType::Http}),
            "static: a list in this file; file: a list in a file of its own; http: a vendor's "
            "API.")
          .must("static"),
      field("proxies", &P::proxies, list_of(proxy(), 1, kListProxiesMax), "The list.")
          .must("[\"http://user:pass@192.0.2.10:8080\"]")
          .only_for({"static"}),
      field("path", &P::path, file_path(),
            "The list, one proxy a line, read again when it changes; relative to this file.")
          .must("proxies.txt")
          .only_for({"file"}),
      field("secrets", &P::secrets, keyed(secret(), 32, complain_about_member_name),
            "Names for secrets, used as secret.NAME below.")
          .sample("{key: {env: VENDOR_KEY}}")
          .only_for({"http"}),
      field("request", &P::request, request(), "The call.")
          .must("{url: \"https://…\"}")
          .only_for({"http"}),
      field("response", &P::response, response, "The answer.").only_for({"http"}),
      field("records", &P::records, records, "The records in a JSON answer.")
          .where<P>([](const P& p) { return p.response.format == ResponseFormat::Json; })
          .only_for({"http"}),
      field("map", &P::map, map(),
            "How a record becomes a proxy. In a text answer `item` is the line, and without a "
            "map a line is host:port[:user:pass] or a URL.")
          .only_for({"http"}),
  }));
  rows->discriminator = "type";
  rows->variants = {"static", "file", "http"};
  Type<P> type = object<P>(rows);
  type.read = [rows](const Node& node, Reader& reader, P& into) {
    reader.provider_secrets = &into.secrets;
    const bool good = read_section(*rows, node, reader, &into);
    reader.provider_secrets = nullptr;
    return good;
  };
  return type;
}

Type<FetchConfig> fetch() {
  using F = FetchConfig;
  using B = BackoffConfig;
  const auto backoff = object<B>(section<B>({
      field("initial", &B::initial, duration(milliseconds(100), hours(1)),
            "First pause after an error; it doubles with each further one."),
      field("max", &B::max, duration(milliseconds(100), hours(24)), "Longest pause."),
  }));
  return object<F>(section<F>({
      field("requestInterval", &F::request_interval, duration_or_zero(milliseconds(10), hours(24)),
            "Least time between two calls."),
      field("maxInFlight", &F::in_flight_max, integer<std::uint32_t>(1, 100), "Calls at once."),
      field("maxTotal", &F::total_max, integer<std::uint64_t>(0, 1'000'000'000'000ULL),
            "Proxies to take from the vendor, counted since the last reset. 0: no limit."),
      field("estimatedIPsPerCall", &F::estimated_ips_per_call, integer<std::uint32_t>(1, 100'000),
            "Proxies that one call asks for: {{ batch }}, and what a call without a known "
            "result counts as."),
      field("timeout", &F::timeout, duration(milliseconds(100), minutes(5)), "The whole call."),
      field("emptyThreshold", &F::empty_threshold, integer<std::uint32_t>(1, 1000),
            "Answers without a proxy, one after the other, that make sequential routings go on to "
            "their next upstream."),
      field("backoff", &F::backoff, backoff, "Pauses after errors."),
  }));
}

Type<PoolConfig> pool() {
  using P = PoolConfig;
  return object<P>(section<P>({
      field("minimum", &P::minimum, integer<std::uint32_t>(0, 1'000'000'000),
            "Available slots below which the pool is refilled."),
      field("target", &P::target, integer<std::uint32_t>(0, 1'000'000'000),
            "Available slots up to which the pool is refilled."),
      field("maxSize", &P::size_max, integer<std::uint32_t>(1, 1'000'000),
            "Proxies of this upstream; more are not taken.")
          .defaults_to("1000; 100000 for static and file"),
      field("defaultTTL", &P::default_ttl, duration_or_zero(seconds(1), hours(8760)),
            "Life of a proxy whose vendor names none. 0: no end.")
          .defaults_to("5m; 0 for static and file"),
      field("maxTTL", &P::ttl_max, duration_or_zero(seconds(1), hours(8760)),
            "Longest life, whatever the vendor says. 0: no cap.")
          .defaults_to("24h; 0 for static and file"),
      field("allocationSafetyMargin", &P::allocation_safety_margin,
            duration_or_zero(milliseconds(100), hours(1)),
            "A proxy takes no new work so long before its end."),
      field("maxConcurrency", &P::concurrency_max,
            integer<std::uint32_t>(1, limits::kProxyConcurrencyMax),
            "Requests and tunnels at once through one proxy."),
  }));
}

Type<UpstreamExtractionConfig> extraction() {
  using E = UpstreamExtractionConfig;
  return object<E>(section<E>({
      field("extractable", &E::extractable, boolean(),
            "Whether the Distribution API may hand proxies of this upstream out.")
          .defaults_to("true; false for static and file"),
      field("reserve", &E::reserve, optional(integer<std::uint32_t>(0, 1'000'000)),
            "Proxies kept away from gateways, ready for extraction.")
          .sample("20")
          .defaults_to("10 % of the pool, at least 1"),
      field("reserveForGateway", &E::reserve_for_gateway, integer<std::uint32_t>(0, 1'000'000),
            "Available proxies that extraction must leave."),
  }));
}

Type<CheckConfig> check_overrides() {
  using C = CheckConfig;
  return object<C>(section<C>({
      field("basic", &C::basic,
            object<BasicCheckConfig>(section<BasicCheckConfig>(basic_check_rows())),
            "As check.basic."),
      field("unhealthyRetention", &C::unhealthy_retention, duration(seconds(1), hours(24)),
            "As check.unhealthyRetention."),
  }));
}

// Defaults that hang on the provider's type, and what is inherited from the sections above.
UpstreamConfig new_upstream(const Node& node, Reader& reader) {
  UpstreamConfig upstream;
  if (reader.root != nullptr) upstream.check = reader.root->check;
  const Node* provider_node = node.find("provider");
  const Node* type = provider_node == nullptr ? nullptr : provider_node->find("type");
  const bool is_list = type != nullptr && (type->text == "static" || type->text == "file");
  if (is_list) {
    upstream.pool.size_max = kListProxiesMax;
    upstream.pool.default_ttl = upstream.pool.ttl_max = nanoseconds{0};
    upstream.extraction.extractable = false;
    upstream.allow_private_addresses = true;
  }
  return upstream;
}

}  // namespace

Type<std::vector<UpstreamConfig>> upstreams() {
  using U = UpstreamConfig;
  const auto element = object<U>(section<U>({
      field("id", &U::id, name_id<UpstreamId>(), "Names the upstream.").must("my-list"),
      field("enabled", &U::enabled, boolean(),
            "An upstream that is off fetches nothing and takes no new work."),
      field("provider", &U::provider, provider(), "Where the proxies come from.")
          .must("{type: static, proxies: [\"192.0.2.10:8080\"]}"),
      field("fetch", &U::fetch, fetch(), "Calls to the vendor; for provider type http alone.")
          .as_comment()
          .where<U>([](const U& upstream) { return upstream.provider.type == ProviderType::Http; }),
      field("pool", &U::pool, pool(), "How many proxies are kept, and for how long."),
      field("extraction", &U::extraction, extraction(), "Handing proxies out."),
      field("allowPrivateAddresses", &U::allow_private_addresses, boolean(),
            "Accept proxies on loopback, private and link-local addresses.")
          .defaults_to("false; true for static and file"),
      field("check", &U::check, check_overrides(),
            "Overrides of check for this upstream; what is absent is as there.")
          .as_comment(),
      field("tags", &U::tags, tags(), "Labels of every proxy of this upstream.")
          .sample("{tier: gold}"),
  }));
  return list_of<U>(element, 0, 1000, new_upstream);
}

}  // namespace proxypool::config::schema
