// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/entry_defaults.h"

#include <utility>

#include "core/values/panels.h"
#include "ops/fused/region_walk.h"

namespace heddle::ops {
namespace {

class DefaultFinder {
 public:
  explicit DefaultFinder(const BodyView& view) : view_(view), body_(view.body()) {}

  std::optional<DefaultedBody> Run() {
    by_entry_.assign(body_.nodes.size(), false);
    zero_.assign(body_.nodes.size(), false);
    needed_.assign(body_.nodes.size(), false);
    for (NodeId id = 0; id < body_.size(); ++id) FindForm(id);
    bool heavy = false, any = false;
    for (NodeId id = body_.size() - 1; id >= 0; --id) {
      FindNeed(id);
      heavy |= IsComputed(id) && IsHeavyNode(view_, id);
      any |= HasDefault(id);
    }
    if (!heavy || !any) return std::nullopt;
    for (NodeId id = 0; id < body_.size(); ++id) Copy(id);
    Finish();
    return std::move(made_);
  }

 private:
  static size_t Index(NodeId id) { return BodyView::Index(id); }
  bool IsComputed(NodeId id) const { return by_entry_[Index(id)] && view_.IsCellwise(id); }
  bool HasDefault(NodeId id) const { return needed_[Index(id)] && !zero_[Index(id)]; }

  void FindForm(NodeId id) {
    if (!view_.HasDriversShape(id)) return;
    if (id == view_.Driver() || view_.node(id).Is("sampledProduct")) {
      by_entry_[Index(id)] = zero_[Index(id)] = true;
      return;
    }
    if (!view_.IsCellwise(id)) return;
    const bool zero = VanishesWhere(view_, id, zero_);
    if (!zero && view_.node(id).info.format == Format::kSparse) return;
    bool any = false;
    for (size_t i = 0; i < view_.node(id).inputs.size(); ++i) {
      const NodeId input = view_.node(id).inputs[i];
      if (input == kNoNode || view_.node(input).info.IsScalar()) continue;
      switch (view_.PatternOf(id, i)) {
        case Pattern::kCells:
          // Other inputs are gathered at the entries, where that is all that is needed of the result.
          if (!by_entry_[Index(input)] && !(zero && view_.IsInput(input))) return;
          any |= by_entry_[Index(input)];
          break;
        case Pattern::kColumn:
          if (view_.node(input).info.format == Format::kSparse) return;
          break;
        case Pattern::kRow:
          if (!zero) return;
          break;
        case Pattern::kScalar: return;
      }
    }
    by_entry_[Index(id)] = any;
    zero_[Index(id)] = any && zero;
  }

  // Consumers come first. Elsewhere than at the entries a value is needed by what is dense, and by the
  // defaults of others.
  void FindNeed(NodeId id) {
    if (!by_entry_[Index(id)]) return;
    bool needed = view_.RowRoot(id) >= 0;
    for (const NodeId consumer : view_.consumers(id))
      needed |= !by_entry_[Index(consumer)] || HasDefault(consumer);
    needed_[Index(id)] = needed;
  }

  void Copy(NodeId id) {
    Node copy = body_[id];
    for (NodeId& input : copy.inputs)
      if (input != kNoNode) input = made_.copies[Index(input)];
    const BodyRole role = view_.program().roles.nodes[Index(id)];
    made_.copies.push_back(Add(copy, role, by_entry_[Index(id)]));
    if (!IsComputed(id) || !HasDefault(id)) return;
    copy.info.shape.columns = 1;
    for (size_t i = 0; i < copy.inputs.size(); ++i) {
      const NodeId input = body_[id].inputs[i];
      if (input == kNoNode || !by_entry_[Index(input)]) continue;
      copy.inputs[i] = zero_[Index(input)] ? Zero() : made_.defaults[Index(copy.inputs[i])];
    }
    const NodeId column = Add(std::move(copy), BodyRole::kRows, false);
    made_.defaults[Index(made_.copies.back())] = column;
  }

  NodeId Zero() {
    Node literal{.op = "literal", .info = ValueInfo::OfScalar(ValueType::kDouble)};
    literal.SetAttribute("value", Scalar(0.0));
    return Add(std::move(literal), BodyRole::kScalar, false);
  }

  NodeId Add(Node node, BodyRole role, bool by_entry) {
    made_.roles.nodes.push_back(role);
    made_.by_entry.push_back(by_entry);
    made_.defaults.push_back(kNoNode);
    return made_.fused.body.Add(std::move(node));
  }

  void Finish() {
    const TileProgram& program = view_.program();
    Graph body = std::move(made_.fused.body);
    made_.fused = program.fused;
    made_.fused.body = std::move(body);
    for (NodeId& root : made_.fused.roots) root = made_.copies[Index(root)];
    std::vector<BodyRole> nodes = std::move(made_.roles.nodes);
    made_.roles = program.roles;
    made_.roles.nodes = std::move(nodes);
    for (NodeId& variable : made_.roles.variables)
      if (variable != kNoNode) variable = made_.copies[Index(variable)];
  }

  const BodyView& view_;
  const Graph& body_;
  std::vector<bool> by_entry_, zero_, needed_;  // By node; needed elsewhere than at the entries.
  DefaultedBody made_;
};

}  // namespace

std::optional<DefaultedBody> FindDefaults(const BodyView& view) {
  const int64_t columns = view.Columns(view.Driver());
  const TileProgram& program = view.program();
  if (program.by_pattern || program.fused.kind == FusionTemplate::kStitch) return std::nullopt;
  if (!view.IsCsrInput(view.Driver()) || columns < 2 || columns > kColumnChunk) return std::nullopt;
  return DefaultFinder(view).Run();
}

}  // namespace heddle::ops
