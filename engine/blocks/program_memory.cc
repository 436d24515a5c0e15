// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/program_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "compiler/optimize/static/static_pass.h"
#include "compiler/optimize/static/written_files.h"
#include "core/environment/clock.h"
#include "core/programs/for_each_block.h"
#include "core/values/sizes.h"
#include "engine/blocks/amount.h"
#include "engine/blocks/block_compiler.h"
#include "engine/blocks/compiled_block.h"
#include "engine/blocks/memory_text.h"
#include "engine/blocks/program_scope.h"
#include "engine/devices/memory_on_device.h"
#include "engine/session/planning.h"
#include "engine/variables/bytes_beside.h"
#include "engine/variables/random_seeds.h"
#include "ops/base/operator.h"
#include "scheduler/memory_of_plan.h"
#include "scheduler/plan_memory.h"

namespace heddle::engine {
namespace {

std::string Amount(int64_t bytes) { return engine::Amount(static_cast<double>(bytes)); }

// What a function leaves in its results when it is called with these arguments.
struct Told {
  std::vector<std::pair<std::string, Variable>> arguments;
  std::vector<Variable> results;
};

class ProgramMemory {
 public:
  ProgramMemory(const Program& program, const SessionOptions& options, ops::Files* files)
      : program_(program),
        options_(options),
        files_(files),
        compiler_(options_, files, &SystemClock()),
        seeds_(std::max<int64_t>(options.seed, 0)) {
    FindKnown();
    RandomSeeds::Connect(&program_);
    behind_writes_ = compiler::ReadsBehindWrites(program_, files);
  }

  Result<std::string> Text() {
    HEDDLE_RETURN_IF_ERROR(FollowAll());
    const int64_t memory = MemoryOf(options_);
    std::string text = memory > 0 ? fmt::format("memory of a worker: {}{}\n", Amount(memory),
                                                options_.memory_bytes > 0 ? "" : ", what the machine leaves")
                                  : "memory of a worker: no limit\n";
    text += text_;
    text += fmt::format("peak: {}", Amount(peak_));
    if (peak_line_ > 0) text += fmt::format(", in the block at line {}", peak_line_);
    if (most_spilled_ > 0) text += fmt::format("; disk: up to {} in spill files", Amount(most_spilled_));
    return text + "\n";
  }

  // nullopt where that is not known of all of the program.
  std::optional<int64_t> Peak() {
    if (!FollowAll().ok() || !is_known_) return std::nullopt;
    return most_bytes_;
  }

 private:
  Status FollowAll() {
    ProgramScope main;
    scopes_.push_back(&main);
    for (const GivenVariable& given : program_.given)
      Set(given.name, Variable::Placeholder(Distribution::One(), given.info));
    const Status status = Follow(program_.main);
    scopes_.pop_back();
    return status;
  }

  // Scalars that are the same whenever a block is entered.
  void FindKnown() {
    const compiler::LiveInValues values = compiler::FindLiveInValues(&program_);
    ForEachBlock(program_, [&](const Block& block) {
      for (NodeId id = 0; id < block.graph.size(); ++id) {
        const auto found = values.find({block.id, id});
        if (found != values.end() && found->second)
          known_.emplace(std::pair(block.id, block.graph[id].Text("name")), *found->second);
      }
    });
  }

  Status Follow(const std::vector<Block>& blocks) {
    for (const Block& block : blocks) HEDDLE_RETURN_IF_ERROR(Enter(block));
    return OkStatus();
  }

  Status Enter(const Block& block) {
    if (!block.graph.nodes.empty()) HEDDLE_RETURN_IF_ERROR(AddGraph(block));
    const std::optional<Scalar> predicate = ValueOf(Block::kPredicate);
    for (const char* name : {Block::kPredicate, Block::kFrom, Block::kTo, Block::kIncrement})
      scope().Erase(name);
    if (!block.variable.empty()) scope().Erase(block.variable);
    if (block.kind == Block::Kind::kCall) HEDDLE_RETURN_IF_ERROR(AddCall(block));
    if (block.kind == Block::Kind::kList)  // It takes its operands whole, and its results may be lists.
      for (const std::string& result : block.results) scope().Erase(result);
    // Lists are not told, and iterations of a parfor run beside each other.
    if (block.kind == Block::Kind::kList || block.kind == Block::Kind::kParallelFor) is_known_ = false;
    if (block.kind == Block::Kind::kIf)
      HEDDLE_RETURN_IF_ERROR(FollowIf(block, predicate));
    else if (block.kind == Block::Kind::kWhile || !block.variable.empty())
      HEDDLE_RETURN_IF_ERROR(FollowLoop(block, predicate));
    for (const std::string& name : block.dead_after) scope().Erase(name);
    return OkStatus();
  }

