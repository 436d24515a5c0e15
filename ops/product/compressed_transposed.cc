// SPDX-License-Identifier: Apache-2.0
// t(X) %*% Y with a compressed X and at most eight columns of Y.
#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "ops/base/parallel.h"
#include "ops/cells/decode_tile.h"
#include "ops/cells/storage.h"
#include "ops/elementwise/single_precision.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/product/compressed_products.h"
#include "ops/product/matmul_gemm.h"
#include "ops/reduction/payload_parts.h"
#include "ops/reduction/reduction_tasks.h"
#include "ops/simd/aggregate.h"
#include "ops/simd/product/matmul.h"
#include "ops/simd/rows.h"

namespace heddle::ops {
namespace {

// Rows of a task, and more where the tuples are many: what it has added up is joined behind it.
constexpr int64_t kTaskRows = 1 << 14, kRowsOfTuple = 8;
// Copies of sums that take turns where there is one weight a row: an addition waits for the one before it to
// the same place.
constexpr int64_t kCopies = 4;
// An addition to the sum of a tuple takes as long as so many cells of tiles, and of panels side by side.
constexpr double kCellsOfAddition = 5, kPanelCellsOfAddition = 20;
// Cells of a result whose payloads the nodes of all leaves may have.
constexpr int64_t kMostProducts = 1 << 16;

// For each tuple the sum of the weights of its rows.
class WeightSums {
 public:
  WeightSums(const Matrix& x, int64_t k) : x_(x), k_(k) {
    CodeUnit open;
    for (const ColumnGroup& group : x_.groups().groups) {
      if (group.encoding == Encoding::kEmpty) continue;
      if (group.encoding == Encoding::kConstant) {
        constant_.push_back(&group);
        continue;
      }
      if (group.encoding != Encoding::kDenseCodes) {
        moving_.push_back({&group, room_});
        room_ += group.tuples() * k_;
        continue;
      }
      if (!open.CanJoin(group, x_.rows() < kLeastJoinedRows ? 0 : CodeUnit::kMostJoined)) AddUnit(open);
      open.Join(group);
    }
    if (!open.groups.empty()) AddUnit(open);
  }

  // A row adds its weights to so many sums, about.
  double additions() const {
    auto additions = static_cast<double>(units_.size());
    for (const Moving& moving : moving_)
      additions +=
          moving.group->encoding == Encoding::kRuns
              ? 0.2
              : static_cast<double>(moving.group->codes.count()) / static_cast<double>(x_.groups().rows);
    return additions;
  }

  // Of the sums of a task.
  int64_t room() const { return room_ + k_; }

  // Adds rows [begin, end), whose weights are at `weights`.
  void Add(int64_t begin, int64_t end, const double* weights, double* sums) const {
    std::vector<GroupPlace> places;
    for (const Moving& moving : moving_) places.push_back(PlaceOfRow(*moving.group, x_.first_row() + begin));
    for (int64_t row = begin; row < end; row += kCodesAtOnce) {
      const int64_t last = std::min(end, row + kCodesAtOnce);
      const double* const w = weights + (row - begin) * k_;
      const auto add = [&](auto count) {
        AddBlock<decltype(count)::value>(x_.first_row() + row, x_.first_row() + last, w, places, sums);
      };
      HEDDLE_CHECK((simd::WithConstant<1, kFewColumns>(k_, add)), "few weights a row");
    }
  }

