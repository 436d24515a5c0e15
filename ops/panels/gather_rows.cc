// SPDX-License-Identifier: Apache-2.0
#include "ops/panels/gather_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "ops/base/parallel.h"
#include "ops/cells/storage.h"
#include "ops/frame/row_pieces.h"

namespace heddle::ops {
namespace {

constexpr int64_t kCopyGrainBytes = 256 << 10;

void CopyBytes(const void* from, void* to, int64_t bytes) {
  ParallelFor(bytes, kCopyGrainBytes, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

// How the rows of a matrix are stored.
struct MatrixKind {
  bool is_sparse;
  ElementType element_type;
  int64_t columns;
  bool operator==(const MatrixKind&) const = default;
};

bool IsFrame(const RowSource& source) {
  return source.spilled != nullptr ? source.spilled->IsFrame() : source.in_memory.IsFrame();
}

MatrixKind KindOf(const RowSource& source) {
  if (const SpilledRows* const spilled = source.spilled.get())
    return {spilled->IsSparse(), spilled->element_type(), spilled->shape().columns};
  const Matrix& matrix = source.in_memory.matrix();
  return {matrix.IsSparse(), matrix.element_type(), matrix.columns()};
}

Result<Value> ReadRows(const RowSource& source) {
  return source.spilled != nullptr ? source.spilled->Read(source.begin, source.end)
                                   : SliceRows(source.in_memory, source.begin, source.end);
}

Result<Value> GatherDense(std::span<const RowSource> sources, int64_t rows, const MatrixKind& kind) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix whole, Matrix::Dense(rows, kind.columns, kind.element_type));
  const int64_t row_bytes = kind.columns * BytesOf(kind.element_type);
  char* to = whole.mutable_data<char>();
  for (const RowSource& source : sources) {
    const int64_t bytes = (source.end - source.begin) * row_bytes;
    if (source.spilled != nullptr)
      HEDDLE_RETURN_IF_ERROR(source.spilled->ReadCells(source.begin, source.end, to));
    else if (source.in_memory.matrix().IsCompressed())
      DecodeCells(source.in_memory.matrix().Rows(source.begin, source.end), to);
    else
      CopyBytes(source.in_memory.matrix().data<char>() + source.begin * row_bytes, to, bytes);
    to += bytes;
  }
  return Value(std::move(whole));
}

Result<Value> GatherSparse(std::span<const RowSource> sources, int64_t rows, const MatrixKind& kind) {
  struct EntryRange {
    int64_t first = 0;
    int64_t last = 0;
  };
  std::vector<EntryRange> ranges;
  int64_t stored = 0;
  for (const RowSource& source : sources) {
    EntryRange range;
    if (source.spilled != nullptr) {
      HEDDLE_RETURN_IF_ERROR(
          source.spilled->ReadEntryRange(source.begin, source.end, &range.first, &range.last));
    } else {
      const int64_t* const offsets = source.in_memory.matrix().row_offsets();
      range = {offsets[source.begin], offsets[source.end]};
    }
    stored += range.last - range.first;
    ranges.push_back(range);
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix whole, Matrix::Sparse(rows, kind.columns, stored, kind.element_type));
  const int64_t cell_bytes = BytesOf(kind.element_type);
  int64_t* offsets = whole.mutable_row_offsets();
  int32_t* indexes = whole.mutable_column_indexes();
  char* values = whole.mutable_values<char>();
  int64_t entry = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    const RowSource& source = sources[i];
    const auto [first, last] = ranges[i];
    const int64_t source_rows = source.end - source.begin;
    if (source.spilled != nullptr) {
      HEDDLE_RETURN_IF_ERROR(source.spilled->ReadOffsets(source.begin, source.end, offsets));
      HEDDLE_RETURN_IF_ERROR(source.spilled->ReadEntries(first, last, indexes, values));
    } else {
      const Matrix& matrix = source.in_memory.matrix();
      std::copy_n(matrix.row_offsets() + source.begin, source_rows + 1, offsets);
      CopyBytes(matrix.column_indexes() + first, indexes, (last - first) * int64_t{sizeof(int32_t)});
      CopyBytes(matrix.values<char>() + first * cell_bytes, values, (last - first) * cell_bytes);
    }
    for (int64_t row = 0; row <= source_rows; ++row) offsets[row] += entry - first;
    offsets += source_rows;
    indexes += last - first;
    values += (last - first) * cell_bytes;
    entry += last - first;
  }
  return Value(std::move(whole));
}

}  // namespace

Result<Value> GatherRows(std::span<const RowSource> sources) {
  HEDDLE_CHECK(!sources.empty(), "rows come from somewhere");
  if (sources.size() == 1) return ReadRows(sources[0]);
  if (std::none_of(sources.begin(), sources.end(), IsFrame)) {
    int64_t rows = 0;
    for (const RowSource& source : sources) rows += source.end - source.begin;
    const MatrixKind kind = KindOf(sources[0]);
    if (std::all_of(sources.begin(), sources.end(),
                    [&](const RowSource& source) { return KindOf(source) == kind; }))
      return kind.is_sparse ? GatherSparse(sources, rows, kind) : GatherDense(sources, rows, kind);
  }
  std::vector<Value> pieces;
  std::vector<const Value*> pointers;
  for (const RowSource& source : sources) {
    HEDDLE_ASSIGN_OR_RETURN(Value piece, ReadRows(source));
    pieces.push_back(std::move(piece));
  }
  for (const Value& piece : pieces) pointers.push_back(&piece);
  return JoinRows(pointers);
}

}  // namespace heddle::ops
