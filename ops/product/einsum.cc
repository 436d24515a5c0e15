// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/base/stages.h"
#include "ops/catalog.h"
#include "ops/cells/join_columns.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/storage.h"
#include "ops/product/einsum_equation.h"

namespace heddle::ops {
namespace {

Result<EinsumEquation> EquationOf(const Node& node) {
  return ParseEinsum(node.Text("equation"), node.inputs.size());
}

Result<ValueInfo> InferEinsum(const InferContext& context) {
  HEDDLE_ASSIGN_OR_RETURN(const EinsumEquation equation, EquationOf(context.node));
  std::vector<Shape> shapes;
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, static_cast<int>(i), fmt::format("operand {}", i + 1)));
    shapes.push_back(context.inputs[i].shape);
  }
  HEDDLE_ASSIGN_OR_RETURN(const LetterSizes sizes,
                          SizesOfLetters(equation, shapes, StatusCode::kInvalidArgument));
  if (equation.result.empty()) return ValueInfo::OfScalar(ValueType::kDouble);
  return ValueInfo::OfMatrix(
      {sizes.at(equation.result[0]), equation.result.size() == 1 ? 1 : sizes.at(equation.result[1])});
}

// Cells named by letters; those of the last letter lie side by side.
struct Tensor {
  std::string letters;
  Matrix cells;  // All of them, in one row.
};

// How far two cells lie apart whose index of `letter` differs by one: 0 where it has no such letter. That of
// a diagonal ("ii") is the sum of both.
int64_t StrideOf(const Tensor& tensor, char letter, const LetterSizes& sizes) {
  int64_t stride = 0, below = 1;
  for (size_t k = tensor.letters.size(); k-- > 0;) {
    if (tensor.letters[k] == letter) stride += below;
    below *= sizes.at(tensor.letters[k]);
  }
  return stride;
}

// An index that runs: its length, and what one step of it is in the operands and the result.
struct Loop {
  int64_t length;
  int64_t left, right, result;
};

int64_t Steps(const std::vector<Loop>& loops) {
  int64_t steps = 1;
  for (const Loop& loop : loops) steps = SaturatingProduct(steps, loop.length);
  return steps;
}

// Where step `number` of nested loops is, the last loop running fastest.
struct Place {
  int64_t left = 0, right = 0, result = 0;
};
Place PlaceOf(const std::vector<Loop>& loops, int64_t number) {
  Place place;
  for (size_t k = loops.size(); k-- > 0;) {
    const int64_t at = number % loops[k].length;
    number /= loops[k].length;
    place.left += at * loops[k].left;
    place.right += at * loops[k].right;
    place.result += at * loops[k].result;
  }
  return place;
}

// What a contraction of two tensors runs through: the cells of the result, its last letter apart, and what is
// summed for each of them.
struct Contraction {
  std::vector<Loop> cells, sums;
  Loop last = {1, 0, 0, 0};
};

Contraction Plan(const Tensor& left, const Tensor& right, const Tensor& result, const LetterSizes& sizes) {
  Contraction contraction;
  const auto loop = [&](char letter) {
    return Loop{sizes.at(letter), StrideOf(left, letter, sizes), StrideOf(right, letter, sizes),
                StrideOf(result, letter, sizes)};
  };
  for (const char letter : result.letters) contraction.cells.push_back(loop(letter));
  std::string seen = result.letters;
  for (const char letter : left.letters + right.letters) {
    if (seen.find(letter) != std::string::npos) continue;
    seen += letter;
    contraction.sums.push_back(loop(letter));
  }
  if (!contraction.cells.empty()) {
    contraction.last = contraction.cells.back();
    contraction.cells.pop_back();
  }
  return contraction;
}

