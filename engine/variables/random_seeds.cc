// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/random_seeds.h"

#include <algorithm>
#include <charconv>

#include "core/programs/for_each_block.h"
#include "engine/variables/variables.h"
#include "ops/base/operator.h"

namespace heddle::engine {
namespace {

constexpr std::string_view kPrefix = "%seed";
constexpr uint64_t kLoopStream = UINT64_MAX;  // No call of rand() has it.

Node MakeNode(const char* op, std::vector<NodeId> inputs, ValueInfo info, const SourcePosition& position) {
  Node node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.info = info;
  node.position = position;
  return node;
}

bool IsLiteral(const Graph& graph, NodeId id, double value) {
  const Node& node = graph[id];
  return node.Is("literal") && !node.FindAttribute("value")->IsString() &&
         node.FindAttribute("value")->AsDouble() == value;
}

// The input that is the seed; -1 of operators that do not draw.
int SeedInputOf(const Node& node) {
  const ops::Operator* const op = ops::FindOperator(node.op);
  return op == nullptr ? -1 : op->seed_input;
}

bool NeedsSeed(const Graph& graph, const Node& node) {
  if (SeedInputOf(node) < 0) return false;
  const auto input = static_cast<size_t>(SeedInputOf(node));
  if (node.inputs.size() <= input || node.inputs[input] == kNoNode) return true;
  const NodeId seed = node.inputs[input];
  return !graph[seed].Is("literal") || IsLiteral(graph, seed, -1);
}

void ConnectGraph(Graph* graph) {
  bool needed = false;
  for (const Node& node : graph->nodes) needed = needed || NeedsSeed(*graph, node);
  if (!needed) return;

  Graph result;
  std::vector<NodeId> new_ids;
  for (NodeId id = 0; id < graph->size(); ++id) {
    Node node = (*graph)[id];
    const bool seedless = NeedsSeed(*graph, node);
    for (NodeId& input : node.inputs)
      if (input != kNoNode) input = new_ids[static_cast<size_t>(input)];
    for (NodeId& before : node.after) before = new_ids[static_cast<size_t>(before)];
    if (seedless) {
      const auto input = static_cast<size_t>(SeedInputOf(node));
      if (node.inputs.size() <= input) node.inputs.resize(input + 1, kNoNode);
      const Scalar* stream = node.FindAttribute("stream");
      Node drawn = MakeNode("variable", {}, ValueInfo::OfScalar(ValueType::kInteger), node.position);
      drawn.SetAttribute("name", fmt::format("{}{}", kPrefix, stream == nullptr ? 0 : stream->AsInteger()));
      const NodeId drawn_id = result.Add(std::move(drawn));
      NodeId& seed = node.inputs[input];
      if (seed == kNoNode || result[seed].Is("literal")) {
        seed = drawn_id;
      } else {  // ifelse(seed == -1, drawn, seed)
        Node minus_one = MakeNode("literal", {}, ValueInfo::OfScalar(ValueType::kInteger), node.position);
        minus_one.SetAttribute("value", -1);
        const NodeId minus_one_id = result.Add(std::move(minus_one));
        const NodeId is_open = result.Add(
            MakeNode("==", {seed, minus_one_id}, ValueInfo::OfScalar(ValueType::kBoolean), node.position));
        seed = result.Add(MakeNode("ifelse", {is_open, drawn_id, seed},
                                   ValueInfo::OfScalar(ValueType::kUnknown), node.position));
      }
    }
    new_ids.push_back(result.Add(std::move(node)));
  }
  *graph = std::move(result);
}

// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Number `draw` of those that a stream gives from a seed.
int64_t DrawFrom(int64_t seed, uint64_t stream, int64_t draw) {
  const uint64_t bits = Mix(Mix(Mix(static_cast<uint64_t>(seed)) ^ stream) + static_cast<uint64_t>(draw));
  return static_cast<int64_t>(bits >> 11);  // 53 bits: exact also as a double
}

}  // namespace

void RandomSeeds::Connect(Program* program) {
  ForEachBlock(*program, [](Block& block) { ConnectGraph(&block.graph); });
}

bool RandomSeeds::Draw(const std::string& name, int64_t* seed) {
  if (!std::string_view(name).starts_with(kPrefix)) return false;
  int64_t stream = 0;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), stream);
  Scope& scope = scopes_.back();
  *seed = DrawFrom(scope.seed, static_cast<uint64_t>(stream), ++scope.draws);
  return true;
}

int64_t RandomSeeds::EnterLoop() {
  Scope& scope = scopes_.back();
  return DrawFrom(scope.seed, kLoopStream, ++scope.loops);
}

RandomSeeds::Scope RandomSeeds::Iteration(int64_t loop_seed, uint64_t number) {
  return {.seed = static_cast<int64_t>(Mix(static_cast<uint64_t>(loop_seed) + number))};
}

bool RandomSeeds::IsDrawnFor(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return node.Is("variable") && std::string_view(node.Text("name")).starts_with(kPrefix);
  });
}

void RandomSeeds::DrawFor(const Graph& graph, VariableTable* frame) {
  int64_t seed = 0;
  for (const Node& node : graph.nodes)
    if (node.Is("variable") && Draw(node.Text("name"), &seed))
      frame->Set(node.Text("name"), Variable::OfScalar(seed));
}

}  // namespace heddle::engine
