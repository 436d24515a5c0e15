// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/compiled_block.h"

#include <algorithm>
#include <span>
#include <utility>

#include "engine/variables/random_seeds.h"
#include "ops/base/operator.h"

namespace heddle::engine {
namespace {

// A part that takes one thread no longer is done before a plan of it would have begun: actors take some 20
// microseconds a block, and choosing and making a plan some hundred.
constexpr double kMostNs = 9'000;
constexpr double kMostNsOfNode = 100;  // Added for each node, which takes a microsecond or two.
// Parts that a graph has at once; sizes that matter and differ from round to round make new ones for ever.
constexpr size_t kMostParts = 8;
// Columns of frames in them: their names take more memory than a part takes time to be made.
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

// About what DirectProgram::nanoseconds() will be, before the passes: what may be overwritten is.
double NanosecondsOfGraph(const Graph& graph) {
  std::vector<ValueInfo> infos;
  double ns = 0;
  for (const Node& node : graph.nodes) {
    infos.clear();
    for (const NodeId input : node.inputs)
      infos.push_back(input == kNoNode ? ValueInfo() : graph[input].info);
    const ops::Operator* op = ops::FindOperator(node.op);
    ns += NanosecondsOf(node, infos,
                        (op != nullptr && op->updates && infos[0].IsMatrix()) || MayGrow(graph, node));
  }
  return ns;
}

double MostNs(const Graph& graph) {
  return kMostNs + kMostNsOfNode * static_cast<double>(graph.nodes.size());
}

int64_t ClassOfLength(int64_t length) { return length == kUnknown ? kUnknown : std::min<int64_t>(length, 2); }

bool IsDense(const ValueInfo& info) { return !info.IsMatrix() || info.format == Format::kDense; }

}  // namespace

bool ReadsPanels(const Graph& graph, const VariableTable& frame) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    const Variable* const variable = node.Is("variable") ? frame.Find(node.Text("name")) : nullptr;
    return variable != nullptr && variable->is_panels;
  });
}

bool IsSmall(const Graph& graph) { return !UsesFiles(graph) && NanosecondsOfGraph(graph) <= MostNs(graph); }

bool RunsDirectly(const SessionOptions& options) {
  return options.ranks == 1 && options.fusion == "cost" && !options.fusion_strict && options.devices == "cpu";
}

CompiledBlock::CompiledBlock(const Graph& graph)
    : graph_(graph),
      scalars_(graph),
      draws_seeds_(RandomSeeds::IsDrawnFor(graph)),
      parts_(kMostParts, kMostColumns) {}
CompiledBlock::~CompiledBlock() = default;

const InferredGraph* CompiledBlock::Infer(ElementType element_type, const VariableTable& frame) {
  if (!inferred_) inferred_.emplace(graph_, element_type);
  return inferred_->Infer(frame) ? &*inferred_ : nullptr;
}

CompiledPart* CompiledBlock::Find(const VariableTable& frame) {
  const auto* found = parts_.FindIf(
      [&](const auto& part) { return part->signature_->AreSame(frame) && part->CanRun(frame); });
  if (found == nullptr && parts_.size() > 0 && inferred_->Infer(frame))
    found = parts_.FindIf(
        [&](const auto& part) { return part->signature_->Serves(*inferred_, frame) && part->CanRun(frame); });
  return found == nullptr ? nullptr : found->get();
}

