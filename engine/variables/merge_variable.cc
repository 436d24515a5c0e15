// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/merge_variable.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "engine/variables/merge_cells.h"

namespace heddle::engine {
namespace {

bool SameScalar(const Scalar& a, const Scalar& b) {
  if (a.type() != b.type()) return false;
  if (a.type() == ValueType::kDouble)
    return std::bit_cast<uint64_t>(a.AsDouble()) == std::bit_cast<uint64_t>(b.AsDouble());
  return a == b;
}

bool SharesFrame(const Frame& a, const Frame& b) {
  if (a.shape() != b.shape() || a.schema() != b.schema()) return false;
  for (int64_t j = 0; j < a.columns(); ++j)
    if (a.column(j).booleans() != b.column(j).booleans() || a.column(j).missing() != b.column(j).missing())
      return false;
  return true;
}

// All values of the others, where each has what the first one has.
template <typename T, typename Get>
Result<std::vector<T>> ValuesOf(const std::vector<Variable>& changed, DataType data_type, const Get& get) {
  std::vector<T> values;
  for (size_t i = 1; i < changed.size(); ++i) {
    if (changed[i].info.data_type != data_type)
      return Internal("a {} of a parfor became a {}", Name(data_type), Name(changed[i].info.data_type));
    values.push_back(get(changed[i]));
  }
  return values;
}

Result<Variable> MergeLists(const Variable& before, std::vector<Variable> changed) {
  auto merged = std::make_shared<ListOf<Variable>>(*changed[0].list);
  const ListOf<Variable>& old = *before.list;
  for (size_t i = 1; i < changed.size(); ++i) {
    if (changed[i].list == nullptr || changed[i].list->size() != old.size() || merged->size() != old.size())
      return Internal("iterations of a parfor made lists of different lengths of one");
    const ListOf<Variable>& other = *changed[i].list;
    for (size_t k = 0; k < old.size(); ++k) {
      if (!SharesValue(other.elements[k], old.elements[k])) merged->elements[k] = other.elements[k];
      if (!other.names.empty() && !old.names.empty() && other.names[k] != old.names[k])
        merged->names[k] = other.names[k];
    }
    merged->depth = std::max(merged->depth, other.depth);
  }
  Variable result = std::move(changed[0]);
  result.list = std::move(merged);
  return result;
}

}  // namespace

bool SharesValue(const Variable& a, const Variable& b) {
  if (a.info.data_type != b.info.data_type) return false;
  if (a.value.IsPanels() || b.value.IsPanels())
    return a.value.IsPanels() && b.value.IsPanels() && a.value.panels() == b.value.panels();
  switch (a.info.data_type) {
    case DataType::kScalar: return SameScalar(a.value.scalar(), b.value.scalar());
    case DataType::kMatrix: return a.value.matrix().IsSameView(b.value.matrix());
    case DataType::kFrame: return SharesFrame(a.value.frame(), b.value.frame());
    case DataType::kList: return a.list == b.list;
    case DataType::kTuple:
    case DataType::kUnknown: return false;
  }
  return false;
}

Status BringIntoMemory(Variable* variable) {
  HEDDLE_RETURN_IF_ERROR(BringToHost(variable));
  if (!variable->value.IsPanels()) return OkStatus();
  const std::shared_ptr<const RowPanels> panels = variable->value.panels();
  HEDDLE_ASSIGN_OR_RETURN(variable->value, panels->Rows(0, panels->shape().rows));
  return OkStatus();
}

Result<Variable> MergeVariable(const Variable& old, std::vector<Variable> changed) {
  const DataType data_type = changed[0].info.data_type;
  if (changed.size() == 1) return std::move(changed[0]);
  Variable before = old;
  HEDDLE_RETURN_IF_ERROR(BringIntoMemory(&before));
  for (Variable& variable : changed) HEDDLE_RETURN_IF_ERROR(BringIntoMemory(&variable));
  if (before.info.data_type != data_type)
    return Internal("a {} of a parfor became a {}", Name(before.info.data_type), Name(data_type));
  switch (data_type) {
    case DataType::kMatrix: {
      HEDDLE_ASSIGN_OR_RETURN(
          const std::vector<Matrix> others,
          (ValuesOf<Matrix>(changed, data_type, [](const Variable& v) { return v.value.matrix(); })));
      Variable merged = std::move(changed[0]);
      merged.source = nullptr;
      Matrix last = merged.value.matrix();
      merged.value = Value();  // So that its cells may be written over.
      HEDDLE_ASSIGN_OR_RETURN(Matrix cells, MergeCells(before.value.matrix(), std::move(last), others));
      merged.value = Value(std::move(cells));
      return merged;
    }
    case DataType::kFrame: {
      HEDDLE_ASSIGN_OR_RETURN(
          const std::vector<Frame> others,
          (ValuesOf<Frame>(changed, data_type, [](const Variable& v) { return v.value.frame(); })));
      HEDDLE_ASSIGN_OR_RETURN(Frame cells,
                              MergeCells(before.value.frame(), changed[0].value.frame(), others));
      Variable merged = std::move(changed[0]);
      merged.source = nullptr;
      merged.value = Value(std::move(cells));
      return merged;
    }
    case DataType::kList: return MergeLists(before, std::move(changed));
    case DataType::kScalar:
    case DataType::kTuple:
    case DataType::kUnknown: break;
  }
  return Internal("several iterations of a parfor assigned a {} of before it", Name(data_type));
}

}  // namespace heddle::engine
