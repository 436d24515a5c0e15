// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/catalog.h"

#include <cmath>
#include <utility>
#include <vector>

#include "ops/aggregate/aggregate.h"
#include "ops/base/arguments.h"
#include "ops/base/operator.h"
#include "tests/reference/aggregate.h"
#include "tests/reference/decompositions.h"
#include "tests/reference/distinct.h"
#include "tests/reference/einsum.h"
#include "tests/reference/elementwise.h"
#include "tests/reference/fourier.h"
#include "tests/reference/frame.h"
#include "tests/reference/generate.h"
#include "tests/reference/group_aggregate.h"
#include "tests/reference/matmul.h"
#include "tests/reference/neural_kernels.h"
#include "tests/reference/reorganize.h"
#include "tests/reference/sampled_product.h"
#include "tests/reference/select.h"
#include "tests/reference/solve.h"
#include "tests/reference/statistics.h"
#include "tests/reference/transform.h"

namespace heddle::ops::reference {
namespace {

using Inputs = std::span<const Value* const>;

const Value* Given(Inputs inputs, size_t i) { return i < inputs.size() ? inputs[i] : nullptr; }
const Matrix& M(Inputs inputs, size_t i) { return inputs[i]->matrix(); }
double Number(Inputs inputs, size_t i, double otherwise) {
  const Value* value = Given(inputs, i);
  return value == nullptr ? otherwise : value->scalar().AsDouble();
}
int64_t Integer(Inputs inputs, size_t i, int64_t otherwise) {
  return static_cast<int64_t>(Number(inputs, i, static_cast<double>(otherwise)));
}

std::vector<Matrix> All(Inputs inputs) {
  std::vector<Matrix> matrices;
  for (const Value* input : inputs)
    matrices.push_back(input->IsMatrix() ? input->matrix() : *FilledMatrix(1, 1, input->scalar().AsDouble()));
  return matrices;
}

Value OfBinary(const Node& node, Inputs inputs) { return Binary(node.op, *inputs[0], *inputs[1]); }
Value OfUnary(const Node& node, Inputs inputs) {
  return Given(inputs, 1) != nullptr ? OfBinary(node, inputs) : Unary(node.op, M(inputs, 0));
}
Value OfSelect(const Node&, Inputs inputs) { return Select(*inputs[0], *inputs[1], *inputs[2]); }
Value OfFull(const Node& node, Inputs inputs) { return Scalar(FullAggregate(node.op, M(inputs, 0))); }
Value OfRows(const Node& node, Inputs inputs) { return RowAggregate(node.op, M(inputs, 0)); }
Value OfColumns(const Node& node, Inputs inputs) { return ColumnAggregate(node.op, M(inputs, 0)); }
Value OfCumulative(const Node& node, Inputs inputs) { return Cumulative(node.op, M(inputs, 0)); }

Value OfSumTo(const Node&, Inputs inputs) {
  const Matrix& g = M(inputs, 0);
  const Shape shape{Integer(inputs, 1, 1), Integer(inputs, 2, 1)};
  if (shape == g.shape()) return g;
  if (shape == Shape{1, 1}) return *FilledMatrix(1, 1, FullAggregate("sum", g));
  return shape.columns == 1 ? RowAggregate("rowSums", g) : ColumnAggregate("colSums", g);
}

Value OfSpreadTo(const Node&, Inputs inputs) {
  return SpreadTo(M(inputs, 0), Integer(inputs, 1, 1), Integer(inputs, 2, 1));
}

Value OfIndex(const Node&, Inputs inputs) {
  const Matrix& x = M(inputs, 0);
  return Index(x, Integer(inputs, 1, 1), Integer(inputs, 2, x.rows()), Integer(inputs, 3, 1),
               Integer(inputs, 4, x.columns()));
}
Value OfIndexAssign(const Node&, Inputs inputs) {
  const Matrix& x = M(inputs, 0);
  return IndexAssign(x, All(inputs.first(2))[1], Integer(inputs, 2, 1), Integer(inputs, 3, x.rows()),
                     Integer(inputs, 4, 1), Integer(inputs, 5, x.columns()));
}

Value OfMatrix(const Node& node, Inputs inputs) {
  const Value& data = *inputs[0];
  const int64_t rows = Integer(inputs, 1, 1), columns = Integer(inputs, 2, 1);
  if (data.IsScalar()) return *FilledMatrix(rows, columns, data.scalar().AsDouble());
  return Reshape(data.matrix(), rows, columns, BooleanAttribute(node, "byrow", true));
}

// from, from + increment, ... as far as `to`.
Value OfSeq(const Node&, Inputs inputs) {
  const double from = Number(inputs, 0, 1), to = Number(inputs, 1, 1);
  const double increment = Number(inputs, 2, from <= to ? 1 : -1);
  std::vector<double> numbers;
  for (int64_t i = 0;; ++i) {
    const double next = from + static_cast<double>(i) * increment;
    if (increment > 0 ? next > to : next < to) break;
    numbers.push_back(next);
  }
  Matrix result = *Matrix::Dense(static_cast<int64_t>(numbers.size()), 1);
  for (size_t i = 0; i < numbers.size(); ++i) result.mutable_data()[i] = numbers[i];
  return result;
}

// Uniform numbers with a seed; tests/unit/ops/generate_test.cc has the other distributions.
Value OfRand(const Node&, Inputs inputs) {
  RandRequest request;
  request.rows = Integer(inputs, 0, 1);
  request.columns = Integer(inputs, 1, 1);
  request.min = Number(inputs, 2, 0);
  request.max = Number(inputs, 3, 1);
  request.sparsity = Number(inputs, 4, 1);
  request.seed = Integer(inputs, 5, -1);
  return Random(request);
}

Value OfRemoveEmpty(const Node& node, Inputs inputs) {
  const Matrix& x = M(inputs, 0);
  const bool rows = node.Text("margin") == "rows";
  const Value* select = Given(inputs, 1);
  std::vector<Matrix> kept;
  for (const int64_t i : Kept(x, rows, select == nullptr ? nullptr : &select->matrix()))
    kept.push_back(rows ? Index(x, i + 1, i + 1, 1, x.columns()) : Index(x, 1, x.rows(), i + 1, i + 1));
  if (kept.empty()) return *FilledMatrix(rows ? 1 : x.rows(), rows ? x.columns() : 1, 0);
  return rows ? Rbind(kept) : Cbind(kept);
}

Value OfOrder(const Node&, Inputs inputs) {
  const Matrix& x = M(inputs, 0);
  const std::vector<int64_t> rows = SortedRows(x, {Integer(inputs, 1, 1) - 1}, Number(inputs, 2, 0) != 0);
  std::vector<Matrix> sorted;
  for (const int64_t row : rows)
    sorted.push_back(Number(inputs, 3, 0) != 0 ? *FilledMatrix(1, 1, static_cast<double>(row + 1))
                                               : Index(x, row + 1, row + 1, 1, x.columns()));
  return Rbind(sorted);
}

Value OfTable(const Node&, Inputs inputs) {
  const Matrix &a = M(inputs, 0), &b = M(inputs, 1);
  std::vector<double> columns, weights;
  for (int64_t i = 0; i < b.rows(); ++i)
    for (int64_t j = 0; j < b.columns(); ++j) {
      columns.push_back(b.At(i, j));
      weights.push_back(Given(inputs, 2) == nullptr ? 1 : M(inputs, 2).At(i, j));
    }
  return Table(a, columns, weights, Integer(inputs, 3, static_cast<int64_t>(FullAggregate("max", a))),
               Integer(inputs, 4, static_cast<int64_t>(FullAggregate("max", b))));
}

Value OfReplace(const Node&, Inputs inputs) {
  return Replace(M(inputs, 0), Number(inputs, 1, 0), Number(inputs, 2, 0));
}

Value OfAsMatrix(const Node&, Inputs inputs) {
  if (inputs[0]->IsMatrix()) return *inputs[0];
  if (inputs[0]->IsFrame()) return AsMatrix(inputs[0]->frame());
  if (inputs[0]->IsMatrix()) return M(inputs, 0);
  return *FilledMatrix(1, 1, inputs[0]->scalar().AsDouble());
}
std::string_view SpecOf(Inputs inputs, size_t i) { return inputs[i]->scalar().AsString(); }

Value OfTransformApply(const Node&, Inputs inputs) {
  return TransformApply(inputs[0]->frame(), inputs[1]->frame(), SpecOf(inputs, 2));
}
Value OfTransformDecode(const Node&, Inputs inputs) {
  return TransformDecode(M(inputs, 0), inputs[1]->frame(), SpecOf(inputs, 2));
}
Value OfTransformColumnMap(const Node&, Inputs inputs) {
  return TransformColumnMap(inputs[0]->frame(), SpecOf(inputs, 1));
}
Value OfCategoricalMask(const Node&, Inputs inputs) {
  return CategoricalMask(inputs[0]->frame(), SpecOf(inputs, 1));
}
Value OfTokenize(const Node&, Inputs inputs) {
  return Tokenize(inputs[0]->frame(), SpecOf(inputs, 1), Integer(inputs, 2, INT64_MAX));
}
std::vector<Value> OfTransformEncode(const Node&, Inputs inputs) {
  auto [encoded, meta] = TransformEncode(inputs[0]->frame(), SpecOf(inputs, 1));
  return {std::move(encoded), std::move(meta)};
}

template <Frame (*kernel)(const Frame&, const Frame&)>
Value OfTwoFrames(const Node&, Inputs inputs) {
  return kernel(inputs[0]->frame(), inputs[1]->frame());
}
Value OfAsFrame(const Node&, Inputs inputs) { return AsFrame(M(inputs, 0)); }
Value OfSize(const Node& node, Inputs inputs) {
  const Matrix& x = M(inputs, 0);
  return Scalar(node.op == "nrow" ? x.rows() : node.op == "ncol" ? x.columns() : x.rows() * x.columns());
}

const Matrix* Weights(Inputs inputs, size_t i) {
  return Given(inputs, i) == nullptr ? nullptr : &M(inputs, i);
}

Value OfQuantile(const Node&, Inputs inputs) {
  const Matrix* weights = inputs.size() == 3 ? &M(inputs, 1) : nullptr;
  const Value& p = *inputs.back();
  if (p.IsScalar()) return Scalar(Quantile(M(inputs, 0), weights, p.scalar().AsDouble(), true));
  Matrix result = *Matrix::Dense(p.matrix().rows(), 1);
  for (int64_t i = 0; i < result.rows(); ++i)
    result.mutable_data()[i] = Quantile(M(inputs, 0), weights, p.matrix().At(i, 0), false);
  return result;
}
Value OfMedian(const Node&, Inputs inputs) {
  return Scalar(Quantile(M(inputs, 0), Weights(inputs, 1), 0.5, true));
}
Value OfInterQuartileMean(const Node&, Inputs inputs) {
  return Scalar(InterQuartileMean(M(inputs, 0), Weights(inputs, 1)));
}
Value OfRanksAdjoint(const Node& node, Inputs inputs) {
  return RanksAdjoint(node.Text("of"), M(inputs, 0), Weights(inputs, 2), Given(inputs, 3), *inputs[1]);
}
Value OfCumulativeAdjoint(const Node& node, Inputs inputs) {
  return CumulativeAdjoint(node.Text("of"), M(inputs, 0), M(inputs, 1), M(inputs, 2));
}
Value OfTableAdjoint(const Node&, Inputs inputs) {
  return TableAdjoint(M(inputs, 0), *inputs[1], *inputs[2], M(inputs, 3));
}
Value OfEigenAdjoint(const Node&, Inputs inputs) {
  const Value *values = Given(inputs, 3), *vectors = Given(inputs, 4);
  return EigenAdjoint(M(inputs, 1), M(inputs, 2), values == nullptr ? nullptr : &values->matrix(),
                      vectors == nullptr ? nullptr : &vectors->matrix());
}
Value OfMoment(const Node&, Inputs inputs) {
  const Matrix* weights = inputs.size() == 3 ? &M(inputs, 1) : nullptr;
  return Scalar(Moment(M(inputs, 0), weights, Integer(inputs, inputs.size() - 1, 0)));
}
Value OfCovariance(const Node&, Inputs inputs) {
  return Scalar(Covariance(M(inputs, 0), M(inputs, 1), Weights(inputs, 2)));
}
Value OfWeightedMean(const Node&, Inputs inputs) { return Scalar(Moment(M(inputs, 0), &M(inputs, 1), 0)); }

Value OfTriangle(const Node& node, Inputs inputs) {
  const Matrix& x = M(inputs, 0);
  const bool diagonal = Number(inputs, 1, 0) != 0, values = Number(inputs, 2, 0) != 0;
  Matrix result = *FilledMatrix(x.rows(), x.columns(), 0);
  for (int64_t i = 0; i < x.rows(); ++i)
    for (int64_t j = 0; j < x.columns(); ++j)
      if ((i == j && diagonal) || (i != j && (i < j) == (node.op == "upper.tri")))
        result.mutable_data()[i * x.columns() + j] = values ? x.At(i, j) : x.CountNonzeros() > 0 ? 1 : 0;
  return result;
}

Value OfCumsumprod(const Node&, Inputs inputs) {
  const Matrix& x = M(inputs, 0);
  Matrix result = *Matrix::Dense(x.rows(), 1);
  for (int64_t i = 0; i < x.rows(); ++i) {
    const double product = x.At(i, 1) * (i == 0 ? 0 : result.At(i - 1, 0));
    result.mutable_data()[i] = x.At(i, 0) + product;
  }
  return result;
}

Value OfRowCumsum(const Node&, Inputs inputs) {
  const Matrix& x = M(inputs, 0);
  Matrix result = *FilledMatrix(x.rows(), x.columns(), 0);
  for (int64_t i = 0; i < x.rows(); ++i)
    for (int64_t j = 0; j < x.columns(); ++j)
      result.mutable_data()[i * x.columns() + j] = (j == 0 ? 0 : result.At(i, j - 1)) + x.At(i, j);
  return result;
}

Value OfContains(const Node&, Inputs inputs) {
  const Matrix& x = M(inputs, 0);
  const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  const bool is_row = inputs[1]->IsMatrix();
  for (int64_t i = 0; i < x.rows(); ++i) {
    bool all = true, any = false;
    for (int64_t j = 0; j < x.columns(); ++j) {
      const bool equal = same(x.At(i, j), is_row ? M(inputs, 1).At(0, j) : Number(inputs, 1, 0));
      all = all && equal;
      any = any || equal;
    }
    if (is_row ? all : any) return Scalar(true);
  }
  return Scalar(false);
}

Value OfUnique(const Node& node, Inputs inputs) {
  const std::string& dir = node.Text("dir");
  const Matrix& x = M(inputs, 0);
  return dir == "r" ? UniqueOfRows(x) : dir == "c" ? UniqueOfColumns(x) : Unique(x);
}
// The approximate counts are exact up to 1023 distinct values.
Value OfCountDistinct(const Node& node, Inputs inputs) {
  const Matrix& x = M(inputs, 0);
  const std::string& dir = node.Text("dir");
  const bool rows = node.op.starts_with("row") || dir == "r",
             columns = node.op.starts_with("col") || dir == "c";
  if (!rows && !columns) return Scalar(static_cast<int64_t>(Distinct(x, 0, x.rows(), 0, x.columns()).size()));
  Matrix result = *Matrix::Dense(rows ? x.rows() : 1, rows ? 1 : x.columns());
  for (int64_t k = 0; k < result.cells(); ++k)
    result.mutable_data()[k] = static_cast<double>(
        (rows ? Distinct(x, k, k + 1, 0, x.columns()) : Distinct(x, 0, x.rows(), k, k + 1)).size());
  return result;
}
Value OfGroupAggregate(const Node& node, Inputs inputs) {
  const Scalar* order = node.FindAttribute("order");
  const auto largest = static_cast<int64_t>(FullAggregate("max", M(inputs, 1)));
  return GroupAggregate(M(inputs, 0), M(inputs, 1), Weights(inputs, 2), node.Text("fn"),
                        order == nullptr ? 2 : static_cast<int>(order->AsInteger()),
                        Integer(inputs, 3, largest));
}
Value OfSample(const Node&, Inputs inputs) {
  return Sample(Integer(inputs, 0, 1), Integer(inputs, 1, 1), Number(inputs, 2, 0) != 0,
                Integer(inputs, 3, -1));
}
Value OfRoll(const Node&, Inputs inputs) {
  const Matrix& x = M(inputs, 0);
  Matrix result = *FilledMatrix(x.rows(), x.columns(), 0);
  for (int64_t i = 0; i < x.rows(); ++i)
    for (int64_t j = 0; j < x.columns(); ++j) {
      const int64_t to = ((i + Integer(inputs, 1, 0)) % x.rows() + x.rows()) % x.rows();
      result.mutable_data()[to * x.columns() + j] = x.At(i, j);
    }
  return result;
}
Value OfHistograms(const Node&, Inputs inputs) {
  return Histograms(M(inputs, 0), M(inputs, 1), M(inputs, 2), Integer(inputs, 3, 0), Integer(inputs, 4, 0));
}
Value OfEinsum(const Node& node, Inputs inputs) {
  const std::string& equation = node.Text("equation");
  const Matrix result = Einsum(equation, All(inputs));
  const bool is_scalar = equation.find_first_not_of(' ', equation.find("->") + 2) == std::string::npos;
  return is_scalar ? Value(Scalar(result.At(0, 0))) : Value(result);
}

// By name, where one reference is not that of a whole kind of operators.
constexpr std::pair<std::string_view, Kernel> kKernels[] = {
    {"ifelse", OfSelect},
    {"cumsum", OfCumulative},
    {"cumprod", OfCumulative},
    {"cummin", OfCumulative},
    {"cummax", OfCumulative},
    {"%*%", [](const Node&, Inputs inputs) -> Value { return Multiply(M(inputs, 0), M(inputs, 1)); }},
    {"t%*%",
     [](const Node&, Inputs inputs) -> Value { return TransposedMultiply(M(inputs, 0), M(inputs, 1)); }},
    {"sampledProduct",
     [](const Node&, Inputs inputs) -> Value {
       return SampledProduct(M(inputs, 0), M(inputs, 1), M(inputs, 2));
     }},
    {"t", [](const Node&, Inputs inputs) -> Value { return Transpose(M(inputs, 0)); }},
    {"cbind", [](const Node&, Inputs inputs) -> Value { return Cbind(All(inputs)); }},
    {"rbind", [](const Node&, Inputs inputs) -> Value { return Rbind(All(inputs)); }},
    {"diag", [](const Node&, Inputs inputs) -> Value { return Diag(M(inputs, 0)); }},
    {"regroup",
     [](const Node&, Inputs inputs) -> Value { return Regroup(M(inputs, 0), Integer(inputs, 1, 0)); }},
    {"compress", [](const Node&, Inputs inputs) -> Value { return M(inputs, 0); }},
    {"decompress", [](const Node&, Inputs inputs) -> Value { return M(inputs, 0); }},
    {"rev", [](const Node&, Inputs inputs) -> Value { return Rev(M(inputs, 0)); }},
    {"index", OfIndex},
    {"indexAssign", OfIndexAssign},
    {"matrix", OfMatrix},
    {"seq", OfSeq},
    {"rand", OfRand},
    {"removeEmpty", OfRemoveEmpty},
    {"order", OfOrder},
    {"table", OfTable},
    {"replace", OfReplace},
    {"solve", [](const Node&, Inputs inputs) -> Value { return Solve(M(inputs, 0), M(inputs, 1)); }},
    {"inv", [](const Node&, Inputs inputs) -> Value { return Inverse(M(inputs, 0)); }},
    {"cholesky", [](const Node&, Inputs inputs) -> Value { return Cholesky(M(inputs, 0)); }},
    {"det", [](const Node&, Inputs inputs) -> Value { return Scalar(Determinant(M(inputs, 0))); }},
    {"as.scalar", [](const Node&, Inputs inputs) -> Value { return Scalar(M(inputs, 0).At(0, 0)); }},
    {"as.matrix", OfAsMatrix},
    {"as.frame", OfAsFrame},
    {"colnames", [](const Node&, Inputs inputs) -> Value { return ColumnNames(inputs[0]->frame()); }},
    {"typeof", [](const Node&, Inputs inputs) -> Value { return TypesOfColumns(inputs[0]->frame()); }},
    {"getCategoricalMask", OfCategoricalMask},
    {"tokenize", OfTokenize},
    {"transformapply", OfTransformApply},
    {"transformdecode", OfTransformDecode},
    {"transformcolmap", OfTransformColumnMap},
    {"detectSchema", [](const Node&, Inputs inputs) -> Value { return DetectSchema(inputs[0]->frame()); }},
    {"applySchema", OfTwoFrames<ApplySchema>},
    {"dropInvalidType", OfTwoFrames<DropInvalidType>},
    {"valueSwap", OfTwoFrames<ValueSwap>},
    {"freplicate", OfTwoFrames<Replicate>},
    {"dropInvalidLength",
     [](const Node&, Inputs inputs) -> Value {
       return DropInvalidLength(inputs[0]->frame(), inputs[1]->matrix());
     }},
    {"replaceTexts",
     [](const Node&, Inputs inputs) -> Value {
       return ReplaceTexts(inputs[0]->frame(), inputs[1]->scalar().ToText(), inputs[2]->scalar().ToText());
     }},
    {"compareFrames",
     [](const Node& node, Inputs inputs) -> Value {
       return Compare(inputs[0]->frame(), inputs[1]->frame(), node.Text("comparison"));
     }},
    {"map",
     [](const Node&, Inputs inputs) -> Value {
       return Map(inputs[0]->frame(), inputs[1]->scalar().AsString());
     }},
    {"frame",
     [](const Node&, Inputs inputs) -> Value {
       return FilledFrame(inputs[0]->scalar().ToText(), inputs[1]->scalar().AsInteger(),
                          inputs[2]->scalar().AsInteger());
     }},
    {"quantile", OfQuantile},
    {"weightedQuantile", OfQuantile},
    {"median", OfMedian},
    {"interQuartileMean", OfInterQuartileMean},
    {"ranks_backward", OfRanksAdjoint},
    {"cumulative_backward", OfCumulativeAdjoint},
    {"table_backward", OfTableAdjoint},
    {"det_backward",
     [](const Node&, Inputs inputs) -> Value {
       return Cofactors(M(inputs, 0), inputs[1]->scalar().AsDouble());
     }},
    {"eigen_backward", OfEigenAdjoint},
    {"moment", OfMoment},
    {"weightedMoment", OfMoment},
    {"cov", OfCovariance},
    {"weightedMean", OfWeightedMean},
    {"upper.tri", OfTriangle},
    {"lower.tri", OfTriangle},
    {"cumsumprod", OfCumsumprod},
    {"rowcumsum", OfRowCumsum},
    {"sumTo", OfSumTo},
    {"spreadTo", OfSpreadTo},
    {"contains", OfContains},
    {"unique", OfUnique},
    {"countDistinct", OfCountDistinct},
    {"rowCountDistinct", OfCountDistinct},
    {"colCountDistinct", OfCountDistinct},
    {"countDistinctApprox", OfCountDistinct},
    {"rowCountDistinctApprox", OfCountDistinct},
    {"colCountDistinctApprox", OfCountDistinct},
    {"aggregate", OfGroupAggregate},
    {"sample", OfSample},
    {"roll", OfRoll},
    {"histograms", OfHistograms},
    {"einsum", OfEinsum},
    {"sqrtMatrixJava", [](const Node&, Inputs inputs) -> Value { return SquareRoot(M(inputs, 0)); }},
    {"nrow", OfSize},
    {"ncol", OfSize},
    {"length", OfSize},
};

std::vector<Value> OfFourier(const Node& node, Inputs inputs) {
  const Value* const im = Given(inputs, 1);
  return ValuesOf(FourierOf(M(inputs, 0), im == nullptr ? nullptr : &im->matrix(), node.op.starts_with('i'),
                            node.op.ends_with("_linearized")));
}

// The numbers are the last two inputs, also where the imaginary part is left out.
std::vector<Value> OfWindows(const Node&, Inputs inputs) {
  const size_t last = Given(inputs, 3) != nullptr ? 3 : 2;
  return ValuesOf(FourierOfWindows(M(inputs, 0), last == 3 ? &M(inputs, 1) : nullptr,
                                   Integer(inputs, last - 1, 0), Integer(inputs, last, 0)));
}

constexpr std::pair<std::string_view, SeveralKernel> kSeveralKernels[] = {
    {"transformencode", OfTransformEncode},
    {"eigen", [](const Node&, Inputs inputs) { return ValuesOf(Eigen(M(inputs, 0))); }},
    {"svd", [](const Node&, Inputs inputs) { return ValuesOf(SingularValues(M(inputs, 0))); }},
    {"qr", [](const Node&, Inputs inputs) { return ValuesOf(Qr(M(inputs, 0))); }},
    {"lu", [](const Node&, Inputs inputs) { return ValuesOf(Lu(M(inputs, 0))); }},
    {"fft", OfFourier},
    {"ifft", OfFourier},
    {"fft_linearized", OfFourier},
    {"ifft_linearized", OfFourier},
    {"stft", OfWindows},
    {"rowClassMeet",
     [](const Node&, Inputs inputs) { return ValuesOf(ClassMeet(M(inputs, 0), M(inputs, 1))); }},
};

}  // namespace

Kernel FindKernel(std::string_view name) {
  for (const auto& [known, kernel] : kKernels)
    if (known == name) return kernel;
  if (const Kernel kernel = FindNeuralKernel(name)) return kernel;
  const Operator* op = FindOperator(name);
  if (op == nullptr) return nullptr;
  if (op->unary) return OfUnary;
  if (op->binary) return OfBinary;
  if (op->aggregate == nullptr) return nullptr;
  switch (op->aggregate->scope) {
    case AggregateScope::kFull: return OfFull;
    case AggregateScope::kRow: return OfRows;
    case AggregateScope::kColumn: break;
  }
  return OfColumns;
}

std::vector<Value> ValuesOf(const std::vector<Matrix>& matrices) {
  return {matrices.begin(), matrices.end()};
}

SeveralKernel FindSeveralKernel(std::string_view name) {
  for (const auto& [known, kernel] : kSeveralKernels)
    if (known == name) return kernel;
  return FindNeuralSeveralKernel(name);
}

}  // namespace heddle::ops::reference
