// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/precompile.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "compiler/optimize/loop_range.h"
#include "compiler/optimize/static/written_files.h"
#include "core/environment/clock.h"
#include "core/hash.h"
#include "engine/blocks/block_compiler.h"
#include "engine/blocks/compiled_block.h"
#include "engine/blocks/planning_files.h"
#include "engine/blocks/scalar_program.h"
#include "engine/session/planning.h"
#include "engine/variables/bytes_beside.h"
#include "engine/variables/random_seeds.h"
#include "ops/base/operator.h"

namespace heddle::engine {
namespace {

// In the second round variables of a loop are on the ranks on which they stay.
constexpr int kRoundsOfLoop = 2;
constexpr int kSilentRank = 1;  // rank 0 prints

// Whether there is all that planning asks for: the value of a scalar, and of matrices and frames the size.
bool HasValue(const Variable& variable) { return variable.info.IsTabular() || !variable.is_placeholder; }

bool IsKnown(const ValueInfo& info) {
  return info.IsSized() && (!info.IsScalar() || info.value_type != ValueType::kUnknown);
}

bool KnowsAllValues(const Graph& graph, const VariableTable& frame) {
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    if (!node.Is("variable")) return true;
    const Variable* variable = frame.Find(node.Text("name"));
    return variable != nullptr && HasValue(*variable);
  });
}

class Precompiler {
 public:
  Precompiler(const Program& program, const SessionOptions& options, ops::Files* files,
              const PrecompileLimits& limits)
      : program_(program),
        options_(options),
        limits_(limits),
        clock_(limits.clock != nullptr ? *limits.clock : SystemClock()),
        end_ns_(clock_.MonotonicNs() + limits.most_ns),
        compiler_(options_, files != nullptr ? files : no_files_.get(), &clock_),
        written_(files),
        scalars_(kSilentRank, ops::CatalogKernels(), context_),
        seeds_(options.seed) {
    RandomSeeds::Connect(&program_);
    context_.rank = kSilentRank;
  }

  std::vector<std::string> Run() {
    if (options_.ranks <= limits_.most_ranks) Follow(program_.main);
    return std::move(texts_);
  }

 private:
  // All of these: false where the future is not known any more.
  bool Follow(const std::vector<Block>& blocks) {
    return std::all_of(blocks.begin(), blocks.end(), [&](const Block& block) { return Enter(block); });
  }

  bool Enter(const Block& block) {
    const bool is_graph = block.kind != Block::Kind::kCall && block.kind != Block::Kind::kList;
    if (!is_graph || !RunGraph(block.id, block.graph)) return false;
    switch (block.kind) {
      case Block::Kind::kBasic: break;
      case Block::Kind::kIf: {
        const std::optional<Scalar> predicate = TakeValue(Block::kPredicate);
        if (!predicate || !Follow(predicate->AsBoolean() ? block.body : block.otherwise)) return false;
        break;
      }
      case Block::Kind::kWhile: return FollowWhile(block);
      case Block::Kind::kFor:
      case Block::Kind::kParallelFor: return FollowFor(block);
      case Block::Kind::kCall:
      case Block::Kind::kList: return false;
    }
    return Leave(block);
  }

  bool FollowWhile(const Block& block) {
    for (int round = 0; round < kRoundsOfLoop; ++round) {
      const std::optional<Scalar> predicate = TakeValue(Block::kPredicate);
      // An unknown predicate is taken for true: it costs a plan or two when it is not.
      if (predicate && !predicate->AsBoolean()) return Leave(block);
      if (!Follow(block.body) || !RunGraph(block.id, block.graph)) return false;
    }
    return false;
  }

  bool FollowFor(const Block& block) {
    const std::optional<Scalar> from = TakeValue(Block::kFrom);
    const std::optional<Scalar> to = TakeValue(Block::kTo);
    const std::optional<Scalar> increment =
        block.has_increment ? TakeValue(Block::kIncrement) : std::optional<Scalar>(Scalar(int64_t{1}));
    int64_t value = 0, last = 0, step = 0;
    if (!GetBound(from, &value) || !GetBound(to, &last) || !GetBound(increment, &step)) return false;
    // seq(from, to, increment) may be empty and may run down: left to the session.
    if (block.has_increment && (step <= 0 || value > last)) return false;
    if (!block.has_increment && value > last) step = -1;
    for (int round = 0; round < kRoundsOfLoop; ++round) {
      frame_.Set(block.variable, Variable::OfScalar(value));
      if (!Follow(block.body)) return false;
      if (__builtin_add_overflow(value, step, &value)) return false;
      if (step > 0 ? value > last : value < last) return Leave(block);
    }
    return false;
  }

  // False where the bound is not known or no number, or the session will refuse it.
  static bool GetBound(const std::optional<Scalar>& bound, int64_t* whole) {
    if (!bound) return false;
    const Result<std::optional<int64_t>> found = compiler::LoopBound(*bound);
    const bool is_number = found.ok() && found->has_value();
    if (is_number) *whole = **found;
    return is_number;
  }

  bool Leave(const Block& block) {
    for (const std::string& name : block.dead_after) frame_.Erase(name);
    return true;
  }

  std::optional<Scalar> TakeValue(const char* name) {
    const Result<Variable> variable = frame_.Take(name);
    if (!variable.ok() || !variable->info.IsScalar() || !HasValue(*variable)) return std::nullopt;
    return variable->value.scalar();
  }

