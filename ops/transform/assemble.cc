// SPDX-License-Identifier: Apache-2.0
#include "ops/transform/assemble.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/base/parallel.h"

namespace heddle::ops {
namespace {

constexpr int64_t kGrainRows = int64_t{1} << 13;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Calls put(k, value) for the entries of row i of a matrix, in ascending order.
template <typename Put>
void ForEntries(const Matrix& matrix, int64_t i, const Put& put) {
  if (!matrix.IsSparse()) {
    const double* const row = matrix.data() + i * matrix.columns();
    for (int64_t k = 0; k < matrix.columns(); ++k)
      if (row[k] != 0) put(k, row[k]);
    return;
  }
  for (int64_t e = matrix.row_offsets()[i]; e < matrix.row_offsets()[i + 1]; ++e)
    if (matrix.values()[e] != 0) put(matrix.column_indexes()[e], matrix.values()[e]);
}

// Calls put(column, value) for the cells of one row that are not zero, from left to right; of columns of
// numbers for all with `zeros`, which may be -0.0.
template <bool zeros, typename Put>
void ForRow(const EncodedCells& cells, const EncodedLayout& layout, int64_t row, const Put& put) {
  const double* code = cells.codes.data() + row;
  for (size_t j = 0; j < layout.forms.size(); ++j, code += cells.codes.columns()) {
    const int64_t first = layout.first[j];
    switch (layout.forms[j]) {
      case EncodedForm::kNumber:
        if (zeros || *code != 0) put(first, *code);
        break;
      case EncodedForm::kDummy:
        if (*code >= 1 && *code <= static_cast<double>(layout.WidthOf(j)))
          put(first + static_cast<int64_t>(*code) - 1, 1.0);
        break;
      case EncodedForm::kCounts: {
        const WordCounts& words = cells.words[j];
        const auto i = static_cast<size_t>(row);
        for (auto k = static_cast<size_t>(words.offsets[i]); k < static_cast<size_t>(words.offsets[i + 1]);
             ++k)
          put(first + words.counts[k].word, static_cast<double>(words.counts[k].count));
        break;
      }
      case EncodedForm::kVector:
        if (*code >= 1 && *code <= static_cast<double>(cells.embedding->rows()))
          ForEntries(*cells.embedding, static_cast<int64_t>(*code) - 1,
                     [&](int64_t k, double value) { put(first + k, value); });
        break;
    }
  }
}

}  // namespace

Result<Matrix> AssembleEncoded(const EncodedCells& cells, const EncodedLayout& layout,
                               const std::optional<std::vector<int64_t>>& rows, Format format) {
  const int64_t count = rows ? static_cast<int64_t>(rows->size()) : cells.codes.columns();
  const auto row_of = [&](int64_t i) { return rows ? (*rows)[static_cast<size_t>(i)] : i; };
  if (format == Format::kDense) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, FilledMatrix(count, layout.columns(), 0));
    ParallelFor(count, kGrainRows, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        double* const out = result.mutable_data() + i * layout.columns();
        ForRow<true>(cells, layout, row_of(i), [&](int64_t column, double value) { out[column] = value; });
      }
    });
    return result;
  }
  std::vector<int64_t> offsets(static_cast<size_t>(count) + 1);
  ParallelFor(count, kGrainRows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t entries = 0;
      ForRow<false>(cells, layout, row_of(i), [&](int64_t, double) { ++entries; });
      offsets[static_cast<size_t>(i) + 1] = entries;
    }
  });
  for (size_t i = 1; i < offsets.size(); ++i) offsets[i] += offsets[i - 1];
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Sparse(count, layout.columns(), offsets.back()));
  std::copy(offsets.begin(), offsets.end(), result.mutable_row_offsets());
  ParallelFor(count, kGrainRows, [&](int64_t begin, int64_t end) {
    int64_t at = offsets[static_cast<size_t>(begin)];
    int32_t* const columns = result.mutable_column_indexes();
    double* const values = result.mutable_values();
    for (int64_t i = begin; i < end; ++i)
      ForRow<false>(cells, layout, row_of(i), [&](int64_t column, double value) {
        columns[at] = static_cast<int32_t>(column);
        values[at++] = value;
      });
  });
  return result;
}

Result<Matrix> CodesOfEncoded(const Matrix& encoded, const EncodedLayout& layout) {
  const int64_t rows = encoded.rows();
  const auto columns = static_cast<int64_t>(layout.forms.size());
  HEDDLE_ASSIGN_OR_RETURN(Matrix codes, FilledMatrix(columns, rows, 0));
  double* const out = codes.mutable_data();
  ParallelFor(rows, kGrainRows, [&](int64_t begin, int64_t end) {
    for (size_t j = 0; j < layout.forms.size(); ++j)
      if (layout.forms[j] != EncodedForm::kNumber)
        std::fill(out + static_cast<int64_t>(j) * rows + begin, out + static_cast<int64_t>(j) * rows + end,
                  kNan);
    for (int64_t i = begin; i < end; ++i) {
      const auto put = [&](size_t j, int64_t column, double value) {
        double& code = out[static_cast<int64_t>(j) * rows + i];
        if (layout.forms[j] == EncodedForm::kNumber)
          code = value;
        else if (layout.forms[j] == EncodedForm::kDummy && value != 0 && std::isnan(code))
          code = static_cast<double>(column - layout.first[j] + 1);
      };
      if (!encoded.IsSparse()) {
        const double* const cells = encoded.data() + i * encoded.columns();
        for (size_t j = 0; j < layout.forms.size(); ++j)
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
