// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/io/files/files.h"
#include "ops/io/files/script_paths.h"

// The kinds of input file that Files::Open gives.
namespace heddle::ops {

/// Bytes that are in memory already.
std::unique_ptr<InputFile> MakeFileInMemory(CountedBytes bytes);

/// The file at `place`; messages call it `path`. What is no ordinary file is refused without opening it,
/// because opening a pipe may wait for ever; so is another version than `versions` (nullptr: any) expects.
Result<std::unique_ptr<InputFile>> OpenOrdinaryFile(const FilePlace& place, const std::string& path,
                                                    const FileVersions* versions);

/// The descriptor from which all bytes of the file can be read at their own offsets; -1 of one that is
/// packed, in parts or in memory.
int DescriptorOf(const InputFile& file);

struct FilePart {
  FilePlace place;
  std::string path;  ///< For messages.
};
/// Parts as one file, in this order: each without byte order mark and ended by a newline. Packed parts
/// stay open; the others are opened again for every piece, so that a thousand parts take no thousand
/// descriptors.
Result<std::unique_ptr<InputFile>> OpenParts(const std::vector<FilePart>& parts);

}  // namespace heddle::ops
