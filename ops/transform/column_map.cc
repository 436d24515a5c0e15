// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/base/arguments.h"
#include "ops/base/stages.h"
#include "ops/catalog.h"
#include "ops/transform/arguments.h"
#include "ops/transform/metadata.h"

namespace heddle::ops {
namespace {

enum Input { kMeta, kSpec };

Result<ValueInfo> InferColumnMap(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireFrame(context, kMeta, "target"));
  const ValueInfo& meta = context.inputs[kMeta];
  HEDDLE_RETURN_IF_ERROR(InferSpec(context, kSpec, meta.schema).status());
  if (context.node.FindAttribute("udf") != nullptr) return ValueInfo::OfMatrix({kUnknown, 3});
  return ValueInfo::OfMatrix({meta.shape.columns, 3});
}

Result<Value> RunColumnMap(const KernelCall& call) {
  const Frame& meta = call.inputs[kMeta]->frame();
  HEDDLE_ASSIGN_OR_RETURN(const TransformSpec spec, GivenSpec(call, kSpec, *meta.schema()));
  HEDDLE_ASSIGN_OR_RETURN(const EncodedLayout layout, LayoutOf(call.node.op, spec, meta));
  std::vector<size_t> columns;
  for (size_t j = 0; j < spec.columns.size(); ++j)
    if (call.node.FindAttribute("udf") == nullptr || spec.columns[j].function) columns.push_back(j);
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(static_cast<int64_t>(columns.size()), 3));
  double* cell = result.mutable_data();
  for (const size_t j : columns) {
    *cell++ = static_cast<double>(j + 1);
    *cell++ = static_cast<double>(layout.first[j] + 1);
    *cell++ = static_cast<double>(layout.first[j + 1]);
  }
  return Value(std::move(result));
}

// Metadata are as small as the dictionaries in them; their rows may lie on several ranks.
Status RunStage(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 0) {
    outputs[0] = *call.inputs[kMeta];
    return OkStatus();
  }
  std::vector<const Value*> inputs(call.inputs.begin(), call.inputs.end());
  inputs[kMeta] = &call.Received(0);
  KernelCall whole = call.WholeCall();
  whole.inputs = inputs;
  HEDDLE_ASSIGN_OR_RETURN(outputs[0], RunColumnMap(whole));
  return OkStatus();
}

constexpr Reach kToAll[] = {Reach::kAll};
constexpr Stage kStages[] = {{.outputs = kToAll, .reads_inputs = true}, {.reads_inputs = true}};
constexpr StagedForm kStaged = {.stages = kStages, .result = StagedResult::kEach, .run = RunStage};

}  // namespace

/// transformcolmap(target=M, spec=text): where the columns of the frame are in the encoded matrix.
///
/// Shapes:  M has n columns, the result is n x 3: number, first and last column of the encoded matrix. With
///          the attribute "udf", which the compiler adds, only the columns that a function makes.
/// Errors:  in the spec; metadata that are not those of the spec.
/// Cost:    reads the metadata.
extern constexpr Operator kTransformColumnMap = {.name = "transformcolmap",
                                                 .form = CallForm::kNamed,
                                                 .parameters = "target spec",
                                                 .min_inputs = 2,
                                                 .max_inputs = 2,
                                                 .infer = InferColumnMap,
                                                 .input_use = FirstByRows,
                                                 .staged = &kStaged,
                                                 .run = RunColumnMap,
                                                 .may_fail = true,
                                                 .takes_frames = true};

}  // namespace heddle::ops
