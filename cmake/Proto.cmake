# pp_proto(NAME file.proto): messages and stubs as one library without our warnings. Only the gRPC
# adapter and its tests link it.
function(pp_proto name)
  add_library(proxypool_${name} STATIC ${ARGN})
  add_library(proxypool::${name} ALIAS proxypool_${name})
  target_link_libraries(proxypool_${name} PUBLIC protobuf::libprotobuf gRPC::grpc++)
  target_include_directories(proxypool_${name} SYSTEM PUBLIC ${CMAKE_CURRENT_BINARY_DIR})
  protobuf_generate(TARGET proxypool_${name} LANGUAGE cpp
    IMPORT_DIRS ${CMAKE_CURRENT_SOURCE_DIR}/proto)
  protobuf_generate(TARGET proxypool_${name} LANGUAGE grpc
    IMPORT_DIRS ${CMAKE_CURRENT_SOURCE_DIR}/proto
    GENERATE_EXTENSIONS .grpc.pb.h .grpc.pb.cc
    PLUGIN "protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>")
endfunction()
