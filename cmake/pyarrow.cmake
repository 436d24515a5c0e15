# SPDX-License-Identifier: Apache-2.0
# Arrow and Parquet out of the Python package pyarrow, which carries both libraries and their headers: for machines whose
# distribution has no packages of them. Defines the targets that find_package(Arrow) and find_package(Parquet) define.
set(HEDDLE_PYARROW "" CACHE PATH "The folder of the Python package pyarrow, where Arrow and Parquet are taken from it")

function(heddle_arrow_from_pyarrow)
  foreach(library arrow parquet)
    file(GLOB found ${HEDDLE_PYARROW}/lib${library}.so.*)
    if(NOT found OR NOT EXISTS ${HEDDLE_PYARROW}/include/arrow/api.h)
      message(FATAL_ERROR "HEDDLE_PYARROW: no lib${library}.so.* or no include/arrow/api.h in '${HEDDLE_PYARROW}'")
    endif()
    list(GET found 0 found)
    string(TOUPPER ${library} capitals)
    string(SUBSTRING ${capitals} 0 1 first)
    string(SUBSTRING ${library} 1 -1 rest)
    add_library(${first}${rest}::${library}_shared SHARED IMPORTED GLOBAL)
    set_target_properties(${first}${rest}::${library}_shared PROPERTIES
      IMPORTED_LOCATION ${found} INTERFACE_INCLUDE_DIRECTORIES ${HEDDLE_PYARROW}/include)
  endforeach()
endfunction()
