// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/programs/distribution.h"
#include "ops/base/operator.h"

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
};

/// One stage. It reads what the stage before it has made for its rank, and nothing of earlier ones: what a
/// later one needs is handed on as kHere, which copies nothing.
struct Stage {
  std::span<const Reach> outputs = {};  ///< Of the last stage none: it makes the results of the node.
  bool reads_inputs = false;            ///< This rank's pieces of the inputs of the node; the first does.
};

/// Whether the ranks compute it one after the other.
constexpr bool HandsOn(const Stage& stage) {
  return !stage.outputs.empty() && stage.outputs.back() == Reach::kNext;
}

/// How the results of the last stage lie on the ranks.
enum class StagedResult : uint8_t {
  kSameRows,  ///< As many rows as the inputs that are read by rows, cut as these are.
  kRows,      ///< Rows at the cuts of Distribution::SplitRows (StageCall::result_rows).
  kUneven,    ///< Rows, in the order of the ranks; how many each rank has, the stage finds.
  kEach,      ///< The same whole value on every rank.
};

struct StageCall;

/// The distributed form of an operator whose row rule is kWhole. The bytes of the results, put together, are
/// those of Operator::run, whatever the number of ranks and the cuts.
struct StagedForm {
  std::span<const Stage> stages;
  StagedResult result = StagedResult::kRows;  ///< How the first result lies; each rank has all others.
  /// True where cuts must be multiples of the granule of the number of rows (core/values/panels.h).
  bool needs_granules = false;
  const StagedForm* other = nullptr;  ///< Another way of the same operator, which may cost less.
  /// Whether this call has the form; nullptr: every one has. Which inputs are read by rows, each rank its
  /// own, tells Operator::input_use; all of those have the same number of rows. The others are whole on every
  /// rank.
  bool (*applies)(const Node& node, std::span<const ValueInfo> inputs) = nullptr;
  /// Bytes that all ranks together send at the kParts exchanges; nullptr: none.
  double (*moved_bytes)(const Node& node, std::span<const ValueInfo> inputs) = nullptr;
  /// Computes one stage into `outputs`: for every output in its order one value, of kParts one for each rank;
  /// of the last stage, the results of the node. Errors carry no position, as of kernels.
  Status (*run)(const StageCall& call, std::span<Value> outputs) = nullptr;
};

/// One stage of one rank.
struct StageCall {
  const StagedForm& form;
  const Node& node;
  std::span<const ValueInfo> input_infos;  ///< Of the whole values of node.inputs.
  int32_t stage = 0;                       ///< Its place in form.stages.
  int32_t rank = 0;
  const Split& rows;                       ///< How the inputs that are read by rows are cut.
  const Split& result_rows;                ///< How the results are cut (kSameRows, kRows); else without cuts.
  std::span<const Value* const> inputs;    ///< This rank's pieces, nullptr for one left out; empty if the
                                           ///< stage does not read them.
  std::span<const Value* const> received;  ///< Behind each other: of kHere and kAll one value, of kParts one
                                           ///< from each rank.
  const Value* before = nullptr;           ///< Of a stage with kNext: what the rank before has made as that
                                           ///< output; nullptr on rank 0.
  KernelContext& context;

  int32_t ranks() const { return static_cast<int32_t>(rows.cuts.size()) - 1; }
  /// What the stage before has made as its output `i`: of kHere this rank, of kAll all ranks.
  const Value& Received(size_t i) const { return *received[PlaceOf(i)]; }
  /// Of kParts: what each rank has made for this one.
  std::span<const Value* const> Parts(size_t i) const {
    return received.subspan(PlaceOf(i), static_cast<size_t>(ranks()));
  }
  /// For what reads the inputs in the first stage as a whole run does.
  KernelCall WholeCall() const {
    return {.node = node,
            .phase = Phase::kWhole,
            .inputs = inputs,
            .input_infos = input_infos,
            .context = context};
  }
  /// Where output `i` of stage `stage` begins among values that lie behind each other, as `received` and the
  /// outputs do.
  size_t PlaceOf(size_t i) const { return PlaceOf(form.stages[static_cast<size_t>(stage) - 1], i, ranks()); }
  static size_t PlaceOf(const Stage& stage, size_t i, int32_t ranks) {
    size_t place = 0;
    for (size_t o = 0; o < i; ++o)
      place += stage.outputs[o] == Reach::kParts ? static_cast<size_t>(ranks) : 1;
    return place;
  }
};

/// For Operator::input_use: all inputs are read by rows, or the first alone.
inline InputUse AllByRows(const Node&, std::span<const ValueInfo>, int) { return InputUse::kRows; }
inline InputUse FirstByRows(const Node&, std::span<const ValueInfo>, int i) {
  return i == 0 ? InputUse::kRows : InputUse::kWhole;
}

/// The forms of this call, with their place behind each other in Operator::staged; none: it runs whole, or by
/// its row rule.
std::vector<std::pair<int32_t, const StagedForm*>> StagedFormsOf(const Operator& op, const Node& node,
                                                                 std::span<const ValueInfo> inputs);
/// The form at that place; nullptr where there is none.
const StagedForm* StagedFormAt(const Operator& op, int32_t place);

}  // namespace heddle::ops