  // cells[j * k + c] += what column j of X has with weight c, in all.
  void Close(const double* sums, double* cells) const {
    const double* const total = sums + room_;
    std::vector<double> own;
    for (const Unit& unit : units_)
      for (size_t g = 0; g < unit.codes.groups.size(); ++g) {
        const ColumnGroup& group = *unit.codes.groups[g];
        own.assign(static_cast<size_t>(group.tuples() * k_), 0.0);
        for (int64_t code = 0; code < unit.codes.tuples; ++code)
          unit.codes.ForCodes(code, [&](size_t of, int64_t tuple) {
            if (of != g) return;
            for (int64_t copy = 0; copy < unit.copies; ++copy)
              for (int64_t c = 0; c < k_; ++c)
                own[static_cast<size_t>(tuple * k_ + c)] +=
                    sums[unit.at + (copy * unit.codes.tuples + code) * k_ + c];
          });
        AddTuples(group, own.data(), cells);
      }
    for (const Moving& moving : moving_) {
      const ColumnGroup& group = *moving.group;
      own.assign(sums + moving.at, sums + moving.at + group.tuples() * k_);
      if (group.encoding == Encoding::kDefault) {
        // Rows that are no exceptions have the rest.
        for (int64_t c = 0; c < k_; ++c) {
          double rest = total[c];
          for (int64_t t = 0; t < group.tuples(); ++t) rest -= own[static_cast<size_t>(t * k_ + c)];
          own[static_cast<size_t>(c)] += rest;
        }
      }
      AddTuples(group, own.data(), cells);
    }
    for (const ColumnGroup* group : constant_) AddTuples(*group, total, cells);
  }

 private:
  struct Unit {
    CodeUnit codes;
    int64_t at;  // Of the sums of its tuples.
    int64_t copies;
  };
  struct Moving {
    const ColumnGroup* group;
    int64_t at;
  };

  void AddUnit(CodeUnit& open) {
    const int64_t copies = k_ == 1 && open.tuples <= CodeUnit::kMostJoined ? kCopies : 1;
    units_.push_back({open, room_, copies});
    room_ += open.tuples * k_ * copies;
    open = {};
  }

  template <int kCount>
  void AddBlock(int64_t begin, int64_t end, const double* weights, std::vector<GroupPlace>& places,
                double* sums) const {
    const int64_t rows = end - begin;
    const auto add = simd::AddTo<kCount>;
    for (int64_t i = 0; i < rows; ++i) add(sums + room_, weights + i * kCount);
    for (const Unit& unit : units_)
      WithCodes(unit.codes, begin, end, [&](const auto* codes) {
        double* const to = sums + unit.at;
        const int64_t copy = unit.copies == 1 ? 0 : unit.codes.tuples;
        int64_t i = 0;
        for (; i + kCopies <= rows; i += kCopies)
#pragma GCC unroll 4
          for (int64_t c = 0; c < kCopies; ++c)
            add(to + (c * copy + codes[i + c]) * kCount, weights + (i + c) * kCount);
        for (; i < rows; ++i) add(to + codes[i] * kCount, weights + i * kCount);
      });
    for (size_t g = 0; g < moving_.size(); ++g) {
      double* const to = sums + moving_[g].at;
      if (moving_[g].group->encoding == Encoding::kDefault)
        VisitExceptions(*moving_[g].group, begin, end, &places[g], [&](int64_t row, uint32_t code) {
          add(to + code * kCount, weights + (row - begin) * kCount);
        });
      else
        VisitRuns(*moving_[g].group, begin, end, &places[g], [&](int64_t first, int64_t last, uint32_t code) {
          for (int64_t row = first; row < last; ++row)
            add(to + code * kCount, weights + (row - begin) * kCount);
        });
    }
  }

  template <typename T>
  void AddTuplesOf(const ColumnGroup& group, const double* sums, double* cells) const {
    const T* tuple = group.dictionary.data<T>();
    for (int64_t t = 0; t < group.tuples(); ++t, sums += k_)
      for (const int32_t column : group.columns) {
        const double cell = static_cast<double>(*tuple++);
        for (int64_t c = 0; c < k_; ++c) cells[column * k_ + c] += cell * sums[c];
      }
  }
  void AddTuples(const ColumnGroup& group, const double* sums, double* cells) const {
    if (HoldsSingles(group.dictionary))
      AddTuplesOf<float>(group, sums, cells);
    else
      AddTuplesOf<double>(group, sums, cells);
  }

