// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tests/fuzz/chooser.h"

namespace heddle::fuzz {

/// A file of data, the metadata beside it, and the words that a script reads it with.
struct DataFile {
  std::string name;
  std::string bytes;
  std::string metadata;      ///< Text of NAME.mtd; no such file if empty.
  std::string read_options;  ///< ", format=\"csv\"" and the like, behind the path.
};

/// A small matrix in one of the formats that are read, valid in itself.
DataFile GenerateData(Chooser& choose);

/// The same damaged, in its bytes, its lines, its fields, its metadata or its compression.
void MutateData(DataFile* file, Chooser& choose);

/// The bytes as a gzip file of one member.
std::string Gzip(const std::string& bytes);

/// Reads the file in one of several ways, prints what was read, and writes it again in the other formats.
std::string ScriptThatReads(const DataFile& file, Chooser& choose);

}  // namespace heddle::fuzz
