// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/known_parts.h"

#include <algorithm>
#include <utility>

#include "compiler/fuse/fuse.h"
#include "compiler/optimize/pass.h"
#include "ops/base/operator.h"

namespace heddle::engine {
namespace {

// Bytes and operations of a part that are done before a plan of it would have begun: actors take some 20
// microseconds a block, and choosing and making a plan some hundred.
constexpr double kMostWork = 1 << 18;
// The same for each node: a microsecond or two.
constexpr double kMostWorkOfNode = 1 << 12;
// Parts kept for one place of a block; sizes that matter and differ from round to round make new ones for
// ever.
constexpr size_t kMostParts = 8;
// A part of frames with more columns than this together is kept alone: their names take more than its making.
constexpr int64_t kMostColumns = 1 << 16;

int64_t ColumnsOfFrames(const Graph& graph) {
  int64_t columns = 0;
  for (const Node& node : graph.nodes)
    if (node.info.schema != nullptr) columns += node.info.schema->columns();
  return columns;
}

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

KnownPart::KnownPart(const BlockPart& next, uint64_t key, const InferredGraph& source, bool sizes_matter,
                     const VariableTable& frame)
    : key_(key),
      sizes_matter_(sizes_matter),
      is_free_of_values_(source.IsFreeOfValues(frame)),
      rest_(next.rest),
      temporaries_(next.temporaries),
      prepared_rest_(ScalarBlocks::Prepare(rest_)) {
  Classify(source, &classes_);
  for (const Node& node : source.graph().nodes) {
    if (!node.Is("variable")) continue;
    const std::string& name = node.Text("name");
    const Variable& variable = *frame.Find(name);
    entered_.push_back({name, variable.info, variable.distribution});
  }
}

Result<std::unique_ptr<KnownPart>> KnownPart::MakeDirect(const Graph& before, const BlockPart& next,
                                                         uint64_t key, const SessionOptions& options,
                                                         const VariableTable& frame, KnownParts* parts,
                                                         SessionStatistics* statistics) {
  if (UsesFiles(before) || !IsSmall(next.graph)) return std::unique_ptr<KnownPart>();
  compiler::PassOptions passes;
  passes.infos_are_exact = true;
  passes.disabled.insert(options.disabled_passes.begin(), options.disabled_passes.end());
  bool sizes_matter = false;
  passes.sizes_matter = &sizes_matter;
  HEDDLE_ASSIGN_OR_RETURN(Graph optimized, compiler::RunGraphPasses(next.graph, passes));
  DirectProgram program(std::move(optimized), options);
  if (!program.Enter(frame) || program.Work() > MostWork(program.graph()))
    return std::unique_ptr<KnownPart>();
  const InferredGraph* const source = parts->Infer(before, options.element_type, frame);
  if (source == nullptr) return std::unique_ptr<KnownPart>();
  // Formats of results follow from sizes where some operand is not dense.
  for (const Node& node : source->graph().nodes)
    for (const ValueInfo& info : ResultsOf(node))
      sizes_matter = sizes_matter || !IsDense(info) || info.IsFrame();
  std::unique_ptr<KnownPart> part(new KnownPart(next, key, *source, sizes_matter, frame));
  part->program_.emplace(std::move(program));
  part->program_->CountIn(statistics);
  return part;
}

std::unique_ptr<KnownPart> KnownPart::MakePlanned(const Graph& before, const BlockPart& next, uint64_t key,
                                                  const SessionOptions& options, const VariableTable& frame,
                                                  KnownParts* parts) {
  if (UsesFiles(before)) return nullptr;
  const InferredGraph* const source = parts->Infer(before, options.element_type, frame);
  if (source == nullptr) return nullptr;
  std::unique_ptr<KnownPart> part(new KnownPart(next, key, *source, /*sizes_matter=*/true, frame));
  part->graph_ = next.graph;
  return part;
}

void KnownPart::Classify(const InferredGraph& source, std::vector<NodeClass>* classes) const {
  const Graph& graph = source.graph();
  classes->resize(graph.nodes.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    NodeClass& node = (*classes)[static_cast<size_t>(id)];
    node.is_known = source.values()[static_cast<size_t>(id)].has_value();
    const std::span<const ValueInfo> results = ResultsOf(graph[id]);
    node.infos.assign(results.begin(), results.end());
    if (sizes_matter_) continue;
    for (ValueInfo& info : node.infos)
      info.shape = {ClassOfLength(info.shape.rows), ClassOfLength(info.shape.columns)};
  }
}

bool KnownPart::IsAsBefore(const VariableTable& frame) {
  if (!is_free_of_values_) return false;
  for (const Entered& entered : entered_) {
    const Variable* variable = frame.Find(entered.name);
    if (variable == nullptr || !(variable->info == entered.info) || !IsPlaced(entered, *variable))
      return false;
  }
  return Enters(frame);
}

bool KnownPart::Takes(const InferredGraph& source, const VariableTable& frame) {
  for (const Entered& entered : entered_) {
    const Variable* variable = frame.Find(entered.name);
    if (variable == nullptr || !IsPlaced(entered, *variable)) return false;
    if (sizes_matter_ && !(variable->info == entered.info)) return false;
  }
  Classify(source, &now_);
  if (now_ != classes_) return false;
  for (Entered& entered : entered_) entered.info = frame.Find(entered.name)->info;
  return Enters(frame);
}

// A direct part has values whole.
bool KnownPart::IsPlaced(const Entered& entered, const Variable& variable) const {
  return IsDirect() || variable.distribution == entered.distribution;
}

bool KnownPart::Enters(const VariableTable& frame) {
  return !IsDirect() || (program_->Enter(frame) && program_->Work() <= MostWork(program_->graph()));
}

KnownParts::KnownParts() = default;
KnownParts::~KnownParts() = default;

const InferredGraph* KnownParts::Infer(const Graph& graph, ElementType element_type,
                                       const VariableTable& frame) {
  if (!source_) source_.emplace(graph, element_type);
  return source_->Infer(frame) ? &*source_ : nullptr;
}

KnownPart* KnownParts::Find(const VariableTable& frame) {
  for (size_t i = 0; i < parts_.size(); ++i)
    if (parts_[i]->IsAsBefore(frame)) return MoveUp(i);
  if (parts_.empty() || !source_->Infer(frame)) return nullptr;
  for (size_t i = 0; i < parts_.size(); ++i)
    if (parts_[i]->Takes(*source_, frame)) return MoveUp(i);
  return nullptr;
}

// What is taken often comes first.
KnownPart* KnownParts::MoveUp(size_t i) {
  if (i == 0) return parts_[0].get();
  std::swap(parts_[i], parts_[i - 1]);
  return parts_[i - 1].get();
}

KnownPart* KnownParts::Add(std::unique_ptr<KnownPart> part) {
  if (part == nullptr) return nullptr;
  if (parts_.size() >= kMostParts) parts_.pop_back();
  if (ColumnsOfFrames(part->graph()) > kMostColumns) parts_.clear();
  parts_.push_back(std::move(part));
  return parts_.back().get();
}

}  // namespace heddle::engine