  // Both ways, unless it is known which one is taken.
  Status FollowIf(const Block& block, const std::optional<Scalar>& predicate) {
    if (predicate) return Follow(predicate->AsBoolean() ? block.body : block.otherwise);
    const ProgramScope before = scope();
    ++uncertain_;
    HEDDLE_RETURN_IF_ERROR(Follow(block.body));
    const ProgramScope behind_body = std::exchange(scope(), before);
    HEDDLE_RETURN_IF_ERROR(Follow(block.otherwise));
    --uncertain_;
    Join(before, behind_body, &last_value_, &scope());
    return OkStatus();
  }

  // The first round, in which scalars count as unknown that others change.
  Status FollowLoop(const Block& block, const std::optional<Scalar>& predicate) {
    if (predicate && !predicate->AsBoolean()) return OkStatus();
    ForgetScalars(block.body, &scope());
    const ProgramScope before = scope();
    ++uncertain_;
    HEDDLE_RETURN_IF_ERROR(Follow(block.body));
    --uncertain_;
    ForgetScalars(block.body, &scope());
    if (JoinBehindLoop(before, &last_value_, &scope())) is_known_ = false;
    return OkStatus();
  }

  // Of a scalar that is known, and no string.
  std::optional<Scalar> ValueOf(const std::string& name) {
    const Variable* const variable = scope().frame.Find(name);
    if (variable == nullptr || !variable->info.IsScalar() || variable->is_placeholder) return std::nullopt;
    return variable->value.scalar().IsString() ? std::nullopt : std::optional(variable->value.scalar());
  }

  ProgramScope& scope() { return *scopes_.back(); }

  Status AddCall(const Block& call) {
    std::optional<Told> told;
    Status status;
    ForEachCallee(call, [&](const std::string& name, const auto& arguments) {
      const auto function = program_.functions.find(name);
      if (!status.ok() || open_.contains(name) || function == program_.functions.end()) return;
      const auto given = ArgumentsOf(function->second, arguments);
      if (functions_.contains(name))
        is_known_ = false;  // Another call may have larger arguments.
      else
        status = AddFunction(call, name, function->second, given, arguments);
      if (const auto known = functions_.find(name);
          known != functions_.end() && !told && AreAlike(known->second.arguments, given))
        told = known->second;
    });
    HEDDLE_RETURN_IF_ERROR(status);
    if (!told || call.gives_list) is_known_ = false;  // It calls itself, or what it calls is not known.
    for (size_t i = 0; i < call.results.size(); ++i) {
      if (call.results[i].empty()) continue;
      scope().Erase(call.results[i]);
      if (told && !call.gives_list && i < told->results.size()) SetIfKnown(call.results[i], told->results[i]);
    }
    return OkStatus();
  }

  using Arguments = std::vector<std::pair<std::string, std::string>>;
  // What is known of them, as the function declares them.
  std::vector<std::pair<std::string, Variable>> ArgumentsOf(const Function& function,
                                                            const Arguments& names) {
    std::vector<std::pair<std::string, Variable>> given;
    for (const auto& [parameter, name] : names) {
      const Variable* const variable = scope().frame.Find(name);
      if (variable == nullptr) continue;
      given.emplace_back(parameter, *variable);
      for (const Parameter& declared : function.parameters)
        if (declared.name == parameter) given.back().second = AsDeclared(*variable, declared);
    }
    return given;
  }

  static Variable AsDeclared(const Variable& variable, const Parameter& declared) {
    if (!variable.info.IsScalar() || variable.is_placeholder) return variable;
    const Result<Variable> converted =
        ConvertTo(variable, declared.data_type, declared.value_type, declared.name);
    return converted.ok() ? *converted : Variable::Placeholder(Distribution::Each(), variable.info);
  }

