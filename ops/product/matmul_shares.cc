// SPDX-License-Identifier: Apache-2.0
#include "ops/product/matmul_shares.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ops/elementwise/single_precision.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/frame/row_pieces.h"
#include "ops/product/matmul_gemm.h"

namespace heddle::ops {
namespace {

template <typename Cell>
void AddCells(const Matrix& a, const Matrix& y, int64_t begin, int64_t end, bool is_first,
              const KernelContext& context, double* sums) {
  Run(GemmOf<Cell>{.m = end - begin,
                   .n = y.columns(),
                   .k = a.columns(),
                   .a = a.data<Cell>() + begin * a.columns(),
                   .a_row = a.columns(),
                   .b = y.data<Cell>(),
                   .b_row = y.columns(),
                   .c = sums,
                   .c_row = y.columns(),
                   .accumulate = !is_first,
                   .parallel = true,
                   .cancelled = context.cancelled});
}

}  // namespace

ProductSizes SizesOf(std::span<const ValueInfo> inputs) {
  return {.rows = inputs[kA].shape.rows, .inner = inputs[kY].shape.rows, .columns = inputs[kY].shape.columns};
}

bool IsSizedProduct(const Node& node, std::span<const ValueInfo> inputs) {
  return node.info.IsSized() && inputs[kA].IsMatrix() && inputs[kY].IsMatrix() && inputs[kA].IsSized() &&
         inputs[kY].IsSized();
}

double BytesOfSums(std::span<const ValueInfo> inputs) {
  const ProductSizes sizes = SizesOf(inputs);
  return static_cast<double>(sizeof(double)) * static_cast<double>(sizes.rows) *
         static_cast<double>(sizes.columns);
}

Result<Value> RowsOfPieces(std::span<const Value* const> pieces, int64_t first, int64_t begin, int64_t end) {
  std::vector<Value> slices;
  for (const Value* const piece : pieces) {
    const int64_t last = first + piece->shape().rows;
    const int64_t from = std::clamp(begin, first, last), to = std::clamp(end, from, last);
    if (from < to || slices.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(Value slice, SliceRows(*piece, from - first, to - first));
      if (!slices.empty() && slices[0].shape().rows == 0) slices.clear();
      slices.push_back(std::move(slice));
    }
    first = last;
  }
  std::vector<const Value*> pointers;
  for (const Value& slice : slices) pointers.push_back(&slice);
  return pointers.size() == 1 ? Result<Value>(slices[0]) : JoinRows(pointers);
}

Result<Matrix> AsElements(const Node& node, Matrix product) {
  return node.info.element_type == ElementType::kFloat32 ? Narrow(product) : Result<Matrix>(product);
}

bool HasOpenChains(const Node& node, std::span<const ValueInfo> inputs) {
  return IsSizedProduct(node, inputs) && !IsNarrow(inputs[kY].shape.columns) && !HasPanels(node, inputs) &&
         inputs[kA].format == Format::kDense && inputs[kY].format == Format::kDense &&
         inputs[kA].element_type == inputs[kY].element_type;
}

bool HasPanels(const Node& node, std::span<const ValueInfo> inputs) {
  const ProductSizes sizes = SizesOf(inputs);
  return IsSizedProduct(node, inputs) && SplitsInner(sizes.rows, sizes.inner, sizes.columns);
}

void AddProduct(const Matrix& a, const Matrix& y, int64_t begin, int64_t end, bool is_first,
                const KernelContext& context, double* sums) {
  if (HoldsSingles(y))
    AddCells<float>(a, y, begin, end, is_first, context, sums);
  else
    AddCells<double>(a, y, begin, end, is_first, context, sums);
}

}  // namespace heddle::ops
