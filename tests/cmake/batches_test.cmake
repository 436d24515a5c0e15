# SPDX-License-Identifier: Apache-2.0
# Which files cmake/batches.cmake compiles as one:
#   cmake -DSOURCE_DIR=... -DFOLDER=<a folder for its files> -P batches_test.cmake
cmake_minimum_required(VERSION 3.25)
# Scripts have neither of these. The second one says here which group a file is in.
macro(option)
endmacro()
function(set_source_files_properties)
  list(FIND ARGV PROPERTIES end)
  list(GET ARGV -1 group)
  list(SUBLIST ARGV 0 ${end} files)
  foreach(file ${files})
    cmake_path(GET file STEM name)
    set_property(GLOBAL PROPERTY group_of_${name} ${group})
  endforeach()
endfunction()
include(${SOURCE_DIR}/cmake/batches.cmake)

file(REMOVE_RECURSE ${FOLDER})
set(PROJECT_SOURCE_DIR ${FOLDER})
set(sources "")
# A file with this text before, in, and behind its anonymous namespace.
function(write_source name before inside behind)
  file(WRITE ${FOLDER}/${name}.cc "// A file.\n${before}\nnamespace heddle {\nnamespace {\n\n${inside}\n}  // namespace\n\n${behind}\n}  // namespace heddle\n")
  set(sources ${sources} ${FOLDER}/${name}.cc PARENT_SCOPE)
endfunction()
file(WRITE ${FOLDER}/a/inner.h "// A header.\nstruct Parts {\n  int count;\n};\n")
file(WRITE ${FOLDER}/a/outer.h "// A header.\n#include \"a/inner.h\"\n")
write_source(a/plain "" "std::vector<std::pair<int, int>> Pairs(int rows) { return {}; }" "int Plain() { return Pairs(1).size(); }")
write_source(a/same_name "" "int Pairs = 1;" "")
write_source(a/mentioned "" "" "// Pairs and kRoom are no names of this file.\nint Mentioned() { return 1; }")
write_source(a/calls_outer "" "constexpr int kRoom = 1;" "int CallsOuter() { return Pairs(2); }")
write_source(a/includes "#include \"a/outer.h\"" "" "int Includes() { return 1; }")
write_source(a/name_of_header "" "struct Parts final : Base {};" "")
write_source(a/alias "" "" "using Plain = int;")
write_source(a/used "" "using other::Plain;" "")
write_source(a/macro "#define HEDDLE_ONCE 1\n" "" "")
write_source(a/kernel "#include <linux/tcp.h>\n" "" "")
foreach(number RANGE 1 9)
  write_source(b/many_${number} "" "" "int Many${number}() { return ${number}; }")
endforeach()
write_source(c/small "" "" "int Small() { return 1; }")
file(WRITE ${FOLDER}/a/support.h "// A header.\nnamespace heddle::testing {\n}\n")
write_source(a/supported "#include \"a/support.h\"" "" "int Supported() { return 1; }")
heddle_form_batches(target "${sources}")

# Fails unless the two files are compiled as one, or unless they are not.
function(expect_together expected first second)
  get_property(group_of_first GLOBAL PROPERTY group_of_${first})
  get_property(group_of_second GLOBAL PROPERTY group_of_${second})
  set(together OFF)
  if(group_of_first AND group_of_first STREQUAL group_of_second)
    set(together ON)
  endif()
  if(NOT together STREQUAL expected)
    message(SEND_ERROR "${first} (${group_of_first}) and ${second} (${group_of_second}): together is ${together}, not ${expected}")
  endif()
endfunction()
expect_together(ON plain mentioned)             # A comment uses no name.
expect_together(OFF plain same_name)            # Both declare it.
expect_together(OFF plain calls_outer)          # It calls another function of this name.
expect_together(OFF same_name calls_outer)
expect_together(ON plain includes)
expect_together(OFF includes name_of_header)    # A header that the one includes declares a name that the other has.
expect_together(ON same_name name_of_header)
expect_together(OFF alias plain)                # Outside of its anonymous namespace it has the other one's name.
expect_together(OFF used plain)
expect_together(OFF macro plain)                # What a macro is to others is not looked for.
expect_together(OFF kernel plain)
expect_together(ON many_1 many_8)
expect_together(OFF many_1 many_9)              # Eight files are a batch.
expect_together(ON many_9 small)                # Of two folders that have few files left.
expect_together(ON plain small)
expect_together(OFF plain supported)            # testing:: is another namespace there.
