// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/bytes_beside.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "core/memory/memory_budget.h"
#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "scheduler/plan_memory.h"

namespace heddle::engine {
namespace {

// Of the rank that holds the most of it.
int64_t BytesOf(const Variable& variable, int32_t ranks) {
  if (!variable.info.IsTabular() || variable.is_panels || variable.value.IsPanels()) return 0;
  const Value& value = variable.value;
  const bool is_here = ranks == 1 && !variable.is_placeholder;
  // Of all but dense cells, the run alone knows how many there are.
  if (is_here && (value.IsFrame() || (value.IsMatrix() && value.matrix().storage() != Storage::kDense)))
    return value.bytes();
  if (!variable.info.IsSized()) return 0;
  ValueInfo info = variable.info;
  const Distribution& where = variable.distribution;
  if (where.IsSplit()) {
    int64_t& length = where.split.axis == Axis::kRows ? info.shape.rows : info.shape.columns;
    int64_t most = CeilDivide(length, ranks);
    for (int32_t rank = 0; rank < ranks && !where.split.cuts.empty(); ++rank)
      most = std::max(most, where.split.End(rank) - where.split.Begin(rank));
    length = most;
  }
  return scheduler::BlockBytesOf(info);
}

// Calls visit(variable) for a variable, or for all elements of a list.
template <typename Visit>
void VisitValues(const Variable& variable, int32_t ranks, const Visit& visit) {
  if (variable.list == nullptr) return visit(variable);
  if (ranks > 1) return;
  for (const Variable& element : variable.list->elements) VisitValues(element, ranks, visit);
}

// What tells two values apart.
using Identity = std::tuple<const void*, DataType, ElementType, int64_t, int64_t, Distribution::Kind>;
Identity IdentityOf(const Variable& variable, int32_t ranks) {
  const void* cells = nullptr;
  if (ranks == 1 && variable.value.IsMatrix()) {
    const Matrix& matrix = variable.value.matrix();
    cells = matrix.IsCompressed() ? static_cast<const void*>(&matrix.groups()) : matrix.data<char>();
  }
  if (cells != nullptr)
    return {cells, DataType::kMatrix, ElementType::kFloat64, 0, 0, Distribution::Kind::kOne};
  const ValueInfo& info = variable.info;
  return {nullptr,         info.data_type,     info.element_type,
          info.shape.rows, info.shape.columns, variable.distribution.kind};
}

}  // namespace

int64_t BytesBeside(const Graph& graph, const VariableTable& frame, const OpenFrames* around, int32_t ranks,
                    int64_t least) {
  // Most often there is little, whatever of it is read.
  if (least <= 0 || (ranks == 1 && MemoryBudget::Process().used() < least)) return 0;
  std::vector<const VariableTable*> frames = {&frame};
  for (size_t i = 0; around != nullptr && i < around->size(); ++i)
    if ((*around)[i].get() != &frame) frames.push_back((*around)[i].get());
  int64_t all = 0;
  const auto visit_all = [&](const auto& visit) {
    for (const VariableTable* const one : frames)
      for (const auto& [name, variable] : one->variables()) VisitValues(variable, ranks, visit);
  };
  visit_all([&](const Variable& variable) {
    all = SaturatingSum(all, ranks > 1 ? scheduler::BlockBytesOf(variable.info) : BytesOf(variable, ranks));
  });
  if (all < least) return 0;
  std::set<Identity> counted;
  for (const Node& node : graph.nodes) {
    const Variable* const read = node.Is("variable") ? frame.Find(node.Text("name")) : nullptr;
    if (read != nullptr)
      VisitValues(*read, ranks, [&](const Variable& v) { counted.insert(IdentityOf(v, ranks)); });
  }
  int64_t beside = 0;
  visit_all([&](const Variable& variable) {
    const int64_t bytes = BytesOf(variable, ranks);
    if (bytes > 0 && counted.insert(IdentityOf(variable, ranks)).second)
      beside = SaturatingSum(beside, bytes);
  });
  return InMultiplesOf(least, beside);
}

int64_t InMultiplesOf(int64_t least, int64_t bytes) {
  return least <= 0 || bytes < least ? 0 : SaturatingProduct(CeilDivide(bytes, least), least);
}

}  // namespace heddle::engine
