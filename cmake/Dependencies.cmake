# Every find_package of the project, one name per library. Package names: deploy/local/packages.txt.
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS system url)
find_package(OpenSSL 3.0 REQUIRED)
find_package(Protobuf 3.21 REQUIRED)
find_package(gRPC 1.51 CONFIG REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)  # ships no version file
find_package(yaml-cpp 0.7 CONFIG REQUIRED)
find_package(spdlog 1.10 CONFIG REQUIRED)
find_package(nlohmann_json 3.11 CONFIG REQUIRED)
find_package(PkgConfig REQUIRED)
# Not under the name re2: its cached re2_FOUND would make gRPC's own look-up skip re2::re2.
pkg_check_modules(PP_RE2 REQUIRED IMPORTED_TARGET re2)
add_library(PkgConfig::re2 ALIAS PkgConfig::PP_RE2)
if(PROXYPOOL_TESTS)
  find_package(GTest 1.12 CONFIG REQUIRED)
  find_package(benchmark 1.7 CONFIG REQUIRED)
endif()
