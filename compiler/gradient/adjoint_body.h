// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/gradient/adjoint_graph.h"

namespace heddle::compiler {

/// The two functions that a call becomes: one that also gives what the other needs, and that other.
struct AdjointPair {
  std::string forward;
  std::string backward;
  std::vector<Parameter> kept;             ///< What `forward` returns behind the results.
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

/// Writes the adjoint of a function's body (in single assignment): blocks that run behind it, in its reverse
/// order. The body then keeps what these read: values of straight-line code in variables, those of the rounds
/// of a loop in a list, the way of a branch in a variable.
class AdjointBody {
 public:
  AdjointBody(const Program& program, SingleAssignment* code, const Activity& activity, FindPair find_pair,
              FindRounds find_rounds, int32_t* next_block_id, int* next_name);

  /// `seeds`: variables whose adjoints the caller has assigned. Behind the blocks, present() has those of
  /// parameters.
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
  struct Around {
    std::vector<Block> before, behind;
  };
  /// The innermost loop whose rounds are written.
  struct Rounds {
    std::set<std::string> assigned;  ///< Variables of its body.
    std::vector<Block> before;       ///< The backward loop,
    std::vector<Block> behind;       ///< and behind it: calls that stand for those of all rounds,
    /// whose results are added to the adjoints of variables: (variable, result).
    std::vector<std::pair<std::string, std::string>> added;
  };
  Status Region(std::vector<Block>* forward, std::vector<Block>* backward);
  Status One(Block* block, Around* around, std::vector<Block>* backward);
  Status OfGraph(Block* block, std::vector<Block>* backward);
  Status OfIf(Block* block, Around* around, std::vector<Block>* backward);
  Status OfLoop(Block* block, Around* around, std::vector<Block>* backward);
  Status OfCall(Block* block, Around* around, std::vector<Block>* backward);
  // --- adjoint_rounds.cc
  /// The backward call of a round, put off until the loop has ended. False where each round needs its own.
  Result<bool> PutOff(const Block& call, const Block& backward_call, const AdjointPair& pair,
                      std::vector<Block>* backward);
  // --- adjoint_list.cc: steps on lists. The adjoint of a list is a list of matrices.
  Status OfList(const Block& block, std::vector<Block>* backward);
  Status OfElement(const Block& step, std::vector<Block>* backward);
  Status OfPart(const Block& step, std::vector<Block>* backward);
  /// A list of one element, this variable: what an assignment to an element that is a list takes.
  std::string Wrapped(const std::string& variable, std::vector<Block>* backward);
  void OfMade(const Block& step, std::vector<Block>* backward);
  Status OfAssigned(const Block& step, std::vector<Block>* backward);
  Status OfAppended(const Block& step, std::vector<Block>* backward);
  void OfRemoved(const Block& step, std::vector<Block>* backward);
  /// One matrix of all elements, or of some.
  void OfBound(const Block& step, std::vector<Block>* backward);
  /// Adds `given` to the adjoint of a variable.
  void AddTo(const std::string& variable, const std::string& given, std::vector<Block>* backward);
  /// Adds element `index` (a variable) of the list `adjoint` to the adjoint of a variable.
  void AddElementTo(const std::string& variable, const std::string& adjoint, const std::string& index,
                    std::vector<Block>* backward);
  std::string Number(int64_t value, std::vector<Block>* blocks);
  void Reverse(Block* loop, const std::string& tape, Around* around, Block* backward,
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
