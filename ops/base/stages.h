// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/programs/distribution.h"
#include "ops/base/operator.h"
#include "ops/base/packed_triangle.h"

// Operators that all ranks compute together in several stages, with an exchange of values between one stage
// and the next: order, cumsum, table with many cells (docs/distribution.md). A stage of a rank never waits:
// it is a task that acts when what it reads has arrived.
namespace heddle::ops {

/// To which ranks a value goes that a stage makes.
enum class Reach : uint8_t {
  kHere,   ///< To the next stage of the same rank.
  kAll,    ///< To every rank, which gets those of all ranks as one value: their rows one below the other, in
           ///< the order of the ranks. A matrix or frame of few rows, with the same columns on every rank.
  kParts,  ///< One value for each rank: rank r gets the r-th of every rank, in the order of the ranks. A
           ///< matrix or frame; one without rows costs a message.
  kNext,  ///< To the next rank, which computes the same stage when it is there (StageCall::before): ranks one
          ///< after the other, where an order of operations runs through all rows. Only as the last output.
  kFromLast,      ///< Only the last rank makes anything: one value for each rank. Only as the last output.
  kRowParts,      ///< As kParts among the ranks of a row of the grid (RankGrid): one value for each of them.
  kRowCopies,     ///< One value, for every rank of the row, which gets those of all of them, in their order.
  kColumnCopies,  ///< The same among the ranks of a column of the grid.
};

/// The ranks in rows and columns, a rank in each place: rank r is in row r / columns and column r % columns.
/// So the rows of a split value that the ranks of a row have follow each other.
struct RankGrid {
  int32_t ranks = 1;
  int32_t columns = 1;

