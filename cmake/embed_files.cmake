# SPDX-License-Identifier: Apache-2.0
# Writes files into a source file, as a table of {path, text}:
#   cmake -DFOLDER=library -DPATTERNS=*.dml -DHEADER=compiler/library/library_files.h -DNAMESPACE=heddle::compiler
#         -DTYPE=LibraryFile -DFUNCTION=LibraryFiles -DOUT=library_table.cc -P embed_files.cmake
# HEADER declares TYPE, two views, and FUNCTION, which returns a span of them, by path.
set(files "")
foreach(pattern ${PATTERNS})
  file(GLOB_RECURSE found RELATIVE ${FOLDER} ${FOLDER}/${pattern})
  list(APPEND files ${found})
endforeach()
list(SORT files)
set(entries "")
foreach(name ${files})
  file(READ ${FOLDER}/${name} text)
  string(APPEND entries "    {\"${name}\"sv, R\"heddle(${text})heddle\"sv},\n")
endforeach()
get_filename_component(folder ${FOLDER} NAME)
file(WRITE ${OUT} "// Made from ${folder}/ by cmake/embed_files.cmake.
#include \"${HEADER}\"

namespace ${NAMESPACE} {
namespace {

using namespace std::string_view_literals;

constexpr ${TYPE} kFiles[] = {
${entries}};

}  // namespace

std::span<const ${TYPE}> ${FUNCTION}() { return kFiles; }

}  // namespace ${NAMESPACE}
")
