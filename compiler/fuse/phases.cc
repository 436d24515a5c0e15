// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/phases.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "compiler/fuse/dag.h"
#include "core/programs/fused_operator.h"
#include "core/programs/phased_operator.h"
#include "ops/base/operator.h"
#include "ops/product/matmul.h"

namespace heddle::compiler::fusion {
namespace {

// An operator that takes so many times as long as starting it does (MachineConstants::operator_ns) is small:
// a task of its own would cost about as much.
constexpr double kSmallOperator = 2.8;
// The same of a product, before and behind which there are small operators: were it a boundary, the tasks on
// both sides would cost as much as what they compute.
constexpr double kSmallProduct = 27;
// A group has at most so many operators: blocks of thousands exist, and one task of all would tell a reader
// of a trace nothing.
constexpr size_t kMostMembers = 256;
// A phased operator holds its inputs until its last phase, so they may have at most so many bytes, and at
// most this share of the memory budget. Operators on larger data gain nothing from one task less.
constexpr double kMostBytes = 1 << 30;
constexpr double kShareOfMemory = 0.25;

size_t Index(NodeId id) { return static_cast<size_t>(id); }

double BytesOf(const ValueInfo& info) { return info.IsTabular() ? static_cast<double>(KnownBytes(info)) : 0; }

bool IsTabular(const Node& node) {
  const std::span<const ValueInfo> results = ResultsOf(node);
  return std::any_of(results.begin(), results.end(), [](const ValueInfo& info) { return info.IsTabular(); });
}

// Numbers and matrices of numbers whose sizes are known.
bool IsPlain(const ValueInfo& info) {
  if (info.value_type == ValueType::kString || info.value_type == ValueType::kUnknown) return false;
  return info.IsScalar() || (info.IsMatrix() && info.shape.IsKnown());
}

class PhaseJoiner {
 public:
  PhaseJoiner(const Graph& graph, const PhaseOptions& options) : graph_(graph), options_(options) {}

  Result<Graph> Run(std::vector<std::shared_ptr<const PhasedOperator>>* phased) {
    if (!Group() && !Group()) return graph_;
    return groups_.empty() ? graph_ : Rewrite(phased);
  }

  // Forms the groups. False if small products as members made a group too large; they are boundaries from
  // then on, and groups must be formed again.
  bool Group() {
    FindCandidates();
    groups_.clear();
    FindDepths();
    Unite();
    FindGroups();
    if (!is_too_large_ || !joins_products_) return true;
    joins_products_ = false;
    return false;
  }

 private:
  // Which operators may be members
  // ----------------------------------------------------------------------------------------

