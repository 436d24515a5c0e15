// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/blocks/block_builder.h"
#include "compiler/build/paramserv.h"
#include "compiler/build/program_builder.h"
#include "ops/base/operator.h"

namespace heddle::compiler {

/// The call of a DML function whose only result a variable is, with the places at which its arguments were
/// assigned: they are the same values as long as these are the last.
struct MadeBy {
  const DmlFunction* function = nullptr;
  std::vector<std::pair<std::string, std::string>> arguments;  ///< As of Block::arguments.
  std::vector<SourceRange> assigned_at;
};

/// A variable as far as it is known at one place of the script.
struct Variable {
  LiveIn known;  ///< Type without sizes, and the value of a scalar that straight-line code gave it.
  SourceRange assigned_at;
  bool numbers_rows = false;  ///< The column 1, 2, ..., n, as seq(1, n) makes it, whatever the way here.
  bool is_tensor = false;     ///< The scalar that all cells of a tensor are (tensors.cc).
  std::string conflict;       ///< Not "": two ways here give it types that do not go together; said if read.
  std::shared_ptr<const MadeBy> made_by;  ///< nullptr: not known.
  std::string lineage_of;                 ///< The variable whose lineage() it is.
};
/// What a reader of the script calls it.
std::string_view TypeName(const Variable& variable);
/// The variable with the dimensions of a tensor.
std::string TensorDims(const std::string& variable);
using Scope = std::map<std::string, Variable, std::less<>>;

/// What tensors are good for; a note of errors.
constexpr std::string_view kTensorsOfOneValue =
    "a tensor is tensor(value, dims), one value in all cells, as in SystemDS; sum(A), toString(A) and the "
    "arithmetic of two tensors take it";

/// Builtins that are steps of the control program (lists.cc), no operators.
constexpr std::string_view kListBuiltins[] = {"as.list", "exists", "list", "remove"};

/// Calls that choose a function of DML by what their arguments say (FunctionTable's Callee).
constexpr std::string_view kOtherCalls[] = {"eval", "evalList", "gradient", "paramserv"};

/// What a call runs, as far as the types of its arguments tell when the script is compiled.
struct CallChoice {
  /// One of these, by the type of the first argument.
  std::vector<std::pair<DataType, const DmlFunction*>> functions;
  std::vector<const Argument*> arguments;
  bool is_eval = false;     ///< Names of arguments count for nothing, the result becomes a matrix.
  bool gives_list = false;  ///< evalList(): the result is a list of all results.
  std::string selector;     ///< Of eval: variable with the name of the function; then `functions` is empty.
  DataType first_argument = DataType::kUnknown;  ///< Of eval: the type of the argument behind the name.
  /// Of gradient(): parameters whose derivatives come behind the results of the function.
  std::vector<const ParameterDefinition*> by;

  /// The only argument of eval may be a list, whose elements are the arguments.
  bool MayExpand() const {
    return is_eval && arguments.size() == 1 &&
           (first_argument == DataType::kList || first_argument == DataType::kUnknown);
  }
};

/// Builds the blocks of one body: the main script or a function. See the .cc files for its parts.
class BodyBuilder {
 public:
  BodyBuilder(ProgramBuilder* program, int32_t file, std::string function);

  /// The main script finds these variables. Before BuildMain.
  void GoOnWith(const std::vector<GivenVariable>& given);
  std::vector<Block> BuildMain(std::span<const Statement> statements);
  /// Variables of the script that may have a value behind it, and the value of an expression alone.
  std::vector<std::string> NamesToKeep() const;
  std::vector<Block> BuildFunction(const FunctionDefinition& definition);
  /// Defaults that have to be computed, where PresenceOf() a parameter is false, and a call of the function.
  std::vector<Block> BuildForList(const DmlFunction& function);
  /// A call of a function with all values that its parameters may have.
  Block BuildAnyCall(const DmlFunction& function);