  int32_t rows() const { return ranks / columns; }
  int32_t RowOf(int32_t rank) const { return rank / columns; }
  int32_t ColumnOf(int32_t rank) const { return rank % columns; }
  int32_t At(int32_t row, int32_t column) const { return row * columns + column; }
};
/// The attribute of a node in a plan that tells the columns of its grid; without it there is one.
constexpr std::string_view kGridColumns = "grid.columns";
RankGrid GridOf(const Node& node, int32_t ranks);

/// One stage. It reads what the stage before it has made for its rank, and nothing of earlier ones: what a
/// later one needs is handed on as kHere, which copies nothing.
struct Stage {
  std::span<const Reach> outputs = {};  ///< Of the last stage none: it makes the results of the node.
  bool reads_inputs = false;            ///< This rank's pieces of the inputs of the node; the first does.
};

/// How many values a rank makes as such an output, and how many it gets of it.
size_t ValuesMade(Reach reach, const RankGrid& grid, int32_t rank);
size_t ValuesReceived(Reach reach, const RankGrid& grid);
/// How many values a rank makes in a stage that is not the last one.
size_t ValuesMade(const Stage& stage, const RankGrid& grid, int32_t rank);

/// Whether the ranks compute it one after the other.
constexpr bool HandsOn(const Stage& stage) {
  return !stage.outputs.empty() && stage.outputs.back() == Reach::kNext;
}

/// How the results of the last stage lie on the ranks.
enum class StagedResult : uint8_t {
  kSameRows,     ///< As many rows as the inputs that are read by rows, cut as these are.
  kRows,         ///< Rows at the cuts of Distribution::SplitRows (StageCall::result_rows).
  kUneven,       ///< Rows, in the order of the ranks; how many each rank has, the stage finds.
  kEach,         ///< The same whole value on every rank.
  kSameColumns,  ///< As many columns as the inputs that are read by columns, cut as these are.
  kTurned,    ///< Columns where the inputs are read by rows, rows where they are read by columns, at the cuts
              ///< of these: the transposed of what each rank has.
  kFinished,  ///< None, of an effect: the last stage makes one list, and of the lists of all ranks, as of a
              ///< reduction, Operator::run makes the effect on rank 0 (Phase::kFinish).
  kColumns,   ///< Columns at the cuts of Distribution::SplitRows of as many (StageCall::result_rows).
};

/// How the nodes of a reduction's tree (RowRule::kReduce) are cut where its result is large, so that each
/// rank finishes a part of it and no rank receives all lists (docs/distribution.md). A *unit* is what stays
/// together: a row of the result, or a column of a result that is one row.
struct PayloadUnits {
  int64_t count = 0;      ///< Less than 2: there is nothing to cut.
  double bytes = 0;       ///< Of the payload of a node, all units together.
  bool triangle = false;  ///< Unit i has count - i cells, those from the diagonal on; else all have as many.
  bool by_rows = false;   ///< Finished parts are rows of the result. Else each is a column of its cells, and
                          ///< kAssembleParts makes the result of all of them.
  /// A list has a row for each node, so that a node takes the memory of its payload wherever it is. Else it
  /// has rows for what occurs in the rows of a node, as of groups.
  bool is_row = true;
  /// Rows of the finished parts of all units before `unit`.
  int64_t RowsBefore(int64_t unit) const { return triangle ? CellsBeforeRow(count, unit) : unit; }
};
/// The stages of a reduction in parts, of which the plan uses as many as it needs, in the order that it needs
/// (scheduler/plan_collectives.cc). What they read are lists of tree nodes of all units, as "partial" makes
/// them, or what kJoinParts has made of such lists.
enum ReductionStage : int32_t {
  kJoinParts,      ///< Lists -> their nodes for units [begin, end), joined as far as the tree allows. Of all
                   ///< units, where PayloadUnits::is_row: lists as "partial" makes them -> such a list.
  kFinishPart,     ///< The lists of all ranks, for units [begin, end) at least -> these units of the result.
  kAssembleParts,  ///< The finished parts of all units, one below the other -> the result.
};
constexpr int32_t kStagesOfReduction = 3;
/// Several results of an operator are reductions, each with stages of its own, behind each other: stage s of
/// result i has number kStagesOfReduction * i + s.
constexpr int32_t kMostReducedResults = 64;
inline constexpr Stage kReductionStages[kStagesOfReduction * kMostReducedResults] = {};

struct StageCall;

/// A distributed form of an operator: of one whose row rule is kWhole the only ones, of another what may cost
/// less, or fit, where the row rule needs a large input whole on every rank, and what it does by columns. The
/// bytes of the results, put together, are those of Operator::run, whatever the number of ranks and the cuts.
///
/// Where the row rule of an operator does not share it out (no input that it reads by rows is large, and
/// neither is the result) but a form would, the result is small and is made whole on the last rank: the form
/// has the last rank's cuts for all rows (StageCall::result_rows), and a grid has one row.
///
/// Or the parts of a reduction, beside its row rule (`units`).
struct StagedForm {
  std::span<const Stage> stages;
  StagedResult result = StagedResult::kRows;  ///< How the first result lies.
  bool all_alike = false;  ///< All results lie as the first does; else each rank has the others whole.
  /// Of what each rank has its own, of the inputs that the form reads in parts. By columns `input_use` is
  /// given, and its kRows means the columns (ops/base/columns.h).
  Axis axis = Axis::kRows;
  /// True where cuts must be multiples of the granule of rows (core/values/panels.h), or of a column chunk.
  bool needs_granules = false;
  bool on_grid = false;       ///< It uses the grid, whose columns the plan chooses,
  int32_t least_columns = 1;  ///< at least so many.
  /// Of a form by columns: bit i for an input i of which each rank has rows instead, at the cuts of the
  /// columns: the right operand of a product. `input_use` says kWhole of it.
  uint32_t crossed_inputs = 0;
  const StagedForm* other = nullptr;  ///< Another way of the same operator, which may cost less.
  /// Whether this call has the form; nullptr: every one has.
  bool (*applies)(const Node& node, std::span<const ValueInfo> inputs) = nullptr;
  /// Which inputs are read by rows, each rank its own; nullptr: as Operator::input_use says. The others are
  /// whole on every rank. Inputs with as many rows as the first of them are cut as it is; those with other
  /// rows at the cuts of Distribution::SplitRows, which are granules (StageCall::RowsOf).
  InputUse (*input_use)(const Node& node, std::span<const ValueInfo> inputs, int i) = nullptr;
  /// Bytes that all ranks together send at exchanges of rows: all but kHere and kAll; nullptr: none.
  double (*moved_bytes)(const Node& node, std::span<const ValueInfo> inputs, const RankGrid& grid) = nullptr;
  /// About the most bytes that a rank holds at once, its pieces of inputs and results included; nullptr: not
  /// much more than those.
  double (*held_bytes)(const Node& node, std::span<const ValueInfo> inputs, const RankGrid& grid) = nullptr;
  /// Of a reduction, whose `stages` are kReductionStages: how its result i is cut. nullptr: it is none.
  PayloadUnits (*units)(const Node& node, std::span<const ValueInfo> inputs, size_t i) = nullptr;
  /// Computes one stage into `outputs`: for every output in its order one value, of kParts one for each rank;
  /// of the last stage, the results of the node. Errors carry no position, as of kernels.
  Status (*run)(const StageCall& call, std::span<Value> outputs) = nullptr;
};

/// One stage of one rank.
struct StageCall {
  const StagedForm& form;
  const Node& node;
  std::span<const ValueInfo> input_infos;  ///< Of the whole values of node.inputs.
  int32_t stage = 0;                       ///< Its place in form.stages; of a reduction the ReductionStage,
  size_t result = 0;                       ///< and of which result.
  int32_t rank = 0;
  const Split& rows;                       ///< How the inputs that are read in parts are cut.
  const Split& result_rows;                ///< How the results are cut; of kUneven and kEach without cuts.
  std::span<const Value* const> inputs;    ///< This rank's pieces, nullptr for one left out; empty if the
                                           ///< stage does not read them.
  std::span<const Value* const> received;  ///< Behind each other: of kHere and kAll one value, of kParts one
                                           ///< from each rank.
  const Value* before = nullptr;           ///< Of a stage with kNext: what the rank before has made as that
                                           ///< output; nullptr on rank 0.
  int64_t begin = 0, end = 0;              ///< Units of a reduction's stage.
  KernelContext& context;

