#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "loadgen/commands.hpp"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    return proxypool::loadgen::run_command(arguments);
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "proxy-loadgen: %s\n", failed.what());
    return 1;
  }
}