 private:
  // --- statements.cc: statements into blocks
  void BuildStatements(std::span<const Statement> statements);
  void BuildStatement(const Statement& statement);
  void BuildAssign(const Statement& statement);
  void BuildMultiAssign(const Statement& statement);
  void BuildAccumulate(const Statement& statement);
  void BuildIfdef(const Statement& statement);
  void BuildCallStatement(const Statement& statement);
  void CallWithoutResult(const Expression& call, const CallChoice& choice,
                         const std::vector<Target>& targets);
  void AssignTo(const Target& target, NodeId value);

  // --- control.cc: if and loops
  void BuildIf(const Statement& statement);
  void BuildWhile(const Statement& statement);
  void BuildFor(const Statement& statement);
  std::vector<Block> BuildBody(const std::vector<Statement>& statements, const Statement* decided = nullptr,
                               const std::string& decision = "");
  void AssignDecision(const Statement& loop, const std::string& decision);
  NodeId BuildDecidingValue(const Statement& statement);
  Graph BuildPredicate(const Statement& statement);
  Graph BuildBounds(const Statement& statement);
  void JoinScopes(const Scope& other);
  void ForgetAssigned(const std::vector<Statement>& body);
  void CheckLoopTypes(const Statement& loop, const Scope& before);
  void BuildParallelBody(const Statement& statement, Block* block);

  // --- expressions.cc
  NodeId BuildExpression(const Expression& expression);
  NodeId BuildBinary(const Expression& expression);
  NodeId BuildBinary(const Expression& left, std::string_view name, const Expression& right,
                     const SourceRange& range);
  NodeId BuildUnary(const Expression& expression);
  NodeId BuildIndexed(const Expression& expression);
  NodeId BuildParameter(const Expression& expression);
  void BuildIndex(const Index& index, std::vector<NodeId>* inputs);
  NodeId BuildIndexBound(const Expression& expression);
  NodeId ReadVariable(const std::string& name, const SourceRange& range);
  std::optional<Scalar> FindScriptArgument(const std::string& name) const;
  void ReportMissingArgument(const std::string& name, const SourceRange& range);
  NodeId ErrorNode(const SourceRange& range);

  // --- any_arguments.cc: values that the command line or a caller may give
  NodeId AnyValue(DataType type, const SourceRange& range);
  bool MayBeAnything(NodeId node) const;
  bool IsOpenArgument(const std::string& name) const;
  bool IsTransposeCall(const Expression& expression) const;

  // --- choose_function.cc: which functions a call may mean
  std::optional<CallChoice> ChooseFunctions(const Expression& call, const Callee& callee);
  std::optional<CallChoice> ChooseByName(const Expression& call);
  bool ChooseEntryPoints(const Expression& call, const Callee& callee, CallChoice* choice);
  DataType TypeOf(const Argument& argument);

  // --- paramserv.cc
  std::optional<CallChoice> ChooseParamserv(const Expression& call);
  const DmlFunction* FindParamservFunction(const Expression& call, std::string_view name, ParamservRole role,
                                           bool optional);
  bool CheckParamservArguments(const CallChoice& choice);

  // --- gradient_call.cc
  std::optional<CallChoice> ChooseGradient(const Expression& call);
  std::optional<std::string> NameOfFunction(const Expression& name);
  void ReportGradientCount(const Expression& call, const CallChoice& choice, size_t targets);
  bool ReadGradientParameters(const Expression& by, const DmlFunction& function, CallChoice* choice);

  // --- auto_diff.cc
  bool BuildLineage(const Statement& statement);
  SourceRange AssignedAt(const std::string& variable) const;
  void RememberCall(const std::string& variable, const CallChoice& choice);
  void BuildAutoDiff(const Statement& statement);
  const MadeBy* CallOfLineage(const Expression& lineage) const;

