// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "compiler/optimize/defined.h"
#include "compiler/optimize/pass.h"
#include "compiler/optimize/storage.h"
#include "core/programs/for_each_block.h"

// Puts X = compress(X) in front of outermost loops that read a matrix X and do not change it. Whether it is
// stored by groups of columns the run decides, which knows its size and its cells: attribute `reads` tells it
// how often X will be read, `of_tuples` how often of these no row of column groups would be.
namespace heddle::compiler {
namespace {

bool HasLoop(const Block& block) {
  return IsLoop(block) || std::any_of(block.body.begin(), block.body.end(), HasLoop) ||
         std::any_of(block.otherwise.begin(), block.otherwise.end(), HasLoop);
}

class Compressor {
 public:
  explicit Compressor(Program* program) : program_(*program), new_blocks_(program) {}

  void Visit(std::vector<Block>& blocks, SharedNames defined) {
    std::vector<Block> result;
    for (Block& block : blocks) {
      if (IsLoop(block)) {
        AddCompression(block, defined, &result);
      } else if (!block.body.empty() || !block.otherwise.empty()) {
        Visit(block.body, defined);
        Visit(block.otherwise, defined);
      }
      FollowDefined(block, &defined);
      result.push_back(std::move(block));
    }
    blocks = std::move(result);
  }

 private:
  void AddCompression(const Block& loop, const SharedNames& defined, std::vector<Block>* before) {
    Block block = new_blocks_.Make(Block::Kind::kBasic, loop.position);
    for (const LoopInput& input : InputsOf(program_, loop)) {
      if (!input.why_not.empty() || !defined.contains(input.variable)) continue;
      Add(input, loop.position, &block.graph);
    }
    if (!block.graph.nodes.empty()) before->push_back(std::move(block));
  }

  static void Add(const LoopInput& input, const SourcePosition& position, Graph* graph) {
    Node variable{.op = "variable", .info = input.info, .position = position};
    variable.SetAttribute("name", Scalar(input.variable));
    Node compressed{.op = "compress",
                    .inputs = {graph->Add(std::move(variable))},
                    .info = input.info,
                    .position = position};
    compressed.SetAttribute("reads", Scalar(input.times));
    if (input.of_tuples > 0) compressed.SetAttribute("of_tuples", Scalar(input.of_tuples));
    Node assign{.op = "assign",
                .inputs = {graph->Add(std::move(compressed))},
                .info = input.info,
                .position = position};
    assign.SetAttribute("name", Scalar(input.variable));
    graph->Add(std::move(assign));
  }

  const Program& program_;
  NewBlocks new_blocks_;
};

}  // namespace

Status CompressBeforeLoops(Program* program) {
  Compressor compressor(program);
  SharedNames defined;
  for (const GivenVariable& given : program->given) defined.insert(given.name);
  compressor.Visit(program->main, std::move(defined));
  for (auto& [name, function] : program->functions) {
    const bool has_loop = std::any_of(function.body.begin(), function.body.end(), HasLoop);
    if (!has_loop || CallsItself(*program, name)) continue;
    SharedNames parameters;
    for (const Parameter& parameter : function.parameters) parameters.insert(parameter.name);
    compressor.Visit(function.body, std::move(parameters));
  }
  return OkStatus();
}

}  // namespace heddle::compiler
