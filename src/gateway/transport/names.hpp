// One thread's side of a resolver: what it was told, and which connections wait to be told.
//
// Thread rule: the loop's thread.
// Limits:      those of NameTable; the waiting ones are connections.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "gateway/transport/resolver.hpp"
#include "net/event_loop.hpp"
#include "proxypool/base/time.hpp"

namespace proxypool::gateway {

class Connection;

class Names {
 public:
  Names(Resolver& resolver, net::EventLoop& loop);
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;

  // What the name means, good until the next call. Null: it is being looked up, and then the
  // connection's resolved() is called, unless it asks for another name or is forgotten before.
  [[nodiscard]] const Resolved* find(const std::string& name, TimePoint now,
                                     Connection& connection);
  void forget(Connection& connection);

 private:
  void on_resolved(const std::string& name, const Resolved& resolved);

  net::EventLoop& loop_;
  Resolver& resolver_;
  Resolver::Asker asker_;
  NameTable known_;
  std::unordered_map<std::string, std::vector<Connection*>> waiting_;
  std::unordered_map<Connection*, std::string> name_of_;  // of those who wait
};

}  // namespace proxypool::gateway
