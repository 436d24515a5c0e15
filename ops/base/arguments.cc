// SPDX-License-Identifier: Apache-2.0
#include "ops/base/arguments.h"

#include "ops/base/whole_number.h"

namespace heddle::ops {

bool IsGiven(const Node& node, int i) {
  const auto index = static_cast<size_t>(i);
  return index < node.inputs.size() && node.inputs[index] != kNoNode;
}

const Scalar* KnownScalar(const InferContext& context, int i) {
  const auto index = static_cast<size_t>(i);
  return index < context.scalars.size() ? context.scalars[index] : nullptr;
}

Status RequireMatrix(const InferContext& context, int i, std::string_view what) {
  const auto index = static_cast<size_t>(i);
  if (!IsGiven(context.node, i) || index >= context.inputs.size())
    return InvalidArgument("{}: {} is missing", context.node.op, what);
  const DataType type = context.inputs[index].data_type;
  if (type == DataType::kMatrix || type == DataType::kUnknown) return OkStatus();
  Status error = InvalidArgument("{}: {} must be a matrix, not a {}", context.node.op, what, Name(type));
  return type == DataType::kScalar ? error.WithNote("as.matrix(x) makes a 1x1 matrix of a scalar") : error;
}

Status RequireScalar(const InferContext& context, int i, std::string_view what) {
  const auto index = static_cast<size_t>(i);
  if (!IsGiven(context.node, i) || index >= context.inputs.size())
    return InvalidArgument("{}: {} is missing", context.node.op, what);
  const DataType type = context.inputs[index].data_type;
  if (type == DataType::kScalar || type == DataType::kUnknown) return OkStatus();
  Status error = InvalidArgument("{}: {} must be a scalar, not a {}", context.node.op, what, Name(type));
  return type == DataType::kMatrix ? error.WithNote("as.scalar(X) makes a scalar of a 1x1 matrix") : error;
}

Result<int64_t> InferSize(const InferContext& context, int i, std::string_view what, int64_t fallback) {
  if (!IsGiven(context.node, i)) return fallback;
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, i, what));
  const Scalar* scalar = KnownScalar(context, i);
  if (scalar == nullptr) return kUnknown;
  return RequireSize(*scalar, context.node.op, what, StatusCode::kInvalidArgument);
}

const Scalar* GivenScalar(const KernelCall& call, int i) {
  const auto index = static_cast<size_t>(i);
  if (index >= call.inputs.size() || call.inputs[index] == nullptr || !call.inputs[index]->IsScalar())
    return nullptr;
  return &call.inputs[index]->scalar();
}

Result<int64_t> GivenSize(const KernelCall& call, int i, std::string_view what, int64_t fallback) {
  const Scalar* scalar = GivenScalar(call, i);
  if (scalar == nullptr) return fallback;
  return RequireSize(*scalar, call.node.op, what, StatusCode::kFailedPrecondition);
}

double NumberOr(const KernelCall& call, int i, double fallback) {
  const Scalar* scalar = GivenScalar(call, i);
  return scalar == nullptr ? fallback : scalar->AsDouble();
}

bool BooleanOr(const KernelCall& call, int i, bool fallback) {
  const Scalar* scalar = GivenScalar(call, i);
  return scalar == nullptr ? fallback : scalar->AsBoolean();
}

bool BooleanAttribute(const Node& node, std::string_view name, bool fallback) {
  const Scalar* value = node.FindAttribute(name);
  return value == nullptr ? fallback : value->AsBoolean();
}

}  // namespace heddle::ops