  // --- calls.cc: calls of DML functions, and what else stands before the block of an expression
  void HoistCalls(const Expression& expression);
  void HoistInside(const Expression& expression);
  void HoistIndex(const Index& index);
  void FindEarlyReads(const Statement& statement);
  void FindEarlyReads(const Expression& expression, std::vector<const Expression*>* open);
  void FindEarlyReads(const Index& index, std::vector<const Expression*>* open);
  void ForbidCalls(const Expression& expression, std::string_view where);
  bool EmitCall(const Expression& call, const CallChoice& choice, std::vector<std::string> results);
  bool PassArguments(const Expression& call, const CallChoice& choice, Block* block);
  bool PassToCandidates(const Expression& call, const CallChoice& choice, Block* block);
  void BindResult(const Expression& call, const DmlFunction& function, const ParameterDefinition& result,
                  const std::string& given, const std::string& name);
  void BindResultOfCandidates(const Expression& call, const CallChoice& choice, size_t result,
                              const std::string& given, const std::string& name);
  bool BindArguments(const Expression& call, const CallChoice& choice, const DmlFunction& function,
                     std::vector<const Argument*>* bound);
  std::string PassArgument(const Expression& call, const DmlFunction& function,
                           const ParameterDefinition& parameter, const Argument& argument);
  std::string PassDefault(const Expression& call, const DmlFunction& function,
                          const ParameterDefinition& parameter,
                          const std::vector<std::pair<std::string, std::string>>& passed);
  NodeId ConvertArgument(const Expression& call, const DmlFunction& function,
                         const ParameterDefinition& parameter, NodeId value, const SourceRange& range);
  bool TakesDeclared(const Expression& call, const ParameterDefinition& parameter, NodeId value,
                     const SourceRange& range);
  std::string PassNode(NodeId node, const SourceRange& range);
  void ReportUnknownFunction(const Expression& call);
  void SuggestFunction(const std::string& name, const std::vector<std::string>& natives,
                       Diagnostic* diagnostic) const;
  void ReportConflict(const Variable& variable);
  std::string NewTemporary();

  // --- lists.cc: steps on lists
  bool BuildListStatement(const Statement& statement);
  void BuildRemove(const Statement& statement);
  bool IsListVariable(const std::string& name) const;
  bool IsList(const Expression& expression) const;
  bool IsPick(const Expression& call, const Expression& argument) const;
  std::optional<ListOperation> ListOperationOf(const Expression& expression) const;
  void EmitListStep(const Expression& expression, ListOperation operation, const std::string& result);
  void HoistListStep(const Expression& expression);
  bool RequireList(const Expression& operand, std::string_view message);
  void EmitListAssign(const Target& target, const std::string& value);
  void EmitStep(Block step, std::vector<std::string> results, const SourceRange& range);
  std::string PassIndexedList(const Expression& indexed);
  bool PassListIndex(const Index& index, Block* step);
  bool PassListCall(const Expression& call, Block* step);
  // list_files.cc: lists in folders.
  bool ReadsList(const Expression& call) const;
  bool PassListRead(const Expression& call, Block* step);
  void BuildListWrite(const Expression& call);
  bool PassToString(const Expression& call, Block* step);
  bool PassExists(const Expression& call, Block* step);
  std::string PassOperand(const Expression& expression);

  // --- builtin_calls.cc, builtin_statements.cc: native builtins
  NodeId BuildBuiltin(const Expression& call, const ops::Operator& builtin);
  /// The node of the call, whether it has one result or is a tuple.
  NodeId BuildBuiltinNode(const Expression& call, const ops::Operator& builtin);
  std::vector<NodeId> BuildSameAndTypes(const Expression& call, const ops::Operator& builtin);
  std::vector<NodeId> BuildTuple(const Expression& call, const ops::Operator& builtin, size_t count);
  void BuildBuiltinResults(const Statement& statement, const ops::Operator& builtin);
  NodeId BuildPositional(const Expression& call, const ops::Operator& builtin);
  NodeId BuildNamed(const Expression& call, const ops::Operator& builtin);
  NodeId BuildVariadic(const Expression& call, const ops::Operator& builtin);
  NodeId BuildMinMax(const Expression& call, const ops::Operator& builtin);
  void NumbersOfTexts(std::vector<NodeId>* inputs);
  NodeId BuildOuter(const Expression& call);
  NodeId BuildTable(const Expression& call);
  NodeId BuildSame(const Expression& call, const ops::Operator& builtin);
  NodeId BuildQuantized(const Expression& call);
  NodeId BuildSample(const Expression& call, const ops::Operator& builtin);
  bool NumbersRows(NodeId node);
  NodeId BuildRead(const Expression& call);
  /// What a file holds is part of the types of a script: a scalar if its metadata say so.
  void AddTypeInMetadata(const std::string& path,
                         std::vector<std::pair<std::string, Scalar>>* attributes) const;
  void BuildWrite(const Expression& call);
  void BuildPrint(const Expression& call);
  void BuildStopOrAssert(const Expression& call, const ops::Operator& builtin);
  std::vector<NodeId> BuildArguments(const Expression& call);
  bool CheckCount(const Expression& call, size_t least, size_t most);
  bool BindNamed(const Expression& call, const std::vector<ops::OperatorParameter>& parameters,
                 std::vector<const Argument*>* bound);
  bool BuildElements(const Expression& call, const Argument& argument, std::string_view name,
                     std::vector<NodeId>* nodes);
  std::optional<Scalar> JoinTexts(const Expression& list);
  NodeId JoinElements(const Expression& list, std::string_view between);
  NodeId BuildInput(const ops::Operator& builtin, const ops::OperatorParameter& parameter,
                    const Expression& value);
  std::optional<Scalar> ConstantOf(const Expression& call, const Argument& argument, std::string_view name);

