// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/programs/graph.h"
#include "ops/base/cell_codes.h"
#include "ops/base/kernel.h"
#include "ops/base/operator_traits.h"

namespace heddle::ops {

/// What shape inference may look at. `inputs[i].data_type` is kUnknown for an optional input left out.
/// `scalars[i]` is the value of a scalar input where it is known already (a literal, or a live-in at block
/// entry), else nullptr: sizes that depend on an unknown scalar stay kUnknown.
struct InferContext {
  const Node& node;
  std::span<const ValueInfo> inputs;
  std::span<const Scalar* const> scalars;
  Files* files =
      nullptr;  ///< Where `read` finds the size of its file; nullptr in passes that may not touch files.
  ElementType element_type = ElementType::kFloat64;  ///< Of matrices that are made of no other matrix.
};

/// How the rows of a distributed value meet an operator.
enum class RowRule : uint8_t {
  kWhole,     ///< Needs every input whole, on one rank.
  kRowWise,   ///< Row i of the result comes from row i of the kRows inputs (and from all of the kWhole
              ///< inputs).
  kReduce,    ///< kPartial: rows of the kRows inputs -> list of tree nodes; kFinish: all nodes -> result.
  kMixed,     ///< Several results, of which some come row by row as of kRowWise and the others are reductions
              ///< (Operator::reduces). kPartial: rows of the first, a list of tree nodes for each of the
              ///< others; kFinish: the others in their order, from all nodes of each.
  kGenerate,  ///< No matrix input: any range of rows of the result can be made on its own.
};
enum class InputUse : uint8_t { kWhole, kRows };

/// What an operator computes and moves on known shapes; NanosecondsOf (ops/base/machine_constants.h) says how
/// long that takes. A unit of work is one cell of a pass that multiplies two arrays in the cache, as of
/// FusionTraits::work; an operation of a factorization, whose steps wait for each other, counts as one.
struct Cost {
  double work = 0;
  double bytes = 0;
};

/// What an operator does itself with handles to row panels (core/values/row_panels.h), in place of matrices.
enum class PanelUse : uint8_t {
  kNone,      ///< Nothing: its kernel gets the rows that it needs.
  kReads,     ///< The kernel reads rows as it needs them, and makes no handle.
  kAppends,   ///< The same. Where rows pass in panels, its effect grows by each of them (AppendedWrite).
  kViews,     ///< The result is a handle to rows of its operands, which are read when somebody reads it.
  kComputes,  ///< The result is a handle to rows that the kernel computes from blocks of its operands.
};

/// Where the rows of a kGenerate operator come from, whose handle makes them when they are read
/// (ops/panels/panel_store.h).
struct RowOrigin {
  /// Whether making them takes longer than reading them from a spill file: numbers of text, compressed bytes.
  bool is_costly = false;
  std::string fingerprint = {};  ///< Of the file, whose change changes the rows; "": of nothing that changes.
};

struct Aggregate;   // ops/aggregate/aggregate.h
class DeviceQueue;  // ops/device/device.h
class AdjointCall;  // ops/base/adjoint.h
struct StagedForm;  // ops/base/stages.h

/// A set of storages of matrices: the sum of 1 << Storage.
enum class Storages : uint8_t { kDense = 1, kCsr = 2, kDenseAndCsr = 3 };
constexpr bool Takes(Storages storages, Storage storage) {
  return (static_cast<unsigned>(storages) >> static_cast<unsigned>(storage) & 1) != 0;
}

/// Everything the system knows about an operator: its file in ops/ ends in one value of this, which has a
/// line in ops/catalog.cc. A field that is left out says what most operators need. docs/adding-an-operator.md
/// shows how to write one.
struct Operator {
  std::string_view name;  ///< As DML spells it: "+", "%*%", "rowSums". Names in docs/architecture.md.

  // ---- How scripts call it (compiler/build).
  CallForm form = CallForm::kNone;
  /// Names of the inputs in their order, attributes among them (ParseParameters).
  std::string_view parameters = {};
  std::string_view aliases = {};   ///< Other names for calls, blanks between them.
  std::string_view overload = {};  ///< The operator that a call with more arguments than `parameters` means.
  std::string_view outer = {};     ///< Its name as the third argument of outer(); empty: not possible there.
  bool drops_last_input = false;   ///< A last input that is left out is no input, instead of kNoNode.

