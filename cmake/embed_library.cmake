# SPDX-License-Identifier: Apache-2.0
# Writes the functions of library/ into a source file: cmake -DFOLDER=library -DOUT=library_table.cc -P embed_library.cmake
file(GLOB_RECURSE files RELATIVE ${FOLDER} ${FOLDER}/*.dml)
list(SORT files)
set(entries "")
foreach(name ${files})
  file(READ ${FOLDER}/${name} text)
  string(APPEND entries "    {\"${name}\", R\"heddle(${text})heddle\"},\n")
endforeach()
file(WRITE ${OUT} "// Made from library/ by cmake/embed_library.cmake.
#include \"compiler/library/library_files.h\"

namespace heddle::compiler {
namespace {

constexpr LibraryFile kFiles[] = {
${entries}};

}  // namespace

std::span<const LibraryFile> LibraryFiles() { return kFiles; }

}  // namespace heddle::compiler
")