  // `key` names it in the program; what users call it may be the name of several.
  Status AddFunction(const Block& call, const std::string& key, const Function& function,
                     const std::vector<std::pair<std::string, Variable>>& given, const Arguments& names) {
    ProgramScope callee;
    for (const auto& [parameter, variable] : given)
      if (variable.info.IsTabular() || !variable.is_placeholder)
        callee.Set(parameter, variable, ++last_value_);
    for (const auto& [parameter, name] : names)  // They share the values of the caller.
      if (callee.frame.Find(parameter) != nullptr) callee.values[parameter] = scope().values[name];
    text_ += fmt::format("function {}, called at line {}\n", function.name, call.position.line);
    open_.insert(key);
    scopes_.push_back(&callee);
    const Status status = Follow(function.body);
    scopes_.pop_back();
    open_.erase(key);
    HEDDLE_RETURN_IF_ERROR(status);
    text_ += fmt::format("end of function {}\n", function.name);
    Told told{.arguments = given, .results = {}};
    for (const Parameter& result : function.results) {
      const Variable* const variable = callee.frame.Find(result.name);
      told.results.push_back(variable == nullptr ? Variable() : AsDeclared(*variable, result));
    }
    functions_[key] = std::move(told);
    return OkStatus();
  }

  void SetIfKnown(const std::string& name, const Variable& variable) {
    if (variable.info.IsTabular() || (variable.info.IsScalar() && !variable.is_placeholder))
      Set(name, variable);
  }

  void Set(const std::string& name, Variable variable) {
    scope().Set(name, std::move(variable), ++last_value_);
  }

  // Variables that no block before has left are what the text tells of them; scalars have the values that are
  // the same on every way.
  void FindVariables(const Block& block) {
    for (NodeId id = 0; id < block.graph.size(); ++id) {
      const Node& node = block.graph[id];
      if (!node.Is("variable")) continue;
      const std::string& name = node.Text("name");
      const Variable* const before = scope().frame.Find(name);
      if (before != nullptr && (before->info.IsTabular() || !before->is_placeholder)) continue;
      if (!node.info.IsTabular()) {
        const auto known = known_.find({block.id, name});
        Set(name, known != known_.end() ? Variable::OfScalar(known->second)
                                        : Variable::Placeholder(Distribution::Each(), node.info));
        continue;
      }
      ValueInfo info = node.info;
      if (info.IsMatrix()) info.element_type = options_.element_type;
      Set(name, Variable::Placeholder(Distribution::One(), info));
    }
  }