  void FindCandidates() {
    candidates_.assign(graph_.nodes.size(), false);
    std::vector<bool> ordered(graph_.nodes.size(), false);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!graph_[id].after.empty()) ordered[Index(id)] = true;
      for (const NodeId earlier : graph_[id].after) ordered[Index(earlier)] = true;
    }
    if (options_.ranks > 1) {
      placed_ = MakeDag(graph_, nullptr);
      MarkSplit(options_.ranks, options_.min_distributed_bytes, options_.is_split, &placed_);
    }
    small_.assign(graph_.nodes.size(), false);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if (node.Is("result"))
        candidates_[Index(id)] = candidates_[Index(node.inputs[0])];
      else
        candidates_[Index(id)] = IsCandidate(id, ordered[Index(id)]);
    }
  }

  bool IsCandidate(NodeId id, bool is_ordered) {
    const Node& node = graph_[id];
    const ops::Operator* op = ops::FindOperator(node.op);
    if (op == nullptr || !op->pure || op->effect || op->files || op->seed_input >= 0 || op->updates)
      return false;
    // A column range may fail, and then keeps its place in the order of effects; its bounds are part of it.
    const bool is_range = op->fusion.use == ops::RowUse::kColumnRange;
    if ((op->may_fail || is_ordered) && !is_range) return false;
    const std::span<const ValueInfo> results = ResultsOf(node);
    if (!std::all_of(results.begin(), results.end(), IsPlain)) return false;
    double bytes = 0;
    std::vector<ValueInfo> infos;
    for (const ValueInfo& result : results) bytes += BytesOf(result);
    for (const NodeId input : node.inputs) {
      infos.push_back(input == kNoNode ? ValueInfo() : graph_[input].info);
      if (input == kNoNode) continue;
      if (!IsPlain(graph_[input].info) || IsSplit(input)) return false;
      bytes += BytesOf(graph_[input].info);
    }
    if (IsSplit(id) || (options_.ranks > 1 && placed_[id].spread) || GrowsVariable(node, *op)) return false;
    if (bytes > MostBytes()) return false;
    if (options_.can_run && !options_.can_run(graph_, id)) return false;
    const double ns = ops::NanosecondsOf(ops::CostOf(node, infos), options_.constants);
    small_[Index(id)] = ns <= kSmallOperator * options_.constants.operator_ns;
    if (is_range) return small_[Index(id)] && node.info.IsMatrix();
    return small_[Index(id)] || IsBoundByMemory(node, *op) ||
           (joins_products_ && IsProduct(*op) && ns <= kSmallProduct * options_.constants.operator_ns);
  }

  static bool IsProduct(const ops::Operator& op) {
    return op.fusion.use == ops::RowUse::kProduct || op.fusion.use == ops::RowUse::kTransposedProduct;
  }

  double MostBytes() const {
    const auto budget = static_cast<double>(options_.memory_budget);
    return budget > 0 ? std::min(kMostBytes, kShareOfMemory * budget) : kMostBytes;
  }

  // Whether every rank has its own rows of the value.
  bool IsSplit(NodeId id) const { return options_.ranks > 1 && placed_[id].split; }

  // X = rbind(X, v) makes its variable longer where it lies.
  bool GrowsVariable(const Node& node, const ops::Operator& op) const {
    return (op.fusion.use == ops::RowUse::kCbind || ops::RoleOf(node) == ops::Role::kRbind) &&
           !node.inputs.empty() && graph_[node.inputs[0]].Is("variable");
  }

  // Whether the operator makes one pass or a few over what it reads, so that memory bounds its time.
  // Operators that state no cost count as such; products of more than a few columns do not.
  static bool IsBoundByMemory(const Node& node, const ops::Operator& op) {
    if (!IsFused(node)) return IsPassOf(node, op);
    const std::vector<Node>& body = node.fused->body.nodes;
    return std::all_of(body.begin(), body.end(), [](const Node& inner) {
      const ops::Operator* const own = ops::FindOperator(inner.op);
      return own == nullptr || IsPassOf(inner, *own);
    });
  }
  static bool IsPassOf(const Node& node, const ops::Operator& op) {
    if (node.info.IsScalar() && op.evaluate != nullptr) return true;
    switch (op.fusion.use) {
      case ops::RowUse::kNone: return op.cost == nullptr || op.kind == ops::OperatorKind::kAggregate;
      case ops::RowUse::kProduct:
      case ops::RowUse::kTransposedProduct: return ops::IsNarrow(node.info.shape.columns);
      case ops::RowUse::kSampledProduct: return false;
      default: return true;
    }
  }

  // Which of them belong together
  // -------------------------------------------------------------------------------------------

  // By node, its depth: how many boundaries the longest way from the inputs to it crosses. A way between two
  // candidates of the same depth crosses none.
  void FindDepths() {
    depth_.assign(graph_.nodes.size(), 0);
    std::vector<int> behind(graph_.nodes.size(), 0);  // What a candidate that reads the node has at least.
    for (NodeId id = 0; id < graph_.size(); ++id) {
      int depth = 0;
      for (const std::vector<NodeId>* needs : {&graph_[id].inputs, &graph_[id].after})
        for (const NodeId input : *needs)
          if (input != kNoNode) depth = std::max(depth, behind[Index(input)]);
      depth_[Index(id)] = depth;
      const bool is_source = graph_[id].inputs.empty() && graph_[id].after.empty();
      behind[Index(id)] = depth + (candidates_[Index(id)] || is_source ? 0 : 1);
    }
  }

  NodeId Find(NodeId id) {
    while (leader_[Index(id)] != id) id = leader_[Index(id)] = leader_[Index(leader_[Index(id)])];
    return id;
  }

  // Puts candidates of one depth together that read each other, and all small ones of a depth that touch
  // matrices.
  void Unite() {
    leader_.resize(graph_.nodes.size());
    std::iota(leader_.begin(), leader_.end(), 0);
    std::map<int, NodeId> first_small;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!candidates_[Index(id)]) continue;
      for (const NodeId input : graph_[id].inputs)
        if (input != kNoNode && candidates_[Index(input)] && depth_[Index(input)] == depth_[Index(id)])
          leader_[Index(Find(id))] = Find(input);
      if (!small_[Index(id)] || !TouchesMatrices(id)) continue;
      const auto [found, fresh] = first_small.try_emplace(depth_[Index(id)], id);
      if (!fresh) leader_[Index(Find(id))] = Find(found->second);
    }
  }

  bool TouchesMatrices(NodeId id) const {
    const Node& node = graph_[id];
    return IsTabular(node) || std::any_of(node.inputs.begin(), node.inputs.end(), [&](NodeId input) {
             return input != kNoNode && IsTabular(graph_[input]);
           });
  }

  void FindGroups() {
    std::map<NodeId, std::vector<NodeId>> members;
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (candidates_[Index(id)]) members[Find(id)].push_back(id);
    group_of_.assign(graph_.nodes.size(), -1);
    is_too_large_ = false;
    for (auto& [unused, group] : members) {
      DropScalarEnds(&group);
      is_too_large_ |= group.size() > kMostMembers;
      if (!IsWorthATask(group) || (options_.wants && !options_.wants())) continue;
      for (const NodeId id : group) group_of_[Index(id)] = static_cast<int>(groups_.size());
      groups_.push_back(std::move(group));
    }
  }

  // Removes scalar operators that do not stand between two matrix operators of the group. No way between two
  // remaining members passes through a removed one: it has no member before it, or none behind it.
  void DropScalarEnds(std::vector<NodeId>* group) const {
    std::map<NodeId, uint8_t>
        ways;  // Bit 1: it is or follows a matrix operator; bit 2: it is or precedes one.
    for (const NodeId id : *group) ways[id] = TouchesMatrices(id) ? 3 : 0;
    for (const NodeId id : *group)
      for (const NodeId input : graph_[id].inputs)
        if (const auto found = ways.find(input); found != ways.end()) ways[id] |= found->second & 1;
    for (auto id = group->rbegin(); id != group->rend(); ++id)
      for (const NodeId input : graph_[*id].inputs)
        if (const auto found = ways.find(input); found != ways.end()) found->second |= ways[*id] & 2;
    std::erase_if(*group,
                  [&](NodeId id) { return ways[graph_[id].Is("result") ? graph_[id].inputs[0] : id] != 3; });
  }

  bool IsWorthATask(const std::vector<NodeId>& group) const {
    double bytes = 0;
    size_t operators = 0;
    std::map<NodeId, bool> counted;
    const auto count = [&](NodeId id) {
      if (counted.try_emplace(id, true).second && !graph_[id].info.IsTuple())
        bytes += BytesOf(graph_[id].info);
    };
    for (const NodeId id : group) {
      operators += TouchesMatrices(id) && !graph_[id].Is("result") ? 1 : 0;
      count(id);
      for (const NodeId input : graph_[id].inputs)
        if (input != kNoNode) count(input);
    }
    return operators >= 2 && group.size() <= kMostMembers && bytes <= MostBytes();
  }

  // The new graph
  // ------------------------------------------------------------------------------------------------------

  struct Built {
    PhasedOperator phased;
    std::vector<NodeId> inputs, roots;  // Nodes of the old graph,
    std::vector<NodeId> after;          // that come before all of it, too.
  };

  Built Build(const std::vector<NodeId>& group, const std::vector<bool>& read_outside) const {
    Built built;
    std::map<NodeId, NodeId> inside;
    for (const NodeId id : group) {
      Node node = graph_[id];
      for (NodeId& input : node.inputs) {
        if (input == kNoNode) continue;
        const auto [found, fresh] = inside.try_emplace(input, kNoNode);
        if (fresh) {
          Node outside = graph_[input];
          if (!outside.Is("literal")) {
            outside = {.op = "variable", .info = graph_[input].info, .position = graph_[input].position};
            outside.SetAttribute("name", Scalar(std::to_string(built.inputs.size())));
            built.inputs.push_back(input);
          }
          found->second = built.phased.body.Add(std::move(outside));
        }
        input = found->second;
      }
      std::vector<NodeId> after;
      for (const NodeId earlier : node.after)
        if (group_of_[Index(earlier)] == group_of_[Index(id)])
          after.push_back(inside.at(earlier));
        else
          built.after.push_back(earlier);
      node.after = std::move(after);
      inside[id] = built.phased.body.Add(std::move(node));
      if (!read_outside[Index(id)]) continue;
      built.phased.roots.push_back(inside[id]);
      built.roots.push_back(id);
    }
    return built;
  }

  // By node: whether its value is a result of its group: something outside reads it, or nothing does.
  std::vector<bool> ReadOutside() const {
    std::vector<bool> outside(graph_.nodes.size(), false), read(graph_.nodes.size(), false);
    for (NodeId id = 0; id < graph_.size(); ++id)
      for (const NodeId input : graph_[id].inputs) {
        if (input == kNoNode) continue;
        read[Index(input)] = true;
        if (group_of_[Index(id)] < 0 || group_of_[Index(id)] != group_of_[Index(input)])
          outside[Index(input)] = true;
      }
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (!read[Index(id)] && !graph_[id].info.IsTuple()) outside[Index(id)] = true;
    return outside;
  }

  Result<Graph> Rewrite(std::vector<std::shared_ptr<const PhasedOperator>>* phased) {
    const std::vector<bool> read_outside = ReadOutside();
    std::vector<Built> built;
    for (size_t g = 0; g < groups_.size(); ++g) {
      built.push_back(Build(groups_[g], read_outside));
      if (built.back().roots.size() <= PhasedOperator::kMaxRoots) {
        HEDDLE_RETURN_IF_ERROR(Verify(built.back().phased));
        continue;
      }
      for (const NodeId id : groups_[g]) group_of_[Index(id)] = -1;
    }
    Graph result;
    // By old node: the new node of its value, and the new operator that computes it, for edges `after`.
    std::vector<NodeId> new_id(graph_.nodes.size(), kNoNode), acts(graph_.nodes.size(), kNoNode);
    // Depth first, because a group may need nodes that stand behind its first member.
    std::vector<NodeId> open;
    const auto needs_of = [&](NodeId id) {
      const int group = group_of_[Index(id)];
      std::vector<NodeId> needs = group < 0 ? graph_[id].inputs : built[static_cast<size_t>(group)].inputs;
      const std::vector<NodeId>& after =
          group < 0 ? graph_[id].after : built[static_cast<size_t>(group)].after;
      needs.insert(needs.end(), after.begin(), after.end());
      std::erase(needs, kNoNode);
      return needs;
    };
    const auto emit = [&](NodeId id) {
      const int group = group_of_[Index(id)];
      if (group >= 0)
        return EmitGroup(built[static_cast<size_t>(group)], groups_[static_cast<size_t>(group)], &result,
                         &new_id, &acts, phased);
      Node node = graph_[id];
      for (NodeId& input : node.inputs)
        if (input != kNoNode) input = new_id[Index(input)];
      for (NodeId& earlier : node.after) earlier = acts[Index(earlier)];
      new_id[Index(id)] = acts[Index(id)] = result.Add(std::move(node));
    };
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const int group = group_of_[Index(id)];
      if (group >= 0 && !read_outside[Index(id)]) continue;
      open.push_back(id);
      while (!open.empty()) {
        const NodeId next = open.back();
        if (new_id[Index(next)] != kNoNode) {
          open.pop_back();
          continue;
        }
        const size_t before = open.size();
        for (const NodeId need : needs_of(next))
          if (new_id[Index(need)] == kNoNode) open.push_back(need);
        if (open.size() > before) continue;
        emit(next);
        open.pop_back();
      }
    }
    return result;
  }

  void EmitGroup(const Built& built, const std::vector<NodeId>& group, Graph* result,
                 std::vector<NodeId>* new_id, std::vector<NodeId>* acts,
                 std::vector<std::shared_ptr<const PhasedOperator>>* phased) const {
    Node node{.op = "phased"};
    for (const NodeId input : built.inputs) node.inputs.push_back((*new_id)[Index(input)]);
    for (const NodeId earlier : built.after) node.after.push_back((*acts)[Index(earlier)]);
    std::sort(node.after.begin(), node.after.end());
    node.after.erase(std::unique(node.after.begin(), node.after.end()), node.after.end());
    node.position = graph_[built.roots[0]].position;
    node.info = ValueInfo::OfTuple();
    for (const NodeId root : built.roots) node.results.push_back(graph_[root].info);
    node.phased = std::make_shared<const PhasedOperator>(built.phased);
    phased->push_back(node.phased);
    const NodeId tuple = result->Add(std::move(node));
    for (const NodeId id : group) (*new_id)[Index(id)] = (*acts)[Index(id)] = tuple;
    for (size_t i = 0; i < built.roots.size(); ++i) {
      Node value = ResultOf(*result, tuple, i);
      value.position = graph_[built.roots[i]].position;
      (*new_id)[Index(built.roots[i])] = result->Add(std::move(value));
    }
  }

  const Graph& graph_;
  const PhaseOptions& options_;
  Dag placed_;                            // Of several ranks.
  std::vector<bool> candidates_, small_;  // By node.
  std::vector<int> depth_;
  std::vector<NodeId> leader_;
  std::vector<std::vector<NodeId>> groups_;  // Ascending.
  std::vector<int> group_of_;                // By node; -1: it stands alone.
  bool joins_products_ = true;               // Small ones.
  bool is_too_large_ = false;                // Some group.
};

}  // namespace

Result<Graph> JoinPhases(const Graph& graph, const PhaseOptions& options,
                         std::vector<std::shared_ptr<const PhasedOperator>>* phased) {
  HEDDLE_ASSIGN_OR_RETURN(Graph result, PhaseJoiner(graph, options).Run(phased));
  HEDDLE_RETURN_IF_ERROR(Verify(result));
  return result;
}

}  // namespace heddle::compiler::fusion
