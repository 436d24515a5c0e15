# SPDX-License-Identifier: Apache-2.0
# The compiler settings of every target, and the functions that CMakeLists.txt is written in.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(HEDDLE_WARNINGS_AS_ERRORS "Stop at the first compiler warning" ON)
set(HEDDLE_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize=, e.g. address,undefined or thread")

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(heddle_options INTERFACE)
# The baseline is AVX2 and FMA, whatever machine builds it. Nothing may contract a*b+c on its own (docs/numerics.md R1).
target_compile_options(heddle_options INTERFACE -march=x86-64-v3 -mtune=generic -ffp-contract=off -fno-math-errno -Wall -Wextra -Wno-psabi -Wno-missing-field-initializers)
if(HEDDLE_WARNINGS_AS_ERRORS)
  target_compile_options(heddle_options INTERFACE -Werror)
endif()
if(HEDDLE_SANITIZE)
  target_compile_options(heddle_options INTERFACE -fsanitize=${HEDDLE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -Wno-maybe-uninitialized)
  target_link_options(heddle_options INTERFACE -fsanitize=${HEDDLE_SANITIZE})
endif()
target_include_directories(heddle_options INTERFACE ${CMAKE_SOURCE_DIR})

# heddle_library(NAME DEPENDS ...): all sources under NAME/ but NAME/**/main/.
function(heddle_library name)
  cmake_parse_arguments(arg "" "" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${name}/*.cc)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${name}/*.h)
  list(FILTER sources EXCLUDE REGEX "^${CMAKE_SOURCE_DIR}/.*/main/")  # the checkout itself may be called main
  if(NOT sources)
    add_library(heddle_${name} INTERFACE)
    target_link_libraries(heddle_${name} INTERFACE heddle_options ${arg_DEPENDS})
    return()
  endif()
  add_library(heddle_${name} STATIC ${sources})
  target_sources(heddle_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR} FILES ${headers})
  set_target_properties(heddle_${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  target_link_libraries(heddle_${name} PUBLIC heddle_options ${arg_DEPENDS})
endfunction()

# heddle_proto_library(NAME): messages and services of NAME/*.proto.
function(heddle_proto_library name)
  file(GLOB protos CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${name}/*.proto)
  set(out ${CMAKE_BINARY_DIR}/generated)
  set(generated)
  foreach(proto ${protos})
    get_filename_component(base ${proto} NAME_WE)
    set(files ${out}/${name}/${base}.pb.cc ${out}/${name}/${base}.pb.h ${out}/${name}/${base}.grpc.pb.cc ${out}/${name}/${base}.grpc.pb.h)
    add_custom_command(
      OUTPUT ${files}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${out}
      COMMAND protobuf::protoc --proto_path=${CMAKE_SOURCE_DIR} --cpp_out=${out} --grpc_out=${out}
              --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN} ${proto}
      DEPENDS ${proto})
    list(APPEND generated ${files})
  endforeach()
  if(NOT generated)
    add_library(heddle_${name} INTERFACE)
    target_link_libraries(heddle_${name} INTERFACE heddle_options)
    return()
  endif()
  add_library(heddle_${name} STATIC ${generated})
  target_include_directories(heddle_${name} SYSTEM PUBLIC ${out})
  target_compile_options(heddle_${name} PRIVATE -w)
  target_link_libraries(heddle_${name} PUBLIC heddle_options protobuf::libprotobuf PkgConfig::GRPC)
endfunction()

function(heddle_binary name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS})
endfunction()

# heddle_test(NAME FOLDER DEPENDS ...): one GoogleTest binary from all sources in tests/FOLDER.
function(heddle_test name folder)
  cmake_parse_arguments(arg "" "" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} GTest::gtest GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE HEDDLE_SOURCE_DIR="${CMAKE_SOURCE_DIR}" HEDDLE_BINARY_DIR="${CMAKE_BINARY_DIR}")
  add_test(NAME ${name} COMMAND ${name})
endfunction()