// The tensor with the letters of `letters`: each of its cells is one chain of fma over the letters that it
// does not have, in ascending order, which goes on from the cell of `before`, or starts at +0.0 where there
// is none.
Result<Tensor> Contract(const KernelContext& context, const Tensor& left, const Tensor& right,
                        std::string letters, const LetterSizes& sizes, const Matrix* before) {
  Tensor result{std::move(letters), {}};
  int64_t count = 1;
  for (const char letter : result.letters) count = SaturatingProduct(count, sizes.at(letter));
  HEDDLE_ASSIGN_OR_RETURN(result.cells, FilledMatrix(1, count, 0));
  if (before != nullptr) std::copy_n(before->data(), count, result.cells.mutable_data());
  const Contraction contraction = Plan(left, right, result, sizes);
  const Loop last = contraction.last;
  const int64_t sums = Steps(contraction.sums);
  const double* const a = left.cells.data();
  const double* const b = right.cells.data();
  double* const c = result.cells.mutable_data();
  constexpr int64_t kTerms = 1 << 16;
  const int64_t grain =
      std::max<int64_t>(1, kTerms / std::max<int64_t>(1, SaturatingProduct(sums, last.length)));
  ParallelFor(Steps(contraction.cells), grain, [&](int64_t begin, int64_t end) {
    for (int64_t cell = begin; cell < end && !IsCancelled(context.cancelled); ++cell) {
      const Place from = PlaceOf(contraction.cells, cell);
      for (int64_t sum = 0; sum < sums; ++sum) {
        const Place of = PlaceOf(contraction.sums, sum);
        const double* const x = a + from.left + of.left;
        const double* const y = b + from.right + of.right;
        double* const out = c + from.result;
        for (int64_t k = 0; k < last.length; ++k)
          out[k * last.result] = std::fma(x[k * last.left], y[k * last.right], out[k * last.result]);
      }
    }
  });
  if (IsCancelled(context.cancelled)) return Cancelled("cancelled");
  return result;
}

// Letters of a product of operands 0 ... `count` - 1 that the result or a later operand still asks for.
std::string KeptLetters(const EinsumEquation& equation, const std::string& letters, size_t count) {
  if (count == equation.operands.size()) return equation.result;
  std::string later = equation.result;
  for (size_t i = count; i < equation.operands.size(); ++i) later += equation.operands[i];
  std::string kept;
  for (const char letter : letters)
    if (later.find(letter) != std::string::npos && kept.find(letter) == std::string::npos) kept += letter;
  return kept;
}

// ---- How ranks share an equation out: each has some indexes of one letter, which names the rows of
// operands.

struct SharedLetter {
  enum class Kind : uint8_t {
    kNone,
    kRows,     // Of the result.
    kColumns,  // Of the result.
    kSummed,   // The sums go on from rank to rank.
  };
  Kind kind = Kind::kNone;
  char letter = 0;
  size_t step = 0;  // Of kSummed: the operand with which the letter ends.
};

// Whether an operand is one whose rows a letter names; those of one letter may be rows themselves.
bool HasRowsOf(const std::string& letters, const ValueInfo& info, char letter) {
  return letters[0] == letter && info.IsMatrix() && info.IsSized() &&
         (letters.size() == 2 || info.shape.columns == 1);
}

bool IsDiagonal(const std::string& letters) { return letters.size() == 2 && letters[0] == letters[1]; }

// The operand with which the letter ends, where it is the outermost of those summed there; -1 if it is not.
int64_t StepOfSum(const EinsumEquation& equation, char letter) {
  size_t last = 0;
  for (size_t i = 0; i < equation.operands.size(); ++i)
    if (equation.operands[i].find(letter) != std::string::npos) last = i;
  std::string product;
  for (size_t i = 0; i < last; ++i) product = KeptLetters(equation, product + equation.operands[i], i + 1);
  const std::string all = product + equation.operands[last], left = KeptLetters(equation, all, last + 1);
  const auto summed =
      std::find_if(all.begin(), all.end(), [&](char one) { return left.find(one) == std::string::npos; });
  return summed != all.end() && *summed == letter ? static_cast<int64_t>(last) : -1;
}

