// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/lower/row_background.h"

#include <algorithm>
#include <utility>

#include "core/values/panels.h"
#include "ops/base/operator.h"
#include "ops/fused/program/region_walk.h"
#include "ops/simd/cellwise/math.h"

namespace heddle::ops {
namespace {

class BackgroundFinder {
 public:
  explicit BackgroundFinder(const BodyView& view) : view_(view), body_(view.body()) {}

  std::optional<BodyWithBackgrounds> Run() {
    refused_.assign(body_.nodes.size(), false);
    do {
      traits_.assign(body_.nodes.size(), {});
      zero_.assign(body_.nodes.size(), false);
      background_.clear();
      for (NodeId id = 0; id < body_.size(); ++id) {
        FindTraits(id);
        background_.push_back(BackgroundOf(id, background_, std::nullopt));
      }
      by_entry_.assign(body_.nodes.size(), false);
      needed_.assign(body_.nodes.size(), false);
      for (NodeId id = body_.size() - 1; id >= 0; --id) FindNeed(id);
    } while (RefusesMore());
    const bool loses_sparsity = LosesSparsity(view_);
    bool is_worth_it = false;
    for (NodeId id = 0; id < body_.size(); ++id) {
      if (loses_sparsity && view_.HasDriversShape(id) && view_.IsCellwise(id) && !by_entry_[Index(id)])
        return std::nullopt;
      const bool keeps_sparse = HasBackground(id) && view_.node(id).info.format == Format::kSparse;
      is_worth_it |= IsComputed(id) && (IsHeavyNode(view_, id) || keeps_sparse);
    }
    if (!is_worth_it || NeedsLongRows()) return std::nullopt;
    constexpr double kOrdinaryNumber = 1.5;
    for (NodeId id = 0; id < body_.size(); ++id) usual_.push_back(BackgroundOf(id, usual_, kOrdinaryNumber));
    for (NodeId id = 0; id < body_.size(); ++id) Copy(id);
    Finish();
    return std::move(result_);
  }

 private:
  // What is known of a value of the driver's shape.
  struct Traits {
    bool at_entries = false;  // It can be computed at the entries alone, whatever its other cells are.
    bool zero = false;        // Its other cells are 0.
    bool equal = false;       // All its other cells in a row are equal.
  };

  static size_t Index(NodeId id) { return BodyView::Index(id); }
  bool IsComputed(NodeId id) const { return by_entry_[Index(id)] && view_.IsCellwise(id); }
  bool HasBackground(NodeId id) const {
    return needed_[Index(id)] && by_entry_[Index(id)] && !zero_[Index(id)];
  }

  bool IsUsed(NodeId id) const { return view_.program().roles.nodes[Index(id)] != BodyRole::kUnused; }

  void FindTraits(NodeId id) {
    if (!view_.HasDriversShape(id) || refused_[Index(id)]) return;
    Traits& traits = traits_[Index(id)];
    if (id == view_.Driver() || HasRole(view_.node(id), Role::kSampledProduct)) {
      traits = {true, true, true};
    } else if (view_.IsInput(id)) {
      traits = {.at_entries = true};
    } else if (view_.IsCellwise(id)) {
      traits = {true, VanishesWhere(view_, id, zero_), true};
      bool any = false;
      for (size_t i = 0; i < view_.node(id).inputs.size(); ++i) TakeOperand(id, i, &traits, &any);
      traits.zero &= traits.at_entries;
      traits.equal = traits.at_entries && (traits.zero || (traits.equal && any));
    }
    zero_[Index(id)] = traits.zero;
  }

  void TakeOperand(NodeId id, size_t i, Traits* traits, bool* any) const {
    const NodeId input = view_.node(id).inputs[i];
    if (input == kNoNode || view_.node(input).info.IsScalar()) return;
    switch (view_.PatternOf(id, i)) {
      case Pattern::kCells:
        traits->at_entries &= traits_[Index(input)].at_entries;
        traits->equal &= traits_[Index(input)].equal || IsUnread(id, i);
        *any |= traits_[Index(input)].equal;
        break;
      // A background is computed from dense columns: a CSR one would skip its zeros.
      case Pattern::kColumn: traits->equal &= view_.node(input).info.format == Format::kDense; break;
      case Pattern::kRow:
        traits->at_entries &= view_.Columns(input) == view_.Columns(id);
        traits->equal = false;
        break;
      case Pattern::kScalar: traits->at_entries = false; break;
    }
  }

