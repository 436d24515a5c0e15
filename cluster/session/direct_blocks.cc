// SPDX-License-Identifier: Apache-2.0
#include "cluster/session/direct_blocks.h"

#include <algorithm>
#include <utility>

#include "compiler/fuse/fuse.h"
#include "compiler/optimize/pass.h"
#include "ops/operator.h"

namespace heddle::cluster {
namespace {

// Bytes and operations of a part that are done before a plan of it would have begun: actors take some 20
// microseconds a block, and choosing and making a plan some hundred.
constexpr double kMostWork = 1 << 18;
// The same for each node: a microsecond or two.
constexpr double kMostWorkOfNode = 1 << 12;
// Parts kept for one place of a block; sizes that matter and differ from round to round make new ones for
// ever.
constexpr size_t kMostParts = 8;

bool UsesFiles(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    const ops::Operator* op = ops::FindOperator(node.op);
    return op != nullptr && op->files;
  });
}

// X = cbind(X, v): what DirectProgram may do without a copy of X.
bool MayGrow(const Graph& graph, const Node& node) {
  if (ops::RowUseOf(node) != ops::RowUse::kCbind || node.inputs[0] == kNoNode) return false;
  const Node& first = graph[node.inputs[0]];
  return first.Is("variable") && std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& other) {
           return other.Is("assign") && other.Text("name") == first.Text("name");
         });
}

// About what DirectProgram::Work will be, before the passes: what may be overwritten is.
double WorkOfGraph(const Graph& graph) {
  std::vector<ValueInfo> infos;
  double work = 0;
  for (const Node& node : graph.nodes) {
    infos.clear();
    for (const NodeId input : node.inputs)
      infos.push_back(input == kNoNode ? ValueInfo() : graph[input].info);
    const ops::Operator* op = ops::FindOperator(node.op);
    work +=
        WorkOf(node, infos, (op != nullptr && op->updates && infos[0].IsMatrix()) || MayGrow(graph, node));
  }
  return work;
}

double MostWork(const Graph& graph) {
  return kMostWork + kMostWorkOfNode * static_cast<double>(graph.nodes.size());
}

int64_t ClassOfLength(int64_t length) { return length == kUnknown ? kUnknown : std::min<int64_t>(length, 2); }

bool IsDense(const ValueInfo& info) { return !info.IsMatrix() || info.format == Format::kDense; }

}  // namespace

bool IsSmall(const Graph& graph) { return !UsesFiles(graph) && WorkOfGraph(graph) <= MostWork(graph); }

bool RunsDirectly(const SessionOptions& options) {
  return options.ranks == 1 && options.fusion == "cost" && !options.fusion_strict;
}

Result<std::unique_ptr<DirectPart>> DirectPart::Make(const Graph& before, BlockPart next, uint64_t key,
                                                     const SessionOptions& options, const Frame& frame,
                                                     SessionStatistics* statistics) {
  if (UsesFiles(before) || !IsSmall(next.graph)) return std::unique_ptr<DirectPart>();
  compiler::PassOptions passes;
  passes.infos_are_exact = true;
  passes.disabled.insert(options.disabled_passes.begin(), options.disabled_passes.end());
  bool sizes_matter = false;
  passes.sizes_matter = &sizes_matter;
  HEDDLE_ASSIGN_OR_RETURN(Graph optimized, compiler::RunGraphPasses(std::move(next.graph), passes));
  std::unique_ptr<DirectPart> part(new DirectPart(InferredGraph(before, options.element_type),
                                                  DirectProgram(std::move(optimized), options)));
  if (!part->program_.Enter(frame) || part->program_.Work() > MostWork(part->graph()))
    return std::unique_ptr<DirectPart>();
  if (!part->source_.Infer(frame)) return std::unique_ptr<DirectPart>();
  part->program_.CountIn(statistics);
  part->key_ = key;
  part->rest_ = std::move(next.rest);
  part->temporaries_ = std::move(next.temporaries);
  part->prepared_rest_ = ScalarBlocks::Prepare(part->rest_);
  // Formats of results follow from sizes where some operand is not dense.
  for (const Node& node : part->source_.graph().nodes)
    for (const ValueInfo& info : ResultsOf(node))
      sizes_matter = sizes_matter || !IsDense(info) || info.IsFrame();
  part->sizes_matter_ = sizes_matter;
  part->Classify(&part->classes_);
  part->is_free_of_values_ = part->source_.IsFreeOfValues(frame);
  for (const Node& node : part->source_.graph().nodes)
    if (node.Is("variable")) part->variables_.push_back({&node, &node.Text("name"), node.info});
  return part;
}

void DirectPart::Classify(std::vector<NodeClass>* classes) const {
  const Graph& graph = source_.graph();
  classes->resize(graph.nodes.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    NodeClass& node = (*classes)[static_cast<size_t>(id)];
    node.is_known = source_.values()[static_cast<size_t>(id)].has_value();
    const std::span<const ValueInfo> results = ResultsOf(graph[id]);
    node.infos.assign(results.begin(), results.end());
    if (sizes_matter_) continue;
    for (ValueInfo& info : node.infos)
      info.shape = {ClassOfLength(info.shape.rows), ClassOfLength(info.shape.columns)};
  }
}

bool DirectPart::Takes(const Frame& frame) {
  bool is_same = true;
  for (const Entered& entered : variables_) {
    const Variable* variable = frame.Find(*entered.name);
    if (variable == nullptr) return false;
    is_same = is_same && variable->info == entered.info;
  }
  if (!is_same && sizes_matter_) return false;
  if (!is_same || !is_free_of_values_) {
    // An entry that is not taken leaves sizes in the source that nobody entered with.
    if (!source_.Infer(frame)) return false;
    Classify(&now_);
    if (now_ != classes_) return false;
    for (Entered& entered : variables_) entered.info = entered.node->info;
  }
  return program_.Enter(frame) && program_.Work() <= MostWork(program_.graph());
}

DirectPart* FindDirectPart(DirectParts& parts, const Frame& frame) {
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i]->Takes(frame)) continue;
    if (i > 0) std::swap(parts[i], parts[i - 1]);
    return parts[i > 0 ? i - 1 : 0].get();
  }
  return nullptr;
}

DirectPart* AddDirectPart(DirectParts& parts, std::unique_ptr<DirectPart> part) {
  if (parts.size() >= kMostParts) parts.pop_back();
  parts.push_back(std::move(part));
  return parts.back().get();
}

}  // namespace heddle::cluster
