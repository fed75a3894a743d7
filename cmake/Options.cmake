# Build options, warnings and sanitizers. Everything that our own code is compiled with hangs on
# the interface target proxypool_options; generated and third-party code never links it.
option(PROXYPOOL_TESTS "Build tests and benchmarks" ON)
option(PROXYPOOL_FUZZ "Build libFuzzer targets (clang only)" OFF)
set(PROXYPOOL_SANITIZE "" CACHE STRING "Sanitizers, for example address;undefined or thread")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The base folder and the missing build folder in the hash let a second clone hit the cache.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

add_library(proxypool_options INTERFACE)
target_compile_options(proxypool_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wold-style-cast -Wnon-virtual-dtor
  -Woverloaded-virtual -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 takes an engaged std::optional for uninitialised once it optimises (GCC bug 80635).
  target_compile_options(proxypool_options INTERFACE
    $<$<CONFIG:Release>:-Wno-maybe-uninitialized>)
endif()

if(PROXYPOOL_SANITIZE)
  string(REPLACE ";" "," sanitizers "${PROXYPOOL_SANITIZE}")
  add_compile_options(-fsanitize=${sanitizers} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${sanitizers})
  if("address" IN_LIST PROXYPOOL_SANITIZE)
    # The check of types by their virtual table asks the system by a pipe whether memory can be
    # read, and so accuses whoever has just run out of descriptors.
    add_compile_options(-fno-sanitize-recover=all -fno-sanitize=vptr)
  endif()
  if("thread" IN_LIST PROXYPOOL_SANITIZE)
    # GCC warns about the fences inside Asio; the fences themselves are sound.
    add_compile_options(-Wno-tsan)
  endif()
endif()
if(PROXYPOOL_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