  // ---- What it computes.
  int min_inputs = 0;
  int max_inputs = 0;  ///< -1: any number.
  int results = 1;     ///< Of a call; -1: as many as infer_several finds.
  /// Type, size and format of the result; kInvalidArgument when the inputs cannot be (the caller adds the
  /// position). Exactly one of the two is set, as of `run` and `run_several`: the second of operators with
  /// several results, whose nodes are tuples (core/programs/graph.h).
  Result<ValueInfo> (*infer)(const InferContext& context) = nullptr;
  Result<std::vector<ValueInfo>> (*infer_several)(const InferContext& context) = nullptr;
  RowRule (*row_rule)(const Node& node, std::span<const ValueInfo> inputs) = nullptr;  ///< nullptr: kWhole
  /// Of kMixed: whether result `i` is a reduction.
  bool (*reduces)(const Node& node, size_t i) = nullptr;
  InputUse (*input_use)(const Node& node, std::span<const ValueInfo> inputs,
                        int i) = nullptr;                                 ///< nullptr: kWhole
  PanelUse (*panel_use)(const Graph& graph, const Node& node) = nullptr;  ///< Of a node of it. nullptr: kNone
  /// Of kGenerate, before any rows are made: fails as reading them does where the file is not there. nullptr:
  /// as RowOrigin is without anything.
  Result<RowOrigin> (*row_origin)(const Node& node, std::span<const Value* const> inputs,
                                  const KernelContext& context) = nullptr;
  const StagedForm* staged = nullptr;  ///< How all ranks compute it in stages, by columns or in parts:
                                       ///< ways that stand behind each other (StagedForm::other).
  Cost (*cost)(const Node& node, std::span<const ValueInfo> inputs) = nullptr;  ///< nullptr: reads + writes
  /// Computes call.phase: kWhole everything (for kReduce: kPartial, then kFinish), kPartial, kFinish.
  Result<Value> (*run)(const KernelCall& call) = nullptr;
  /// The same, with a value for each result, in their order; of kReduce "partial" makes one list of tree
  /// nodes, whose payload is the operator's own, and "finish" all results from it. kRowWise: every result is
  /// cut alike.
  Status (*run_several)(const KernelCall& call, std::span<Value> results) = nullptr;
  /// The same as `run`, of phases kWhole and kPartial, from codes and dictionaries of the compressed matrices
  /// among the inputs (core/values/column_groups.h); nothing for a call that it leaves to `run`, which then
  /// gets their rows decoded (docs/compression.md). nullptr: it leaves all.
  Result<std::optional<Value>> (*run_compressed)(const KernelCall& call) = nullptr;
  /// The same as `run`, of phases kWhole and kPartial, by commands to a device: dense matrices among the
  /// inputs are in its memory, and so is the result. Returns when the commands are queued. Nothing for a call
  /// that it leaves to `run`. nullptr: what fused operators are made of runs there as they do
  /// (docs/devices.md).
  Result<std::optional<Value>> (*run_on_device)(const KernelCall& call, DeviceQueue& queue) = nullptr;
  bool effect =
      false;  ///< Prints, writes, stops: acts exactly once, on rank 0, in script order, never removed.
  bool may_fail = false;  ///< Can fail on values (not shapes): kept in script order with the effects.
  bool pure = true;       ///< Same inputs give the same result: common subexpressions may share it.
  bool updates = false;   ///< Writes over its first input where it is the last to read it
                          ///< (KernelCall::last_read): comes after the others that read it, then.
  /// True if `run` takes and makes the cells of this call as they are, floats too; nullptr: never. Elsewhere
  /// it knows doubles, and cells of a single-precision program are widened for it
  /// (ops/elementwise/single_precision.h).
  bool (*takes_singles)(const KernelCall& call) = nullptr;
  /// `infer` tells the element types of results; else they are those of the first matrix among the inputs.
  bool infers_element_types = false;
  /// Storages of matrices that `run` takes; what is stored otherwise is converted before
  /// (ops/cells/stored_inputs.h).
  Storages storages = Storages::kDenseAndCsr;
  bool takes_frames = false;  ///< Some input may be a frame; elsewhere frames are refused before `infer`.
  /// Bytes that `run` holds at least beside its inputs and its result, all shapes known; nullptr: little. A
  /// plan that has no room for them is refused before it runs.
  double (*working_bytes)(const Node& node, std::span<const ValueInfo> inputs) = nullptr;

  // ---- On scalars, where it is defined there (ops/scalar/evaluate_scalar.h); else nullptr.
  Result<ValueType> (*scalar_type)(const Operator& op, std::span<const ValueType> inputs) = nullptr;
  Result<Scalar> (*evaluate)(const Operator& op, const Node& node,
                             std::span<const Scalar* const> inputs) = nullptr;
  /// Of nrow and its like: the value, kUnknown while it is not known. Needs the shape of its input only.
  int64_t (*size_of)(const Shape& shape) = nullptr;

