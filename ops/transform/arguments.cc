// SPDX-License-Identifier: Apache-2.0
#include "ops/transform/arguments.h"

#include "ops/base/arguments.h"

namespace heddle::ops {

Status RequireFrame(const InferContext& context, int i, std::string_view name) {
  const auto index = static_cast<size_t>(i);
  if (!IsGiven(context.node, i) || index >= context.inputs.size())
    return InvalidArgument("{}: {} is missing", context.node.op, name);
  const DataType type = context.inputs[index].data_type;
  if (type == DataType::kFrame || type == DataType::kUnknown) return OkStatus();
  const Status error = InvalidArgument("{}: {} must be a frame, not a {}", context.node.op, name, Name(type));
  return type == DataType::kMatrix ? error.WithNote("as.frame(X) makes a frame of a matrix") : error;
}

Result<std::optional<TransformSpec>> InferSpec(const InferContext& context, int i,
                                               const std::shared_ptr<const Schema>& schema) {
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, i, "spec"));
  const Scalar* const text = KnownScalar(context, i);
  if (text == nullptr) return std::optional<TransformSpec>();
  if (!text->IsString()) return InvalidArgument("{}: spec must be a string", context.node.op);
  if (schema == nullptr) {
    HEDDLE_RETURN_IF_ERROR(CheckTransformSpec(context.node.op, text->AsString()));
    return std::optional<TransformSpec>();
  }
  HEDDLE_ASSIGN_OR_RETURN(TransformSpec spec, ParseTransformSpec(context.node.op, text->AsString(), *schema));
  return std::optional(std::move(spec));
}

Result<TransformSpec> GivenSpec(const KernelCall& call, int i, const Schema& schema) {
  const Scalar* const text = GivenScalar(call, i);
  if (text == nullptr || !text->IsString())
    return FailedPrecondition("{}: spec must be a string", call.node.op);
  Result<TransformSpec> spec = ParseTransformSpec(call.node.op, text->AsString(), schema);
  if (spec.ok() || spec.status().code() != StatusCode::kInvalidArgument) return spec;
  return spec.status().WithCode(StatusCode::kFailedPrecondition);
}

}  // namespace heddle::ops
