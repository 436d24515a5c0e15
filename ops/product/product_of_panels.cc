// SPDX-License-Identifier: Apache-2.0
#include "ops/product/product_of_panels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "ops/base/held_bytes.h"
#include "ops/base/parallel.h"
#include "ops/cells/join_columns.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/storage.h"
#include "ops/frame/row_pieces.h"
#include "ops/panels/kept_parts.h"
#include "ops/panels/panel_store.h"
#include "ops/product/matmul_shares.h"
#include "ops/simd/product/gemm.h"

namespace heddle::ops {
namespace {

constexpr int64_t kSlicesOfBlock = 16;  // So many slices are as wide as a block is high.
constexpr int64_t kMostBlocks = 4096;   // Side by side.
constexpr int64_t kLeastPanelBytes = 16 << 10;

class Product {
 public:
  Product(const KernelCall& call, const ProductBlocks& blocks)
      : call_(call),
        store_(*call.context.panels),
        blocks_(blocks),
        m_(call.inputs[kA]->shape().rows),
        k_(call.input_infos[kY].shape.rows),
        n_(call.input_infos[kY].shape.columns) {}

  Result<Value> Run() {
    HEDDLE_ASSIGN_OR_RETURN(a_, Slices(*call_.inputs[kA], k_, blocks_.inner));
    HEDDLE_ASSIGN_OR_RETURN(y_, Slices(*call_.inputs[kY], n_, blocks_.columns));
    const auto result = store_.Collect({m_, n_}, /*is_frame=*/false);
    for (int64_t row = 0; row < m_; row += blocks_.rows)
      HEDDLE_RETURN_IF_ERROR(AddRows(row, std::min(m_, row + blocks_.rows), result.get()));
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const RowPanels> panels, result->Finish());
    return Value(std::move(panels));
  }

 private:
  static Result<Value> RowsOf(const Value& value, int64_t begin, int64_t end) {
    HEDDLE_ASSIGN_OR_RETURN(
        Value rows, value.IsPanels() ? value.panels()->Rows(begin, end) : SliceRows(value, begin, end));
    return Decoded(std::move(rows));
  }

  // Rows that take about as much as a slice.
  int64_t ThinRows(int64_t columns) const {
    return std::max<int64_t>(1, blocks_.rows * blocks_.inner / std::max<int64_t>(columns, 1));
  }

  // The columns of a value in slices of `width`, each of all rows.
  Result<std::vector<Value>> Slices(const Value& value, int64_t columns, int64_t width) const {
    if (columns <= width) return std::vector<Value>{value};
    const int64_t rows = value.shape().rows, count = CeilDivide(columns, width);
    std::vector<std::unique_ptr<PanelStore::Collector>> collectors;
    for (int64_t j = 0; j < count; ++j)
      collectors.push_back(
          store_.Collect({rows, std::min(width, columns - j * width)}, /*is_frame=*/false, kLeastPanelBytes));
    const int64_t height = ThinRows(columns);
    for (int64_t row = 0; row < rows; row += height) {
      if (IsCancelled(call_.context.cancelled)) return Cancelled("cancelled");
      HEDDLE_ASSIGN_OR_RETURN(const Value panel, RowsOf(value, row, std::min(rows, row + height)));
      for (int64_t j = 0; j < count; ++j) {
        HEDDLE_ASSIGN_OR_RETURN(Matrix part,
                                SliceColumns(panel.matrix(), j * width, std::min(columns, (j + 1) * width)));
        HEDDLE_RETURN_IF_ERROR(collectors[static_cast<size_t>(j)]->Add(Value(std::move(part))));
      }
    }
    std::vector<Value> slices;
    for (const auto& collector : collectors) {
      HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const RowPanels> panels, collector->Finish());
      slices.emplace_back(std::move(panels));
    }
    return slices;
  }

