// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/run_operators.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/values/column_groups.h"
#include "ops/base/cpu.h"
#include "ops/base/operator.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/fused/by_operators.h"
#include "ops/fused/fused.h"
#include "ops/fused/program/body_view.h"
#include "ops/product/compressed_products.h"

namespace heddle::ops {
namespace {

bool IsCompressed(const TileProgram& program, const KernelCall& call, NodeId id) {
  const BodyView view(program);
  if (!view.IsInput(id) || !view.IsRows(id)) return false;
  const Value* const input = call.inputs[static_cast<size_t>(BodyView::InputPosition(view.node(id)))];
  return input->IsMatrix() && input->matrix().IsCompressed();
}

// Whether operand i of a node is read by its codes, or in a way that is as fast alone as beside others.
bool ReadsCodes(const BodyView& view, const Node& node, size_t i, const Matrix& x) {
  const Operator* const op = FindOperator(node.op);
  if (op == nullptr) return false;
  // Those that read no codes get tiles of decoded rows.
  if (op->aggregate != nullptr) return node.inputs.size() == 1;
  if (op->run_compressed == nullptr) return false;
  const bool is_transposed = op->role == Role::kTransposedProduct;
  if (node.inputs.size() != 2) return false;
  if (node.inputs[0] == node.inputs[1]) return is_transposed && x.columns() > kFewColumns;
  if (op->role == Role::kProduct)
    return i == 0 && view.IsInput(node.inputs[1]) && !view.IsRows(node.inputs[1]) &&
           MultipliesByColumns(x, view.Columns(node.inputs[1]));
  if (!is_transposed) return false;
  const int64_t k = view.Columns(node.inputs[1 - i]), n = view.Columns(node.inputs[i]);
  const int64_t rows = view.program().roles.rows;
  return n * k > kFewColumns && (i == 0 ? IsNarrow(k) : k <= kFewColumns && n > kFewColumns) &&
         AddsByPanels(x, k, 0, x.rows(), ColumnPanelHeight(rows, n));
}

// A body cut in three: products that give rows from codes, what is computed of those, and products and
// aggregates at the roots that read codes again.
struct Cut {
  std::vector<NodeId> first, last;
  // In between: a fused operator of its own, or none.
  std::shared_ptr<const FusedOperator> fused;
  Node node;
  std::vector<NodeId> inputs, results;  // Nodes of the body: what its inputs and its results are.
};

class Cutter {
 public:
  Cutter(const TileProgram& program, std::vector<bool> compressed)
      : view_(program), compressed_(std::move(compressed)), copies_(view_.body().nodes.size(), kNoNode) {}

  // kUnimplemented: what is in between is no fused operator.
  Result<Cut> Make() {
    const TileProgram& program = view_.program();
    std::vector<NodeId> wanted = program.fused.roots;
    for (NodeId id = 0; id < view_.body().size(); ++id) {
      if (!ReadsCompressed(id) || program.roles.nodes[BodyView::Index(id)] == BodyRole::kUnused) continue;
      const bool is_last = program.roles.nodes[BodyView::Index(id)] == BodyRole::kRoot;
      (is_last ? cut_.last : cut_.first).push_back(id);
      if (!is_last) continue;
      for (const NodeId input : view_.node(id).inputs)
        if (input != kNoNode) wanted.push_back(input);
    }
    auto fused = std::make_shared<FusedOperator>();
    fused_ = fused.get();
    for (const NodeId id : wanted) {
      if (IsGiven(id) || ReadsCompressed(id) ||
          std::find(cut_.results.begin(), cut_.results.end(), id) != cut_.results.end())
        continue;
      fused->roots.push_back(Copy(id));
      cut_.results.push_back(id);
    }
    if (cut_.results.empty()) return std::move(cut_);
    const auto driver = std::find_if(cut_.inputs.begin(), cut_.inputs.end(),
                                     [&](NodeId input) { return view_.IsRows(input); });
    if (driver == cut_.inputs.end()) return Unimplemented("no rows between the products");
    fused->driver = static_cast<int>(driver - cut_.inputs.begin());
    const bool is_row = cut_.results.size() == 1 && view_.IsRows(cut_.results[0]);
    fused->kind = is_row                     ? FusionTemplate::kRow
                  : cut_.results.size() == 1 ? program.fused.kind
                                             : FusionTemplate::kStitch;
    HEDDLE_RETURN_IF_ERROR(CanRunFused(*fused));
    Node& node = cut_.node;
    node.op = cut_.results.size() == 1 ? "fused" : "fusedSeveral";
    node.position = view_.node(cut_.results[0]).position;
    for (size_t i = 0; i < cut_.inputs.size(); ++i) node.inputs.push_back(static_cast<NodeId>(i));
    for (const NodeId result : cut_.results) node.results.push_back(view_.node(result).info);
    node.info = node.results.size() == 1 ? node.results[0] : ValueInfo::OfTuple();
    if (node.results.size() == 1) node.results.clear();
    node.fused = cut_.fused = std::move(fused);
    return std::move(cut_);
  }

