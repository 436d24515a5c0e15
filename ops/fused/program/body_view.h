// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "ops/base/broadcast.h"
#include "ops/base/operator.h"
#include "ops/fused/program/tile_program.h"
#include "ops/simd/cellwise/elementwise_codes.h"

namespace heddle::ops {

/// Questions about the body of a fused operator that is being lowered: its roles are known, its steps may not
/// be yet.
class BodyView {
 public:
  explicit BodyView(const TileProgram& program) : program_(program) {}

  /// Needs program.fused. Call before consumers().
  void FindConsumers() {
    consumers_.assign(body().nodes.size(), {});
    for (NodeId id = 0; id < body().size(); ++id)
      for (NodeId input : node(id).inputs)
        if (input != kNoNode) consumers_[Index(input)].push_back(id);
  }

  const TileProgram& program() const { return program_; }
  static size_t Index(NodeId id) { return static_cast<size_t>(id); }
  const Graph& body() const { return program_.fused.body; }
  const Node& node(NodeId id) const { return body()[id]; }
  int64_t Columns(NodeId id) const { return node(id).info.shape.columns; }
  bool IsRows(NodeId id) const { return program_.roles.nodes[Index(id)] == BodyRole::kRows; }
  /// The place among the roots of a value with a row for each of the driver's, or -1.
  int RowRoot(NodeId id) const {
    if (!IsRows(id)) return -1;
    const std::vector<NodeId>& roots = program_.fused.roots;
    const auto found = std::find(roots.begin(), roots.end(), id);
    return found == roots.end() ? -1 : static_cast<int>(found - roots.begin());
  }
  bool IsInput(NodeId id) const { return node(id).Is("variable"); }
  bool IsCsrInput(NodeId id) const { return IsInput(id) && node(id).info.format == Format::kSparse; }
  /// Whether the driver has all entries of the CSR input (TileProgram::united).
  bool IsUnited(NodeId id) const {
    const std::vector<int>& united = program_.united;
    return IsCsrInput(id) && std::find(united.begin(), united.end(), InputPosition(node(id))) != united.end();
  }
  bool IsSingle(NodeId id) const {
    return node(id).info.IsMatrix() && node(id).info.element_type == ElementType::kFloat32;
  }
  bool IsCellwise(NodeId id) const { return IsRows(id) && RowUseOf(node(id)) == RowUse::kCells; }
  static int InputPosition(const Node& variable) { return std::stoi(variable.Text("name")); }
  const std::vector<NodeId>& consumers(NodeId id) const { return consumers_[Index(id)]; }

  NodeId Driver() const { return program_.roles.variables[static_cast<size_t>(program_.fused.driver)]; }
  bool HasDriversShape(NodeId id) const { return IsRows(id) && Columns(id) == Columns(Driver()); }

  /// How operand i of a cell-wise node is repeated.
  Pattern PatternOf(NodeId id, size_t i) const {
    const Node& n = node(id);
    const ValueInfo& info = node(n.inputs[i]).info;
    if (info.IsScalar()) return Pattern::kScalar;
    if (n.inputs.size() != 2 || n.inputs[1] == kNoNode) return Pattern::kCells;
    const Patterns patterns = PatternsOf(node(n.inputs[0]).info, node(n.inputs[1]).info);
    return i == 0 ? patterns.left : patterns.right;
  }
  /// Absent cells of this operand make absent cells of the result (docs/numerics.md, section 7).
  bool Skips(NodeId id, size_t i) const {
    const std::optional<BinaryCode> code = FindBinaryCode(node(id).op);
    return code && SkipsAbsentCells(*code) && PatternOf(id, i) == Pattern::kCells &&
           node(node(id).inputs[i]).info.format == Format::kSparse &&
           node(node(id).inputs[i]).info.IsMatrix();
  }

 private:
  const TileProgram& program_;
  std::vector<std::vector<NodeId>> consumers_;
};

/// f(0, ...) = 0 whatever the other operands hold, where operands of the result's shape are 0 that `zeros`
/// says so of. Scalars count only where they are literals.
bool VanishesWhere(const BodyView& view, NodeId id, const std::vector<bool>& zeros);

/// True if every value of the driver's shape is needed only where the CSR driver has entries: what is zero
/// elsewhere may be used by anything, everything else only to compute such values. Found by following zeros
/// through the body.
bool CanWalkEntries(const BodyView& view);

/// Of a body that cannot walk entries: true if operator by operator only entries would be visited, for every
/// computed value of the driver's shape, and every one that leaves, is CSR (X + Y of two CSR operands has
/// entries where its driver has none). Dense tiles would visit, and hold, what is absent.
bool LosesSparsity(const BodyView& view);

/// Of a body that walks entries: the other CSR inputs without whose entries nothing leaves the walk, either.
/// Entries of the driver that they do not share need not be looked at.
std::vector<NodeId> SharedPatterns(const BodyView& view);

}  // namespace heddle::ops
