// SPDX-License-Identifier: Apache-2.0
#include "bench/base/expression.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "compiler/codegen/codegen.h"
#include "compiler/compile.h"
#include "compiler/fuse/fuse.h"
#include "compiler/optimize/infer.h"
#include "compiler/optimize/pass.h"
#include "core/environment/clock.h"
#include "core/programs/fused_operator.h"
#include "core/programs/phased_operator.h"
#include "engine/blocks/bytes_moved.h"
#include "ops/base/kernel.h"
#include "ops/cells/storage.h"
#include "ops/device/device_matrix.h"
#include "ops/device/run/run_on_device.h"
#include "ops/device/run/run_phases_on_device.h"
#include "ops/fused/fused.h"

namespace heddle::bench {

struct Expression::State {
  Graph graph;
  std::vector<NodeId> results;
  std::map<std::string, Value> inputs;
  std::vector<std::vector<ValueInfo>> infos;
  std::vector<std::vector<NodeId>> last_use;  ///< By node: values that nobody reads after it.
  std::shared_ptr<codegen::GeneratedCode> code;
  std::unique_ptr<ops::FusedRuntime> fused;
  ops::KernelContext context;
  ops::Arena* arena = nullptr;
  double compile_ms = 0;
  int64_t bytes_moved = 0;
  ops::ComputeDevice* device = nullptr;
  std::unique_ptr<ops::DeviceQueue> queue;
  int operators_on_host = 0;
};

namespace {

[[noreturn]] void Fail(const Status& status) {
  std::fprintf(stderr, "heddle-bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

double Density(const Matrix& matrix) {
  return static_cast<double>(matrix.stored()) / static_cast<double>(std::max<int64_t>(matrix.cells(), 1));
}

std::string ResultName(size_t i) { return fmt::format("result__{}", i); }

// The statements as the body of a function: its parameters are the live-ins.
Result<Graph> Build(const std::string& code, const std::vector<std::string>& results,
                    const std::map<std::string, Value>& inputs) {
  std::string parameters, arguments;
  for (const auto& [name, value] : inputs) {
    const bool matrix = value.IsMatrix();
    parameters +=
        fmt::format("{}{} {}", parameters.empty() ? "" : ", ", matrix ? "matrix[double]" : "double", name);
    arguments += arguments.empty() ? "" : ", ";
    if (!matrix) {
      arguments += "1.5";
    } else {
      const Matrix& m = value.matrix();
      arguments += fmt::format("rand(rows={}, cols={}, sparsity={})", m.rows(), m.columns(), Density(m));
    }
  }
  // All results are read, or they would be left out.
  std::string names, declared, assigned, read;
  for (size_t i = 0; i < results.size(); ++i) {
    names += (i == 0 ? "" : ", ") + ResultName(i);
    declared += (i == 0 ? "matrix[double] " : ", matrix[double] ") + ResultName(i);
    assigned += ResultName(i) + " = " + results[i] + "\n";
    read += (i == 0 ? "sum(" : " + sum(") + ResultName(i) + ")";
  }
  const std::string script =
      fmt::format("f = function({}) return ({}) {{\n{}\n{}}}\n[{}] = f({})\nprint({})\n", parameters,
                  declared, code, assigned, names, arguments, read);
  compiler::CompileOptions options;
  options.disabled_passes = {"inline-functions"};  // The expression is what the function holds.
  compiler::Diagnostics diagnostics;
  Result<Program> program = compiler::CompileScript(script, options, &diagnostics);
  if (!program.ok()) return program.status();
  for (auto& [name, function] : program->functions)
    if (function.body.size() == 1) return std::move(function.body[0].graph);
  return Internal("the expression is not one block:\n{}", script);
}

// The precision of a program with these inputs.
ElementType ElementTypeOf(const std::map<std::string, Value>& inputs) {
  for (const auto& [name, value] : inputs)
    if (value.IsMatrix()) return value.matrix().element_type();
  return ElementType::kFloat64;
}

bool IsOperator(const Node& node) {
  return !node.Is("variable") && !node.Is("literal") && !node.Is("assign") && !node.Is("result");
}

// Fused operators, and those of phases.
bool CountsForItself(const Node& node) { return IsFused(node) || node.Is("phased"); }

// The machine code of what is fused in the node.
Status CompileFused(const Node& node, ops::FusedRuntime& fused) {
  if (IsFused(node)) return fused.Get(node.fused).status();
  if (!node.Is("phased")) return OkStatus();
  for (const Node& inner : node.phased->body.nodes)
    if (IsFused(inner)) HEDDLE_RETURN_IF_ERROR(fused.Get(inner.fused).status());
  return OkStatus();
}

// By the device, or where it leaves the call to the host by the host, with copies of what is on the device.
Status RunThere(ops::ComputeDevice* device, ops::DeviceQueue* queue, const ops::KernelCall& call,
                std::span<Value> results, int* operators_on_host) {
  if (device == nullptr) return ops::CatalogKernels().Run(call, results);
  const Status status = ops::DeviceOperators::Of(*device).Run(call, *queue, results);
  if (status.code() != StatusCode::kUnimplemented) return status;
  ++*operators_on_host;
  std::vector<Value> copies;
  copies.reserve(call.inputs.size());
  std::vector<const Value*> inputs(call.inputs.begin(), call.inputs.end());
  for (const Value*& input : inputs) {
    if (input == nullptr || !input->IsMatrix() || !input->matrix().IsOnDevice()) continue;
    HEDDLE_ASSIGN_OR_RETURN(Matrix cells, ToHost(input->matrix()));
    copies.emplace_back(std::move(cells));
    input = &copies.back();
  }
  ops::KernelCall on_host = call;
  on_host.inputs = inputs;
  return ops::CatalogKernels().Run(on_host, results);
}

// So far.
int64_t FusedBytes(const ops::FusedRuntime& fused) {
  int64_t bytes = 0;
  for (const ops::FusedCounts& counts : fused.Counts()) bytes += counts.bytes;
  return bytes;
}

}  // namespace

Expression::Expression(std::unique_ptr<State> state) : state_(std::move(state)) {}
Expression::Expression(Expression&&) noexcept = default;
Expression::~Expression() = default;

Result<Expression> Expression::Compile(const std::string& code, const std::vector<std::string>& results,
                                       std::map<std::string, Value> inputs, const std::string& fusion,
                                       ops::Arena* arena, bool for_device) {
  auto state = std::make_unique<State>();
  const ElementType element_type = ElementTypeOf(inputs);
  HEDDLE_ASSIGN_OR_RETURN(Graph graph, Build(code, results, inputs));
  const int64_t begin = SystemClock().MonotonicNs();
  compiler::LiveIns live_in;
  for (const auto& [name, value] : inputs) {
    compiler::LiveIn& entry = live_in[name];
    if (value.IsMatrix()) {
      entry.info = ValueInfo::OfMatrix(value.matrix().shape(), FormatOf(value.matrix().storage()));
      entry.info.element_type = element_type;
    } else {
      entry.info = ValueInfo::OfScalar(value.scalar().type());
    }
  }
  for (int round = 0; round < 2; ++round) {
    compiler::InferOutcome inferred =
        compiler::InferShapes(std::move(graph), live_in, nullptr, nullptr, element_type);
    HEDDLE_RETURN_IF_ERROR(inferred.error);
    graph = std::move(inferred.graph);
    if (round > 0) break;
    compiler::PassOptions passes;
    passes.infos_are_exact = true;
    HEDDLE_ASSIGN_OR_RETURN(graph, compiler::RunGraphPasses(std::move(graph), passes));
  }
  compiler::FuseOptions options;
  options.mode = *compiler::ParseFusionMode(fusion);
  options.threads = arena->threads();
  options.can_run = ops::CanRunFused;
  options.fuses_wide_products = !for_device;
  if (for_device)
    options.can_run_in_phases = [](const Graph& of, NodeId node) {
      return ops::CanRunInPhases(of, node).ok();
    };
  options.sparsity_of = [&](std::string_view name) {
    const auto found = inputs.find(std::string(name));
    if (found == inputs.end() || !found->second.IsMatrix()) return -1.0;
    return Density(found->second.matrix());
  };
  HEDDLE_ASSIGN_OR_RETURN(state->graph, compiler::Fuse(graph, options, nullptr));
  state->code = codegen::GeneratedRegions({.use_disk_cache = false});
  state->fused = std::make_unique<ops::FusedRuntime>(state->code, /*strict=*/true, nullptr);
  state->results.assign(results.size(), kNoNode);
  std::vector<NodeId> last_reader(state->graph.nodes.size(), kNoNode);
  for (NodeId id = 0; id < state->graph.size(); ++id) {
    const Node& node = state->graph[id];
    HEDDLE_RETURN_IF_ERROR(CompileFused(node, *state->fused));
    state->infos.emplace_back();
    for (NodeId input : node.inputs) {
      state->infos.back().push_back(input == kNoNode ? ValueInfo() : state->graph[input].info);
      if (input != kNoNode) last_reader[static_cast<size_t>(input)] = id;
    }
    for (size_t i = 0; i < results.size(); ++i)
      if (node.Is("assign") && node.Text("name") == ResultName(i)) state->results[i] = node.inputs[0];
  }
  state->last_use.resize(state->graph.nodes.size());
  for (NodeId id = 0; id < state->graph.size(); ++id)
    if (last_reader[static_cast<size_t>(id)] != kNoNode &&
        std::find(state->results.begin(), state->results.end(), id) == state->results.end())
      state->last_use[static_cast<size_t>(last_reader[static_cast<size_t>(id)])].push_back(id);
  state->compile_ms = static_cast<double>(SystemClock().MonotonicNs() - begin) * 1e-6;
  state->inputs = std::move(inputs);
  state->arena = arena;
  state->context.clock = &SystemClock();
  state->context.threads = arena->threads();
  state->context.fused = state->fused.get();
  return Expression(std::move(state));
}

std::vector<Value> Expression::Run() {
  State& s = *state_;
  std::vector<Value> values(s.graph.nodes.size());
  std::map<NodeId, std::vector<Value>> tuples;
  s.bytes_moved = -FusedBytes(*s.fused);
  s.operators_on_host = 0;
  s.arena->Execute([&] {
    for (NodeId id = 0; id < s.graph.size(); ++id) {
      const Node& node = s.graph[id];
      const auto i = static_cast<size_t>(id);
      if (node.Is("variable")) {
        values[i] = s.inputs.at(node.Text("name"));
      } else if (node.Is("literal")) {
        values[i] = Value(*node.FindAttribute("value"));
      } else if (node.Is("result")) {
        values[i] = tuples.at(node.inputs[0])[node.ResultIndex()];
      } else if (!node.Is("assign")) {
        if (!CountsForItself(node)) s.bytes_moved += engine::BytesMoved(s.graph, id);
        std::vector<const Value*> operands;
        for (NodeId input : node.inputs)
          operands.push_back(input == kNoNode ? nullptr : &values[static_cast<size_t>(input)]);
        std::vector<Value> results(ResultsOf(node).size());
        const Status status = RunThere(s.device, s.queue.get(),
                                       {.node = node,
                                        .phase = Phase::kWhole,
                                        .inputs = operands,
                                        .input_infos = s.infos[i],
                                        .context = s.context},
                                       results, &s.operators_on_host);
        if (!status.ok()) Fail(status);
        if (node.info.IsTuple())
          tuples[id] = std::move(results);
        else
          values[i] = std::move(results[0]);
      }
      for (NodeId dead : s.last_use[i]) values[static_cast<size_t>(dead)] = Value();
    }
  });
  s.bytes_moved += FusedBytes(*s.fused);
  std::vector<Value> results;
  for (const NodeId result : s.results) results.push_back(values[static_cast<size_t>(result)]);
  return results;
}

Status Expression::UseDevice(ops::ComputeDevice& device) {
  HEDDLE_ASSIGN_OR_RETURN(state_->queue, device.MakeQueue());
  state_->device = &device;
  for (auto& [name, value] : state_->inputs) {
    if (!value.IsMatrix() || !(value.matrix().IsDense() || value.matrix().IsSparse())) continue;
    const auto copy = value.matrix().IsSparse() ? ops::EntriesToDevice : ops::ToDevice;
    HEDDLE_ASSIGN_OR_RETURN(Matrix there, copy(value.matrix(), device, *state_->queue));
    value = Value(std::move(there));
  }
  return state_->queue->Finish();
}
int Expression::operators_on_host() const { return state_->operators_on_host; }

double Expression::compile_ms() const { return state_->compile_ms; }
int64_t Expression::BytesMoved() const { return state_->bytes_moved; }

Expression::Operators Expression::CountOperators() const {
  Operators counts;
  for (const Node& node : state_->graph.nodes)
    if (IsOperator(node)) ++(CountsForItself(node) ? counts.fused : counts.others);
  return counts;
}

std::string Expression::Plan() const {
  std::string text;
  for (const Node& node : state_->graph.nodes) {
    if (!IsOperator(node)) continue;
    std::string name = node.op;
    if (IsFused(node)) {
      name = "fused " + std::string(Name(node.fused->kind));
      for (NodeId root : node.fused->roots) name += " " + node.fused->body[root].op;
    }
    if (node.Is("phased")) {
      const std::vector<int> phases = PhasesOf(node.phased->body);
      name += fmt::format(" {} phases", 1 + *std::max_element(phases.begin(), phases.end()));
    }
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

}  // namespace heddle::bench