 private:
  bool IsGiven(NodeId id) const { return view_.IsInput(id) || view_.node(id).Is("literal"); }
  bool ReadsCompressed(NodeId id) const {
    const std::vector<NodeId>& inputs = view_.node(id).inputs;
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](NodeId input) { return input != kNoNode && compressed_[BodyView::Index(input)]; });
  }

  // The node in the body of the fused operator: itself, or a variable for what is made before.
  NodeId Copy(NodeId id) {
    NodeId& copy = copies_[BodyView::Index(id)];
    if (copy != kNoNode) return copy;
    if (view_.IsInput(id) || ReadsCompressed(id)) {
      Node variable{.op = "variable", .info = view_.node(id).info};
      variable.SetAttribute("name", Scalar(std::to_string(cut_.inputs.size())));
      cut_.inputs.push_back(id);
      return copy = fused_->body.Add(std::move(variable));
    }
    Node node = view_.node(id);
    for (NodeId& input : node.inputs)
      if (input != kNoNode) input = Copy(input);
    return copy = fused_->body.Add(std::move(node));
  }

  const BodyView view_;
  const std::vector<bool> compressed_;  // By node.
  std::vector<NodeId> copies_;          // By node of the body.
  FusedOperator* fused_ = nullptr;
  Cut cut_;
};

// By the nodes that are compressed; nullptr where the body cannot be cut.
struct Cuts {
  std::mutex mutex;
  std::map<std::vector<bool>, std::shared_ptr<const Cut>> of_compressed;
};

// For all executors of the process: a cut is a function of the operator and of which inputs are compressed.
std::shared_ptr<const Cut> CutOf(const TileProgram& program, const KernelCall& call) {
  static constexpr size_t kMostPrograms = 1024;
  static std::mutex mutex;
  static ByOperators<FusedOperator, Cuts> programs(kMostPrograms);
  std::shared_ptr<Cuts> cuts;
  {
    const std::lock_guard lock(mutex);
    cuts = programs.Find(call.node.fused);
    if (cuts == nullptr) {
      cuts = std::make_shared<Cuts>();
      programs.Add(call.node.fused, cuts, [](const Cuts&) {});
    }
  }
  std::vector<bool> compressed;
  for (NodeId id = 0; id < program.fused.body.size(); ++id)
    compressed.push_back(IsCompressed(program, call, id));
  const std::lock_guard lock(cuts->mutex);
  const auto [place, is_new] = cuts->of_compressed.emplace(compressed, nullptr);
  if (is_new)
    if (Result<Cut> cut = Cutter(program, compressed).Make(); cut.ok())
      place->second = std::make_shared<const Cut>(*std::move(cut));
  return place->second;
}

// The values of one call, by nodes of the body.
class CutRun {
 public:
  CutRun(const TileProgram& program, const KernelCall& call, const Cut& cut)
      : program_(program), call_(call), cut_(cut), values_(program.fused.body.nodes.size()) {}

  Status Run(std::span<Value> results) {
    for (const NodeId id : cut_.first) HEDDLE_RETURN_IF_ERROR(RunOperator(id, Phase::kWhole));
    if (cut_.fused != nullptr) HEDDLE_RETURN_IF_ERROR(RunFused());
    for (const NodeId id : cut_.last) HEDDLE_RETURN_IF_ERROR(RunOperator(id, call_.phase));
    for (size_t i = 0; i < results.size(); ++i) results[i] = *Of(program_.fused.roots[i]);
    return OkStatus();
  }

 private:
  const Graph& body() const { return program_.fused.body; }