  // The operand of ifelse that no background reads: X in ifelse(M == 0, -Infinity, X), as M is 0 there.
  bool IsUnread(NodeId id, size_t i) const {
    const Node& node = view_.node(id);
    if (!HasRole(node, Role::kChoose) || i == 0) return false;
    const std::optional<double>& condition = background_[Index(node.inputs[0])];
    return condition && (*condition != 0) != (i == 1);
  }

  // Consumers come first. Dense values and the backgrounds of others read cells of a value that are no
  // entries; without such a reader the value is computed at the entries only.
  void FindNeed(NodeId id) {
    const Traits& traits = traits_[Index(id)];
    bool needed = view_.RowRoot(id) >= 0 || view_.consumers(id).empty();
    for (const NodeId consumer : view_.consumers(id))
      needed |= (IsUsed(consumer) && !by_entry_[Index(consumer)]) ||
                (HasBackground(consumer) && ReadsBackground(consumer, id));
    needed_[Index(id)] = needed;
    by_entry_[Index(id)] = traits.equal || (traits.at_entries && view_.IsCellwise(id) && !needed);
  }

  bool ReadsBackground(NodeId consumer, NodeId id) const {
    const std::vector<NodeId>& inputs = view_.node(consumer).inputs;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i] == id && !IsUnread(consumer, i)) return true;
    return false;
  }

  // A value at entries cannot read a dense value of the body (of a dense input it can): it becomes dense,
  // too.
  bool RefusesMore() {
    bool more = false;
    for (NodeId id = 0; id < body_.size(); ++id) {
      if (!IsComputed(id)) continue;
      for (size_t i = 0; i < view_.node(id).inputs.size(); ++i) {
        const NodeId input = view_.node(id).inputs[i];
        if (input == kNoNode || !view_.HasDriversShape(input) || view_.PatternOf(id, i) != Pattern::kCells ||
            view_.IsInput(input) || by_entry_[Index(input)])
          continue;
        refused_[Index(id)] = more = true;
      }
    }
    return more;
  }

  // Tiles of dense rows longer than a column chunk hold some of their columns, which values at entries
  // cannot.
  bool NeedsLongRows() const {
    if (view_.Columns(view_.Driver()) <= kColumnChunk) return false;
    for (NodeId id = 0; id < body_.size(); ++id) {
      if (!view_.HasDriversShape(id) || id == view_.Driver()) continue;
      if (view_.IsInput(id)) {
        const std::vector<NodeId>& readers = view_.consumers(id);
        if (std::all_of(readers.begin(), readers.end(), [&](NodeId r) { return by_entry_[Index(r)]; }))
          continue;
      }
      if (!by_entry_[Index(id)]) return true;
      const bool sparse = view_.node(id).info.format == Format::kSparse || zero_[Index(id)];
      if (view_.RowRoot(id) >= 0 && view_.node(id).info.format == Format::kDense) return true;
      for (const NodeId consumer : view_.consumers(id))
        if (IsUsed(consumer) && !by_entry_[Index(consumer)] && !CanReadLongRows(consumer, sparse))
          return true;
    }
    return false;
  }
  bool CanReadLongRows(NodeId id, bool sparse) const {
    const Node& node = view_.node(id);
    if (HasRole(node, {Role::kProduct, Role::kTransposedProduct})) return sparse;
    const Aggregate* aggregate = FindAggregate(node.op);
    if (aggregate == nullptr) return false;
    const simd::Fold fold = FoldOf(aggregate->kind);
    if (FoldsRows(node)) return fold != simd::Fold::kMultiply;
    return sparse && fold == simd::Fold::kAdd && !IsSpread(aggregate->kind);
  }

