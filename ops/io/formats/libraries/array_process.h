// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "ops/io/files/files.h"
#include "ops/io/formats/libraries/format_module.h"

namespace heddle::ops {

/// Processor seconds that the process of an array has for one answer: far more than decoding its cells takes.
/// Where a library decodes more than it answers, it has more (main/array_server.cc).
inline constexpr int kArrayProcessSeconds = 30;

/// An array in a file.
struct ArrayInFile {
  ArrayLibrary library = ArrayLibrary::kHdf5;
  std::string path;  ///< For messages.
  std::shared_ptr<const InputFile> file;
  ArrayChoice choice;
};

/// Opens an array in a process of its own, which does all reads and ends with the result. The libraries of
/// these formats end with a fault of memory, go round for ever, or take all the memory of the machine on some
/// damaged files; a process is what can be lost then. Sizes and cells come back through a socket
/// (array_messages.h). The process runs heddle-array-process, which is installed with the modules; `program`
/// names another one.
///
/// The process holds what MemoryBudget::Process() is charged for it: some room for the library (for files of
/// MATLAB also their bytes) while it lives, and what a read takes from the first read on, which is refused
/// before it begins where the budget has no room. An allocation beyond that fails, and with it the open or
/// the read: kResourceExhausted with the numbers. Nothing but time bounds it under sanitizers.
///
/// Fails as the library does; kUnimplemented where the library or the program is not installed, kDataLoss
/// when the process ends before it answers, kResourceExhausted when there can be no further process.
Result<std::unique_ptr<StoredArray>> OpenInProcess(const ArrayInFile& what, const std::string& program = "");

}  // namespace heddle::ops