  // --- tensors.cc
  struct TensorNodes {
    NodeId value = kNoNode;  ///< The scalar that all cells are.
    NodeId dims = kNoNode;   ///< A text of numbers.
  };
  bool IsTensor(const Expression& expression) const;
  bool TakesTensor(const Expression& call) const;
  std::optional<TensorNodes> BuildTensor(const Expression& expression);
  void AssignTensor(const Target& target, const Expression& value);
  NodeId BuildOfTensor(const Expression& call);
  NodeId RefuseTensor(const SourceRange& range);

  // --- column_function.cc: transforms whose spec names a function
  std::optional<std::string> KnownText(const Expression& expression) const;
  bool HasColumnFunction(const Expression& call) const;
  NodeId BuildTransformAlone(const Expression& call);
  void ApplyColumnFunction(const Expression& call, const std::string& encoded, const std::string& metadata);
  void BuildEncodeWithFunction(const Statement& statement);
  void HoistApplyWithFunction(const Expression& call);

  // --- shared
  Diagnostic& Error(const SourceRange& range, std::string message);
  SourcePosition At(const SourceRange& range) const { return range.Position(*path_); }
  const ValueInfo& InfoOf(NodeId id) const { return block_.InfoOf(id); }
  /// The variable that stands for a name of the script here (a local one inside parfor).
  const std::string& VariableFor(const std::string& name) const;
  void Define(const std::string& name, NodeId value, const SourceRange& range);
  void DefineAs(const std::string& name, LiveIn known, const SourceRange& range);
  Block NewBlock(Block::Kind kind, const SourceRange& range);
  /// Ends the current straight-line block.
  void Flush();

  ProgramBuilder& program_;
  int32_t file_;
  const std::string* path_;     // of file_
  const std::string function_;  // "" in the main script
  std::vector<Block> blocks_;
  BlockBuilder block_;
  SourcePosition block_position_;
  Scope scope_;
  std::map<std::string, std::string, std::less<>> renamed_;  // locals of a parfor
  std::map<const Expression*, std::string> hoisted_;         // call or step -> temporary with its result
  std::map<const Expression*, NodeId> built_arguments_;      // of the next call, made before their turn
  const Expression* function_comes_after_ = nullptr;         // a transform whose columns are made afterwards
  std::set<const Expression*> early_reads_;                  // of the statement; calls that are hoisted, too
  std::set<std::string> reported_undefined_;
  std::set<std::pair<Place, std::string>> reported_conflicts_;
};

/// "x = f(...)", "[a, b] = f(...)": how a script takes the results of a call.
std::string AssignmentOf(std::string_view name, int results);

/// How many results a call has, whatever it runs.
size_t ResultsOf(const CallChoice& choice);

/// Names assigned anywhere in these statements, loop variables included.
std::set<std::string> AssignedNames(const std::vector<Statement>& statements);

}  // namespace heddle::compiler
