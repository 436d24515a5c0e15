// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "ops/base/stages.h"
#include "ops/frame/cell_types.h"
#include "ops/frame/remove_empty.h"
#include "ops/frame/row_pieces.h"
#include "ops/frame/text_column.h"
#include "ops/text/java_text.h"

namespace heddle::ops {
namespace {

using Cells = std::vector<std::optional<std::string>>;

bool IsTimeToStop(const KernelContext& context, int64_t row) {
  constexpr int64_t kRowsBetweenPolls = 1 << 12;
  return row % kRowsBetweenPolls == 0 && IsCancelled(context.cancelled);
}

// The name of a type without its width: "INT" of INT32.
std::string KindOf(std::string_view name) {
  std::string kind(name);
  std::erase_if(kind, [](char sign) { return sign >= '0' && sign <= '9'; });
  return kind;
}

std::string KindOfText(const std::string& text) {
  const std::optional<ColumnType> type = TypeOfText(text);
  return type ? KindOf(Name(*type)) : "UNKNOWN";
}

// Kinds that fit a column of another one: 0 and 1 every number, and whole numbers a column of floats.
constexpr std::pair<std::string_view, std::string_view> kAlsoFits[] = {
    {"BOOLEAN", "FP"}, {"INT", "FP"}, {"BOOLEAN", "INT"}};

bool Fits(const std::string& kind, const std::string& wanted) {
  return kind.find(wanted) != std::string::npos ||
         std::find(std::begin(kAlsoFits), std::end(kAlsoFits),
                   std::pair<std::string_view, std::string_view>(kind, wanted)) != std::end(kAlsoFits);
}

size_t LengthOf(const std::string& text) { return ToUtf16(text).size(); }

struct Lengths {
  size_t least = std::numeric_limits<size_t>::max();
  size_t most = 0;
};

// What each column should hold.
std::vector<std::string> KindsWanted(const Frame& schema) {
  std::vector<std::string> kinds;
  for (int64_t j = 0; j < schema.columns(); ++j) kinds.push_back(KindOf(TypeInSchema(schema, j).name));
  return kinds;
}

Result<std::vector<Lengths>> LengthsOf(const KernelContext& context, const Frame& frame) {
  std::vector<Lengths> lengths(static_cast<size_t>(frame.columns()));
  for (int64_t j = 0; j < frame.columns(); ++j) {
    Lengths& of_column = lengths[static_cast<size_t>(j)];
    for (int64_t i = 0; i < frame.rows(); ++i) {
      if (IsTimeToStop(context, i)) return Cancelled("cancelled");
      const std::optional<std::string> text = TextOfCell(frame, i, j);
      if (!text) continue;
      of_column.least = std::min(of_column.least, LengthOf(*text));
      of_column.most = std::max(of_column.most, LengthOf(*text));
    }
  }
  return lengths;
}

class Swapper {
 public:
  /// `lengths`: those of all rows, of which the frame to be swapped may have some. Rows without a wrong cell
  /// may be left out: nothing changes there, and nothing changes because of them.
  Swapper(const KernelContext& context, std::vector<std::string> wanted, std::vector<Lengths> lengths)
      : context_(context), wanted_(std::move(wanted)), lengths_(std::move(lengths)) {}

  // Cell by cell, down the columns: what changes in a row counts for the columns behind.
  Result<std::vector<Cells>> Swap(const Frame& frame) {
    for (int64_t j = 0; j < frame.columns(); ++j) {
      Cells& cells = columns_.emplace_back();
      for (int64_t i = 0; i < frame.rows(); ++i) {
        if (IsTimeToStop(context_, i)) return Cancelled("cancelled");
        cells.push_back(TextOfCell(frame, i, j));
      }
    }
    for (size_t j = 0; j < columns_.size(); ++j)
      for (size_t i = 0; i < columns_[j].size(); ++i) {
        if (IsTimeToStop(context_, static_cast<int64_t>(i))) return Cancelled("cancelled");
        Look(i, j);
      }
    return std::move(columns_);
  }

 private:
  void Look(size_t i, size_t j) {
    if (!columns_[j][i]) return;
    const std::string text = Plain(*columns_[j][i]);
    const std::string kind = KindOfText(text);
    if (Fits(kind, wanted_[j])) return;
    for (size_t w = 0; w < columns_.size(); ++w) {
      const size_t length = LengthOf(text);
      const bool possible =
          w != j && wanted_[w] == kind && length > lengths_[w].least && length < lengths_[w].most;
      if (!possible) continue;
      // A column whose own cell is wrong, too, is the one.
      if (KindOfText(Plain(columns_[w][i].value_or("0"))) != wanted_[w]) {
        best_ = w;
        break;
      }
      candidates_.push_back(w);
    }
    if (candidates_.size() == 1) best_ = candidates_[0];
    std::optional<std::string> other = columns_[best_][i];
    columns_[j][i] = std::move(other);
    columns_[best_][i] = text;
  }