  bool RunGraph(int32_t block, const Graph& graph) {
    if (graph.nodes.empty()) return true;
    if (graph.nodes.size() > static_cast<size_t>(limits_.most_nodes)) return false;
    seeds_.DrawFor(graph, &frame_);
    bool done = false;
    if (!EvaluateInPlace(graph, &done)) return false;
    if (done) return true;
    uint64_t history = compiler_.FirstHistory(block);
    std::vector<std::string> temporaries;
    Graph rest = graph;
    for (int part = 0;; ++part) {
      if (part > 0) {
        if (!EvaluateInPlace(rest, &done)) return false;
        if (done) break;
      }
      const bool knows_all = KnowsAllValues(rest, frame_);
      const FileLook look = compiler_.LookAt(rest, frame_);
      if (ReadsWhatIsWritten(rest, look)) return false;
      history = BlockCompiler::HistoryOf(history, look);
      Result<BlockPart> next = compiler_.NextPart(block, std::move(rest), frame_, part, look);
      // Where a value is not known here, the session may cut elsewhere.
      if (!next.ok() || !next->error.ok() || !(next->complete || knows_all)) return false;
      temporaries.insert(temporaries.end(), next->temporaries.begin(), next->temporaries.end());
      uint64_t key = 0;
      if (!PassPart(history, *next, knows_all, &key)) return false;
      if (next->rest.nodes.empty()) break;
      history = FoldHash(history, key);
      rest = std::move(next->rest);
    }
    for (const std::string& name : temporaries) frame_.Erase(name);
    return true;
  }

  // Files that the script has written by then have sizes that only a run tells.
  bool ReadsWhatIsWritten(const Graph& graph, const FileLook& look) const {
    for (NodeId id = 0; id < graph.size(); ++id)
      if (ops::RoleOf(graph[id]) == ops::Role::kRead && !look.waiting.contains(id) &&
          written_.MayChange(compiler::LiteralPath(graph, graph[id])))
        return true;
    return false;
  }

  // What the session does without a plan.
  bool EvaluateInPlace(const Graph& graph, bool* done) {
    *done = false;
    if (!KnowsAllValues(graph, frame_)) return true;
    ScalarProgram program(graph);
    const Result<bool> evaluated = scalars_.Evaluate(&program, &frame_);
    *done = evaluated.ok() && *evaluated;
    return evaluated.ok();
  }

  // Makes the plan of a part and leaves its results as far as they are known.
  bool PassPart(uint64_t history, const BlockPart& part, bool knows_all, uint64_t* key) {
    *key = compiler_.KeyOf(history, part.graph, frame_);
    const int64_t beside = BytesBeside(part.graph, frame_, nullptr, options_.ranks,
                                       scheduler::LeastPanelledBytes(MemoryOf(options_)));
    const uint64_t key_of_plan = BlockCompiler::KeyBeside(*key, beside);
    auto found = plans_.find(key_of_plan);
    if (found == plans_.end()) {
      Result<Plan> made = Make(part.graph, key_of_plan, beside, knows_all);
      if (!made.ok()) return false;
      found = plans_.emplace(key_of_plan, std::move(made->live_out)).first;
    }
    for (const Node& node : part.graph.nodes)
      if (ops::RoleOf(node) == ops::Role::kWrite) written_.Add(compiler::LiteralPath(part.graph, node));
    bool known = true;
    for (const Binding& binding : found->second) {
      known = known && IsKnown(binding.info);
      frame_.Set(binding.variable, Variable::Placeholder(binding.distribution, binding.info));
    }
    // A scalar of a complete part may be known although the plan computes it.
    for (size_t i = 0; i < part.values.size(); ++i) {
      const Node& node = part.graph.nodes[i];
      if (node.Is("assign") && part.values[i])
        frame_.Set(node.Text("name"), Variable::OfScalar(*part.values[i]));
    }
    return known;
  }

  Result<Plan> Make(const Graph& graph, uint64_t key, int64_t beside, bool knows_all) {
    if (static_cast<int>(plans_.size()) >= limits_.most_plans || clock_.MonotonicNs() > end_ns_)
      return ResourceExhausted("enough plans were made before the run");
    HEDDLE_ASSIGN_OR_RETURN(Plan plan, compiler_.MakePlan(graph, frame_, {}, 0, beside));
    // The passes may have hidden a size behind a value that the session knows and we do not.
    if (!knows_all)
      for (const Node& node : plan.graph.nodes)
        if (node.info.IsTabular() && !node.info.IsSized())
          return FailedPrecondition("a size is not known before the run").At(node.position);
    plan.key = key;
    // What the session runs directly it has no use for a plan of. Here the plan tells what comes out.
    if (RunsDirectly(options_) && IsSmall(graph)) return plan;
    std::string text = plan.ToText();
    bytes_ += static_cast<int64_t>(text.size());
    if (bytes_ > limits_.most_bytes) return ResourceExhausted("the plans made before the run are too large");
    texts_.push_back(std::move(text));
    return plan;
  }

  Program program_;
  const SessionOptions& options_;
  const PrecompileLimits& limits_;
  Clock& clock_;
  const int64_t end_ns_;
  const std::unique_ptr<ops::Files> no_files_ = MakeNoFiles();
  ops::KernelContext context_;
  BlockCompiler compiler_;
  compiler::WrittenFiles written_;  // by the parts passed so far
  ScalarEvaluator scalars_;
  RandomSeeds seeds_;
  VariableTable frame_;
  std::map<uint64_t, std::vector<Binding>> plans_;  // by key: the variables that the plan leaves
  std::vector<std::string> texts_;
  int64_t bytes_ = 0;
};

}  // namespace

std::vector<std::string> Precompile(const Program& program, const SessionOptions& options, ops::Files* files,
                                    const PrecompileLimits& limits) {
  return Precompiler(program, options, files, limits).Run();
}

}  // namespace heddle::engine
