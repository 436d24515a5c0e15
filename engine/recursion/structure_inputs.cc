// SPDX-License-Identifier: Apache-2.0
#include "engine/recursion/structure_inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "compiler/optimize/infer.h"
#include "ops/recursion/structure/visit_structure.h"

namespace heddle::engine {
namespace {

// Doubles are the whole numbers up to here.
constexpr double kMostWhole = 9007199254740992.0;

// In memory, or cell by cell: where several ranks compute, plans bring a structure to them anew.
bool IsSameMatrix(const Value& a, const Value& b) {
  const Matrix &x = a.matrix(), &y = b.matrix();
  if (x.IsSameView(y)) return true;
  return x.IsDense() && y.IsDense() && x.shape() == y.shape() && x.element_type() == y.element_type() &&
         std::memcmp(x.data<char>(), y.data<char>(), static_cast<size_t>(x.bytes())) == 0;
}

}  // namespace

bool StructureInputs::IsSame(const StructureInputs& other) const {
  return uniforms == other.uniforms && std::equal(matrices.begin(), matrices.end(), other.matrices.begin(),
                                                  other.matrices.end(), IsSameMatrix);
}

Result<std::vector<Matrix>> StructureInputs::Dense() const {
  std::vector<Matrix> dense;
  for (const Value& matrix : matrices) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix cells, ToDense(matrix.matrix()));
    dense.push_back(std::move(cells));
  }
  return dense;
}

std::optional<StructureInputs> InputsOf(const ops::StructureProgram& program, const VariableTable& frame) {
  StructureInputs given;
  for (const std::string& name : program.matrices) {
    const Variable* const matrix = frame.Find(name);
    if (matrix == nullptr || !matrix->info.IsMatrix() || matrix->is_growing || matrix->is_placeholder ||
        matrix->value.IsPanels())
      return std::nullopt;
    given.matrices.push_back(matrix->value);
  }
  for (const ops::StructureProgram::Uniform& uniform : program.uniforms) {
    const Variable* const variable = frame.Find(uniform.parameter);
    if (variable == nullptr) return std::nullopt;
    if (uniform.size.empty()) {
      if (!variable->info.IsScalar() || variable->value.scalar().IsString()) return std::nullopt;
      given.uniforms.push_back(variable->value.scalar().AsDouble());
      continue;
    }
    const std::optional<Scalar> size = compiler::SizeOf(uniform.size, variable->info.shape);
    if (!size) return std::nullopt;
    given.uniforms.push_back(size->AsDouble());
  }
  return given;
}

std::optional<int64_t> NodeIn(const std::string& name, const VariableTable& callee) {
  const Variable* const node = callee.Find(name);
  if (node == nullptr || !node->info.IsScalar() || node->value.scalar().IsString()) return std::nullopt;
  const double number = node->value.scalar().AsDouble();
  const auto whole = static_cast<int64_t>(std::clamp(number, -1.0, 1e15));
  return number >= 0 && static_cast<double>(whole) == number ? std::optional<int64_t>(whole) : std::nullopt;
}

std::optional<std::vector<int64_t>> RootsOf(const ops::StructureProgram& structure,
                                            const std::function<int64_t(uint64_t round)>& value_of,
                                            uint64_t rounds, const VariableTable& frame) {
  const std::optional<StructureInputs> given = InputsOf(structure, frame);
  if (!given) return std::nullopt;
  Result<std::vector<Matrix>> dense = given->Dense();
  if (!dense.ok()) return std::nullopt;
  std::vector<int64_t> counters;
  for (uint64_t round = 0; round < rounds; ++round) counters.push_back(value_of(round));
  return ops::StructureVisitor(structure, *std::move(dense), given->uniforms, ops::StructureVisitor::kNoLimit)
      .CallsOf(counters);
}

Result<Value> ValueAt(const ops::NodeResults& results, size_t i, int32_t place) {
  const Matrix& all = results.rows[i];
  const ValueInfo& info = results.infos[i];
  if (info.IsScalar()) return Value(Scalar(all.At(place, 0)));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result,
                          Matrix::Dense(info.shape.rows, info.shape.columns, all.element_type()));
  const size_t bytes = static_cast<size_t>(all.columns()) * static_cast<size_t>(BytesOf(all.element_type()));
  std::memcpy(result.mutable_data<char>(), all.data<char>() + static_cast<size_t>(place) * bytes, bytes);
  return Value(std::move(result));
}

Variable VariableOf(Value value, ValueType type, int ranks) {
  if (value.IsScalar()) {
    const double number = value.scalar().AsDouble();
    if (type == ValueType::kBoolean) return Variable::OfScalar(Scalar(number != 0));
    if (type == ValueType::kInteger && std::trunc(number) == number && std::fabs(number) < kMostWhole)
      return Variable::OfScalar(Scalar(static_cast<int64_t>(number)));
    return Variable::OfScalar(Scalar(number));
  }
  Variable variable;
  variable.info = ValueInfo::OfMatrix(value.matrix().shape());
  variable.info.element_type = value.matrix().element_type();
  variable.distribution = ranks > 1 ? Distribution::Each() : Distribution::One();
  variable.value = std::move(value);
  return variable;
}

}  // namespace heddle::engine
