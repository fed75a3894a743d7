# pp_embed(TARGET NAMESPACE HEADER name=file …): files as string views in a generated header and
# source, so that a program carries its documents with it.
function(pp_embed target namespace header)
  set(declarations "")
  set(definitions "")
  foreach(entry IN LISTS ARGN)
    string(REPLACE "=" ";" parts ${entry})
    list(GET parts 0 name)
    list(GET parts 1 file)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} text)
    string(APPEND declarations "std::string_view ${name}() noexcept;\n")
    # A literal holds 64 KiB at least; longer documents would have to be cut.
    string(APPEND definitions
      "std::string_view ${name}() noexcept {\n  return R\"~~(${text})~~\";\n}\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/embed/${header} CONTENT
    "#pragma once\n#include <string_view>\nnamespace ${namespace} {\n${declarations}}\n" @ONLY)
  string(REGEX REPLACE "\\.hpp$" ".cpp" source ${header})
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/embed/${source}.new
    "#include \"${header}\"\nnamespace ${namespace} {\n${definitions}}\n")
  configure_file(${CMAKE_CURRENT_BINARY_DIR}/embed/${source}.new
    ${CMAKE_CURRENT_BINARY_DIR}/embed/${source} COPYONLY)
  add_library(${target} STATIC ${CMAKE_CURRENT_BINARY_DIR}/embed/${source})
  target_include_directories(${target} SYSTEM PUBLIC ${CMAKE_CURRENT_BINARY_DIR}/embed)
endfunction()