  const KernelContext& context_;
  std::vector<std::string> wanted_;
  std::vector<Lengths> lengths_;
  std::vector<Cells> columns_;
  // SystemDS keeps both from one cell to the next.
  size_t best_ = 0;
  std::vector<size_t> candidates_;
};

Result<ValueInfo> InferValueSwap(const InferContext& context) {
  for (size_t i = 0; i < 2; ++i)
    if (!context.inputs[i].IsFrame())
      return InvalidArgument("valueSwap: argument {} must be a frame, not a {}", i + 1,
                             Name(context.inputs[i].data_type));
  const Shape& x = context.inputs[0].shape;
  const Shape& schema = context.inputs[1].shape;
  if (x.columns != kUnknown && schema.columns != kUnknown && x.columns != schema.columns)
    return InvalidArgument("valueSwap: the frame has {} columns, argument 2 has {}", x.columns,
                           schema.columns);
  return context.inputs[0];
}

Status CheckFrames(const Frame& frame, const Frame& schema) {
  if (schema.rows() < 1) return FailedPrecondition("valueSwap: argument 2 has no row");
  if (schema.columns() != frame.columns())
    return FailedPrecondition("valueSwap: the frame has {} columns, argument 2 has {}", frame.columns(),
                              schema.columns());
  for (int64_t j = 0; j < frame.columns(); ++j)
    if (frame.column(j).type() != ColumnType::kString)
      return FailedPrecondition("valueSwap: column {} is of {}, all must be of STRING",
                                frame.schema()->NameOf(j), Name(frame.column(j).type()));
  return OkStatus();
}

Result<Frame> Swapped(const KernelContext& context, const Frame& frame, const Frame& schema,
                      std::vector<Lengths> lengths) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Cells> swapped,
                          Swapper(context, KindsWanted(schema), std::move(lengths)).Swap(frame));
  std::vector<Column> columns;
  for (const Cells& cells : swapped) {
    if (IsCancelled(context.cancelled)) return Cancelled("cancelled");
    HEDDLE_ASSIGN_OR_RETURN(Column column, TextColumn(cells));
    columns.push_back(std::move(column));
  }
  return Frame(frame.schema(), std::move(columns));
}

Result<Value> RunValueSwap(const KernelCall& call) {
  const Frame& frame = call.inputs[0]->frame();
  const Frame& schema = call.inputs[1]->frame();
  HEDDLE_RETURN_IF_ERROR(CheckFrames(frame, schema));
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Lengths> lengths, LengthsOf(call.context, frame));
  HEDDLE_ASSIGN_OR_RETURN(Frame swapped, Swapped(call.context, frame, schema, std::move(lengths)));
  return Value(std::move(swapped));
}

// ---- On several ranks. What one wrong cell changes may decide for the next, down the columns through all
// rows: rank 0 gets the rows with a wrong cell, which are few, and gives them back.

// Of a rank's rows those with a cell that Swapper would look at.
struct WrongRows {
  std::vector<bool> marks;
  std::vector<int64_t> places;

  static Result<WrongRows> Of(const KernelContext& context, const Frame& frame, const Frame& schema) {
    const std::vector<std::string> wanted = KindsWanted(schema);
    WrongRows rows{std::vector<bool>(static_cast<size_t>(frame.rows()), false), {}};
    for (int64_t j = 0; j < frame.columns(); ++j)
      for (int64_t i = 0; i < frame.rows(); ++i) {
        if (IsTimeToStop(context, i)) return Cancelled("cancelled");
        const auto row = static_cast<size_t>(i);
        const std::optional<std::string> text = rows.marks[row] ? std::nullopt : TextOfCell(frame, i, j);
        if (text) rows.marks[row] = !Fits(KindOfText(Plain(*text)), wanted[static_cast<size_t>(j)]);
      }
    for (size_t row = 0; row < rows.marks.size(); ++row)
      if (rows.marks[row]) rows.places.push_back(static_cast<int64_t>(row));
    return rows;
  }
};

Result<Value> ToRow(const std::vector<Lengths>& lengths) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix row, Matrix::Dense(1, 2 * static_cast<int64_t>(lengths.size())));
  double* out = row.mutable_data();
  for (const Lengths& one : lengths) {
    *out++ = static_cast<double>(one.least);
    *out++ = static_cast<double>(one.most);
  }
  return Value(std::move(row));
}

std::vector<Lengths> LengthsIn(const Matrix& rows) {
  std::vector<Lengths> lengths(static_cast<size_t>(rows.columns() / 2));
  for (int64_t i = 0; i < rows.rows(); ++i)
    for (size_t j = 0; j < lengths.size(); ++j) {
      const double* const pair = rows.data() + i * rows.columns() + 2 * static_cast<int64_t>(j);
      // A column without cells says the largest size, which no double is.
      if (pair[0] < 0x1p63) lengths[j].least = std::min(lengths[j].least, static_cast<size_t>(pair[0]));
      lengths[j].most = std::max(lengths[j].most, static_cast<size_t>(pair[1]));
    }
  return lengths;
}

Status TellLengths(const StageCall& call, std::span<Value> outputs) {
  const Frame& frame = call.inputs[0]->frame();
  HEDDLE_RETURN_IF_ERROR(CheckFrames(frame, call.inputs[1]->frame()));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Lengths> lengths, LengthsOf(call.context, frame));
  HEDDLE_ASSIGN_OR_RETURN(outputs[0], ToRow(lengths));
  return OkStatus();
}

