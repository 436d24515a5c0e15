// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/gradient/adjoint_graph.h"

namespace heddle::compiler {

/// The two functions that a call becomes: the forward one, which also returns what the backward one reads.
struct AdjointPair {
  std::string forward;
  std::string backward;
  std::vector<Parameter> saved;            ///< What `forward` returns after the results.
  std::vector<std::string> passed;         ///< Parameters that `backward` takes as they were.
  std::vector<std::string> of_results;     ///< Results whose adjoints it takes,
  std::vector<std::string> of_parameters;  ///< parameters whose adjoints it returns.
  bool is_recursive = false;               ///< What it keeps is one list, and it is passed all parameters.
};

/// Finds or makes the function that stands for the calls of `pair.backward` in the rounds of a loop
/// (kRounds): of the pair's parameters, all rounds pass those in `varying` anew.
using FindRounds = std::function<Result<std::string>(const Block& call, const AdjointPair& pair,
                                                     const std::set<std::string>& varying)>;

/// Finds or makes the pair for a function, with the results and parameters that need adjoints.
using FindPair = std::function<Result<AdjointPair>(const Block& call, const std::set<std::string>& results,
                                                   const std::set<std::string>& parameters)>;

/// Writes the adjoint of a function's body (in single assignment): blocks that run after it, in the reverse
/// order. The body is changed so that it saves what these read: values of straight-line code in variables,
/// values of the rounds of a loop in a list, the decision of a branch in a variable.
class AdjointBody {
 public:
  AdjointBody(const Program& program, SingleAssignment* code, const Activity& activity, FindPair find_pair,
              FindRounds find_rounds, int32_t* next_block_id, int* next_name);

  /// `seeds`: variables whose adjoints the caller has assigned. After the returned blocks, present() has the
  /// parameters whose adjoints have a value.
  Result<std::vector<Block>> Write(const std::set<std::string>& seeds);
  const std::set<std::string>& present() const { return state_.present; }
  /// The function of FindRounds for a pair that is made, of `function`. The code of this object is empty.
  Result<Function> WriteRounds(const Function& function, const AdjointPair& pair,
                               const std::set<std::string>& varying);
  /// Gives the adjoint of a variable zeros, for whose size `forward` is told to look.
  /// Of a list, the step for that reads the list itself.
  void AddZeros(const std::string& variable, std::vector<Block>* forward, std::vector<Block>* backward);
  /// Puts variables into the list `name`, and takes them out again.
  void Pack(const std::string& name, const std::vector<std::string>& variables, std::vector<Block>* blocks);
  Status Unpack(const std::string& name, const std::vector<std::string>& variables,
                std::vector<Block>* blocks);
  /// Lets every way through the blocks assign the variables, which some assign.
  Status MakeDefinite(const std::vector<std::string>& variables, std::vector<Block>* blocks);
  const ValueInfo& TypeOf(const std::string& variable) const { return state_.TypeOf(variable); }
  std::string NewName(const ValueInfo& type) { return state_.NewName(type); }
  Block NewBlock(Block::Kind kind) const;

 private:
  // Blocks that the forward program runs before and after the one that is differentiated.
  struct InsertedBlocks {
    std::vector<Block> before, after;
  };
  // The innermost loop whose backward rounds are being written.
  struct Rounds {
    std::set<std::string> assigned;  ///< Variables of its body.
    std::vector<Block> before;       ///< The backward loop,
    std::vector<Block> after;        ///< and after it: calls that stand for those of all rounds,
    /// whose results are added to the adjoints of variables: (variable, result).
    std::vector<std::pair<std::string, std::string>> added;
  };
  Status ReverseBlocks(std::vector<Block>* forward, std::vector<Block>* backward);
  Status ReverseBlock(Block* block, InsertedBlocks* inserted, std::vector<Block>* backward);
  Status ReverseGraph(Block* block, std::vector<Block>* backward);
  Status ReverseIf(Block* block, InsertedBlocks* inserted, std::vector<Block>* backward);
  Status ReverseLoop(Block* block, InsertedBlocks* inserted, std::vector<Block>* backward);
  Status ReverseCall(Block* block, InsertedBlocks* inserted, std::vector<Block>* backward);
  // --- adjoint_rounds.cc
  // Gathers the arguments of a backward call instead of making it: one call after the loop stands for the
  // calls of all rounds. False where each round needs its own call.
  Result<bool> DeferCall(const Block& call, const Block& backward_call, const AdjointPair& pair,
                         std::vector<Block>* backward);
  // --- adjoint_list.cc: steps on lists. The adjoint of a list is a list of matrices.
  Status ReverseListStep(const Block& block, std::vector<Block>* backward);
  Status ReverseElement(const Block& step, std::vector<Block>* backward);
  Status ReversePart(const Block& step, std::vector<Block>* backward);
  /// A list of one element, this variable: what an assignment to an element that is a list takes.
  std::string Wrapped(const std::string& variable, std::vector<Block>* backward);
  void ReverseMake(const Block& step, std::vector<Block>* backward);
  Status ReverseAssign(const Block& step, std::vector<Block>* backward);
  Status ReverseAppend(const Block& step, std::vector<Block>* backward);
  void ReverseRemove(const Block& step, std::vector<Block>* backward);
  /// ReverseBlock matrix of all elements, or of some.
  void ReverseBind(const Block& step, std::vector<Block>* backward);
  /// Adds `given` to the adjoint of a variable.
  void AddTo(const std::string& variable, const std::string& given, std::vector<Block>* backward);
  /// Adds element `index` (a variable) of the list `adjoint` to the adjoint of a variable.
  void AddElementTo(const std::string& variable, const std::string& adjoint, const std::string& index,
                    std::vector<Block>* backward);
  std::string Number(int64_t value, std::vector<Block>* blocks);
  void CountDown(Block* loop, const std::string& tape, InsertedBlocks* inserted, Block* backward,
                 std::vector<Block>* blocks);
  std::set<std::string> CandidatesOf(const Block& loop) const;
  bool IsAnyPresent(const std::vector<std::string>& variables) const;
  Status MakeDefinite(const std::string& variable, std::vector<Block>* blocks);
  Block ListStep(ListOperation operation, std::vector<std::pair<std::string, std::string>> arguments,
                 std::string result) const;
  Status Refuse(const Block& block, std::string_view what) const;

  const Program& program_;
  SingleAssignment& code_;
  FindPair find_pair_;
  FindRounds find_rounds_;
  Rounds* rounds_ = nullptr;
  int32_t& next_block_id_;
  AdjointState state_;
  SourcePosition position_;  // of what is differentiated
};

}  // namespace heddle::compiler
