// SPDX-License-Identifier: Apache-2.0
#include "scheduler/panel_entries.h"

#include <algorithm>
#include <bit>

#include "core/programs/fused_operator.h"
#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "ops/base/operator.h"

namespace heddle::scheduler {
namespace {

bool IsSparse(const ValueInfo& info) { return info.IsMatrix() && info.format == Format::kSparse; }

// Whether a cell of the result is zero, in CSR, where the cells of all CSR operands are.
bool IsByCells(const Node& node) {
  if (!IsFused(node)) return ops::KindOf(node) == ops::OperatorKind::kCells;
  const std::vector<Node>& body = node.fused->body.nodes;
  return std::all_of(body.begin(), body.end(), [](const Node& inner) {
    return !IsSparse(inner.info) || inner.Is("variable") || ops::KindOf(inner) == ops::OperatorKind::kCells;
  });
}

bool Multiplies(const Node& node) {
  const ops::Operator* const op = ops::FindOperator(node.op);
  return op != nullptr && op->binary == ops::BinaryCode::kMultiply;
}

}  // namespace

PanelEntries::PanelEntries(const Plan& plan, const std::map<std::string, std::vector<int64_t>>& counted)
    : plan_(plan), most_(plan.registers.size()) {
  if (counted.empty()) return;
  for (const Task& task : plan.tasks) {
    if (task.node == kNoNode) continue;
    const Node& node = plan.graph[task.node];
    for (const RegisterId id : task.produced) {
      const Register& made = plan.registers[Index(id)];
      if (made.control || !IsSparse(made.info)) continue;
      if (!node.Is("variable")) {
        most_[Index(id)] = CountsOf(task, made);
      } else if (const auto found = counted.find(node.Text("name")); found != counted.end()) {
        most_[Index(id)] = found->second;
      }
    }
  }
}

std::vector<int64_t> PanelEntries::CountsOf(const Task& task, const Register& made) const {
  const Node& node = plan_.graph[task.node];
  const ValueInfo& result = made.info;
  if (task.phase == Phase::kTransfer) {
    const bool has_source = !task.consumed.empty() && task.consumed[0] >= 0;
    return has_source ? most_[Index(task.consumed[0])] : std::vector<int64_t>();
  }
  const bool is_range = ops::HasRole(node, ops::Role::kRange);
  if (task.phase != Phase::kWhole || task.row_begin != 0 || (!is_range && !IsByCells(node))) return {};
  const bool multiplies = Multiplies(node), keeps_zeros = !made.device.IsHost();
  std::vector<int64_t> counts;
  for (const RegisterId id : task.consumed) {
    if (id < 0 || !IsSparse(plan_.registers[Index(id)].info)) continue;
    const Shape& shape = plan_.registers[Index(id)].info.shape;
    const std::vector<int64_t>& most = most_[Index(id)];
    const bool is_like_result =
        shape.rows == result.shape.rows && (is_range || shape.columns == result.shape.columns);
    if (most.empty() || !is_like_result) {
      // Cells that are repeated, or nobody has counted; a product is zero wherever one factor is.
      if (!multiplies || keeps_zeros) return {};
      continue;
    }
    if (counts.empty()) {
      counts = most;
      continue;
    }
    for (size_t level = 0; level < counts.size(); ++level)
      counts[level] =
          !multiplies   ? SaturatingSum(counts[level], most[level])
          : keeps_zeros ? std::max(counts[level], most[level])
                        : std::min(counts[level], most[level]);
  }
  return counts;
}

int64_t PanelEntries::MostBytes(RegisterId id, int64_t height) const {
  constexpr int64_t kIndexBytes = 4;
  if (id < 0 || Index(id) >= most_.size() || most_[Index(id)].empty()) return kUnknown;
  const ValueInfo& info = plan_.registers[Index(id)].info;
  const auto granules = static_cast<uint64_t>(std::max<int64_t>(1, height / Granule(info.shape.rows)));
  const auto level = std::min(static_cast<size_t>(std::bit_width(granules) - 1), most_[Index(id)].size() - 1);
  const int64_t cells = SaturatingProduct(height, info.shape.columns);
  return SaturatingProduct(std::min(most_[Index(id)][level], cells),
                           BytesOf(info.element_type) + kIndexBytes);
}

void CountEntriesOnDevices(Plan* plan, const std::map<std::string, std::vector<int64_t>>& counted) {
  if (counted.empty()) return;
  const PanelEntries entries(*plan, counted);
  for (Register& reg : plan->registers) {
    if (reg.control || reg.device.IsHost() || !IsSparse(reg.info)) continue;
    const int64_t bytes = entries.MostBytes(reg.id, reg.info.shape.rows);
    if (bytes != kUnknown) reg.bytes = SaturatingSum(reg.bytes, bytes);
  }
}

}  // namespace heddle::scheduler
