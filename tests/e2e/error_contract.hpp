// How the tests of the error contract say what they provoke and what must come of it.
//
// A Case provokes one refusal through the real programs. What the answer must look like stands in
// one table here, written down from the specification and not read from the product's own table.
//
// Thread rule: one thread, that of the test; the vendor's scripts run on their own.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "proxypool/domain/traffic/error_contract.hpp"
#include "support/cluster.hpp"
#include "support/raw_sockets.hpp"

namespace proxypool::e2e {

using domain::Refusal;
using testing::Peer;

// A cluster in a state in which cases can be provoked.
struct Stage {
  support::Cluster& cluster;
  std::string credentials{};        // of a client that is served: a whole header line
  std::string served{};             // a host whose requests are; empty: none is
  std::vector<Peer> held{};         // connections that must stay open meanwhile
  std::function<void(int)> tell{};  // an https proxy how to behave
};

struct Case {
  std::string name;
  Refusal refusal;
  bool connect = false;
  // Asks, on a connection of its own, whose next answer is the refusal.
  std::function<Peer(Stage&)> provoke;
  bool closes = false;       // the connection ends with the answer
  std::string_view error{};  // the RFC 9209 type, where it is not the usual one of this refusal
};

// A plain request to this host, and a tunnel to its port 443. A refused CONNECT closes.
Case plain(Refusal refusal, std::string host, std::string_view error = {});
Case tunnel(Refusal refusal, std::string host, std::string_view error = {});
// Bytes as they stand.
Case raw(std::string name, Refusal refusal, std::string request, bool closes = true);
Case raw_connect(std::string name, Refusal refusal, std::string request, bool closes = true);

std::string get(std::string_view host, std::string_view fields = {});
std::string connect_to(std::string_view host, std::string_view fields = {});
Peer ask(Stage& stage, std::string_view request);
// A tunnel that stands, kept in stage.held.
void hold_tunnel(Stage& stage, std::string_view host, std::string_view fields = {});

// Provokes each and judges the answer: status line, fields, body, end of the connection.
void expect_each(const std::vector<Case>& cases, Stage& stage);
// Of what was asked for before.
void expect_answer(const Case& expected, Peer& peer, Stage& stage);

// Every case, whatever its stage.
std::vector<Case> vendor_cases();
std::vector<Case> access_cases();
std::vector<Case> viewless_cases();
std::vector<Case> draining_cases();

// A vendor's proxy that does what the first label of the target's host says; `ok` and whatever it
// does not know is served.
void play_vendor(Peer& peer, int number);
// What it says, if it is an answer that a request gets.
std::string_view vendor_answer(std::string_view host);

}  // namespace proxypool::e2e
