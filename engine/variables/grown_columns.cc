// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/grown_columns.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace heddle::engine {
namespace {

Result<Matrix> SideBySide(std::span<const Matrix> pieces) {
  int64_t columns = 0;
  for (const Matrix& piece : pieces) columns += piece.columns();
  const int64_t rows = pieces[0].rows(), width = BytesOf(pieces[0].element_type());
  HEDDLE_ASSIGN_OR_RETURN(Matrix joined, Matrix::Dense(rows, columns, pieces[0].element_type()));
  char* out = joined.mutable_data<char>();
  for (int64_t i = 0; i < rows; ++i) {
    for (const Matrix& piece : pieces) {
      const int64_t bytes = piece.columns() * width;
      if (bytes > 0) std::memcpy(out, piece.data<char>() + i * bytes, static_cast<size_t>(bytes));
      out += bytes;
    }
  }
  return joined;
}

}  // namespace

GrownColumns::Grown* GrownColumns::Find(const VariableTable* frame, const std::string& name) {
  const auto found = std::find_if(grown_.begin(), grown_.end(), [&](const Grown& grown) {
    return grown.frame == frame && grown.name == name;
  });
  return found == grown_.end() ? nullptr : &*found;
}

Status GrownColumns::Append(VariableTable* frame, const std::string& name, const Matrix& piece) {
  Variable* variable = frame->FindMutable(name);
  if (variable == nullptr) return Internal("a variable that grows has no value: {}", name);
  Grown* grown = Find(frame, name);
  if (grown == nullptr) {
    grown_.push_back({.frame = frame, .name = name, .pieces = {}});
    grown = &grown_.back();
  }
  HEDDLE_RETURN_IF_ERROR(BringToHost(variable));
  HEDDLE_ASSIGN_OR_RETURN(Matrix added, ToDense(piece));
  if (!variable->is_growing) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix first, ToDense(variable->value.matrix()));
    grown->pieces.assign(1, std::move(first));
  }
  variable->is_growing = true;
  variable->value = Value();
  variable->source = nullptr;
  variable->info.shape.columns += piece.columns();
  std::vector<Matrix>& pieces = grown->pieces;
  pieces.push_back(std::move(added));
  while (pieces.size() > 2 && pieces[pieces.size() - 2].columns() < 2 * pieces.back().columns()) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix joined, SideBySide(std::span(pieces).last(2)));
    pieces.pop_back();
    pieces.back() = std::move(joined);
  }
  return OkStatus();
}

bool GrownColumns::Any(const VariableTable* frame,
                       const std::function<bool(const std::string& name)>& holds) const {
  return std::any_of(grown_.begin(), grown_.end(),
                     [&](const Grown& grown) { return grown.frame == frame && holds(grown.name); });
}

Status GrownColumns::Settle() {
  for (Grown& grown : grown_) {
    Variable* variable = grown.frame->FindMutable(grown.name);
    // Something else may have been assigned since.
    if (variable == nullptr || !variable->is_growing) continue;
    HEDDLE_ASSIGN_OR_RETURN(Matrix joined, SideBySide(grown.pieces));
    variable->value = Value(std::move(joined));
    variable->is_growing = false;
  }
  grown_.clear();
  return OkStatus();
}

}  // namespace heddle::engine