// Of the letters that can be shared out, the one with the most cells in rows; one with so few rows that one
// rank gets them all only where there is no other.
SharedLetter SharedLetterOf(const EinsumEquation& equation, std::span<const ValueInfo> inputs) {
  SharedLetter best;
  std::pair<bool, int64_t> most = {false, -1};
  for (const std::string& operand : equation.operands) {
    SharedLetter shared{.letter = operand[0]};
    std::pair<bool, int64_t> cells = {false, -1};
    for (size_t i = 0; i < inputs.size(); ++i)
      if (HasRowsOf(equation.operands[i], inputs[i], shared.letter))
        cells = {inputs[i].shape.rows > Granule(inputs[i].shape.rows),
                 std::max<int64_t>(cells.second, 0) + inputs[i].shape.Cells()};
    if (cells <= most) continue;
    const size_t place = equation.result.find(shared.letter);
    const int64_t step = place == std::string::npos ? StepOfSum(equation, shared.letter) : -1;
    if (place == std::string::npos && step < 0) continue;
    shared.kind = place == 0   ? SharedLetter::Kind::kRows
                  : place == 1 ? SharedLetter::Kind::kColumns
                               : SharedLetter::Kind::kSummed;
    shared.step = static_cast<size_t>(std::max<int64_t>(step, 0));
    best = shared;
    most = cells;
  }
  return best;
}

// The same of a node whose equation may be wrong.
SharedLetter SharedLetterOf(const Node& node, std::span<const ValueInfo> inputs) {
  const Result<EinsumEquation> equation = EquationOf(node);
  return equation.ok() ? SharedLetterOf(*equation, inputs) : SharedLetter();
}

// Some indexes of a letter.
struct LetterRange {
  char letter = 0;
  int64_t begin = 0, end = 0;
};

// The product of the operands as a call has them.
class Products {
 public:
  // `range`: the indexes that this rank has, alone in operands whose rows the letter names, among all in
  // others; nullptr: all.
  static Result<Products> Of(const KernelCall& call, EinsumEquation equation, const LetterRange* range) {
    Products products(call.context, std::move(equation));
    std::vector<Shape> shapes;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      HEDDLE_ASSIGN_OR_RETURN(Matrix cells, AsDense(call.inputs[i]->matrix()));
      const std::string& letters = products.equation_.operands[i];
      if (range != nullptr && letters.find(range->letter) != std::string::npos &&
          (!HasRowsOf(letters, call.input_infos[i], range->letter) || IsDiagonal(letters))) {
        HEDDLE_ASSIGN_OR_RETURN(cells, SliceColumns(cells, range->begin, range->end));
      }
      shapes.push_back(cells.shape());
      products.operands_.push_back(std::move(cells));
    }
    HEDDLE_ASSIGN_OR_RETURN(products.sizes_,
                            SizesOfLetters(products.equation_, shapes, StatusCode::kFailedPrecondition));
    HEDDLE_ASSIGN_OR_RETURN(products.product_.cells, FilledMatrix(1, 1, 1));
    return products;
  }

  size_t count() const { return operands_.size(); }
  /// Multiplies by the next operands, up to `end`; the last of these products goes on from `before`.
  Status MultiplyUpTo(size_t end, const Matrix* before = nullptr) {
    for (; next_ < end; ++next_) {
      const Matrix& cells = operands_[next_];
      const Tensor operand{equation_.operands[next_], cells.Reshaped(1, cells.cells())};
      const std::string letters = KeptLetters(equation_, product_.letters + operand.letters, next_ + 1);
      HEDDLE_ASSIGN_OR_RETURN(product_, Contract(context_, product_, operand, letters, sizes_,
                                                 next_ + 1 == end ? before : nullptr));
    }
    return OkStatus();
  }
  /// The cells of the product, in a row.
  const Matrix& cells() const { return product_.cells; }
  /// The product up to operand `end`, whose cells are known.
  void GoOnFrom(size_t end, Matrix cells) {
    for (; next_ < end; ++next_)
      product_.letters = KeptLetters(equation_, product_.letters + equation_.operands[next_], next_ + 1);
    product_.cells = std::move(cells);
  }

  /// When all operands are multiplied.
  Value ToValue() const {
    const std::string& letters = equation_.result;
    if (letters.empty()) return Value(Scalar(product_.cells.data()[0]));
    return Value(
        product_.cells.Reshaped(sizes_.at(letters[0]), letters.size() == 1 ? 1 : sizes_.at(letters[1])));
  }

 private:
  Products(const KernelContext& context, EinsumEquation equation)
      : context_(context), equation_(std::move(equation)) {}

  const KernelContext& context_;
  EinsumEquation equation_;
  std::vector<Matrix> operands_;  // Dense.
  LetterSizes sizes_;
  Tensor product_;
  size_t next_ = 0;  // Operand.
};