Result<bool> CompiledBlock::AddDirect(std::unique_ptr<CompiledPart>* part, const SessionOptions& options,
                                      const VariableTable& frame, SessionStatistics* statistics) {
  if (UsesFiles(graph_) || !IsSmall((*part)->graph()) || ReadsPanels((*part)->graph(), frame)) return false;
  bool sizes_matter = false;
  HEDDLE_ASSIGN_OR_RETURN(Graph optimized, RunPasses(options, (*part)->graph(), &sizes_matter));
  auto program = std::make_unique<DirectProgram>(std::move(optimized), options);
  if (!program->Enter(frame) || program->nanoseconds() > MostNs(program->graph())) return false;
  const InferredGraph* const inferred = Infer(options.element_type, frame);
  if (inferred == nullptr) return false;
  // Formats of results follow from sizes where some operand is not dense.
  for (const Node& node : inferred->graph().nodes)
    for (const ValueInfo& info : ResultsOf(node))
      sizes_matter = sizes_matter || !IsDense(info) || info.IsFrame();
  program->CountIn(statistics);
  (*part)->program_ = std::move(program);
  (*part)->graph_ = Graph();
  (*part)->signature_.emplace(*inferred, sizes_matter, /*places_matter=*/false, frame);
  Add(std::move(*part));
  return true;
}

bool CompiledBlock::AddPlanned(std::unique_ptr<CompiledPart>* part, const SessionOptions& options,
                               const VariableTable& frame) {
  if (!std::exchange(was_compiled_, true) || UsesFiles(graph_)) return false;
  const InferredGraph* const inferred = Infer(options.element_type, frame);
  if (inferred == nullptr) return false;
  (*part)->signature_.emplace(*inferred, /*sizes_matter=*/true, /*places_matter=*/true, frame);
  Add(std::move(*part));
  return true;
}

void CompiledBlock::Add(std::unique_ptr<CompiledPart> part) {
  const int64_t columns = ColumnsOfFrames(part->graph());
  parts_.Add(std::move(part), columns);
}

PartSignature::PartSignature(const InferredGraph& inferred, bool sizes_matter, bool places_matter,
                             const VariableTable& frame)
    : sizes_matter_(sizes_matter),
      places_matter_(places_matter),
      is_free_of_scalars_(inferred.IsFreeOfScalars(frame)) {
  FindClasses(inferred, &classes_);
  for (const Node& node : inferred.graph().nodes) {
    if (!node.Is("variable")) continue;
    const std::string& name = node.Text("name");
    const Variable& variable = *frame.Find(name);
    inputs_.push_back({name, variable.info, variable.distribution, variable.is_panels, variable.residence});
  }
}

void PartSignature::FindClasses(const InferredGraph& inferred, std::vector<NodeClass>* classes) const {
  const Graph& graph = inferred.graph();
  classes->resize(graph.nodes.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    NodeClass& node = (*classes)[static_cast<size_t>(id)];
    node.is_known = inferred.scalars()[static_cast<size_t>(id)].has_value();
    const std::span<const ValueInfo> results = ResultsOf(graph[id]);
    node.results.assign(results.begin(), results.end());
    if (sizes_matter_) continue;
    for (ValueInfo& info : node.results)
      info.shape = {ClassOfLength(info.shape.rows), ClassOfLength(info.shape.columns)};
  }
}

bool PartSignature::AreSame(const VariableTable& frame) const {
  return is_free_of_scalars_ && std::ranges::all_of(inputs_, [&](const Input& input) {
           const Variable* const variable = frame.Find(input.name);
           return variable != nullptr && variable->info == input.info && IsInPlace(input, *variable);
         });
}

bool PartSignature::Serves(const InferredGraph& inferred, const VariableTable& frame) {
  for (const Input& input : inputs_) {
    const Variable* const variable = frame.Find(input.name);
    if (variable == nullptr || !IsInPlace(input, *variable)) return false;
    if (sizes_matter_ && !(variable->info == input.info)) return false;
  }
  FindClasses(inferred, &compared_);
  if (compared_ != classes_) return false;
  for (Input& input : inputs_) input.info = frame.Find(input.name)->info;
  return true;
}

CompiledPart::CompiledPart(BlockPart part, uint64_t key)
    : key_(key),
      graph_(std::move(part.graph)),
      temporaries_(std::move(part.temporaries)),
      rest_graph_(std::move(part.rest)),
      rest_(rest_graph_) {}

bool CompiledPart::CanRun(const VariableTable& frame) {
  return program_ == nullptr ||
         (program_->Enter(frame) && program_->nanoseconds() <= MostNs(program_->graph()));
}

}  // namespace heddle::engine