  // ---- For rewrites and fusion (compiler/optimize, compiler/fuse).
  OperatorKind kind = OperatorKind::kOther;
  Role role = Role::kNone;
  std::optional<BinaryCode> binary = {};  ///< Cell-wise on two operands: its kernel.
  std::optional<UnaryCode> unary = {};    ///< Cell-wise on one operand: its kernel.
  const Aggregate* aggregate = nullptr;
  bool function = false;  ///< A cell takes 15 to 40 operations: worth computing once before a loop.
  int seed_input = -1;  ///< Of operators that draw: the input that is the seed. Without one, or with -1, the
                        ///< result also depends on the job's seed and on what ran before.
  bool files = false;   ///< Reads or writes files: takes as long as they take.
  std::string_view total = {};       ///< Of x = x op y, y differing by round: the aggregate of all y ("sum").
  std::string_view of_rows = {};     ///< Of a full aggregate: the same of each row, and
  std::string_view of_columns = {};  ///< of each column.
  FusionTraits fusion = {};
  /// Cell-wise operators whose rule is not that of `binary` and `unary`: true if the result is zero at a
  /// cell, whatever the other operands hold there.
  bool (*vanishes)(const CellOperands& operands) = nullptr;

  // ---- For derivatives (compiler/gradient, docs/gradient.md). An operator that says none of these has none.
  /// Of a cell-wise function y of one input x: its derivative in DML, "exp(x)", "y * (1 - y)".
  std::string_view derivative = {};
  /// The adjoint of each input in DML, ";" between them; the last is that of all further inputs. The inputs
  /// have their names of `parameters`, the result is y, its adjoint dy. "0": the result does not change with
  /// this input, or only in steps. "*": `differentiate` gives it. sumTo(g, a) sums what broadcasting of `a`
  /// has repeated, spreadTo(g, X) repeats what an aggregate of X has summed.
  std::string_view adjoints = {};
  void (*differentiate)(AdjointCall& call) = nullptr;
};

/// == != < <= > >=
inline bool IsComparison(const Operator& op) {
  return op.binary && *op.binary >= BinaryCode::kLess && *op.binary <= BinaryCode::kNotEqual;
}

/// For Operator::takes_singles: whatever the call.
inline bool TakesAnySingles(const KernelCall&) { return true; }

/// nullptr when there is no operator of that name.
const Operator* FindOperator(std::string_view name);
/// What scripts can call by this name, an alias too; nullptr when there is nothing. An operator without
/// inference ("outer") is a form of call only, which the front end writes in other operators.
const Operator* FindBuiltin(std::string_view name);
/// All names that FindBuiltin knows, without aliases, in alphabetical order.
std::vector<std::string> BuiltinNames();
/// All operators, forms of call included.
std::span<const Operator* const> AllOperators();

/// FindOperator + infer, with defaults for the callbacks that an operator leaves out. Of an operator with
/// several results a tuple, and what they are in `results`, which is left empty else.
Result<ValueInfo> Infer(const InferContext& context, std::vector<ValueInfo>* results);
/// The same for operators of one result.
Result<ValueInfo> Infer(const InferContext& context);
RowRule RowRuleOf(const Node& node, std::span<const ValueInfo> inputs);
OperatorKind KindOf(const Node& node);  ///< kOther for the nodes that are no operators.
Role RoleOf(const Node& node);          ///< kNone for those.
/// Whether the node is an operator of that role, or of one of them. Compares its name with those of the
/// operators of the role, mostly a single one, which takes less time than to find the operator.
bool HasRole(const Node& node, Role role);
bool HasRole(const Node& node, std::initializer_list<Role> roles);
bool IsSize(const Node& node);                              ///< nrow, ncol and length of a value.
RowUse RowUseOf(const Node& node);                          ///< kNone for those.
PanelUse PanelUseOf(const Graph& graph, const Node& node);  ///< kNone for those.
InputUse InputUseOf(const Node& node, std::span<const ValueInfo> inputs, int i);
Cost CostOf(const Node& node, std::span<const ValueInfo> inputs);
/// KernelCall::total_rows of a call on whole values: of the dimension that the row rule would cut.
int64_t TotalRowsOf(const Operator& op, const Node& node, std::span<const ValueInfo> inputs);
/// 0 where a shape is not known.
double WorkingBytesOf(const Node& node, std::span<const ValueInfo> inputs);

/// op.run, op.run_several or the stage of op.staged that the call names, on inputs that it takes as they are.
Status RunOperator(const Operator& op, const KernelCall& call, std::span<Value> results);

/// A scalar operator on known scalars: used by constant folding, by scalar blocks and by kernels, one
/// definition (R5). kUnimplemented if `op` is not defined on scalars.
Result<Scalar> EvaluateScalar(const Node& node, std::span<const Scalar* const> inputs);

}  // namespace heddle::ops