  const Value* Of(NodeId id) {
    if (id == kNoNode) return nullptr;
    const Node& node = body()[id];
    Value& value = values_[BodyView::Index(id)];
    if (node.Is("variable")) return call_.inputs[static_cast<size_t>(BodyView::InputPosition(node))];
    if (node.Is("literal")) value = Value(*node.FindAttribute("value"));
    return &value;
  }

  Status Run(const Node& node, Phase phase, const std::vector<NodeId>& operands, std::span<Value> results) {
    std::vector<const Value*> inputs;
    std::vector<ValueInfo> infos;
    for (const NodeId operand : operands) {
      inputs.push_back(Of(operand));
      infos.push_back(operand == kNoNode ? ValueInfo() : body()[operand].info);
    }
    const bool is_whole = call_.phase == Phase::kWhole;
    const int64_t rows = program_.roles.rows;
    const Status status = CatalogKernels().Run({.node = node,
                                                .phase = phase,
                                                .inputs = inputs,
                                                .input_infos = infos,
                                                .row_begin = is_whole ? 0 : call_.row_begin,
                                                .row_end = is_whole ? rows : call_.row_end,
                                                .total_rows = rows,
                                                .context = call_.context},
                                               results);
    return status.ok() ? status : status.At(node.position);
  }

  Status RunOperator(NodeId id, Phase phase) {
    return Run(body()[id], phase, body()[id].inputs, {&values_[BodyView::Index(id)], 1});
  }

  Status RunFused() {
    const bool reduces = std::any_of(cut_.results.begin(), cut_.results.end(), [&](NodeId id) {
      return program_.roles.nodes[BodyView::Index(id)] == BodyRole::kRoot;
    });
    std::vector<Value> made(cut_.results.size());
    HEDDLE_RETURN_IF_ERROR(Run(cut_.node, reduces ? call_.phase : Phase::kWhole, cut_.inputs, made));
    for (size_t i = 0; i < made.size(); ++i) values_[BodyView::Index(cut_.results[i])] = std::move(made[i]);
    return OkStatus();
  }

  const TileProgram& program_;
  const KernelCall& call_;
  const Cut& cut_;
  std::vector<Value> values_;  // By node.
};

}  // namespace

bool RunsByOperators(const TileProgram& program, const KernelCall& call) {
  const auto is_compressed = [](const Value* input) {
    return input != nullptr && input->IsMatrix() && input->matrix().IsCompressed();
  };
  if (std::none_of(call.inputs.begin(), call.inputs.end(), is_compressed)) return false;
  const FusedOperator& fused = program.fused;
  if (program.single || program.by_pattern || program.cut_columns > 0 ||
      (call.phase != Phase::kWhole && call.phase != Phase::kPartial))
    return false;
  // Nodes of several reductions that are no stitch have all payloads in one row.
  if (fused.roots.size() > 1 && call.phase != Phase::kWhole && fused.kind != FusionTemplate::kStitch)
    return false;
  const BodyView view(program);
  bool has_compressed = false;
  for (NodeId id = 0; id < fused.body.size(); ++id) {
    const Node& node = view.node(id);
    const BodyRole role = program.roles.nodes[BodyView::Index(id)];
    if (role == BodyRole::kFold) return false;
    if (role == BodyRole::kRows && !IsCompressed(program, call, id) && view.Columns(id) > kFewColumns)
      return false;
    if (role == BodyRole::kUnused) continue;
    if (role == BodyRole::kRows && IsCompressed(program, call, id) &&
        std::find(fused.roots.begin(), fused.roots.end(), id) != fused.roots.end())
      return false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoNode || !IsCompressed(program, call, node.inputs[i])) continue;
      const Node& variable = view.node(node.inputs[i]);
      const Matrix& x = call.inputs[static_cast<size_t>(BodyView::InputPosition(variable))]->matrix();
      if (variable.info.format != Format::kDense || !ReadsCodes(view, node, i, x)) return false;
      has_compressed = true;
    }
  }
  return has_compressed && CutOf(program, call) != nullptr;
}

Status RunByOperators(const TileProgram& program, const KernelCall& call, std::span<Value> results) {
  const std::shared_ptr<const Cut> cut = CutOf(program, call);
  if (cut == nullptr) return Internal("fused: products that read codes have no operator between them");
  return CutRun(program, call, *cut).Run(results);
}

}  // namespace heddle::ops
