// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/explain_fusion.h"

#include <fmt/format.h>

#include "cluster/cli/script_input.h"
#include "compiler/codegen/codegen.h"
#include "compiler/fuse/fuse.h"
#include "compiler/optimize/infer.h"
#include "compiler/optimize/pass.h"
#include "compiler/optimize/static_pass.h"
#include "ops/formats/files.h"
#include "ops/fused/fused.h"
#include "ops/fused/tile_program.h"

namespace heddle::cluster::cli {
namespace {

constexpr size_t kToldPlans = 10;  // Of each partition, with "cost".

// Live-ins of a graph as the static pass left them in its nodes, in the program's precision.
compiler::LiveIns LiveInsOf(const Graph& graph, ElementType element_type) {
  compiler::LiveIns live_in;
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
    if (node.info.IsMatrix() && !node.info.shape.IsKnown()) return true;
  return false;
}

Result<std::string> CodeText(const std::string& text) {
  HEDDLE_ASSIGN_OR_RETURN(FusedOperator fused, FusedOperator::Parse(text));
  std::string out = fmt::format("{} operator\n", Name(fused.kind));
  HEDDLE_ASSIGN_OR_RETURN(const ops::TileProgram program, ops::Lower(std::move(fused)));
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
  FusionText(std::string_view level, compiler::FuseOptions options, const SessionOptions& session, ops::Files* files)
      : level_(level), options_(std::move(options)), element_type_(session.element_type), files_(files) {
    passes_.infos_are_exact = true;
    passes_.disabled.insert(session.disabled_passes.begin(), session.disabled_passes.end());
  }

  Status Add(const Block& block) {
    if (block.graph.nodes.empty()) return OkStatus();
    compiler::InferOutcome inferred = Infer(block.graph, block);
    HEDDLE_RETURN_IF_ERROR(inferred.error);
    HEDDLE_ASSIGN_OR_RETURN(Graph graph, compiler::RunGraphPasses(std::move(inferred.graph), passes_));
    inferred = Infer(std::move(graph), block);
    HEDDLE_RETURN_IF_ERROR(inferred.error);
    compiler::FuseReport report;
    HEDDLE_ASSIGN_OR_RETURN(const Graph fused, compiler::Fuse(inferred.graph, options_, &report));
    if (report.memo.empty() && !HasMatrixOfUnknownSize(inferred.graph)) return OkStatus();
    text_ += fmt::format("block at line {}\n", block.position.line);
    if (HasMatrixOfUnknownSize(inferred.graph))
      text_ += "  some sizes are known only when it runs: see run -explain\n";
    if (level_ != "codegen") {
      text_ += compiler::ToText(report, level_ == "cost") + "\n";
      return OkStatus();
    }
    for (const std::string& operator_text : report.fused) {
      HEDDLE_ASSIGN_OR_RETURN(const std::string code, CodeText(operator_text));
      text_ += code + "\n";
    }
    return OkStatus();
  }

  std::string Take() { return text_.empty() ? "nothing is fused\n" : std::move(text_); }

 private:
  compiler::InferOutcome Infer(Graph graph, const Block& block) {
    return compiler::InferShapes(std::move(graph), LiveInsOf(block.graph, element_type_), files_, nullptr, element_type_);
  }

  std::string_view level_;
  compiler::FuseOptions options_;
  compiler::PassOptions passes_;
  ElementType element_type_;
  ops::Files* files_;
  std::string text_;
};

}  // namespace

Result<std::string> ExplainFusion(Program program, std::string_view level, const SessionOptions& session) {
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(WorkingDirectory());
  compiler::Diagnostics diagnostics;
  compiler::PropagateShapes(&program, &diagnostics, nullptr, files.get());
  HEDDLE_RETURN_IF_ERROR(diagnostics.HasErrors() ? diagnostics.ToStatus() : OkStatus());
  compiler::FuseOptions options;
  HEDDLE_RETURN_IF_ERROR(compiler::SetMode(session.fusion, &options));
  options.constants = compiler::OrDefault(session.constants, session.threads);
  options.threads = session.threads;
  options.memory_budget = session.memory_bytes;
  options.ranks = session.ranks;
  options.min_distributed_bytes = session.min_distributed_bytes;
  options.can_run = [](const FusedOperator& fused) { return ops::CanRunFused(fused).ok(); };
  if (level == "cost") options.told_plans = kToldPlans;
  const std::string constants = level == "cost" ? compiler::ToText(options.constants) + "\n" : "";
  FusionText text(level, std::move(options), session, files.get());
  Status status;
  compiler::ForEachBlock(&program, [&](Block& block) {
    if (status.ok()) status = text.Add(block);
  });
  HEDDLE_RETURN_IF_ERROR(status);
  return constants + text.Take();
}

}  // namespace heddle::cluster::cli
