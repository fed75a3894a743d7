#include "net/name_lookup.hpp"

#include <netdb.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>

#include "proxypool/base/concurrent.hpp"
#include "runtime/boot_clock.hpp"

namespace proxypool::net {
namespace {

using Answer = Result<std::vector<Endpoint>>;

std::atomic<int> lookups{0};

Error dns_error(ErrorCode code, const std::string& host, std::string_view why, bool retryable) {
  return {code, Origin::Target, "cannot resolve " + host + ": " + std::string(why), retryable};
}

Answer resolve_now(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (code != 0) {
    const bool absent = code == EAI_NONAME || code == EAI_NODATA;
    return dns_error(absent ? ErrorCode::NotFound : ErrorCode::Unavailable, host,
                     ::gai_strerror(code), !absent);
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, &::freeaddrinfo);
  std::vector<Endpoint> out;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    sockaddr_storage storage{};
    std::memcpy(&storage, entry->ai_addr, entry->ai_addrlen);
    out.push_back({to_endpoint(storage).address, port});
  }
  if (out.empty()) return dns_error(ErrorCode::NotFound, host, "no address", false);
  return out;
}

}  // namespace

Answer look_up(const std::string& host, std::uint16_t port, Deadline deadline) {
  if (const auto literal = IpAddress::parse(host)) return std::vector{Endpoint{*literal, port}};
  if (lookups.fetch_add(1) >= kLookupsMax) {
    lookups.fetch_sub(1);
    return dns_error(ErrorCode::Exhausted, host, "too many look-ups at once", true);
  }
  const auto answers = std::make_shared<BoundedQueue<Answer>>(1);
  try {
    std::thread([answers, host, port] {
      static_cast<void>(answers->try_push(resolve_now(host, port)));
      lookups.fetch_sub(1);
    }).detach();
  } catch (const std::system_error&) {
    lookups.fetch_sub(1);
    return dns_error(ErrorCode::Exhausted, host, "no thread left", true);
  }
  auto answer = answers->pop_for(deadline.left(runtime::boot_now()));
  if (answer) return *std::move(answer);
  return dns_error(ErrorCode::DeadlineExceeded, host, "no answer in time", true);
}

}  // namespace proxypool::net
