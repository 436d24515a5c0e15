// SPDX-License-Identifier: Apache-2.0
#include "compiler/explain/explain_fusion.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <set>

#include "compiler/codegen/codegen.h"
#include "compiler/fuse/dag.h"
#include "compiler/optimize/infer.h"
#include "compiler/optimize/pass.h"
#include "compiler/optimize/static/static_pass.h"
#include "compiler/optimize/static/written_files.h"
#include "core/programs/for_each_block.h"
#include "ops/base/operator.h"
#include "ops/fused/fused.h"
#include "ops/fused/program/tile_program.h"
#include "ops/io/files/files.h"
#include "ops/io/formats/file_format.h"

namespace heddle::compiler {
namespace {

constexpr size_t kReportedPlans = 10;  // Of each partition, with "cost".

// Live-ins of a graph as the static pass left them in its nodes, in the program's precision.
LiveIns LiveInsOf(const Graph& graph, ElementType element_type) {
  LiveIns live_in;
  for (const Node& node : graph.nodes) {
    if (!node.Is("variable")) continue;
    ValueInfo& info = live_in[node.Text("name")].info;
    info = node.info;
    if (info.IsMatrix()) info.element_type = element_type;
  }
  return live_in;
}

bool HasMatrixOfUnknownSize(const Graph& graph) {
  for (const Node& node : graph.nodes)
    if (node.info.IsTabular() && !node.info.IsSized()) return true;
  return false;
}

Result<std::string> CodeText(const FusedOperator& fused) {
  std::string out = fmt::format("{} operator\n", Name(fused.kind));
  HEDDLE_ASSIGN_OR_RETURN(const ops::TileProgram program, ops::Lower(fused));
  out += fmt::format("tiles of {} rows, {} steps, {} regions\n", program.tile_rows, program.steps.size(),
                     program.regions.size());
  for (const ops::Region& region : program.regions) {
    out += "region\n" + region.ToText();
    HEDDLE_ASSIGN_OR_RETURN(const std::string code, codegen::ExplainRegion(region, codegen::CodeText::kIr));
    out += code + "\n";
  }
  return out;
}

class FusionText {
 public:
  FusionText(std::string_view level, const std::set<std::string, std::less<>>& disabled_passes,
             const PlanningOptions& planning, std::map<int32_t, std::set<NodeId>> behind_writes)
      : level_(level),
        options_(planning.fuse),
        element_type_(planning.element_type),
        files_(planning.files),
        runs_directly_(planning.runs_directly),
        places_of_(level == "placement" ? planning.placement_of : planning.distribution_of),
        behind_writes_(std::move(behind_writes)) {
    passes_.infos_are_exact = true;
    passes_.disabled = disabled_passes;
    options_.constants = ops::OrBuiltIn(options_.constants, options_.threads);
    options_.reported_plans = level == "cost" ? kReportedPlans : 0;
    options_.can_run = ops::CanRunFused;
    options_.sparsity_of = [this](std::string_view name) {
      const auto found = sparsity_.find(name);
      return found == sparsity_.end() ? -1.0 : found->second;
    };
  }

  Status Add(const Block& block) {
    if (block.graph.nodes.empty()) return OkStatus();
    FindWaiting(block);
    InferOutcome inferred = Infer(block.graph, block);
    HEDDLE_RETURN_IF_ERROR(inferred.error);
    bool is_direct = RunsDirectly(inferred.graph);
    HEDDLE_ASSIGN_OR_RETURN(Graph graph, RunGraphPasses(std::move(inferred.graph), passes_));
    inferred = Infer(std::move(graph), block);
    HEDDLE_RETURN_IF_ERROR(inferred.error);
    const std::string sparsities = SparsitiesOf(inferred.graph);
    FuseReport report;
    HEDDLE_ASSIGN_OR_RETURN(const Graph fused, Fuse(inferred.graph, options_, &report));
    Remember(inferred.graph);
    is_direct = is_direct && RunsDirectly(inferred.graph);
    if (level_ == "distribution" || level_ == "placement") return AddPlaces(block, inferred.graph, fused);
    if (report.memo.empty() && report.phased.empty() && !HasMatrixOfUnknownSize(inferred.graph))
      return OkStatus();
    text_ += fmt::format("block at line {}\n", block.position.line);
    if (HasMatrixOfUnknownSize(inferred.graph))
      text_ += "  some sizes are known only when it runs: see run -explain\n";
    if (is_direct)
      text_ += "  small: it runs directly, operator by operator, without a plan and what is fused below\n";
    text_ += sparsities;
    if (level_ != "codegen") {
      text_ += ToText(report, level_ == "cost") + "\n";
      return OkStatus();
    }
    for (const auto& operators : report.fused) {
      HEDDLE_ASSIGN_OR_RETURN(const std::string code, CodeText(*operators));
      text_ += code + "\n";
    }
    return OkStatus();
  }

  std::string Take() {
    if (text_.empty() && level_ == "distribution") return "nothing is distributed\n";
    if (text_.empty() && level_ == "placement") return "the processor computes everything\n";
    return (level_ == "cost" ? RatesText() : "") + (text_.empty() ? "nothing is fused\n" : std::move(text_));
  }

 private:
  std::string RatesText() const {
    const ops::LinkRates& links = options_.constants.links;
    return ToText(options_.constants) + "\n" +
           (links.measured ? fmt::format("links {}\n", ToText(links)) : std::string());
  }

