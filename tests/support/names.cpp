// A getaddrinfo() for programs under test (LD_PRELOAD), since none may depend on the names that the
// machine around it knows:
//
//   *.loopback.example   127.0.0.1
//   *.slow.example       the same, but no answer while the file $PROXYPOOL_SLOW_NAMES exists
//   *.nowhere.example    there is no such name
//
// Everything else goes to the system.
//
// Thread rule: any thread.
#include <dlfcn.h>
#include <netdb.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace {

using GetAddrInfo = int (*)(const char*, const char*, const addrinfo*, addrinfo**);

void wait_while_there(const char* file) {
  const timespec pause{0, 20'000'000};
  while (file != nullptr && ::access(file, F_OK) == 0) ::nanosleep(&pause, nullptr);
}

}  // namespace

extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                           addrinfo** out) {
  static const auto next = reinterpret_cast<GetAddrInfo>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  const std::string_view host = name == nullptr ? "" : name;
  if (host.ends_with(".nowhere.example")) return EAI_NONAME;
  const bool slow = host.ends_with(".slow.example");
  if (!slow && !host.ends_with(".loopback.example")) return next(name, service, hints, out);
  if (slow) wait_while_there(std::getenv("PROXYPOOL_SLOW_NAMES"));
  return next("127.0.0.1", service, hints, out);
}
