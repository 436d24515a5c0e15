// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/build_operator.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "compiler/fuse/template.h"

namespace heddle::compiler::fusion {
namespace {

class Builder {
 public:
  Builder(const Dag& dag, const std::vector<NodeId>& covered)
      : dag_(dag), graph_(*dag.graph), covered_(covered) {}

  std::optional<BuiltOperator> Build(FusionTemplate kind, const std::vector<NodeId>& roots) {
    built_.fused.kind = kind;
    height_ = HeightOf(dag_, roots[0]);
    for (NodeId id : covered_) AddNode(id);
    for (NodeId root : roots) built_.fused.roots.push_back(inside_.at(root));
    const int driver = FindDriver(roots);
    if (driver < 0) return std::nullopt;
    built_.fused.driver = driver;
    return std::move(built_);
  }

 private:
  struct Input {
    NodeId node;
    bool whole;  // A matrix that every row needs.
    auto operator<=>(const Input&) const = default;
  };

  void AddNode(NodeId id) {
    Node node = graph_[id];
    node.after.clear();
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const NodeId input = node.inputs[i];
      if (input == kNoNode) continue;
      if (dag_[id].op->fusion.use == ops::RowUse::kColumnRange && i >= 3) {
        const int64_t begin = dag_[id].range_begin;
        node.inputs[i] = AddLiteral(i == 3 ? begin : begin + dag_[id].columns - 1);
      } else if (const auto found = inside_.find(input); found != inside_.end()) {
        node.inputs[i] = found->second;
      } else {
        node.inputs[i] = AddInput({input, IsWhole(id, i)});
      }
    }
    inside_[id] = built_.fused.body.Add(std::move(node));
  }

  // Placement never divides a single row, but tiles do: cells of one row are read tile by tile, too.
  bool IsWhole(NodeId id, size_t i) const {
    const DagNode &node = dag_[id], &input = dag_[node.inputs[i]];
    return input.matrix && node.by_rows[i] == 0 &&
           !(node.op->fusion.use == ops::RowUse::kCells && height_ == 1 && IsRowAligned(node, input));
  }

  NodeId AddLiteral(int64_t value) {
    Node literal;
    literal.op = "literal";
    literal.info = ValueInfo::OfScalar(ValueType::kInteger);
    literal.SetAttribute("value", Scalar(value));
    return built_.fused.body.Add(std::move(literal));
  }

  NodeId AddInput(Input input) {
    const auto found = outside_.find(input);
    if (found != outside_.end()) return found->second;
    Node node;
    if (graph_[input.node].Is("literal")) {
      node = graph_[input.node];
    } else {
      node.op = "variable";
      node.SetAttribute("name", std::to_string(built_.inputs.size()));
      node.info = graph_[input.node].info;
      node.position = graph_[input.node].position;
      built_.inputs.push_back(input.node);
      whole_.push_back(input.whole);
    }
    return outside_[input] = built_.fused.body.Add(std::move(node));
  }

  // The pattern of a sampled product; the CSR input with the fewest entries outside of which nothing is
  // needed; else the largest whose rows are walked.
  int FindDriver(const std::vector<NodeId>& roots) const {
    for (NodeId id : covered_) {
      if (dag_[id].op->fusion.use != ops::RowUse::kSampledProduct) continue;
      const auto found = std::find(built_.inputs.begin(), built_.inputs.end(), dag_[id].inputs[0]);
      if (found != built_.inputs.end()) return static_cast<int>(found - built_.inputs.begin());
    }
    int best = -1;
    bool best_drives = false;
    for (size_t i = 0; i < built_.inputs.size(); ++i) {
      const DagNode& input = dag_[built_.inputs[i]];
      if (whole_[i] || !input.matrix || input.rows != height_) continue;
      const bool drives = input.sparse && IsNeededOnlyWhere(built_.inputs[i], roots);
      const DagNode* const other = best < 0 ? nullptr : &dag_[built_.inputs[static_cast<size_t>(best)]];
      if (other != nullptr && (drives != best_drives ? best_drives
                               : drives              ? input.sparsity >= other->sparsity
                                                     : !IsLarger(input, *other)))
        continue;
      best = static_cast<int>(i);
      best_drives = drives;
    }
    return best;
  }

  // Prefers the input with more cells; of two of one size the CSR one, since its entries may be all that the
  // operator visits.
  static bool IsLarger(const DagNode& input, const DagNode& other) {
    return input.cells > other.cells || (input.cells == other.cells && input.sparse && !other.sparse);
  }

  // Whether values of the driver's shape matter only at its entries: every one that is a result, or that a
  // node of another shape reads, has no entry where the driver has none.
  bool IsNeededOnlyWhere(NodeId driver, const std::vector<NodeId>& roots) const {
    const auto has_shape = [&](NodeId id) {
      return id != kNoNode && dag_[id].matrix && dag_[id].rows == dag_[driver].rows &&
             dag_[id].columns == dag_[driver].columns;
    };
    std::set<NodeId> absent = {driver};
    for (NodeId id : covered_)
      if (has_shape(id) && IsAbsent(dag_, id, [&](NodeId operand) { return absent.contains(operand); }))
        absent.insert(id);
    // A CSR value with the driver's pattern is one number in the rest of each row, in practice 0.
    const auto has_defaults = [&](NodeId id) {
      return dag_[id].sparse && dag_[id].pattern == dag_[driver].pattern;
    };
    const auto is_needed_everywhere = [&](NodeId id) {
      return has_shape(id) && !absent.contains(id) && !has_defaults(id);
    };
    for (NodeId id : covered_)
      if (!has_shape(id) &&
          std::any_of(graph_[id].inputs.begin(), graph_[id].inputs.end(), is_needed_everywhere))
        return false;
    return std::none_of(roots.begin(), roots.end(), is_needed_everywhere);
  }

  const Dag& dag_;
  const Graph& graph_;
  const std::vector<NodeId>& covered_;
  BuiltOperator built_;
  std::vector<bool> whole_;  // By input.
  std::map<NodeId, NodeId> inside_;
  std::map<Input, NodeId> outside_;
  int64_t height_ = 0;
};

}  // namespace

std::optional<BuiltOperator> BuildOperator(const Dag& dag, FusionTemplate kind,
                                           const std::vector<NodeId>& roots,
                                           const std::vector<NodeId>& covered) {
  return Builder(dag, covered).Build(kind, roots);
}

}  // namespace heddle::compiler::fusion
