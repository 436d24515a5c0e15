# SPDX-License-Identifier: Apache-2.0
# The compiler settings of every target, and the functions that CMakeLists.txt is written in.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(HEDDLE_WARNINGS_AS_ERRORS "Stop at the first compiler warning" ${PROJECT_IS_TOP_LEVEL})
set(HEDDLE_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize=, e.g. address,undefined or thread")

option(HEDDLE_PRECOMPILED_HEADER "Parse the headers of the standard library once (release builds; deploy/build sets it)" OFF)

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  if(HEDDLE_PRECOMPILED_HEADER)
    # Without these two ccache leaves files with a precompiled header out: none of them depends on a time or on macros
    # that only that header sees.
    set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  endif()
endif()

add_library(heddle_options INTERFACE)
target_compile_features(heddle_options INTERFACE cxx_std_20)
# The baseline is AVX2 and FMA, whatever machine builds it. Nothing may contract a*b+c on its own (docs/numerics.md R1).
target_compile_options(heddle_options INTERFACE -march=x86-64-v3 -mtune=generic -ffp-contract=off -fno-math-errno -Wall -Wextra -Wno-psabi -Wno-missing-field-initializers)
# The same objects are in executables and in the module of Python. Symbols are hidden, so that the compiler inlines as it
# does for an executable.
target_compile_options(heddle_options INTERFACE -fPIC -fvisibility=hidden)
if(HEDDLE_WARNINGS_AS_ERRORS)
  target_compile_options(heddle_options INTERFACE -Werror)
endif()
if(HEDDLE_SANITIZE)
  target_compile_options(heddle_options INTERFACE -fsanitize=${HEDDLE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(heddle_options INTERFACE -fsanitize=${HEDDLE_SANITIZE})
  if(HEDDLE_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_definitions(heddle_options INTERFACE __SANITIZE_ADDRESS__=1)  # GCC's word, which the sources ask for
  endif()
  if(HEDDLE_SANITIZE MATCHES "thread")
    # This sanitizer does not follow Asio's fences; what they order is ordered by a mutex as well.
    set_source_files_properties(cluster/process/interrupt.cc cluster/master/master_server.cc PROPERTIES COMPILE_DEFINITIONS ASIO_DISABLE_FENCED_BLOCK)
  endif()
endif()
target_include_directories(heddle_options INTERFACE ${PROJECT_SOURCE_DIR})

# Headers of the standard library and of fmt, which nearly every file includes, are parsed once: a fifth of the build.
# Files that are compiled for another processor, those of Eigen and modules, whose code lies anywhere in memory, parse them
# by themselves. Every file still names what it uses: builds for development and sanitizers have no precompiled header.
if(HEDDLE_PRECOMPILED_HEADER AND CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT HEDDLE_SANITIZE)
  file(WRITE ${CMAKE_BINARY_DIR}/precompiled.cc "")
  add_library(heddle_precompiled OBJECT ${CMAKE_BINARY_DIR}/precompiled.cc)
  target_link_libraries(heddle_precompiled PRIVATE heddle_options fmt::fmt Threads::Threads)
  target_compile_options(heddle_precompiled PRIVATE -fpch-preprocess)
  target_precompile_headers(heddle_precompiled PRIVATE
    <algorithm> <array> <atomic> <cmath> <cstdint> <cstring> <functional> <map> <memory> <mutex> <optional> <set> <span> <string>
    <string_view> <unordered_map> <utility> <variant> <vector> <fmt/core.h> <fmt/format.h>)
endif()
# heddle_precompile(TARGET [FROM precompiled]): without FROM the headers of the product.
function(heddle_precompile target)
  cmake_parse_arguments(arg "" "FROM" "" ${ARGN})
  if(NOT arg_FROM)
    set(arg_FROM heddle_precompiled)
  endif()
  if(TARGET ${arg_FROM})
    target_precompile_headers(${target} REUSE_FROM ${arg_FROM})
    # GCC 12 takes moved texts, whose code comes from a precompiled header, for shorter than they are. Builds without one warn.
    target_compile_options(${target} PRIVATE -fpch-preprocess -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endfunction()

# heddle_library(NAME [FOLDER folder] [WITHOUT subfolder] DEPENDS ...): all sources under the folder (NAME/) but
# those under a main/ or the named subfolder.
function(heddle_library name)
  cmake_parse_arguments(arg "" "FOLDER;WITHOUT" "DEPENDS" ${ARGN})
  set(folder ${name})
  if(arg_FOLDER)
    set(folder ${arg_FOLDER})
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cc)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.h)
  list(FILTER sources EXCLUDE REGEX "^${PROJECT_SOURCE_DIR}/.*/main/")  # the checkout itself may be called main
  if(arg_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "^${PROJECT_SOURCE_DIR}/${folder}/${arg_WITHOUT}/")
    list(FILTER headers EXCLUDE REGEX "^${PROJECT_SOURCE_DIR}/${folder}/${arg_WITHOUT}/")
  endif()
  if(NOT sources)
    add_library(heddle_${name} INTERFACE)
    target_link_libraries(heddle_${name} INTERFACE heddle_options ${arg_DEPENDS})
    return()
  endif()
  add_library(heddle_${name} STATIC ${sources})
  target_sources(heddle_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${headers})
  set_target_properties(heddle_${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  target_link_libraries(heddle_${name} PUBLIC heddle_options ${arg_DEPENDS})
  heddle_precompile(heddle_${name})
endfunction()

# heddle_embed_files(TARGET FOLDER folder PATTERNS *.dml ... HEADER h NAMESPACE n TYPE t FUNCTION f): the files become a part of
# the target (cmake/embed_files.cmake).
function(heddle_embed_files target)
  cmake_parse_arguments(arg "" "FOLDER;HEADER;NAMESPACE;TYPE;FUNCTION" "PATTERNS" ${ARGN})
  set(files)
  foreach(pattern ${arg_PATTERNS})
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${arg_FOLDER}/${pattern})
    list(APPEND files ${found})
  endforeach()
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake)
  set(table ${CMAKE_CURRENT_BINARY_DIR}/${arg_FOLDER}_table.cc)
  add_custom_command(OUTPUT ${table} DEPENDS ${script} ${files} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${PROJECT_SOURCE_DIR}/${arg_FOLDER} "-DPATTERNS=${arg_PATTERNS}" -DHEADER=${arg_HEADER}
      -DNAMESPACE=${arg_NAMESPACE} -DTYPE=${arg_TYPE} -DFUNCTION=${arg_FUNCTION} -DOUT=${table} -P ${script})
  target_sources(${target} PRIVATE ${table})
  set_source_files_properties(${table} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# heddle_proto_library(NAME): messages and services of NAME/*.proto, and NAME/rpc_rules.h, the table of who may call which method
# (cluster/security/main/write_rules.cc): a method without a rule does not build.
function(heddle_proto_library name)
  file(GLOB protos CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${name}/*.proto)
  set(out ${CMAKE_BINARY_DIR}/generated)
  set(generated)
  foreach(proto ${protos})
    get_filename_component(base ${proto} NAME_WE)
    set(files ${out}/${name}/${base}.pb.cc ${out}/${name}/${base}.pb.h ${out}/${name}/${base}.grpc.pb.cc ${out}/${name}/${base}.grpc.pb.h)
    add_custom_command(
      OUTPUT ${files}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${out}
      COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR} --cpp_out=${out} --grpc_out=${out}
              --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN} ${proto}
      DEPENDS ${protos})
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

  add_executable(heddle-write-rules cluster/security/main/write_rules.cc)
  target_link_libraries(heddle-write-rules PRIVATE heddle_${name})
  set(rules ${out}/${name}/rpc_rules.h)
  add_custom_command(
    OUTPUT ${rules}
    COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR} --include_imports --descriptor_set_out=${rules}.descriptors ${protos}
    COMMAND heddle-write-rules ${rules}.descriptors ${rules}
    DEPENDS ${protos})
  add_custom_target(heddle_rpc_rules DEPENDS ${rules})
endfunction()

# Templates that compile to the same code are in a binary once: a megabyte of the wheel.
function(heddle_folds_code target)
  find_program(GOLD ld.gold)
  if(GOLD AND NOT HEDDLE_SANITIZE)
    target_link_options(${target} PRIVATE -fuse-ld=gold -Wl,--icf=safe)
  endif()
endfunction()

# The module with LLVM inside, which compiler/codegen loads when the first region is compiled: libheddle_codegen.so in the
# build folder, beside the binaries. LLVM is linked statically (opening the shared libLLVM takes 65 ms, this 5-8 ms). Without
# LLVM 19 there is no module and fused operators are interpreted.
function(heddle_codegen_module)
  find_program(LLVM_CONFIG NAMES llvm-config-19 PATHS /usr/lib/llvm-19/bin)
  if(NOT LLVM_CONFIG)
    message(WARNING "LLVM 19 was not found (llvm-config-19): fused operators will be interpreted")
    return()
  endif()
  macro(llvm_config out)
    execute_process(COMMAND ${LLVM_CONFIG} --link-static ${ARGN} OUTPUT_VARIABLE ${out} OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  endmacro()
  llvm_config(include_folder --includedir)
  llvm_config(library_folder --libdir)
  llvm_config(llvm_libraries --libs orcjit x86codegen)
  llvm_config(has_rtti --has-rtti)
  separate_arguments(llvm_libraries)
  set(system_libraries z zstd)
  if(NOT EXISTS ${library_folder}/libLLVMOrcJIT.a)
    set(llvm_libraries LLVM-19)
    set(system_libraries)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/compiler/codegen/module/*.cc)
  # It shares no object files with the program: these are compiled once more.
  add_library(heddle_codegen_module MODULE ${sources} ops/region/region.cc core/call_site.cc core/status.cc core/text/message_lines.cc)
  set_target_properties(heddle_codegen_module PROPERTIES OUTPUT_NAME heddle_codegen LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  target_include_directories(heddle_codegen_module SYSTEM PRIVATE ${include_folder})
  target_compile_definitions(heddle_codegen_module PRIVATE HEDDLE_SIMD_VECTOR_HEADER="compiler/codegen/module/emitted_vector.h")
  if(has_rtti STREQUAL "NO")
    target_compile_options(heddle_codegen_module PRIVATE -fno-rtti)
  endif()
  target_link_directories(heddle_codegen_module PRIVATE ${library_folder})
  # The build id is the hash of the contents that object caches on disk go by.
  target_link_options(heddle_codegen_module PRIVATE -Wl,--gc-sections -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -Wl,--build-id=sha1)
  if(NOT HEDDLE_SANITIZE)
    target_link_options(heddle_codegen_module PRIVATE -Wl,--no-undefined)
  endif()
  heddle_folds_code(heddle_codegen_module)
  target_link_libraries(heddle_codegen_module PRIVATE heddle_options fmt::fmt ${llvm_libraries} ${system_libraries} Threads::Threads)
endfunction()

# heddle._engine, for CPython 3.10 and later: python/heddle in the build folder is the package as it is imported, with links to
# the sources and to the modules that the engine opens.
function(heddle_python_module)
  find_package(Python 3.10 COMPONENTS Interpreter Development.Module)
  if(NOT Python_Development.Module_FOUND)
    message(STATUS "Python's headers were not found (python3-dev): there will be no module of Python")
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/module/*.cc)
  add_library(heddle_python MODULE ${sources})
  set(folder ${CMAKE_BINARY_DIR}/python/heddle)
  file(MAKE_DIRECTORY ${folder})
  set_target_properties(heddle_python PROPERTIES PREFIX "" OUTPUT_NAME _engine SUFFIX .abi3.so LIBRARY_OUTPUT_DIRECTORY ${folder})
  target_include_directories(heddle_python SYSTEM PRIVATE ${Python_INCLUDE_DIRS})
  # Functions of Python's C interface are cast to the one type that its tables have.
  target_compile_options(heddle_python PRIVATE -Wno-cast-function-type)
  target_link_options(heddle_python PRIVATE -Wl,--exclude-libs,ALL -Wl,-Bsymbolic -Wl,--gc-sections)
  heddle_folds_code(heddle_python)
  target_link_libraries(heddle_python PRIVATE heddle_engine)
  file(GLOB package CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/heddle/*)
  foreach(file ${package})
    get_filename_component(name ${file} NAME)
    file(CREATE_LINK ${file} ${folder}/${name} SYMBOLIC)
  endforeach()
  file(MAKE_DIRECTORY ${folder}/bin)
  file(CREATE_LINK ../../../heddle ${folder}/bin/heddle SYMBOLIC)
  foreach(module codegen hdf5 mat arrow)
    file(CREATE_LINK ../../libheddle_${module}.so ${folder}/libheddle_${module}.so SYMBOLIC)
  endforeach()
  file(CREATE_LINK ../../heddle-array-process ${folder}/heddle-array-process SYMBOLIC)
endfunction()

# heddle_format_module(NAME SOURCES... LIBRARIES ...): a module for a format that needs a large library, loaded when a file of
# that format is met (ops/io/formats/libraries/format_module.h): libheddle_NAME.so in the build folder, beside the binaries.
function(heddle_format_module name)
  cmake_parse_arguments(arg "" "" "LIBRARIES" ${ARGN})
  # It shares no object files with the program: these are compiled once more.
  add_library(heddle_${name}_module MODULE ${arg_UNPARSED_ARGUMENTS} core/call_site.cc core/status.cc core/text/message_lines.cc)
  set_target_properties(heddle_${name}_module PROPERTIES OUTPUT_NAME heddle_${name} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  target_link_options(heddle_${name}_module PRIVATE -Wl,--exclude-libs,ALL -Wl,-Bsymbolic)
  target_link_libraries(heddle_${name}_module PRIVATE heddle_options fmt::fmt ${arg_LIBRARIES})
  add_dependencies(heddle_ops heddle_${name}_module)
endfunction()

function(heddle_binary name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} heddle_counted_heap)
  heddle_precompile(${name})
endfunction()

# Sources of tests are optimized less than what they test: at -O1 a file takes two thirds of the time of -O2, and at -O0 half.
# A precompiled header is for one level. With GoogleTest in it a file takes another third less.
function(heddle_precompile_tests level)
  if(NOT TARGET heddle_precompiled OR TARGET heddle_precompiled_tests_${level})
    return()
  endif()
  set(name heddle_precompiled_tests_${level})
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/precompiled.cc)
  target_link_libraries(${name} PRIVATE heddle_options fmt::fmt Threads::Threads GTest::gtest)
  target_compile_options(${name} PRIVATE -fpch-preprocess -${level})
  get_target_property(headers heddle_precompiled PRECOMPILE_HEADERS)
  target_precompile_headers(${name} PRIVATE ${headers} <filesystem> <fstream> <limits> <random> <sstream> <thread> <gtest/gtest.h>)
endfunction()
function(heddle_options_of_tests target level)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-${level}>)
  heddle_precompile_tests(${level})
  heddle_precompile(${target} FROM heddle_precompiled_tests_${level})
endfunction()

# heddle_test(NAME FOLDER [SECONDS s] [SHARDS n] [STARTS_PROCESSES] [END_TO_END] DEPENDS ...): one GoogleTest binary from all sources in
# tests/FOLDER. END_TO_END: it tests the built binary, so nobody waits for what the compiler makes of the test itself.
# ctest runs a long suite as n tests NAME_1 ... NAME_n, each with every n-th case, and begins with what takes longest: SECONDS
# are about those of the whole suite alone on two cores, if it is a long one. A suite takes two of the places of
# `ctest -j4`; one whose processes wait for each other most of the time takes one.
function(heddle_test name folder)
  cmake_parse_arguments(arg "STARTS_PROCESSES;END_TO_END" "SECONDS;SHARDS" "DEPENDS" ${ARGN})
  if(NOT arg_SECONDS)
    set(arg_SECONDS 1)
  endif()
  set(places 2)
  if(arg_STARTS_PROCESSES)
    set(places 1)
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/*.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} heddle_counted_heap GTest::gtest GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE HEDDLE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" HEDDLE_BINARY_DIR="${CMAKE_BINARY_DIR}")
  set(level O1)
  if(arg_END_TO_END)
    set(level O0)
  endif()
  heddle_options_of_tests(${name} ${level})
  if(NOT arg_SHARDS)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES COST ${arg_SECONDS} PROCESSORS ${places})
    return()
  endif()
  math(EXPR last "${arg_SHARDS} - 1")
  math(EXPR cost "(${arg_SECONDS} + ${last}) / ${arg_SHARDS}")
  foreach(shard RANGE ${last})
    math(EXPR number "${shard} + 1")
    add_test(NAME ${name}_${number} COMMAND ${name})
    set_tests_properties(${name}_${number} PROPERTIES
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_SHARDS};GTEST_SHARD_INDEX=${shard}" COST ${cost} PROCESSORS ${places})
  endforeach()
endfunction()