Result<Value> RunEinsum(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(EinsumEquation equation, EquationOf(call.node));
  const SharedLetter shared = SharedLetterOf(equation, call.input_infos);
  const LetterRange range{shared.letter, call.row_begin, call.row_end};
  const bool by_rows = shared.kind == SharedLetter::Kind::kRows && call.total_rows > 0;
  HEDDLE_ASSIGN_OR_RETURN(Products products,
                          Products::Of(call, std::move(equation), by_rows ? &range : nullptr));
  HEDDLE_RETURN_IF_ERROR(products.MultiplyUpTo(products.count()));
  return products.ToValue();
}

RowRule EinsumRowRule(const Node& node, std::span<const ValueInfo> inputs) {
  return SharedLetterOf(node, inputs).kind == SharedLetter::Kind::kRows ? RowRule::kRowWise : RowRule::kWhole;
}

InputUse EinsumInputUse(const Node& node, std::span<const ValueInfo> inputs, int i) {
  const Result<EinsumEquation> equation = EquationOf(node);
  if (!equation.ok()) return InputUse::kWhole;
  const SharedLetter shared = SharedLetterOf(*equation, inputs);
  if (shared.kind == SharedLetter::Kind::kNone) return InputUse::kWhole;
  const auto place = static_cast<size_t>(i);
  return HasRowsOf(equation->operands[place], inputs[place], shared.letter) ? InputUse::kRows
                                                                            : InputUse::kWhole;
}

// What a rank multiplies in a stage, and how the ranks share it out.
struct PartOfRank {
  SharedLetter shared;
  Products products;

  static Result<PartOfRank> Of(const StageCall& call) {
    HEDDLE_ASSIGN_OR_RETURN(EinsumEquation equation, EquationOf(call.node));
    const SharedLetter shared = SharedLetterOf(equation, call.input_infos);
    const LetterRange range{shared.letter, call.rows.Begin(call.rank), call.rows.End(call.rank)};
    HEDDLE_ASSIGN_OR_RETURN(Products products, Products::Of(call.WholeCall(), std::move(equation), &range));
    return PartOfRank{shared, std::move(products)};
  }
};

// Each rank computes some columns of the result, and sends every rank its rows of them.
Status RunColumnsStage(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 1) {
    std::vector<Matrix> columns;
    for (const Value* piece : call.Parts(0)) columns.push_back(piece->matrix());
    HEDDLE_ASSIGN_OR_RETURN(Matrix rows, JoinColumns(std::move(columns), Format::kDense));
    outputs[0] = Value(std::move(rows));
    return OkStatus();
  }
  HEDDLE_ASSIGN_OR_RETURN(PartOfRank part, PartOfRank::Of(call));
  Products& products = part.products;
  HEDDLE_RETURN_IF_ERROR(products.MultiplyUpTo(products.count()));
  const Value columns = products.ToValue();
  for (int32_t rank = 0; rank < call.ranks(); ++rank)
    outputs[static_cast<size_t>(rank)] =
        Value(columns.matrix().Rows(call.result_rows.Begin(rank), call.result_rows.End(rank)));
  return OkStatus();
}