  const Matrix& x_;
  const int64_t k_;
  int64_t room_ = 0;
  std::vector<Unit> units_;
  std::vector<Moving> moving_;
  std::vector<const ColumnGroup*> constant_;
};

// The list of nodes itself where others have more of them, else the result.
Result<std::optional<Value>> FinishedIn(const KernelCall& call, Matrix nodes, int64_t rows) {
  if (call.phase == Phase::kPartial) return std::optional<Value>(std::move(nodes));
  const Value list(std::move(nodes));
  const Value* const inputs[] = {&list};
  HEDDLE_ASSIGN_OR_RETURN(const Value result, RunTransposedProduct({.node = call.node,
                                                                    .phase = Phase::kFinish,
                                                                    .inputs = inputs,
                                                                    .input_infos = call.input_infos,
                                                                    .total_rows = rows,
                                                                    .context = call.context}));
  if (!HoldsSingles(call.inputs[0]->matrix())) return std::optional<Value>(result);
  HEDDLE_ASSIGN_OR_RETURN(Matrix singles, Narrow(result.matrix()));
  return std::optional<Value>(std::move(singles));
}

// What one task keeps from leaf to leaf.
template <typename T>
struct TileRoom {
  typename TileDecoder<T>::Cursor cursor;
  AlignedArray cells;
};

// Rows of X and Y that one step of a packed product reads: they stay in the second-level cache.
constexpr int64_t kGemmRows = 256;

// More columns of Y, or X itself: the packed product goes on with the chains of the leaf, tile by tile.
Result<Matrix> AddProducts(const KernelCall& call, const Matrix& x, const Matrix& y,
                           const TransposedOrder& order) {
  const TileDecoder<double> decoder(x);
  const int64_t n = order.n, k = order.k;
  const int64_t first = FirstRowOf(call), last = first + x.rows();
  const int64_t begin = first == last ? 0 : first / order.height;
  const int64_t end = first == last ? 0 : CeilDivide(last, order.height);
  return ReduceTasks(order.reduction, begin, end, [&]() -> LeafFunction {
    auto room = std::make_shared<TileRoom<double>>();
    room->cells = AlignedArray(kGemmRows * n);
    return [&, room](int64_t leaf, double* payload) {
      FillPayload(payload, order.reduction.width, 0.0);
      const int64_t stop = std::min(last, (leaf + 1) * order.height) - first;
      for (int64_t row = leaf * order.height - first; row < stop; row += kGemmRows) {
        const int64_t rows = std::min(kGemmRows, stop - row);
        decoder.Decode(&room->cursor, row, row + rows, room->cells.data());
        Run(Gemm{.m = n,
                 .n = k,
                 .k = rows,
                 .a = room->cells.data(),
                 .a_row = 1,
                 .a_column = n,
                 .b = order.symmetric ? room->cells.data() : y.data() + row * k,
                 .b_row = k,
                 .c = payload,
                 .c_row = k,
                 .accumulate = true,
                 .upper_only = order.symmetric});
      }
      return true;
    };
  });
}

// Eight lanes or whole vectors of sums: the chains of the leaf, tile by tile.
template <typename T>
Result<Matrix> AddTiles(const KernelCall& call, const Matrix& x, const Matrix& y,
                        const TransposedOrder& order) {
  const TileDecoder<T> decoder(x);
  const int64_t n = order.n, k = order.k, height = TileDecoder<T>::RowsOfTile(n);
  const int64_t first = FirstRowOf(call), last = first + x.rows();
  const int64_t begin = first == last ? 0 : first / order.height;
  const int64_t end = first == last ? 0 : CeilDivide(last, order.height);
  return ReduceTasks(order.reduction, begin, end, [&]() -> LeafFunction {
    auto room = std::make_shared<TileRoom<T>>();
    room->cells = AlignedArray(height * n);
    return [&, room, height](int64_t leaf, double* payload) {
      FillPayload(payload, order.reduction.width, 0.0);
      const int64_t stop = std::min(last, (leaf + 1) * order.height) - first;
      for (int64_t row = leaf * order.height - first; row < stop; row += height) {
        const int64_t rows = std::min(height, stop - row);
        T* const cells = reinterpret_cast<T*>(room->cells.data());
        decoder.Decode(&room->cursor, row, row + rows, cells);
        const double* const w = y.data() + row * k;
        if (order.accumulation == Accumulation::kVectors) {
          simd::MultiplyColumns(cells, rows, n, n, w, k, k, payload, order.padded);
          continue;
        }
        for (int64_t i = 0; i < rows; ++i) {
          double* const lane = payload + ((row + i) & 7) * n * k;
          for (int64_t j = 0; j < n; ++j)
            for (int64_t c = 0; c < k; ++c)
              lane[j * k + c] =
                  std::fma(static_cast<double>(cells[i * n + j]), w[i * k + c], lane[j * k + c]);
        }
      }
      return true;
    };
  });
}

}  // namespace

int64_t FirstRowOf(const KernelCall& call) { return call.phase == Phase::kPartial ? call.row_begin : 0; }

Result<Value> ExactSums(const KernelCall& call, const TransposedOrder& order,
                        const std::function<void(int64_t begin, int64_t end, double* cells)>& add) {
  const Matrix& x = call.inputs[0]->matrix();
  const int64_t n = order.n, k = order.k;
  if (call.phase == Phase::kWhole) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(n, k));
    add(0, x.rows(), result.mutable_data());
    if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
    if (HoldsSingles(x)) {
      HEDDLE_ASSIGN_OR_RETURN(result, Narrow(result));
    }
    return Value(std::move(result));
  }
  const int64_t first = call.row_begin, last = first + x.rows();
  const std::vector<TreeNode> covering =
      x.rows() == 0 ? std::vector<TreeNode>()
                    : CoveringNodes(first / order.height, CeilDivide(last, order.height));
  HEDDLE_ASSIGN_OR_RETURN(Matrix nodes, PartialMatrix(covering, order.reduction.width));
  AlignedArray cells(n * k);
  for (size_t i = 0; i < covering.size(); ++i) {
    const TreeNode& node = covering[i];
    add(node.FirstLeaf() * order.height - first,
        std::min(last, ((node.index + 1) << node.level) * order.height) - first, cells.data());
    double* const payload = nodes.mutable_data() + static_cast<int64_t>(i) * nodes.columns() + 2;
    std::fill_n(payload, order.reduction.width, 0.0);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t c = 0; c < k; ++c)
        payload[order.accumulation == Accumulation::kVectors ? c * order.padded + j : j * k + c] =
            cells[j * k + c];
  }
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  if (!order.symmetric) return Value(std::move(nodes));
  HEDDLE_ASSIGN_OR_RETURN(nodes, PackTriangles(nodes, n));
  return Value(std::move(nodes));
}