  Status AddPlaces(const Block& block, const Graph& graph, const Graph& fused) {
    if (!places_of_) return Internal("nobody tells where blocks run");
    HEDDLE_ASSIGN_OR_RETURN(const std::string text, places_of_(fused));
    if (text.empty()) return OkStatus();
    text_ += fmt::format("block at line {}\n", block.position.line);
    if (HasMatrixOfUnknownSize(graph))
      text_ += "  some sizes are known only when it runs: what they decide may be placed otherwise then\n";
    text_ += text + "\n";
    return OkStatus();
  }

  bool RunsDirectly(const Graph& block) const {
    return runs_directly_ && !HasMatrixOfUnknownSize(block) && runs_directly_(block);
  }

  // Finds the reads of a block whose files an earlier write of the script changes. Passes give nodes new
  // numbers, so the reads are recognised by their paths.
  void FindWaiting(const Block& block) {
    waiting_.clear();
    computed_path_waits_ = false;
    for (const NodeId id : behind_writes_[block.id]) {
      if (const auto path = LiteralPath(block.graph, block.graph[id]))
        waiting_.insert(path->ToText());
      else
        computed_path_waits_ = true;
    }
  }

  InferOutcome Infer(Graph graph, const Block& block) {
    std::set<NodeId> waiting;
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (ops::RoleOf(graph[id]) != ops::Role::kRead) continue;
      const auto path = LiteralPath(graph, graph[id]);
      if (path ? waiting_.contains(path->ToText()) : computed_path_waits_) waiting.insert(id);
    }
    return InferShapes(std::move(graph), LiveInsOf(block.graph, element_type_), files_, nullptr,
                       element_type_, &waiting);
  }

  // Share of cells that are present, from the script and the files that it reads; negative when they do not
  // tell.
  double KnownSparsity(const Graph& graph, const Node& node) {
    if (node.Is("variable")) return options_.sparsity_of(node.Text("name"));
    if (ops::RoleOf(node) != ops::Role::kRead) return fusion::DrawnSparsity(graph, node);
    if (files_ == nullptr) return -1;
    const std::optional<Scalar> name = LiteralPath(graph, node);
    if (!name || !name->IsString() || waiting_.contains(name->AsString())) return -1;
    const Result<ops::ReadOptions> options = ops::ResolveReadOptions(node, name->AsString(), *files_);
    if (!options.ok()) return -1;
    const Result<ops::FileSummary> file = ops::Summarize(*options, *files_);
    if (!file.ok() || file->stored == kUnknown || file->shape.Cells() <= 0) return -1;
    return static_cast<double>(file->stored) / static_cast<double>(file->shape.Cells());
  }

  // The sparsity that plans assume for each CSR variable, draw and file of the block.
  std::string SparsitiesOf(const Graph& graph) {
    std::string text;
    for (const Node& node : graph.nodes) {
      if (!node.info.IsMatrix() || node.info.format != Format::kSparse) continue;
      if (!node.Is("variable") && !ops::HasRole(node, {ops::Role::kRandom, ops::Role::kRead})) continue;
      const std::string name =
          node.Is("variable") ? node.Text("name") : fmt::format("{} in line {}", node.op, node.position.line);
      // As in a run, the entries of a file count only when it has become a variable.
      const double known = ops::RoleOf(node) == ops::Role::kRead ? -1 : KnownSparsity(graph, node);
      text += known < 0
                  ? fmt::format("  sparsity of {} not known, guessed as {}\n", name, fusion::kGuessedSparsity)
                  : fmt::format("  sparsity of {} known: {:.3g}\n", name, known);
    }
    return text;
  }

  // Stores the sparsity of what the block assigns for later blocks, in the order of the text: a loop or a
  // branch counts as if it ran once.
  void Remember(const Graph& graph) {
    for (const Node& node : graph.nodes)
      if (node.Is("assign")) sparsity_[node.Text("name")] = KnownSparsity(graph, graph[node.inputs[0]]);
  }

  std::string_view level_;
  FuseOptions options_;
  PassOptions passes_;
  std::map<std::string, double, std::less<>> sparsity_;  // Of variables, negative when unknown.
  ElementType element_type_;
  ops::Files* files_;
  std::function<bool(const Graph& block)> runs_directly_;
  std::function<Result<std::string>(const Graph& fused)> places_of_;
  std::map<int32_t, std::set<NodeId>> behind_writes_;  // reads that see other files than those of now
  std::set<std::string> waiting_;                      // paths of those of a block
  bool computed_path_waits_ = false;                   // one of them has a path that only the run knows
  std::string text_;
};

}  // namespace

Result<std::string> ExplainFusion(Program program, std::string_view level,
                                  const std::set<std::string, std::less<>>& disabled_passes,
                                  const PlanningOptions& planning) {
  Diagnostics diagnostics;
  PropagateShapes(&program, &diagnostics, planning.files);
  HEDDLE_RETURN_IF_ERROR(diagnostics.HasErrors() ? diagnostics.ToStatus() : OkStatus());
  if (level == "memory") {
    if (!planning.memory_of) return Internal("nobody tells what blocks take of the memory");
    return planning.memory_of(program);
  }
  FusionText text(level, disabled_passes, planning, ReadsBehindWrites(program, planning.files));
  Status status;
  ForEachBlock(program, [&](Block& block) {
    if (status.ok()) status = text.Add(block);
  });
  HEDDLE_RETURN_IF_ERROR(status);
  return text.Take();
}

}  // namespace heddle::compiler
