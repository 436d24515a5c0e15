// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ops/io/formats/file_format.h"
#include "ops/io/formats/libraries/format_module.h"

namespace heddle::ops {

/// A table that is open: of a file, or of the files of a folder one after the other.
struct OpenedArrow {
  std::shared_ptr<const InputFile> file;
  std::unique_ptr<ArrowTable> table;
  int64_t rows() const { return table->begins().back(); }
};

/// `begins`: of the groups, when the file was opened before; else empty. kDataLoss: the file begins as no
/// file of its format does, or one of a folder has other columns than the first; kUnimplemented: Heddle was
/// built without the library; what the module says.
Result<OpenedArrow> OpenArrowTable(const ReadOptions& options, Files& files,
                                   const std::vector<int64_t>& begins);

ArrowKind ArrowKindOf(FileFormat format);
/// kUnimplemented: "cannot <verb> <what>: this Heddle was built without ...". `why`: of the module.
Status ArrowIsMissing(std::string_view verb, std::string_view what, std::string_view format,
                      const Status& why);

/// work() of the module, whose memory comes from the heap of the process; kResourceExhausted with numbers
/// where that was refused. `path` is read.
Status WithArrow(const std::string& path, const std::function<Status()>& work);
/// Whether the module says that memory was refused, of which it has no numbers.
bool MemoryWasRefused(const Status& status);

}  // namespace heddle::ops
