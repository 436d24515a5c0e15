// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/fused_turned.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "ops/base/columns.h"
#include "ops/cells/join_columns.h"
#include "ops/cells/move_cells.h"
#include "ops/fused/fused.h"
#include "ops/fused/parts_of_fused.h"
#include "ops/product/matmul.h"

namespace heddle::ops {
namespace {

// A matrix of one column would be taken for a vector that is repeated.
constexpr int64_t kLeastColumns = 2;

// What a rank has of a value of the body.
enum class Share : uint8_t {
  kUnused,
  kWhole,
  kColumns,  ///< Its columns of the cells,
  kRows,     ///< or the rows with their numbers.
};

// Follows the body down from its product t(P) %*% Y.
class Shares {
 public:
  explicit Shares(const FusedOperator& fused)
      : body_(fused.body), shares_(fused.body.nodes.size(), Share::kUnused) {
    if (fused.roots.size() != 1) return;
    const NodeId root = fused.roots[0];
    const Node& product = body_[root];
    if (!product.Is("t%*%") || product.info.shape.columns <= kFewColumns) return;
    cells_ = body_[product.inputs[0]].info.shape;
    is_by_columns_ = cells_.rows > 1 && cells_.columns >= kLeastColumns &&
                     Ask(product.inputs[0], Share::kColumns) && Ask(product.inputs[1], Share::kWhole);
    shares_[static_cast<size_t>(root)] = Share::kRows;
    for (NodeId id = 0; id < body_.size(); ++id) {
      if (!body_[id].Is("variable")) continue;
      const std::string& name = body_[id].Text("name");
      size_t input = 0;
      std::from_chars(name.data(), name.data() + name.size(), input);
      inputs_.resize(std::max(inputs_.size(), input + 1), Share::kWhole);
      if (shares_[static_cast<size_t>(id)] != Share::kUnused)
        inputs_[input] = shares_[static_cast<size_t>(id)];
    }
    const auto driver = static_cast<size_t>(fused.driver);
    is_by_columns_ = is_by_columns_ && driver < inputs_.size() && inputs_[driver] == Share::kColumns;
  }

  bool is_by_columns() const { return is_by_columns_; }
  Share OfNode(NodeId id) const { return shares_[static_cast<size_t>(id)]; }
  Share OfInput(size_t i) const { return i < inputs_.size() ? inputs_[i] : Share::kWhole; }
  int64_t columns() const { return cells_.columns; }

 private:
  // False where the value is not to be had so, or is wanted in another way, too.
  bool Ask(NodeId id, Share share) {
    const Node& node = body_[id];
    if (node.info.IsScalar()) share = Share::kWhole;
    Share& known = shares_[static_cast<size_t>(id)];
    if (known != Share::kUnused) return known == share;
    known = share;
    if (node.Is("variable") || node.Is("literal")) return true;
    if (node.info.IsScalar())
      return std::ranges::all_of(node.inputs, [&](NodeId input) {
        return input == kNoNode || (body_[input].info.IsScalar() && Ask(input, Share::kWhole));
      });
    if (share != Share::kColumns) return false;
    if (node.Is("sampledProduct"))
      return Ask(node.inputs[0], Share::kColumns) && Ask(node.inputs[1], Share::kWhole) &&
             Ask(node.inputs[2], Share::kRows);
    if (KindOf(node) != OperatorKind::kCells) return false;
    return std::ranges::all_of(node.inputs, [&](NodeId input) {
      if (input == kNoNode) return true;
      const ValueInfo& info = body_[input].info;
      const bool has_columns = info.IsMatrix() && info.shape.columns == cells_.columns;
      return Ask(input, has_columns ? Share::kColumns : Share::kWhole);
    });
  }

  const Graph& body_;
  Shape cells_;
  std::vector<Share> shares_, inputs_;
  bool is_by_columns_ = false;
};

bool IsTurnedProduct(const Node& node, std::span<const ValueInfo>) {
  return node.fused != nullptr && node.info.IsMatrix() && Shares(*node.fused).is_by_columns();
}

InputUse SharedInputs(const Node& node, std::span<const ValueInfo>, int i) {
  const Share share = Shares(*node.fused).OfInput(static_cast<size_t>(i));
  return share == Share::kColumns || share == Share::kRows ? InputUse::kRows : InputUse::kWhole;
}

bool IsTurnedInput(const Node& node, std::span<const ValueInfo>, int i) {
  return Shares(*node.fused).OfInput(static_cast<size_t>(i)) == Share::kRows;
}

ValueInfo PartOf(ValueInfo info, Share share, int64_t columns) {
  if (share == Share::kColumns && info.IsMatrix()) info.shape.columns = columns;
  if (share == Share::kRows && info.IsMatrix()) info.shape.rows = columns;
  return info;
}

// A single column, or row, twice.
Result<Value> Doubled(const Value& value, Share share) {
  const Matrix& x = value.matrix();
  constexpr int64_t kTwice[] = {0, 0};
  HEDDLE_ASSIGN_OR_RETURN(Matrix twice, share == Share::kRows ? GatherRows(x, kTwice)
                                                              : JoinColumns({x, x}, FormatOf(x.storage())));
  return Value(std::move(twice));
}

Status RunTurned(const StageCall& call, std::span<Value> outputs) {
  static PartsOfFused parts;
  const FusedOperator& fused = *call.node.fused;
  const Shares shares(fused);
  const ValueInfo& whole = fused.body[fused.roots[0]].info;
  const int64_t own = call.rows.End(call.rank) - call.rows.Begin(call.rank);
  if (own == 0) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix none, whole.format == Format::kSparse
                                             ? Matrix::Sparse(0, whole.shape.columns, 0, whole.element_type)
                                             : Matrix::Dense(0, whole.shape.columns, whole.element_type));
    outputs[0] = Value(std::move(none));
    return OkStatus();
  }
  const int64_t columns = std::max(own, kLeastColumns);
  Node node = call.node;
  node.fused = parts.Of(call.node.fused, columns, [&](FusedOperator& part) {
    for (NodeId id = 0; id < part.body.size(); ++id)
      part.body[id].info = PartOf(part.body[id].info, shares.OfNode(id), columns);
  });
  node.info = PartOf(whole, Share::kRows, columns);
  std::vector<ValueInfo> infos;
  std::vector<Value> doubled(call.inputs.size());
  std::vector<const Value*> inputs(call.inputs.begin(), call.inputs.end());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Share share = shares.OfInput(i);
    infos.push_back(PartOf(call.input_infos[i], share, columns));
    if (own == columns || share == Share::kWhole) continue;
    HEDDLE_ASSIGN_OR_RETURN(doubled[i], Doubled(*inputs[i], share));
    inputs[i] = &doubled[i];
  }
  HEDDLE_ASSIGN_OR_RETURN(outputs[0], FindOperator(node.op)->run({.node = node,
                                                                  .phase = Phase::kWhole,
                                                                  .inputs = inputs,
                                                                  .input_infos = infos,
                                                                  .context = call.context}));
  if (own == columns) return OkStatus();
  HEDDLE_ASSIGN_OR_RETURN(Matrix first, GatherRows(outputs[0].matrix(), std::vector<int64_t>{0}));
  outputs[0] = Value(std::move(first));
  return OkStatus();
}

}  // namespace

constexpr StagedForm kFusedTurned = {.stages = kOneStage,
                                     .result = StagedResult::kTurned,
                                     .axis = Axis::kColumns,
                                     .applies = IsTurnedProduct,
                                     .input_use = SharedInputs,
                                     .is_turned = IsTurnedInput,
                                     .run = RunTurned};

}  // namespace heddle::ops
