// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/adjoint/adjoint_sums.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "ops/base/parallel.h"

namespace heddle::ops {
namespace {

constexpr int64_t kBytesAtOnce = 1 << 18;

template <typename From, typename To>
void AddNumbers(const From* from, int64_t cells, To* to) {
  for (int64_t i = 0; i < cells; ++i) to[i] += static_cast<To>(from[i]);
}

ValueInfo InfoOf(const Matrix& matrix) {
  ValueInfo info = ValueInfo::OfMatrix(matrix.shape());
  info.element_type = matrix.element_type();
  return info;
}

// t(left) %*% right or colSums(right).
Result<Matrix> SumOf(const AdjointSums::Term& term, const Matrix& left, const Matrix& right,
                     const KernelSource& kernels, KernelContext& context) {
  const bool is_product = term.kind == RecursiveAdjoint::Term::Kind::kProduct;
  Node node;
  node.op = is_product ? "t%*%" : "colSums";
  node.info = ValueInfo::OfMatrix(term.shape);
  node.info.element_type = right.element_type();
  std::vector<Value> values;
  if (is_product) values.emplace_back(left);
  values.emplace_back(right);
  std::vector<const Value*> inputs;
  std::vector<ValueInfo> infos;
  for (const Value& value : values) {
    inputs.push_back(&value);
    infos.push_back(InfoOf(value.matrix()));
    node.inputs.push_back(static_cast<NodeId>(node.inputs.size()));
  }
  HEDDLE_ASSIGN_OR_RETURN(const Value sum, kernels.Run({.node = node,
                                                        .phase = Phase::kWhole,
                                                        .inputs = inputs,
                                                        .input_infos = infos,
                                                        .row_end = term.shape.rows,
                                                        .total_rows = term.shape.rows,
                                                        .context = context}));
  return ToDense(sum.matrix());
}

}  // namespace

Result<Matrix*> AdjointSums::CellsOf(const std::string& parameter) {
  const auto [found, is_new] = cells_.try_emplace(parameter);
  if (is_new) {
    HEDDLE_ASSIGN_OR_RETURN(found->second, ZeroAdjoint(wanted_->at(parameter)));
  }
  return &found->second;
}

Status AdjointSums::AddCells(const Term& term, const Matrix& rows, int64_t place) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix* const to, CellsOf(term.parameter));
  const int64_t width = term.shape.columns;
  for (int64_t i = 0; i < term.shape.rows; ++i)
    AddRow(rows, place, i * width, width, to, term.row + i, term.column);
  return OkStatus();
}

Status AdjointSums::Add(const Term& term, const Linearized::Class& node_class, const Matrix& left,
                        const Matrix& right, const KernelSource& kernels, KernelContext& context) {
  if (term.kind == Term::Kind::kLookup) {
    const double* const numbers = node_class.numbers.data() + term.number * right.rows();
    lookups_.push_back({term.parameter, term.column, {numbers, numbers + right.rows()}, right});
    return OkStatus();
  }
  HEDDLE_ASSIGN_OR_RETURN(const Matrix sum, SumOf(term, left, right, kernels, context));
  return AddCells(term, sum.Reshaped(1, sum.cells()), 0);
}

void AddRow(const Matrix& from, int64_t row, int64_t first, int64_t cells, Matrix* to, int64_t to_row,
            int64_t to_first) {
  const auto add = [&](auto* zero) {
    const auto* const source = from.data<std::decay_t<decltype(*zero)>>() + row * from.columns() + first;
    const int64_t target = to_row * to->columns() + to_first;
    if (to->element_type() == ElementType::kFloat64)
      AddNumbers(source, cells, to->mutable_data<double>() + target);
    else
      AddNumbers(source, cells, to->mutable_data<float>() + target);
  };
  if (from.element_type() == ElementType::kFloat64)
    add(static_cast<const double*>(nullptr));
  else
    add(static_cast<const float*>(nullptr));
}

void AddMatrix(const Matrix& from, Matrix* to) {
  for (int64_t row = 0; row < from.rows(); ++row) AddRow(from, row, 0, from.columns(), to, row, 0);
}

Result<Matrix> ZeroCells(Shape shape, ElementType type) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix zeros, Matrix::Dense(shape.rows, shape.columns, type));
  char* const cells = zeros.mutable_data<char>();
  ParallelFor(zeros.bytes(), kBytesAtOnce, [&](int64_t begin, int64_t end) {
    std::memset(cells + begin, 0, static_cast<size_t>(end - begin));
  });
  return zeros;
}

Result<Matrix> ZeroAdjoint(const ValueInfo& parameter) {
  if (parameter.IsScalar()) return ZeroCells({1, 1}, ElementType::kFloat64);
  return ZeroCells(parameter.shape, parameter.element_type);
}

}  // namespace heddle::ops
