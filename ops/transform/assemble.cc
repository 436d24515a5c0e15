// SPDX-License-Identifier: Apache-2.0
#include "ops/transform/assemble.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/parallel.h"

namespace heddle::ops {
namespace {

constexpr int64_t kGrainRows = int64_t{1} << 13;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Calls put(column, value) for the cells of one row that are not zero, from left to right; of columns without
// dummies for all with `zeros`, which may be -0.0.
template <bool zeros, typename Put>
void ForRow(const Matrix& codes, const EncodedLayout& layout, int64_t row, const Put& put) {
  const double* code = codes.data() + row;
  for (size_t j = 0; j < layout.is_dummy.size(); ++j, code += codes.columns()) {
    if (!layout.is_dummy[j]) {
      if (zeros || *code != 0) put(layout.first[j], *code);
    } else if (*code >= 1 && *code <= static_cast<double>(layout.WidthOf(j))) {
      put(layout.first[j] + static_cast<int64_t>(*code) - 1, 1.0);
    }
  }
}

}  // namespace

Result<Matrix> AssembleEncoded(const Matrix& codes, const EncodedLayout& layout,
                               const std::optional<std::vector<int64_t>>& rows, Format format) {
  const int64_t count = rows ? static_cast<int64_t>(rows->size()) : codes.columns();
  const auto row_of = [&](int64_t i) { return rows ? (*rows)[static_cast<size_t>(i)] : i; };
  if (format == Format::kDense) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, FilledMatrix(count, layout.columns(), 0));
    ParallelFor(count, kGrainRows, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        double* const out = result.mutable_data() + i * layout.columns();
        ForRow<true>(codes, layout, row_of(i), [&](int64_t column, double value) { out[column] = value; });
      }
    });
    return result;
  }
  std::vector<int64_t> offsets(static_cast<size_t>(count) + 1);
  ParallelFor(count, kGrainRows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      ForRow<false>(codes, layout, row_of(i),
                    [&](int64_t, double) { ++offsets[static_cast<size_t>(i) + 1]; });
  });
  for (size_t i = 1; i < offsets.size(); ++i) offsets[i] += offsets[i - 1];
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Sparse(count, layout.columns(), offsets.back()));
  std::copy(offsets.begin(), offsets.end(), result.mutable_row_offsets());
  ParallelFor(count, kGrainRows, [&](int64_t begin, int64_t end) {
    int64_t at = offsets[static_cast<size_t>(begin)];
    for (int64_t i = begin; i < end; ++i)
      ForRow<false>(codes, layout, row_of(i), [&](int64_t column, double value) {
        result.mutable_column_indexes()[at] = static_cast<int32_t>(column);
        result.mutable_values()[at++] = value;
      });
  });
  return result;
}

Result<Matrix> CodesOfEncoded(const Matrix& encoded, const EncodedLayout& layout) {
  const int64_t rows = encoded.rows();
  const auto columns = static_cast<int64_t>(layout.is_dummy.size());
  HEDDLE_ASSIGN_OR_RETURN(Matrix codes, FilledMatrix(columns, rows, 0));
  double* const out = codes.mutable_data();
  ParallelFor(rows, kGrainRows, [&](int64_t begin, int64_t end) {
    for (size_t j = 0; j < layout.is_dummy.size(); ++j)
      if (layout.is_dummy[j])
        std::fill(out + static_cast<int64_t>(j) * rows + begin, out + static_cast<int64_t>(j) * rows + end,
                  kNan);
    for (int64_t i = begin; i < end; ++i) {
      const auto put = [&](size_t j, int64_t column, double value) {
        double& code = out[static_cast<int64_t>(j) * rows + i];
        if (!layout.is_dummy[j])
          code = value;
        else if (value != 0 && std::isnan(code))
          code = static_cast<double>(column - layout.first[j] + 1);
      };
      if (!encoded.IsSparse()) {
        const double* const cells = encoded.data() + i * encoded.columns();
        for (size_t j = 0; j < layout.is_dummy.size(); ++j)
          for (int64_t c = layout.first[j]; c < layout.first[j + 1]; ++c) put(j, c, cells[c]);
        continue;
      }
      for (int64_t k = encoded.row_offsets()[i]; k < encoded.row_offsets()[i + 1]; ++k) {
        const int64_t column = encoded.column_indexes()[k];
        // Columns without codes are empty ranges: the last of equal bounds is the one.
        const auto next = std::upper_bound(layout.first.begin(), layout.first.end(), column);
        put(static_cast<size_t>(next - layout.first.begin()) - 1, column, encoded.values()[k]);
      }
    }
  });
  return codes;
}

}  // namespace heddle::ops
