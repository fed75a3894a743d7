// SHA-256 over a body that is never held as a whole.
//
// Thread rule: one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace proxypool::loadgen {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void add(std::string_view bytes);
  // 64 hexadecimal digits. REQUIRES: called once, last.
  std::string finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace proxypool::loadgen