// Each rank goes on from the sums of the one before; the last one's go to all, for the operands behind them.
Status RunSumsStage(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(PartOfRank part, PartOfRank::Of(call));
  const SharedLetter& shared = part.shared;
  Products& products = part.products;
  if (call.stage == 1) {
    products.GoOnFrom(shared.step + 1, call.Received(0).matrix());
    HEDDLE_RETURN_IF_ERROR(products.MultiplyUpTo(products.count()));
    outputs[0] = products.ToValue();
    return OkStatus();
  }
  HEDDLE_RETURN_IF_ERROR(
      products.MultiplyUpTo(shared.step + 1, call.before == nullptr ? nullptr : &call.before->matrix()));
  const Matrix& sums = products.cells();
  const bool is_last = call.rank + 1 == call.ranks();
  outputs[0] = Value(is_last ? sums : sums.Rows(0, 0));
  outputs[1] = Value(sums);
  return OkStatus();
}

template <SharedLetter::Kind kind>
bool Shares(const Node& node, std::span<const ValueInfo> inputs) {
  return SharedLetterOf(node, inputs).kind == kind && (node.info.IsScalar() || node.info.IsSized());
}

double BytesOfResult(const Node& node, std::span<const ValueInfo>, const RankGrid&) {
  return static_cast<double>(KnownBytes(node.info));
}

constexpr Reach kRowsOfColumns[] = {Reach::kParts}, kSums[] = {Reach::kAll, Reach::kNext};
constexpr Stage kColumnsStages[] = {{.outputs = kRowsOfColumns, .reads_inputs = true}, {}},
                kSumsStages[] = {{.outputs = kSums, .reads_inputs = true}, {.reads_inputs = true}};
constexpr StagedForm kSumsForm = {.stages = kSumsStages,
                                  .result = StagedResult::kEach,
                                  .applies = Shares<SharedLetter::Kind::kSummed>,
                                  .run = RunSumsStage};
constexpr StagedForm kColumnsForm = {.stages = kColumnsStages,
                                     .result = StagedResult::kRows,
                                     .other = &kSumsForm,
                                     .applies = Shares<SharedLetter::Kind::kColumns>,
                                     .moved_bytes = BytesOfResult,
                                     .run = RunColumnsStage};

}  // namespace

/// einsum("ij,jk->ik", A, B, ...): the products of cells of all operands, summed over the letters that the
/// result does not have. A letter names the rows or columns of an operand; one alone those of a vector; twice
/// in an operand its diagonal.
///
/// Result:  a matrix for two letters, a column for one, a double for none. Format: dense.
/// Order:   operands are multiplied from left to right, each product summed over the letters that neither the
///          result nor a later operand has. Each cell is one chain of fma over these in ascending order, the
///          first letter of the equation the outermost.
/// Error:   as of a product of matrices with as many terms.
/// Cost:    two operations a cell of the letters of each product.
/// Rows:    row-wise where the letter of the result's rows names rows of operands; where that of its columns
///          does, each rank computes columns; where a letter does that is summed, outermost, ranks add to the
///          same sums one after the other. Else whole.
extern constexpr Operator kEinsum = {.name = "einsum",
                                     .form = CallForm::kVariadic,
                                     .parameters = "@equation A",
                                     .min_inputs = 1,
                                     .max_inputs = -1,
                                     .infer = InferEinsum,
                                     .row_rule = EinsumRowRule,
                                     .input_use = EinsumInputUse,
                                     .staged = &kColumnsForm,
                                     .run = RunEinsum};

}  // namespace heddle::ops
