// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/libraries/stored_array.h"

#include <algorithm>

#include "core/values/sizes.h"
#include "ops/io/formats/plain_cells.h"
#include "ops/io/formats/readers.h"
#include "ops/io/formats/single_cells.h"

namespace heddle::ops {
namespace {

Shape ShapeOf(const StoredArray& array) {
  Shape shape{1, 1};
  for (size_t i = 0; i < array.sizes().size(); ++i) {
    int64_t& length = i == 0 ? shape.rows : shape.columns;
    length = SaturatingProduct(length, array.sizes()[i]);
  }
  return shape;
}

}  // namespace

Result<FileSummary> SummarizeStored(const ReadOptions& options, const StoredArrayFile& opened) {
  const StoredArray& array = *opened.array;
  FileSummary summary;
  summary.shape = ShapeOf(array);
  HEDDLE_RETURN_IF_ERROR(CheckLength(options.path, summary.shape, array.stored() != kUnknown));
  HEDDLE_RETURN_IF_ERROR(CheckSaidSizes(options, summary.shape));
  summary.is_unordered = array.stored() != kUnknown;
  summary.stored = summary.is_unordered ? array.stored() : options.nonzeros;
  summary.format = ChooseFormat(summary.shape, summary.stored);
  summary.text_bytes = opened.file->size();
  summary.column_major_writer = array.column_major_writer();
  return summary;
}

Result<Matrix> ReadStoredRows(const ReadOptions& options, const FileSummary& summary,
                              const StoredArrayFile& opened, int64_t row_begin, int64_t row_end) {
  StoredArray& array = *opened.array;
  const bool is_sparse = array.stored() != kUnknown;
  if (opened.file->size() != summary.text_bytes || ShapeOf(array) != summary.shape ||
      (is_sparse && array.stored() != summary.stored))
    return ItChanged(options);
  if (is_sparse)
    return CollectCells(
        options, summary, array.stored(), row_begin, row_end,
        [&](int64_t begin, int64_t end, StoredCell* out) { return array.ReadStored(begin, end, out); });
  return CollectRows(options, summary, row_begin, row_end, array.rows_of_chunk(),
                     [&](int64_t begin, int64_t end, double* out) { return array.Read(begin, end, out); });
}

}  // namespace heddle::ops