  static bool HasTables(const Graph& graph) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
      const auto results = ResultsOf(node);
      return std::any_of(results.begin(), results.end(),
                         [](const ValueInfo& info) { return info.IsTabular(); });
    });
  }

  Status AddGraph(const Block& block) {
    FindVariables(block);
    seeds_.DrawFor(block.graph, &scope().frame);
    FileLook look = compiler_.LookAt(block.graph, scope().frame);
    for (const NodeId id : behind_writes_[block.id]) look.waiting.insert(id);
    const Result<BlockPart> part = compiler_.NextPart(block.id, block.graph, scope().frame, 0, look);
    // Nothing of it can run with what is known here.
    const bool is_open = part.status().code() == StatusCode::kInternal;
    if (!part.ok() && !is_open) return AddError(block, part.status());
    if (part.ok() && !part->error.ok()) return AddError(block, part->error);
    // What comes behind a stop() may never run.
    may_stop_ |= std::any_of(block.graph.nodes.begin(), block.graph.nodes.end(), [](const Node& node) {
      return ops::HasRole(node, {ops::Role::kStop, ops::Role::kAssert});
    });
    if (is_open || !HasTables(part->graph)) {
      const bool tells = is_open && HasTables(block.graph);
      is_known_ = is_known_ && !tells;
      if (tells) text_ += fmt::format("block at line {}\n{}", block.position.line, kOpen);
      ForEachAssigned(block, [&](const std::string& name) { scope().Erase(name); });
      if (part.ok()) LeaveScalars(*part);
      return OkStatus();
    }
    const bool is_small =
        part->complete && RunsDirectly(options_) && IsSmall(part->graph) && !ReadsPanels(part->graph);
    text_ += fmt::format("block at line {}\n", block.position.line);
    if (!part->complete) text_ += kOpen;
    is_known_ = is_known_ && part->complete;
    Result<Plan> plan = compiler_.MakePlan(part->graph, scope().frame, {}, 0, BesideOf(part->graph));
    if (plan.ok()) {
      AddPlan(block, *plan, is_small);
      Leave(block, *plan);
      LeaveScalars(*part);
    } else if (plan.status().code() != StatusCode::kResourceExhausted) {
      return AddError(block, plan.status());
    } else {
      is_known_ = false;
      text_ += fmt::format("  refused: {}\n", Indented(plan.status().At(block.position).ToString()));
      ForEachAssigned(block, [&](const std::string& name) { scope().Erase(name); });
    }
    for (const std::string& name : part->temporaries) scope().Erase(name);
    return OkStatus();
  }

  // Of a block that a run may never come to, the error is one of the run.
  Status AddError(const Block& block, const Status& error) {
    if (uncertain_ == 0 && !may_stop_) return error;
    is_known_ = false;
    text_ += fmt::format("block at line {}\n  an error, if it runs: {}\n", block.position.line,
                         Indented(error.At(block.position).ToString()));
    ForEachAssigned(block, [&](const std::string& name) { scope().Erase(name); });
    return OkStatus();
  }

  // Those that are known without running; `values` of a part that is not complete is empty.
  void LeaveScalars(const BlockPart& part) {
    for (size_t i = 0; i < part.values.size(); ++i)
      if (const Node& node = part.graph.nodes[i]; node.Is("assign") && part.values[i])
        Set(node.Text("name"), Variable::OfScalar(*part.values[i]));
  }

  static std::string Indented(const std::string& lines) {
    std::string text;
    for (const char c : lines) text += c == '\n' ? std::string("\n    ") : std::string(1, c);
    return text;
  }

  bool ReadsPanels(const Graph& graph) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
      return node.Is("variable") && scope().frame.Find(node.Text("name"))->is_panels;
    });
  }

  void Leave(const Block& block, const Plan& plan) {
    const std::vector<NodeId> panels = scheduler::AssignsOfPanels(plan);
    std::set<std::string> left;
    for (const Binding& binding : plan.live_out) {
      left.insert(binding.variable);
      Variable variable = Variable::Placeholder(binding.distribution, binding.info);
      variable.is_panels = std::find(panels.begin(), panels.end(), binding.node) != panels.end();
      // What the block only gives another name is one value.
      const Node& node = plan.graph[binding.node];
      const Node& source = plan.graph[node.inputs.empty() ? binding.node : node.inputs[0]];
      const int64_t value = source.Is("variable") ? scope().values[source.Text("name")] : 0;
      if (binding.info.IsTabular())
        Set(binding.variable, std::move(variable));
      else
        scope().Erase(binding.variable);
      if (value > 0) scope().values[binding.variable] = value;
      if (value == 0 && IsRemade(plan, binding.node, files_))
        remade_.insert(scope().values[binding.variable]);
    }
    ForEachAssigned(block, [&](const std::string& name) {
      if (!left.contains(name)) scope().Erase(name);
    });
  }

  struct Around {
    int64_t others = 0;   // Variables that the plan does not read,
    int64_t panels = 0;   // those that are panels,
    int64_t spilled = 0;  // and of them those whose rows may be in files.
  };
  // Of a plan that reads these variables.
  Around AroundOf(const std::set<std::string>& read, int32_t rank) {
    Around around;
    std::set<int64_t> counted;
    for (const std::string& name : read)
      if (!scope().frame.Find(name)->is_panels) counted.insert(scope().values[name]);
    for (ProgramScope* const one : scopes_)
      for (const auto& [name, variable] : one->frame.variables()) {
        if (!counted.insert(one->values[name]).second) continue;
        int64_t& sum = variable.is_panels ? around.panels : around.others;
        sum = SaturatingSum(sum, HeldBytes(variable, rank, options_.ranks));
        if (variable.is_panels && !remade_.contains(one->values[name]))
          around.spilled = SaturatingSum(around.spilled, HeldBytes(variable, rank, options_.ranks));
      }
    return around;
  }

  // As BytesBeside() counts them.
  int64_t BesideOf(const Graph& graph) {
    std::set<std::string> read;
    for (const Node& node : graph.nodes)
      if (node.Is("variable")) read.insert(node.Text("name"));
    int64_t most = 0;
    for (int32_t rank = 0; rank < options_.ranks; ++rank) most = std::max(most, AroundOf(read, rank).others);
    return InMultiplesOf(scheduler::LeastPanelledBytes(MemoryOf(options_)), most);
  }

  // Whether a plan says all that its values take: it knows nothing of the entries of sparse matrices, nor of
  // the texts of frames.
  static bool SaysAll(const Graph& graph) {
    const auto is_told = [](const ValueInfo& info) {
      if (!info.IsTabular()) return true;
      return info.IsMatrix() && info.IsSized() && info.format == Format::kDense;
    };
    return std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
      const auto results = ResultsOf(node);
      return std::all_of(results.begin(), results.end(), is_told);
    });
  }

  void AddPlan(const Block& block, const Plan& plan, bool is_small) {
    is_known_ = is_known_ && SaysAll(plan.graph);
    if (is_small)
      text_ += "  small: it runs directly, operator by operator\n";
    else
      text_ += LinesOfMemory(plan, files_);
    std::vector<std::string> lines;
    int64_t spilled = 0;
    std::set<std::string> read;
    for (const Binding& binding : plan.live_in) read.insert(binding.variable);
    for (int32_t rank = 0; rank < plan.ranks; ++rank) {
      const scheduler::MemoryOfPlan memory = scheduler::MemoryOn(plan, rank, options_.threads);
      const Around around = AroundOf(read, rank);
      const int64_t values = SaturatingSum(memory.values, memory.in_transit);
      const int64_t of_plan = SaturatingSum(values, around.others);
      const int64_t kept = std::min(RoomOfPanels(options_, values, memory.working, around.others),
                                    SaturatingSum(memory.panels, around.panels));
      const int64_t peak = SaturatingSum(of_plan, kept);
      if (peak > peak_) {
        peak_ = peak;
        peak_line_ = block.position.line;
      }
      most_bytes_ = std::max(most_bytes_, SaturatingSum(peak, memory.working));
      spilled = std::max(spilled, SaturatingSum(MostSpilled(plan, rank, files_), around.spilled));
      std::string line = fmt::format("values {}", Amount(values));
      if (around.others > 0) line += fmt::format(", other variables {}", Amount(around.others));
      if (memory.panels + around.panels > 0)
        line += fmt::format(", panels kept up to {} of {}", Amount(kept),
                            Amount(SaturatingSum(memory.panels, around.panels)));
      line += fmt::format(": peak {}", Amount(peak));
      if (memory.working > 0)
        line += fmt::format(", and {} that operators work with", Amount(memory.working));
      lines.push_back(std::move(line));
    }
    for (size_t first = 0; first < lines.size();) {
      size_t last = first;
      while (last + 1 < lines.size() && lines[last + 1] == lines[first]) ++last;
      text_ += last == first ? fmt::format("  worker {}: {}\n", first, lines[first])
                             : fmt::format("  workers {} to {}, each: {}\n", first, last, lines[first]);
      first = last + 1;
    }
    if (const std::optional<MemoryOnDevice> there = MemoryOnDeviceOf(plan)) {
      text_ += fmt::format("  {}:{}: values {}", Name(there->device.type), there->device.index,
                           Amount(there->values));
      if (there->working > 0)
        text_ += fmt::format(", and {} that operators work with", Amount(there->working));
      text_ += there->is_host ? fmt::format(", among the values of the worker\n")
                              : fmt::format(", of {}\n", Amount(there->memory_bytes));
    }
    if (spilled > 0) text_ += fmt::format("  disk: up to {} in spill files of a worker\n", Amount(spilled));
    most_spilled_ = std::max(most_spilled_, spilled);
  }

  static constexpr const char* kOpen =
      "  some sizes are known only when it runs: what they decide is not told\n";

  Program program_;
  const SessionOptions& options_;
  ops::Files* const files_;
  BlockCompiler compiler_;
  std::map<int32_t, std::set<NodeId>> behind_writes_;
  RandomSeeds seeds_;
  std::map<std::pair<int32_t, std::string>, Scalar> known_;  // By block and variable.
  std::vector<ProgramScope*> scopes_;                        // Of the open calls, the innermost last.
  std::set<std::string> open_;                               // Functions of the open calls.
  std::map<std::string, Told> functions_;                    // Those that have been told.
  int64_t last_value_ = 0;
  int uncertain_ = 0;         // How many of the branches and loops around a block may not run it.
  bool may_stop_ = false;     // A stop() was on the way.
  std::set<int64_t> remade_;  // Values whose rows are made again rather than written.
  std::string text_;
  bool is_known_ = true;    // All that was told so far.
  int64_t most_bytes_ = 0;  // Of the peaks with what operators work with beside them.
  int64_t peak_ = 0, most_spilled_ = 0;
  int32_t peak_line_ = 0;
};

}  // namespace

Result<std::string> ExplainMemory(const Program& program, const SessionOptions& options, ops::Files* files) {
  return ProgramMemory(program, options, files).Text();
}

std::optional<int64_t> MemoryOfProgram(const Program& program, const SessionOptions& options,
                                       ops::Files* files) {
  return ProgramMemory(program, options, files).Peak();
}

}  // namespace heddle::engine