void AddWeights(const Matrix& x, const Matrix& y, int64_t begin, int64_t end, const KernelContext& context,
                double* cells) {
  const int64_t k = y.columns();
  const WeightSums sums(x, k);
  const int64_t grain =
      std::max(kTaskRows, CeilDivide(kRowsOfTuple * sums.room(), kCodesAtOnce) * kCodesAtOnce);
  AlignedArray all(sums.room());
  std::fill_n(all.data(), sums.room(), 0.0);
  std::mutex joining;
  ParallelFor(end - begin, grain, [&](int64_t from, int64_t to) {
    if (IsCancelled(context.cancelled)) return;
    AlignedArray own(sums.room());
    std::fill_n(own.data(), sums.room(), 0.0);
    sums.Add(begin + from, begin + to, y.data() + (begin + from) * k, own.data());
    const std::lock_guard lock(joining);
    for (int64_t i = 0; i < sums.room(); ++i) all[i] += own[i];
  });
  std::fill_n(cells, x.columns() * k, 0.0);
  sums.Close(all.data(), cells);
}

bool AddsFewWeights(const Matrix& x, int64_t k, int64_t first, int64_t last, int64_t height) {
  const double cells = AddsByPanels(x, k, first, last, height) ? kPanelCellsOfAddition : kCellsOfAddition;
  return cells * WeightSums(x, k).additions() <= static_cast<double>(x.columns());
}

