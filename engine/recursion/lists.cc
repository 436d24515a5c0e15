// SPDX-License-Identifier: Apache-2.0
#include "engine/recursion/lists.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "core/memory/counted_heap.h"

namespace heddle::engine {
namespace {

constexpr size_t kMostStacked = 4;

bool IsPartOfPlans(const Variable& element) {
  return element.list == nullptr && (element.info.IsScalar() || element.info.IsMatrix()) &&
         !element.is_growing && !element.is_placeholder;
}

// What elements of a list are, if all are alike: a number is a matrix of one cell.
std::optional<ValueInfo> InfoOfAll(const ListOf<Variable>& list, ElementType type) {
  std::optional<ValueInfo> all;
  for (const Variable& element : list.elements) {
    if (!IsPartOfPlans(element)) return std::nullopt;
    ValueInfo info = element.info;
    if (info.IsScalar()) {
      // Numbers are doubles: they are not rounded to floats.
      if (element.value.scalar().IsString() || type != ElementType::kFloat64) return std::nullopt;
      info = ValueInfo::OfMatrix({1, 1});
    }
    if (info.format != Format::kDense || !info.shape.IsKnown() || element.distribution.IsSplit() ||
        (all && all->shape != info.shape) || element.distribution != list.elements[0].distribution)
      return std::nullopt;
    all = info;
  }
  return all;
}

}  // namespace

Result<bool> RecursionLists::TakeElements(const compiler::Recursion& recursion, VariableTable* callee) {
  for (const compiler::Recursion::Element& element : recursion.elements) {
    const Variable* const variable = callee->Find(element.list);
    if (variable == nullptr || variable->list == nullptr) return false;
    const std::shared_ptr<ListOf<Variable>> list = variable->list;
    if (element.key) {
      const Result<ListRange> range = FindInList(list->names, list->size(), *element.key, *element.key);
      if (!range.ok() || range->size() != 1 || !IsPartOfPlans(list->elements[range->begin])) return false;
      callee->Set(element.name(), list->elements[range->begin]);
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(const Stacked* const stacked, StackedOf(list));
    if (stacked == nullptr) return false;
    callee->Set(element.name(), stacked->rows);
    callee->Set(element.rows(), Variable::OfScalar(stacked->height));
  }
  return true;
}

Result<const RecursionLists::Stacked*> RecursionLists::StackedOf(
    const std::shared_ptr<ListOf<Variable>>& list) {
  const auto kept = std::find_if(stacked_.begin(), stacked_.end(),
                                 [&](const Stacked& stacked) { return stacked.list == list; });
  if (kept != stacked_.end()) {
    stacked_.splice(stacked_.begin(), stacked_, kept);
    return &stacked_.front();
  }
  const std::optional<ValueInfo> info = InfoOfAll(*list, options_.element_type);
  if (!info) return nullptr;
  const auto count = static_cast<int64_t>(list->size());
  Stacked stacked{.list = list, .height = info->shape.rows};
  stacked.rows.distribution = list->elements[0].distribution;
  stacked.rows.info = ValueInfo::OfMatrix({count, info->shape.Cells()});
  stacked.rows.info.element_type = info->element_type;
  if (stacked.rows.IsHeldBy(options_.rank)) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix rows, WithinMemory("variables", [&] {
                              return Matrix::Dense(count, info->shape.Cells(), info->element_type);
                            }));
    char* to = rows.mutable_data<char>();
    for (const Variable& element : list->elements) {
      if (element.value.IsScalar()) {
        const double number = element.value.scalar().AsDouble();
        std::memcpy(to, &number, sizeof(number));
      } else {
        HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, ToDense(element.value.matrix()));
        std::memcpy(to, cells.data<char>(), static_cast<size_t>(cells.bytes()));
      }
      to += rows.columns() * BytesOf(info->element_type);
    }
    stacked.rows.value = std::move(rows);
  }
  stacked_.push_front(std::move(stacked));
  if (stacked_.size() > kMostStacked) stacked_.pop_back();
  return &stacked_.front();
}

}  // namespace heddle::engine
