// SPDX-License-Identifier: Apache-2.0
#include "ops/product/matmul.h"

#include <algorithm>

#include "ops/base/device_forms.h"
#include "ops/base/machine_constants.h"
#include "ops/catalog.h"
#include "ops/cells/storage.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/product/compressed_products.h"
#include "ops/product/matmul_stages.h"
#include "ops/product/product_of_panels.h"

// %*% and t%*% (t(X) %*% Y): shapes, placement, and the choice of the kernel.
namespace heddle::ops {
namespace {

bool IsTransposed(const Node& node) { return RoleOf(node) == Role::kTransposedProduct; }

Status CheckMatrix(const ValueInfo& info, const char* side) {
  if (info.data_type == DataType::kMatrix || info.data_type == DataType::kUnknown) return OkStatus();
  return InvalidArgument("%*%: the {} operand must be a matrix, got a {}", side, Name(info.data_type))
      .WithNote("scalars are multiplied with *");
}

// As the user wrote it: of t(X) %*% Y the left shape is that of t(X).
Status CheckInner(const Shape& left, const Shape& right) {
  if (left.columns < 0 || right.rows < 0 || left.columns == right.rows) return OkStatus();
  Status status = InvalidArgument("%*%: inner dimensions differ: {} and {}", left, right);
  if (left.columns == right.columns)
    return status.WithNote("X %*% t(Y) would fit: the left columns match the right columns");
  if (left.rows == right.rows)
    return status.WithNote("t(X) %*% Y would fit: the left rows match the right rows");
  return status.WithNote("the left operand needs as many columns as the right one has rows");
}

Result<ValueInfo> InferProduct(const InferContext& context) {
  const ValueInfo &x = context.inputs[0], &y = context.inputs[1];
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(x, "left"));
  HEDDLE_RETURN_IF_ERROR(CheckMatrix(y, "right"));
  const Shape left = IsTransposed(context.node) ? Shape{x.shape.columns, x.shape.rows} : x.shape;
  HEDDLE_RETURN_IF_ERROR(CheckInner(left, y.shape));
  // CSR %*% CSR is CSR; every other product is dense.
  const bool sparse =
      !IsTransposed(context.node) && x.format == Format::kSparse && y.format == Format::kSparse;
  return ValueInfo::OfMatrix({left.rows, y.shape.columns}, sparse ? Format::kSparse : Format::kDense);
}

RowRule ProductRowRule(const Node& node, std::span<const ValueInfo>) {
  return IsTransposed(node) ? RowRule::kReduce : RowRule::kRowWise;
}

InputUse ProductInputUse(const Node& node, std::span<const ValueInfo>, int i) {
  return IsTransposed(node) || i == 0 ? InputUse::kRows : InputUse::kWhole;
}

Cost ProductCost(const Node& node, std::span<const ValueInfo> inputs) {
  const Shape &x = inputs[0].shape, &y = inputs[1].shape;
  if (!x.IsKnown() || !y.IsKnown()) return {};
  const double cells =
      static_cast<double>(IsTransposed(node) ? x.columns : x.rows) * static_cast<double>(y.columns);
  return {.work = kWorkOfMultiplyAdd * cells * static_cast<double>(y.rows),
          .bytes = 8 * (static_cast<double>(x.Cells()) + static_cast<double>(y.Cells()) + cells)};
}

Result<Value> RunProduct(const KernelCall& call) {
  if (call.phase == Phase::kPanels) return ProductOfPanels(call);
  const Matrix &a = call.inputs[0]->matrix(), &b = call.inputs[1]->matrix();
  if (Status inner = CheckInner(a.shape(), b.shape()); !inner.ok())
    return inner.WithCode(StatusCode::kFailedPrecondition);
  const int64_t whole_rows = call.input_infos[0].shape.IsKnown() ? call.input_infos[0].shape.rows : a.rows();
  HEDDLE_ASSIGN_OR_RETURN(
      Matrix result,
      MultiplyPart(a, b, {.rows = whole_rows, .inner = a.columns(), .columns = b.columns()}, call.context));
  return Value(std::move(result));
}

// Products with few columns are sums of doubles, which dense floats become in the first-level cache
// (docs/numerics.md, section 9).
bool TakesSingles(const KernelCall& call) {
  if (call.phase == Phase::kPanels) return true;
  // Nodes of chunks of columns are sums of doubles: the rows of all ranks decide, not those of this one.
  if (call.phase == Phase::kStage)
    return !IsNarrow(call.input_infos[1].shape.columns) || call.input_infos[0].shape.columns <= kColumnChunk;
  const Matrix &a = call.inputs[0]->matrix(), &b = call.inputs[1]->matrix();
  if (!HoldsSingles(a) || !HoldsSingles(b)) return false;
  return !IsNarrow(b.columns()) || (!a.IsSparse() && a.columns() <= kColumnChunk);
}

PanelUse PanelUseOfProduct(const Graph& graph, const Node& node) {
  const ValueInfo inputs[] = {graph[node.inputs[0]].info, graph[node.inputs[1]].info};
  return MultipliesPanels(node, inputs) ? PanelUse::kComputes : PanelUse::kNone;
}

constexpr Operator Describe(std::string_view name, Role role, Result<Value> (*run)(const KernelCall&),
                            Result<std::optional<Value>> (*run_compressed)(const KernelCall&),
                            Result<std::optional<Value>> (*run_on_device)(const KernelCall&, DeviceQueue&),
                            bool (*takes_singles)(const KernelCall&), FusionTraits fusion,
                            const StagedForm* staged, std::string_view adjoints,
                            PanelUse (*panel_use)(const Graph&, const Node&) = nullptr) {
  return {.name = name,
          .parameters = "X Y",
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = InferProduct,
          .row_rule = ProductRowRule,
          .input_use = ProductInputUse,
          .panel_use = panel_use,
          .staged = staged,
          .cost = ProductCost,
          .run = run,
          .run_compressed = run_compressed,
          .run_on_device = run_on_device,
          .takes_singles = takes_singles,
          .kind = OperatorKind::kProduct,
          .role = role,
          .fusion = fusion,
          .adjoints = adjoints};
}

}  // namespace

