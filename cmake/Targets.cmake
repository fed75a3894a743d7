# Helpers, so that each target is three or four lines.
include(GoogleTest)

# What ThreadSanitizer runs: the test programs labelled `tsan`, and nothing else.
add_custom_target(pp_tsan_tests)
add_custom_target(pp_fuzz_targets)

# pp_library(NAME SOURCES a.cpp … DEPS proxypool::core …): a static library proxypool::NAME.
function(pp_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(proxypool_${name} STATIC ${ARG_SOURCES})
  add_library(proxypool::${name} ALIAS proxypool_${name})
  target_include_directories(proxypool_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(proxypool_${name} PUBLIC ${ARG_DEPS} PRIVATE proxypool_options)
endfunction()

# pp_executable(NAME SOURCES … DEPS …): a program in build/<preset>/bin.
function(pp_executable name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} proxypool_options)
endfunction()

# pp_test(NAME LABELS unit … SOURCES … DEPS … [TIMEOUT s]): one test program, each test known to
# ctest. The label `tsan` puts it into the ThreadSanitizer run, `long` takes it out of the gate.
function(pp_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LABELS;SOURCES;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE
    PROXYPOOL_SOURCE_DIR="${PROJECT_SOURCE_DIR}" PROXYPOOL_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest_main GTest::gmock
    proxypool_options)
  # Discovery takes a list of labels apart and keeps only the first; joined into one they are still
  # found, since ctest looks for labels by expression.
  list(JOIN ARG_LABELS "-" label)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS "${label}" TIMEOUT ${ARG_TIMEOUT})
  if("tsan" IN_LIST ARG_LABELS)
    add_dependencies(pp_tsan_tests ${name})
  endif()
endfunction()

# pp_benchmark(NAME SOURCES … DEPS …): a Google Benchmark program; ctest runs it briefly, so that
# it cannot rot. Real figures come from a release build, run by hand.
function(pp_benchmark name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(PROXYPOOL_SANITIZE)
    return()  # a figure from such a build says nothing
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} benchmark::benchmark proxypool_options)
  add_test(NAME ${name} COMMAND ${name} --benchmark_min_time=0.001)
  set_tests_properties(${name} PROPERTIES LABELS bench TIMEOUT 120)
endfunction()

# pp_fuzz(NAME SOURCES … DEPS … [CORPUS dir]): under the fuzz preset a libFuzzer program; in every
# other build a program that replays the corpus, run by ctest.
function(pp_fuzz name)
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_CORPUS)
    set(ARG_CORPUS ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
  endif()
  if(PROXYPOOL_FUZZ)
    add_executable(${name} ${ARG_SOURCES})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(pp_fuzz_targets ${name})
  else()
    add_executable(${name} ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cpp)
    add_test(NAME ${name}_corpus COMMAND ${name} ${ARG_CORPUS})
    set_tests_properties(${name}_corpus PROPERTIES LABELS fuzz TIMEOUT 60)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} proxypool_options)
endfunction()
