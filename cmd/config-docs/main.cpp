// config_docs DIRECTORY: writes the generated files into a checkout.
#include <fstream>
#include <iostream>
#include <string>

#include "config/docs.hpp"

namespace {

bool write(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  std::cout << path << '\n';
  return out.good();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: config_docs DIRECTORY\n";
    return 2;
  }
  const std::string root = argv[1];
  const bool good =
      write(root + "/docs/configuration.md", proxypool::config::configuration_markdown()) &&
      write(root + "/configs/config.schema.json", proxypool::config::json_schema()) &&
      write(root + "/configs/embedded.yaml", proxypool::config::embedded_yaml());
  return good ? 0 : 1;
}