  int32_t ranks() const { return static_cast<int32_t>(rows.cuts.size()) - 1; }
  RankGrid grid() const { return GridOf(node, ranks()); }
  /// How input `i` is cut, which is read by rows.
  Split RowsOf(size_t i) const;
  /// What the stage before has made as its output `i`: of kHere this rank, of kAll all ranks, of kFromLast
  /// the last one for this one.
  const Value& Received(size_t i) const { return *Parts(i)[0]; }
  /// What each rank has made for this one as output `i` of the stage before, in the order of the ranks: of
  /// kParts all, of the kinds of a grid those of the row or column.
  std::span<const Value* const> Parts(size_t i) const;
  /// For what reads the inputs in the first stage as a whole run does.
  KernelCall WholeCall() const {
    return {.node = node,
            .phase = Phase::kWhole,
            .inputs = inputs,
            .input_infos = input_infos,
            .context = context};
  }
  /// Where output `i` of this stage begins among its values.
  size_t PlaceOf(size_t i) const;
};

/// For Operator::input_use: all inputs are read by rows, or the first alone.
inline InputUse AllByRows(const Node&, std::span<const ValueInfo>, int) { return InputUse::kRows; }
inline InputUse FirstByRows(const Node&, std::span<const ValueInfo>, int i) {
  return i == 0 ? InputUse::kRows : InputUse::kWhole;
}

/// Whether each rank has rows of input `i` in a form by columns.
constexpr bool IsCrossed(const StagedForm& form, size_t i) { return (form.crossed_inputs >> i & 1) != 0; }

/// How the form reads input `i`; by columns, where its axis says so, instead of by rows.
InputUse InputUseOf(const StagedForm& form, const Node& node, std::span<const ValueInfo> inputs, int i);

/// The forms of this call by that axis, with their place behind each other in Operator::staged; none by rows:
/// it runs whole, or by its row rule.
std::vector<std::pair<int32_t, const StagedForm*>> StagedFormsOf(const Operator& op, const Node& node,
                                                                 std::span<const ValueInfo> inputs,
                                                                 Axis axis = Axis::kRows);
/// How the reductions of an operator are finished in parts, with its place; nullptr: they are not.
std::pair<int32_t, const StagedForm*> PartsFormOf(const Operator& op);
/// All ways to do so, with other units; the first is that of PartsFormOf.
std::vector<std::pair<int32_t, const StagedForm*>> PartsFormsOf(const Operator& op);
/// The form at that place; nullptr where there is none.
const StagedForm* StagedFormAt(const Operator& op, int32_t place);

}  // namespace heddle::ops
