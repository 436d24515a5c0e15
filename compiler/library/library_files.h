// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::compiler {

/// A file of library/, which is part of the binary.
struct LibraryFile {
  std::string_view path;  ///< Below library/: "regression/lm.dml", "nn/layers/affine.dml".
  std::string_view text;
};

/// All of them, by path (library_table.cc, made by the build).
std::span<const LibraryFile> LibraryFiles();
/// nullptr where there is no such file. `path` is that of a LibraryFile.
const LibraryFile* FindLibraryFile(std::string_view path);
/// The file that defines a function called by its name alone, lm() in "regression/lm.dml"; nullptr when there
/// is none. Files of nn/ and pipelines/scripts/ are sourced instead.
const LibraryFile* FindLibraryFunction(std::string_view name);
/// The name of the function that a file is called by; "" of a file that is sourced.
std::string_view FunctionOf(const LibraryFile& file);

/// The names of all functions that are called by their names alone.
std::vector<std::string> LibraryFunctionNames();

/// The path by which scripts, errors and positions know a file: "heddle:regression/lm.dml".
std::string LibraryPath(const LibraryFile& file);
/// The file of a path "heddle:..."; nullptr when there is none.
const LibraryFile* FindLibraryPath(std::string_view path);

/// Tells libraries with different texts apart: a client and a master may be of different versions.
uint64_t LibraryFingerprint();

}  // namespace heddle::compiler
