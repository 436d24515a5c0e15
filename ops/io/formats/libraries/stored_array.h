// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ops/io/formats/file_format.h"
#include "ops/io/formats/libraries/format_module.h"

// Matrices that the module of a format reads.
namespace heddle::ops {

/// A file, and the array of it that is asked for.
struct StoredArrayFile {
  std::shared_ptr<const InputFile> file;
  std::unique_ptr<StoredArray> array;
};

/// The first index counts rows, all others together columns. kDataLoss: larger than a matrix can be, or not
/// of the size that is asked for.
Result<FileSummary> SummarizeStored(const ReadOptions& options, const StoredArrayFile& opened);
Result<Matrix> ReadStoredRows(const ReadOptions& options, const FileSummary& summary,
                              const StoredArrayFile& opened, int64_t row_begin, int64_t row_end);

}  // namespace heddle::ops