  void Copy(NodeId id) {
    Node copy = body_[id];
    for (NodeId& input : copy.inputs)
      if (input != kNoNode) input = result_.copies[Index(input)];
    const BodyRole role = view_.program().roles.nodes[Index(id)];
    result_.copies.push_back(Add(copy, role, by_entry_[Index(id)]));
    if (!IsComputed(id) || !HasBackground(id)) return;
    copy.info.shape.columns = 1;
    for (size_t i = 0; i < copy.inputs.size(); ++i) {
      const NodeId input = body_[id].inputs[i];
      if (input != kNoNode && IsUnread(id, i)) copy.inputs[i] = Zero();
      if (input == kNoNode || IsUnread(id, i) || !by_entry_[Index(input)]) continue;
      copy.inputs[i] = zero_[Index(input)] ? Zero() : result_.backgrounds[Index(copy.inputs[i])];
    }
    const NodeId column = Add(std::move(copy), BodyRole::kRows, false);
    result_.backgrounds[Index(result_.copies.back())] = column;
    result_.usually_zero[Index(result_.copies.back())] = usual_[Index(id)] == 0;
  }

  // The background of a value, from those of the nodes before it; columns and scalars that are not known here
  // count as `unknown`.
  std::optional<double> BackgroundOf(NodeId id, const std::vector<std::optional<double>>& before,
                                     std::optional<double> unknown) const {
    const Node& node = view_.node(id);
    if (node.Is("literal")) return node.FindAttribute("value")->AsDouble();
    if (zero_[Index(id)]) return 0.0;
    if (!traits_[Index(id)].equal || !view_.IsCellwise(id)) return unknown;
    std::vector<double> operands;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoNode) continue;
      const std::optional<double> operand =
          IsUnread(id, i) ? std::optional<double>(0.0) : before[Index(node.inputs[i])];
      if (!operand) return std::nullopt;
      operands.push_back(*operand);
    }
    if (HasRole(node, Role::kChoose)) return operands[0] != 0 ? operands[1] : operands[2];
    if (const auto binary = FindBinaryCode(node.op); binary && operands.size() == 2)
      return Apply(*binary, operands[0], operands[1]);
    const auto unary = FindUnaryCode(node.op);
    return unary && operands.size() == 1 ? std::optional<double>(Apply(*unary, operands[0])) : unknown;
  }

  NodeId Zero() {
    Node literal{.op = "literal", .info = ValueInfo::OfScalar(ValueType::kDouble)};
    literal.SetAttribute("value", Scalar(0.0));
    return Add(std::move(literal), BodyRole::kScalar, false);
  }

  NodeId Add(Node node, BodyRole role, bool by_entry) {
    result_.roles.nodes.push_back(role);
    result_.by_entry.push_back(by_entry);
    result_.backgrounds.push_back(kNoNode);
    result_.usually_zero.push_back(false);
    return result_.fused.body.Add(std::move(node));
  }

  void Finish() {
    const TileProgram& program = view_.program();
    Graph body = std::move(result_.fused.body);
    result_.fused = program.fused;
    result_.fused.body = std::move(body);
    for (NodeId& root : result_.fused.roots) root = result_.copies[Index(root)];
    std::vector<BodyRole> nodes = std::move(result_.roles.nodes);
    result_.roles = program.roles;
    result_.roles.nodes = std::move(nodes);
    for (NodeId& variable : result_.roles.variables)
      if (variable != kNoNode) variable = result_.copies[Index(variable)];
  }

  const BodyView& view_;
  const Graph& body_;
  std::vector<Traits> traits_;  // By node.
  std::vector<bool> zero_, refused_;
  // By node: its background, where literals alone decide it, and where all else is an ordinary number.
  std::vector<std::optional<double>> background_, usual_;
  std::vector<bool> by_entry_, needed_;  // By node; some reader needs its other cells.
  BodyWithBackgrounds result_;
};

}  // namespace

std::optional<BodyWithBackgrounds> FindBackgrounds(const BodyView& view) {
  const int64_t columns = view.Columns(view.Driver());
  if (view.program().by_pattern || !view.IsCsrInput(view.Driver()) || columns < 2) return std::nullopt;
  return BackgroundFinder(view).Run();
}

}  // namespace heddle::ops
