# SPDX-License-Identifier: Apache-2.0
# Files of one folder are compiled several at a time: headers are parsed, and templates compiled, once a batch and not once
# a file. Files may use the same names in their anonymous namespaces: such files come into different batches (batches.py).
option(HEDDLE_BATCHES "Compile several files of a folder at a time (release builds; deploy/build sets it)" OFF)
set(heddle_forms_batches OFF)
find_program(HEDDLE_PYTHON_OF_BATCHES python3)
if(HEDDLE_BATCHES AND HEDDLE_PYTHON_OF_BATCHES AND CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(heddle_forms_batches ON)
  # GCC looks for memory that it can use again when it has this many kilobytes; by itself it does when it has 128 MB, again and
  # again for a batch.
  target_compile_options(heddle_options INTERFACE --param=ggc-min-heapsize=524288)
endif()

# Forms batches of the files of each target of this CMakeLists.txt. Files with options of their own, that define macros or
# include headers of Linux are compiled alone, as are those with the property SKIP_UNITY_BUILD_INCLUSION.
function(heddle_batches)
  if(NOT heddle_forms_batches)
    return()
  endif()
  set(lines "")
  get_directory_property(targets BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(NOT type MATCHES "LIBRARY|EXECUTABLE" OR type STREQUAL "INTERFACE_LIBRARY")
      continue()
    endif()
    get_target_property(sources ${target} SOURCES)
    foreach(source ${sources})
      cmake_path(ABSOLUTE_PATH source)
      foreach(property SKIP_UNITY_BUILD_INCLUSION COMPILE_OPTIONS COMPILE_DEFINITIONS)
        get_source_file_property(is_alone ${source} ${property})
        if(is_alone)
          break()
        endif()
      endforeach()
      cmake_path(IS_PREFIX CMAKE_BINARY_DIR ${source} is_made)
      if(source MATCHES "\\.cc$" AND NOT is_alone AND NOT is_made)
        string(APPEND lines "${target} ${source}\n")
      endif()
    endforeach()
    # GCC takes a type of a file that is included for one of a header.
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP
      UNITY_BUILD_CODE_BEFORE_INCLUDE "#pragma GCC diagnostic ignored \"-Wsubobject-linkage\"")
  endforeach()
  set(files ${CMAKE_CURRENT_BINARY_DIR}/batches_of.txt)
  file(WRITE ${files} "${lines}")
  execute_process(COMMAND ${HEDDLE_PYTHON_OF_BATCHES} ${PROJECT_SOURCE_DIR}/cmake/batches.py ${PROJECT_SOURCE_DIR}
    INPUT_FILE ${files} OUTPUT_VARIABLE batches COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" batches "${batches}")
  foreach(batch ${batches})
    string(REPLACE " " ";" batch "${batch}")
    list(POP_FRONT batch target)
    list(GET batch 0 first)
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${first})
    string(MAKE_C_IDENTIFIER "${target}_${name}" name)
    set_source_files_properties(${batch} PROPERTIES UNITY_GROUP ${name})
  endforeach()
endfunction()
