// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/lower/entry_defaults.h"

#include <algorithm>
#include <utility>

#include "core/values/panels.h"
#include "ops/fused/program/region_walk.h"
#include "ops/simd/cellwise/math.h"

namespace heddle::ops {
namespace {

class DefaultFinder {
 public:
  explicit DefaultFinder(const BodyView& view) : view_(view), body_(view.body()) {}

  std::optional<DefaultedBody> Run() {
    refused_.assign(body_.nodes.size(), false);
    do {
      forms_.assign(body_.nodes.size(), {});
      zero_.assign(body_.nodes.size(), false);
      elsewhere_.clear();
      for (NodeId id = 0; id < body_.size(); ++id) {
        FindForm(id);
        elsewhere_.push_back(Elsewhere(id, elsewhere_, std::nullopt));
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
      const bool keeps_sparse = HasDefault(id) && view_.node(id).info.format == Format::kSparse;
      is_worth_it |= IsComputed(id) && (IsHeavyNode(view_, id) || keeps_sparse);
    }
    if (!is_worth_it || NeedsLongRows()) return std::nullopt;
    constexpr double kOrdinary = 1.5;
    for (NodeId id = 0; id < body_.size(); ++id) usual_.push_back(Elsewhere(id, usual_, kOrdinary));
    for (NodeId id = 0; id < body_.size(); ++id) Copy(id);
    Finish();
    return std::move(made_);
  }

 private:
  // What a value of the driver's shape can be.
  struct Form {
    bool gathers = false;  // It can be computed at the entries, whatever it is elsewhere.
    bool zero = false;     // Elsewhere it is 0.
    bool equal = false;    // Elsewhere all cells of a row are equal, or it is 0.
  };

  static size_t Index(NodeId id) { return BodyView::Index(id); }
  bool IsComputed(NodeId id) const { return by_entry_[Index(id)] && view_.IsCellwise(id); }
  bool HasDefault(NodeId id) const { return needed_[Index(id)] && by_entry_[Index(id)] && !zero_[Index(id)]; }

  bool IsUsed(NodeId id) const { return view_.program().roles.nodes[Index(id)] != BodyRole::kUnused; }

  void FindForm(NodeId id) {
    if (!view_.HasDriversShape(id) || refused_[Index(id)]) return;
    Form& form = forms_[Index(id)];
    if (id == view_.Driver() || view_.node(id).Is("sampledProduct")) {
      form = {true, true, true};
    } else if (view_.IsInput(id)) {
      form = {.gathers = true};
    } else if (view_.IsCellwise(id)) {
      form = {true, VanishesWhere(view_, id, zero_), true};
      bool any = false;
      for (size_t i = 0; i < view_.node(id).inputs.size(); ++i) TakeOperand(id, i, &form, &any);
      form.zero &= form.gathers;
      form.equal = form.gathers && (form.zero || (form.equal && any));
    }
    zero_[Index(id)] = form.zero;
  }

  void TakeOperand(NodeId id, size_t i, Form* form, bool* any) const {
    const NodeId input = view_.node(id).inputs[i];
    if (input == kNoNode || view_.node(input).info.IsScalar()) return;
    switch (view_.PatternOf(id, i)) {
      case Pattern::kCells:
        form->gathers &= forms_[Index(input)].gathers;
        form->equal &= forms_[Index(input)].equal || IsUnread(id, i);
        *any |= forms_[Index(input)].equal;
        break;
      // The default of a value is computed from columns, beside which a CSR one would skip.
      case Pattern::kColumn: form->equal &= view_.node(input).info.format == Format::kDense; break;
      case Pattern::kRow:
        form->gathers &= view_.Columns(input) == view_.Columns(id);
        form->equal = false;
        break;
      case Pattern::kScalar: form->gathers = false; break;
    }
  }

  // The operand of ifelse that is chosen at no cell elsewhere: X in ifelse(M == 0, -Infinity, X).
  bool IsUnread(NodeId id, size_t i) const {
    const Node& node = view_.node(id);
    if (!node.Is("ifelse") || i == 0) return false;
    const std::optional<double>& condition = elsewhere_[Index(node.inputs[0])];
    return condition && (*condition != 0) != (i == 1);
  }

  // Consumers come first. Elsewhere than at the entries a value is needed by what is dense, and by the
  // defaults of others. One that nothing needs there is computed at the entries only.
  void FindNeed(NodeId id) {
    const Form& form = forms_[Index(id)];
    bool needed = view_.RowRoot(id) >= 0 || view_.consumers(id).empty();
    for (const NodeId consumer : view_.consumers(id))
      needed |= (IsUsed(consumer) && !by_entry_[Index(consumer)]) ||
                (HasDefault(consumer) && ReadsElsewhere(consumer, id));
    needed_[Index(id)] = needed;
    by_entry_[Index(id)] = form.equal || (form.gathers && view_.IsCellwise(id) && !needed);
  }

  bool ReadsElsewhere(NodeId consumer, NodeId id) const {
    const std::vector<NodeId>& inputs = view_.node(consumer).inputs;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i] == id && !IsUnread(consumer, i)) return true;
    return false;
  }

