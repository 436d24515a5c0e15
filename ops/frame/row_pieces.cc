// SPDX-License-Identifier: Apache-2.0
#include "ops/frame/row_pieces.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "ops/base/parallel.h"
#include "ops/cells/append_groups.h"
#include "ops/cells/storage.h"
#include "ops/frame/arrange.h"
#include "ops/frame/stack_rows.h"

namespace heddle::ops {
namespace {

constexpr int64_t kCopyGrainBytes = 256 << 10;

void CopyBytes(const void* from, void* to, int64_t bytes) {
  ParallelFor(bytes, kCopyGrainBytes, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

Result<Value> JoinDense(const std::vector<Matrix>& pieces, int64_t rows, int64_t columns, ElementType type) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix whole, Matrix::Dense(rows, columns, type));
  char* to = static_cast<char*>(static_cast<void*>(whole.mutable_data<char>()));
  for (const Matrix& piece : pieces) {
    const int64_t bytes = piece.cells() * BytesOf(type);
    CopyBytes(piece.data<char>(), to, bytes);
    to += bytes;
  }
  return Value(std::move(whole));
}

Result<Value> JoinSparse(const std::vector<Matrix>& pieces, int64_t rows, int64_t columns, ElementType type) {
  int64_t stored = 0;
  for (const Matrix& piece : pieces) stored += piece.stored();
  HEDDLE_ASSIGN_OR_RETURN(Matrix whole, Matrix::Sparse(rows, columns, stored, type));
  int64_t* offsets = whole.mutable_row_offsets();
  int64_t row = 0;
  int64_t entry = 0;
  offsets[0] = 0;
  for (const Matrix& piece : pieces) {
    const int64_t first = piece.row_offsets()[0];
    for (int64_t i = 0; i < piece.rows(); ++i)
      offsets[row + i + 1] = entry + piece.row_offsets()[i + 1] - first;
    const int64_t count = piece.stored();
    CopyBytes(piece.column_indexes() + first, whole.mutable_column_indexes() + entry,
              count * int64_t{sizeof(int32_t)});
    CopyBytes(piece.values<char>() + first * BytesOf(type),
              whole.mutable_values<char>() + entry * BytesOf(type), count * BytesOf(type));
    row += piece.rows();
    entry += count;
  }
  return Value(std::move(whole));
}

// Where all are compressed, so is the whole.
Result<std::optional<Matrix>> JoinedGroups(std::span<const Value* const> inputs) {
  std::vector<Matrix> pieces;
  for (const Value* input : inputs) {
    if (!input->matrix().IsCompressed()) return std::optional<Matrix>();
    pieces.push_back(input->matrix());
  }
  return AppendGroups(pieces);
}

Result<Value> JoinMatrices(std::span<const Value* const> inputs) {
  std::vector<Matrix> pieces;
  const Value* empty = nullptr;
  int64_t rows = 0;
  for (const Value* input : inputs) {
    if (input->matrix().rows() == 0) {
      empty = input;
      continue;
    }
    pieces.push_back(input->matrix());
    rows += input->matrix().rows();
  }
  if (pieces.empty()) return *empty;
  if (pieces.size() == 1) return Value(std::move(pieces[0]));
  HEDDLE_ASSIGN_OR_RETURN(std::optional<Matrix> joined, JoinedGroups(inputs));
  if (joined) return Value(*std::move(joined));
  const Matrix& first = pieces[0];
  for (Matrix& piece : pieces) {
    if (piece.columns() != first.columns() || piece.element_type() != first.element_type()) {
      return Internal("join: pieces have {} and {} columns", first.columns(), piece.columns());
    }
    if (piece.storage() == first.storage() && !piece.IsCompressed()) continue;
    HEDDLE_ASSIGN_OR_RETURN(piece, first.IsSparse() ? ToSparse(piece) : ToDense(piece));
  }
  const int64_t columns = first.columns();
  const ElementType type = first.element_type();
  return first.IsSparse() ? JoinSparse(pieces, rows, columns, type) : JoinDense(pieces, rows, columns, type);
}

Result<Value> JoinFrames(std::span<const Value* const> inputs) {
  std::vector<Frame> pieces;
  for (const Value* input : inputs)
    if (input->frame().rows() > 0) pieces.push_back(input->frame());
  if (pieces.empty()) return *inputs[0];
  HEDDLE_ASSIGN_OR_RETURN(Frame whole, StackRows(pieces));
  return Value(std::move(whole));
}

}  // namespace

Result<Value> SliceRows(const Value& whole, int64_t begin, int64_t end) {
  const int64_t rows = whole.shape().rows;
  if (whole.IsScalar() || begin < 0 || begin > end || end > rows)
    return Internal("slice: rows {} to {} are not in the value", begin, end);
  if (begin == 0 && end == rows && !whole.IsPanels()) return whole;
  switch (whole.kind()) {
    case Value::Kind::kScalar: break;
    case Value::Kind::kMatrix: return Value(whole.matrix().Rows(begin, end));
    case Value::Kind::kFrame: return Value(whole.frame().Rows(begin, end));
    case Value::Kind::kPanels: return whole.panels()->Rows(begin, end);
  }
  HEDDLE_CHECK(false, "what has rows can be cut");
}

Result<Value> JoinRows(std::span<const Value* const> inputs) {
  for (const Value* input : inputs)
    if (input == nullptr || input->kind() != inputs[0]->kind())
      return Internal("join: pieces of different kinds, or none");
  if (inputs.empty()) return Internal("join: no pieces");
  switch (inputs[0]->kind()) {
    case Value::Kind::kScalar: return Internal("join: a scalar has no rows");
    case Value::Kind::kMatrix: return JoinMatrices(inputs);
    case Value::Kind::kFrame: return JoinFrames(inputs);
    case Value::Kind::kPanels: return Internal("join: panels are read before they are joined");
  }
  HEDDLE_CHECK(false, "pieces of every kind can be gathered or not");
}

Result<Value> JoinRowsAs(std::span<const Value* const> inputs, const ValueInfo& info) {
  if (info.IsFrame() && info.schema != nullptr) {
    std::vector<Frame> pieces;
    for (const Value* input : inputs) {
      if (input == nullptr || !input->IsFrame()) return Internal("join: a piece is no frame");
      pieces.push_back(input->frame());
    }
    HEDDLE_ASSIGN_OR_RETURN(Frame whole, BelowEachOther(pieces, info.schema));
    return Value(std::move(whole));
  }
  const auto is_matrix = [](const Value* input) { return input != nullptr && input->IsMatrix(); };
  if (!info.IsMatrix() || !std::all_of(inputs.begin(), inputs.end(), is_matrix)) return JoinRows(inputs);
  HEDDLE_ASSIGN_OR_RETURN(std::optional<Matrix> joined, JoinedGroups(inputs));
  if (joined) return Value(*std::move(joined));
  std::vector<Value> stored;
  for (const Value* input : inputs) {
    HEDDLE_ASSIGN_OR_RETURN(
        Matrix piece, info.format == Format::kSparse ? AsSparse(input->matrix()) : AsDense(input->matrix()));
    stored.emplace_back(std::move(piece));
  }
  std::vector<const Value*> pointers;
  for (const Value& value : stored) pointers.push_back(&value);
  return JoinRows(pointers);
}

}  // namespace heddle::ops