// Every rank finds the wrong cells here and when it merges, instead of handing on which rows have them.
Status SendWrongRows(const StageCall& call, std::span<Value> outputs) {
  const Frame& frame = call.inputs[0]->frame();
  HEDDLE_ASSIGN_OR_RETURN(const WrongRows wrong, WrongRows::Of(call.context, frame, call.inputs[1]->frame()));
  HEDDLE_ASSIGN_OR_RETURN(const Frame rows, Gathered(frame, /*rows=*/true, wrong.places));
  const auto ranks = static_cast<size_t>(call.ranks());
  for (size_t rank = 0; rank < ranks; ++rank) outputs[rank] = Value(rank == 0 ? rows : rows.Rows(0, 0));
  outputs[ranks] = call.Received(0);
  return OkStatus();
}

// Rank 0 has the wrong rows of all ranks.
Status SwapRows(const StageCall& call, std::span<Value> outputs) {
  const auto ranks = static_cast<size_t>(call.ranks());
  std::vector<int64_t> counts;
  for (const Value* part : call.Parts(0)) counts.push_back(part->frame().rows());
  HEDDLE_ASSIGN_OR_RETURN(Value rows, JoinRows(call.Parts(0)));
  if (call.rank == 0) {
    HEDDLE_ASSIGN_OR_RETURN(Frame swapped, Swapped(call.context, rows.frame(), call.inputs[1]->frame(),
                                                   LengthsIn(call.Received(1).matrix())));
    rows = Value(std::move(swapped));
  }
  int64_t first = 0;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const int64_t count = call.rank == 0 ? counts[rank] : 0;
    HEDDLE_ASSIGN_OR_RETURN(outputs[rank], SliceRows(rows, first, first + count));
    first += count;
  }
  return OkStatus();
}

Status MergeRows(const StageCall& call, std::span<Value> outputs) {
  const Frame& frame = call.inputs[0]->frame();
  HEDDLE_ASSIGN_OR_RETURN(const WrongRows wrong, WrongRows::Of(call.context, frame, call.inputs[1]->frame()));
  HEDDLE_ASSIGN_OR_RETURN(const Value swapped, JoinRows(call.Parts(0)));
  std::vector<Column> columns;
  for (int64_t j = 0; j < frame.columns(); ++j) {
    Cells cells;
    int64_t next = 0;
    for (int64_t i = 0; i < frame.rows(); ++i) {
      if (IsTimeToStop(call.context, i)) return Cancelled("cancelled");
      cells.push_back(wrong.marks[static_cast<size_t>(i)] ? TextOfCell(swapped.frame(), next++, j)
                                                          : TextOfCell(frame, i, j));
    }
    HEDDLE_ASSIGN_OR_RETURN(Column column, TextColumn(cells));
    columns.push_back(std::move(column));
  }
  outputs[0] = Value(Frame(frame.schema(), std::move(columns)));
  return OkStatus();
}

// What a stage does, in their order.
constexpr Status (*kRunsOfStages[])(const StageCall& call, std::span<Value> outputs) = {
    TellLengths, SendWrongRows, SwapRows, MergeRows};

Status RunValueSwapStage(const StageCall& call, std::span<Value> outputs) {
  return kRunsOfStages[call.stage](call, outputs);
}

// About a hundredth of the rows, there and back.
double MovedBytes(const Node& node, std::span<const ValueInfo>, const RankGrid&) {
  return 0.02 * static_cast<double>(KnownBytes(node.info));
}

constexpr Reach kToAll[] = {Reach::kAll}, kRowsAndLengths[] = {Reach::kParts, Reach::kHere},
                kBack[] = {Reach::kParts};
constexpr Stage kStages[] = {{.outputs = kToAll, .reads_inputs = true},
                             {.outputs = kRowsAndLengths, .reads_inputs = true},
                             {.outputs = kBack, .reads_inputs = true},
                             {.reads_inputs = true}};
constexpr StagedForm kStaged = {.stages = kStages,
                                .result = StagedResult::kSameRows,
                                .moved_bytes = MovedBytes,
                                .run = RunValueSwapStage};

}  // namespace

/// valueSwap(F, S): a cell that is none of the type that S names for its column changes places with the cell
/// of its row in a column of its type.
///
/// Shapes:  F is m x n strings, S 1 x n strings, the result m x n.
/// Order:   down the columns, from the first on; where no column fits, the one of the last change does.
/// Cost:    reads every cell, and of a wrong one those of its row.
extern constexpr Operator kValueSwap = {.name = "valueSwap",
                                        .form = CallForm::kPositional,
                                        .parameters = "F schema",
                                        .min_inputs = 2,
                                        .max_inputs = 2,
                                        .infer = InferValueSwap,
                                        .input_use = FirstByRows,
                                        .staged = &kStaged,
                                        .run = RunValueSwap,
                                        .may_fail = true,
                                        .takes_frames = true};

}  // namespace heddle::ops