  // Cells of what is dense, but no input, cannot be gathered: what would do that is dense as well.
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

  // Dense rows longer than a column chunk are cut by columns, which values at entries are not.
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
    if (node.Is("%*%") || node.Is("t%*%")) return sparse;
    const Aggregate* aggregate = FindAggregate(node.op);
    if (aggregate == nullptr) return false;
    const simd::Fold fold = FoldOf(aggregate->kind);
    if (FoldsRows(node)) return fold != simd::Fold::kMultiply;
    return sparse && fold == simd::Fold::kAdd && !IsSpread(aggregate->kind);
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
      if (input != kNoNode && IsUnread(id, i)) copy.inputs[i] = Zero();
      if (input == kNoNode || IsUnread(id, i) || !by_entry_[Index(input)]) continue;
      copy.inputs[i] = zero_[Index(input)] ? Zero() : made_.defaults[Index(copy.inputs[i])];
    }
    const NodeId column = Add(std::move(copy), BodyRole::kRows, false);
    made_.defaults[Index(made_.copies.back())] = column;
    made_.usually_zero[Index(made_.copies.back())] = usual_[Index(id)] == 0;
  }

  // What a value is elsewhere than at the entries, given that of the nodes before it, where columns and
  // scalars that are not known are `unknown`.
  std::optional<double> Elsewhere(NodeId id, const std::vector<std::optional<double>>& before,
                                  std::optional<double> unknown) const {
    const Node& node = view_.node(id);
    if (node.Is("literal")) return node.FindAttribute("value")->AsDouble();
    if (zero_[Index(id)]) return 0.0;
    if (!forms_[Index(id)].equal || !view_.IsCellwise(id)) return unknown;
    std::vector<double> operands;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoNode) continue;
      const std::optional<double> operand =
          IsUnread(id, i) ? std::optional<double>(0.0) : before[Index(node.inputs[i])];
      if (!operand) return std::nullopt;
      operands.push_back(*operand);
    }
    if (node.Is("ifelse")) return operands[0] != 0 ? operands[1] : operands[2];
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
    made_.roles.nodes.push_back(role);
    made_.by_entry.push_back(by_entry);
    made_.defaults.push_back(kNoNode);
    made_.usually_zero.push_back(false);
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
  std::vector<Form> forms_;  // By node.
  std::vector<bool> zero_, refused_;
  // By node: what it is elsewhere, as far as literals tell, and where all that they do not tell is ordinary.
  std::vector<std::optional<double>> elsewhere_, usual_;
  std::vector<bool> by_entry_, needed_;  // By node; needed elsewhere than at the entries.
  DefaultedBody made_;
};

}  // namespace

std::optional<DefaultedBody> FindDefaults(const BodyView& view) {
  const int64_t columns = view.Columns(view.Driver());
  if (view.program().by_pattern || !view.IsCsrInput(view.Driver()) || columns < 2) return std::nullopt;
  return DefaultFinder(view).Run();
}

}  // namespace heddle::ops