Result<Matrix> MultiplyPart(const Matrix& a, const Matrix& b, const ProductSizes& whole,
                            const KernelContext& context) {
  Matrix result;
  if (IsNarrow(whole.columns)) {
    HEDDLE_ASSIGN_OR_RETURN(result, MultiplyNarrow(a, b, context));
  } else if (SplitsInner(whole.rows, whole.inner, whole.columns)) {
    HEDDLE_ASSIGN_OR_RETURN(result, MultiplySplit(a, b, context));
  } else if (a.IsSparse() && b.IsSparse()) {
    HEDDLE_ASSIGN_OR_RETURN(result, MultiplySparse(a, b, context));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(result, MultiplyWide(a, b, context));
  }
  if (IsCancelled(context.cancelled)) return Cancelled("cancelled");
  return a.IsSparse() && b.IsSparse() ? AsSparse(result) : result;
}

std::span<const Operator> MatmulOperators() {
  // Multiply-adds run at the peak of the machine, eight times the rate of single operations through the
  // caches.
  static constexpr Operator kOperators[] = {
      Describe("%*%", Role::kProduct, RunProduct, MultiplyCompressed, MultiplyOnDevice, TakesSingles,
               {.use = RowUse::kProduct, .row = true, .outer = true, .work = kWorkOfMultiplyAdd},
               &kProductStaged, "dy %*% t(Y); t(X) %*% dy", PanelUseOfProduct),
      Describe("t%*%", Role::kTransposedProduct, RunTransposedProduct, MultiplyTransposedCompressed,
               MultiplyTransposedOnDevice, TakesSinglesTransposed,
               {.use = RowUse::kTransposedProduct,
                .cell = true,
                .row = true,
                .outer = true,
                .work = kWorkOfMultiplyAdd},
               &kTransposedProductParts, "Y %*% t(dy); X %*% dy"),
  };
  return kOperators;
}

}  // namespace heddle::ops