  // The cells in these rows and in the columns of slice `j` of Y.
  Result<Matrix> Block(int64_t row_begin, int64_t row_end, size_t j) const {
    HEDDLE_ASSIGN_OR_RETURN(Matrix sums, Matrix::Dense(row_end - row_begin, y_[j].shape().columns));
    if (k_ == 0) std::fill_n(sums.mutable_data(), sums.cells(), 0.0);
    for (int64_t inner = 0; inner < k_; inner += blocks_.inner) {
      const auto slice = static_cast<size_t>(inner / blocks_.inner);
      const int64_t inner_end = std::min(k_, inner + blocks_.inner);
      HEDDLE_ASSIGN_OR_RETURN(const Value a, RowsOf(a_[slice], row_begin, row_end));
      HEDDLE_ASSIGN_OR_RETURN(const Value y, RowsOf(y_[j], inner, inner_end));
      AddProduct(a.matrix(), y.matrix(), 0, a.shape().rows, inner == 0, call_.context, sums.mutable_data());
      if (IsCancelled(call_.context.cancelled)) return Cancelled("cancelled");
    }
    double* const cells = sums.mutable_data();
    ParallelFor(sums.cells(), kCellGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) cells[i] += 0.0;
    });
    return AsElements(call_.node, std::move(sums));
  }

  // Rows of the result, from blocks side by side.
  Status AddRows(int64_t row_begin, int64_t row_end, PanelStore::Collector* result) const {
    std::vector<Value> blocks;
    for (size_t j = 0; j < y_.size(); ++j) {
      HEDDLE_ASSIGN_OR_RETURN(Matrix block, Block(row_begin, row_end, j));
      if (y_.size() == 1) return result->Add(Value(std::move(block)));
      const auto collector = store_.Collect(block.shape(), /*is_frame=*/false);
      HEDDLE_RETURN_IF_ERROR(collector->Add(Value(std::move(block))));
      HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const RowPanels> panels, collector->Finish());
      blocks.emplace_back(std::move(panels));
    }
    const int64_t rows = row_end - row_begin, height = ThinRows(n_);
    for (int64_t row = 0; row < rows; row += height) {
      std::vector<Matrix> parts;
      for (const Value& block : blocks) {
        HEDDLE_ASSIGN_OR_RETURN(const Value part, RowsOf(block, row, std::min(rows, row + height)));
        parts.push_back(part.matrix());
      }
      HEDDLE_ASSIGN_OR_RETURN(Matrix joined, JoinColumns(std::move(parts), Format::kDense));
      HEDDLE_RETURN_IF_ERROR(result->Add(Value(std::move(joined))));
    }
    return OkStatus();
  }

  static constexpr int64_t kCellGrain = 16 << 10;

  const KernelCall& call_;
  PanelStore& store_;
  const ProductBlocks blocks_;
  const int64_t m_, k_, n_;
  std::vector<Value> a_, y_;  // By ranges of inner indexes, and of columns of the result.
};

}  // namespace

ProductBlocks BlocksOfProduct(int64_t m, int64_t k, int64_t n, int64_t held_bytes) {
  // A block and a slice of each operand; the pool of memory rounds up by an eighth.
  constexpr double kRounding = 9.0 / 8;
  const double cells = static_cast<double>(held_bytes) / sizeof(double) / kRounding;
  const auto slice = static_cast<int64_t>(std::sqrt(cells * kSlicesOfBlock / (kSlicesOfBlock + 2))) /
                     kSlicesOfBlock / kSingleBlock * kSingleBlock;
  const int64_t inner = std::min(k, std::max(kSingleBlock, slice));
  // A is read once for each column of blocks, Y once for each row of them.
  ProductBlocks best;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t count = 1; count <= std::min(n, kMostBlocks); ++count) {
    const int64_t columns = CeilDivide(n, count);
    const double fits = (cells - static_cast<double>(inner * columns)) / static_cast<double>(columns + inner);
    if (fits < 1 && count < std::min(n, kMostBlocks)) continue;
    const int64_t most = std::clamp<int64_t>(static_cast<int64_t>(fits), 1, std::max<int64_t>(m, 1));
    const int64_t rows = m == 0 ? 1 : CeilDivide(m, CeilDivide(m, most));
    const double read = static_cast<double>(m) * static_cast<double>(count) +
                        static_cast<double>(n) * static_cast<double>(CeilDivide(m, rows));
    if (read >= least) continue;
    least = read;
    best = {rows, columns, inner};
  }
  return best;
}

bool MultipliesPanels(const Node& node, std::span<const ValueInfo> inputs) {
  return HasOpenChains(node, inputs);
}

Result<Value> ProductOfPanels(const KernelCall& call) {
  if (call.context.panels == nullptr) return Internal("%*%: panels without a store");
  const int64_t held = HeldBytesOf(call.node, kUnknown);
  if (held == kUnknown) return Internal("%*%: the plan does not say what may be held");
  const int64_t rows = call.inputs[kA]->shape().rows;  // Of several ranks, those of this one.
  const Shape y = call.input_infos[kY].shape;
  return Product(call, BlocksOfProduct(rows, y.rows, y.columns, held)).Run();
}

}  // namespace heddle::ops