Result<std::optional<Value>> MultiplyTransposedCompressed(const KernelCall& call) {
  const Matrix &x = call.inputs[0]->matrix(), &given = call.inputs[1]->matrix();
  if (x.rows() != given.rows() || x.columns() == 0 || given.columns() == 0 ||
      x.element_type() != given.element_type() || call.node.info.element_type != x.element_type())
    return std::optional<Value>();
  const int64_t rows = call.phase == Phase::kWhole ? x.rows() : call.total_rows;
  const TransposedOrder order(call, rows, x.columns(), given.columns());
  HEDDLE_ASSIGN_OR_RETURN(std::optional<Value> of_bytes, MultiplyByteColumns(call, order));
  if (of_bytes) return of_bytes;
  if (!x.IsCompressed()) return MultiplyByCompressed(call);
  if (!IsNarrow(given.columns())) {
    // Wider results are computed in tiles, and rows of few entries as CSR.
    const bool fits = order.reduction.width <= kMostProducts && !order.single && !HoldsSingles(x) &&
                      (order.symmetric || (given.IsDense() && !SkipsZeros(call, 0) && !SkipsZeros(call, 1)));
    if (!fits || HasFewEntries(call)) return std::optional<Value>();
    HEDDLE_ASSIGN_OR_RETURN(Matrix nodes, AddProducts(call, x, given, order));
    if (call.phase == Phase::kPartial && order.symmetric) {
      HEDDLE_ASSIGN_OR_RETURN(nodes, PackTriangles(nodes, order.n));
    }
    return FinishedIn(call, std::move(nodes), rows);
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix y, AsDense(given));
  HEDDLE_ASSIGN_OR_RETURN(y, Widen(y));
  // Nodes of other ranks may have lanes that are not exact, which these would be added to.
  const bool may_be_exact = order.accumulation != Accumulation::kLanes || call.phase == Phase::kWhole;
  const int64_t first = FirstRowOf(call);
  if (may_be_exact && AddsFewWeights(x, order.k, first, first + x.rows(), order.height) &&
      AddExactlyWith(UnitsOfGroups(x.groups()), y, static_cast<double>(rows))) {
    HEDDLE_ASSIGN_OR_RETURN(Value result,
                            ExactSums(call, order, [&](int64_t begin, int64_t end, double* cells) {
                              AddWeights(x, y, begin, end, call.context, cells);
                            }));
    return std::optional<Value>(std::move(result));
  }
  if (x.columns() > kMostTileColumns || HasFewEntries(call) ||
      (SkipsZeros(call) && !simd::AllFinite(y.data(), y.cells())))
    return std::optional<Value>();
  Matrix nodes;
  if (order.accumulation == Accumulation::kVectors &&
      AddsByPanels(x, order.k, first, first + x.rows(), order.height)) {
    HEDDLE_ASSIGN_OR_RETURN(
        nodes, AddByPanels(x, y, first, first + x.rows(), order.height, order.padded, order.reduction));
  } else if (HoldsSingles(x)) {
    HEDDLE_ASSIGN_OR_RETURN(nodes, AddTiles<float>(call, x, y, order));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(nodes, AddTiles<double>(call, x, y, order));
  }
  return FinishedIn(call, std::move(nodes), rows);
}

}  // namespace heddle::ops
