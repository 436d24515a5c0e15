// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/values/sizes.h"
#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/catalog.h"
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

// The tensor with the letters of `result`: each of its cells is one chain of fma over the letters that it
// does not have, in ascending order.
Result<Tensor> Contract(const KernelCall& call, const Tensor& left, const Tensor& right, std::string letters,
                        const LetterSizes& sizes) {
  Tensor result{std::move(letters), {}};
  int64_t count = 1;
  for (const char letter : result.letters) count = SaturatingProduct(count, sizes.at(letter));
  HEDDLE_ASSIGN_OR_RETURN(result.cells, FilledMatrix(1, count, 0));
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
    for (int64_t cell = begin; cell < end && !IsCancelled(call.context.cancelled); ++cell) {
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
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
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

Result<Value> RunEinsum(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const EinsumEquation equation, EquationOf(call.node));
  std::vector<Shape> shapes;
  for (const Value* input : call.inputs) shapes.push_back(input->matrix().shape());
  HEDDLE_ASSIGN_OR_RETURN(const LetterSizes sizes,
                          SizesOfLetters(equation, shapes, StatusCode::kFailedPrecondition));
  Tensor product;
  HEDDLE_ASSIGN_OR_RETURN(product.cells, FilledMatrix(1, 1, 1));
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, AsDense(call.inputs[i]->matrix()));
    const Tensor operand{equation.operands[i], cells.Reshaped(1, cells.cells())};
    const std::string letters = KeptLetters(equation, product.letters + operand.letters, i + 1);
    HEDDLE_ASSIGN_OR_RETURN(product, Contract(call, product, operand, letters, sizes));
  }
  if (equation.result.empty()) return Value(Scalar(product.cells.data()[0]));
  const int64_t columns = equation.result.size() == 1 ? 1 : sizes.at(equation.result[1]);
  return Value(product.cells.Reshaped(sizes.at(equation.result[0]), columns));
}

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
extern constexpr Operator kEinsum = {.name = "einsum",
                                     .form = CallForm::kVariadic,
                                     .parameters = "@equation A",
                                     .min_inputs = 1,
                                     .max_inputs = -1,
                                     .infer = InferEinsum,
                                     .run = RunEinsum};

}  // namespace heddle::ops
