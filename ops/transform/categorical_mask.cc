// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "ops/base/arguments.h"
#include "ops/base/stages.h"
#include "ops/catalog.h"
#include "ops/transform/arguments.h"
#include "ops/transform/metadata.h"

namespace heddle::ops {
namespace {

enum Input { kMeta, kSpec };

bool IsCategorical(const ColumnSpec& column) {
  return column.encoder == Encoder::kRecode || column.encoder == Encoder::kHash ||
         column.encoder == Encoder::kBin;
}

Result<ValueInfo> InferMask(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireFrame(context, kMeta, "target"));
  const ValueInfo& meta = context.inputs[kMeta];
  HEDDLE_ASSIGN_OR_RETURN(const std::optional<TransformSpec> spec, InferSpec(context, kSpec, meta.schema));
  return ValueInfo::OfMatrix({1, spec && spec->HasOneColumnEach() ? meta.shape.columns : kUnknown});
}

Result<Value> RunMask(const KernelCall& call) {
  const Frame& meta = call.inputs[kMeta]->frame();
  HEDDLE_ASSIGN_OR_RETURN(const TransformSpec spec, GivenSpec(call, kSpec, *meta.schema()));
  HEDDLE_ASSIGN_OR_RETURN(const EncodedLayout layout, LayoutOf(call.node.op, spec, meta));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, FilledMatrix(1, layout.columns(), 0));
  for (size_t j = 0; j < spec.columns.size(); ++j)
    if (IsCategorical(spec.columns[j]))
      std::fill(result.mutable_data() + layout.first[j], result.mutable_data() + layout.first[j + 1], 1.0);
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
  HEDDLE_ASSIGN_OR_RETURN(outputs[0], RunMask(whole));
  return OkStatus();
}

constexpr Reach kToAll[] = {Reach::kAll};
constexpr Stage kStages[] = {{.outputs = kToAll, .reads_inputs = true}, {.reads_inputs = true}};
constexpr StagedForm kStaged = {.stages = kStages, .result = StagedResult::kEach, .run = RunStage};

}  // namespace

/// getCategoricalMask(M, spec): which columns of the encoded matrix are codes or dummies of codes.
///
/// Shapes:  1 x columns of the encoded matrix: 1 where recode, hash, bin or dummycode made the column, else
/// 0. Errors:  as of transformcolmap. Cost:    reads the metadata.
extern constexpr Operator kCategoricalMask = {.name = "getCategoricalMask",
                                              .form = CallForm::kPositional,
                                              .parameters = "target spec",
                                              .min_inputs = 2,
                                              .max_inputs = 2,
                                              .infer = InferMask,
                                              .input_use = FirstByRows,
                                              .staged = &kStaged,
                                              .run = RunMask,
                                              .may_fail = true,
                                              .takes_frames = true};

}  // namespace heddle::ops
