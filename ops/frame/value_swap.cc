// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <memory>

#include "ops/base/operator.h"
#include "ops/frame/cell_types.h"
#include "ops/frame/text_column.h"
#include "ops/text/java_text.h"

namespace heddle::ops {
namespace {

using Cells = std::vector<std::optional<std::string>>;

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

// 0 and 1 fit every number, and whole numbers fit a column of floats.
bool Fits(const std::string& kind, const std::string& wanted) {
  if (kind.find(wanted) != std::string::npos) return true;
  if (wanted == "FP") return kind == "BOOLEAN" || kind == "INT";
  return wanted == "INT" && kind == "BOOLEAN";
}

size_t LengthOf(const std::string& text) { return ToUtf16(text).size(); }

struct Lengths {
  size_t least = std::numeric_limits<size_t>::max();
  size_t most = 0;
};

class Swapper {
 public:
  Swapper(const Frame& frame, const Frame& schema) {
    for (int64_t j = 0; j < frame.columns(); ++j) {
      wanted_.push_back(KindOf(TypeInSchema(schema, j).name));
      Cells& cells = columns_.emplace_back();
      Lengths& lengths = lengths_.emplace_back();
      for (int64_t i = 0; i < frame.rows(); ++i) {
        cells.push_back(TextOfCell(frame, i, j));
        if (!cells.back()) continue;
        lengths.least = std::min(lengths.least, LengthOf(*cells.back()));
        lengths.most = std::max(lengths.most, LengthOf(*cells.back()));
      }
    }
  }

  // Cell by cell, down the columns: what changes in a row counts for the columns behind.
  std::vector<Cells> Swap() {
    for (size_t j = 0; j < columns_.size(); ++j)
      for (size_t i = 0; i < columns_[j].size(); ++i) Look(i, j);
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

  std::vector<std::string> wanted_;
  std::vector<Cells> columns_;
  std::vector<Lengths> lengths_;
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

Result<Value> RunValueSwap(const KernelCall& call) {
  const Frame& frame = call.inputs[0]->frame();
  const Frame& schema = call.inputs[1]->frame();
  if (schema.rows() < 1) return FailedPrecondition("valueSwap: argument 2 has no row");
  if (schema.columns() != frame.columns())
    return FailedPrecondition("valueSwap: the frame has {} columns, argument 2 has {}", frame.columns(),
                              schema.columns());
  for (int64_t j = 0; j < frame.columns(); ++j)
    if (frame.column(j).type() != ColumnType::kString)
      return FailedPrecondition("valueSwap: column {} is of {}, all must be of STRING",
                                frame.schema()->NameOf(j), Name(frame.column(j).type()));
  std::vector<Column> columns;
  for (const Cells& cells : Swapper(frame, schema).Swap()) {
    HEDDLE_ASSIGN_OR_RETURN(Column column, TextColumn(cells));
    columns.push_back(std::move(column));
  }
  return Value(Frame(frame.schema(), std::move(columns)));
}

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
                                        .run = RunValueSwap,
                                        .may_fail = true,
                                        .takes_frames = true};

}  // namespace heddle::ops
