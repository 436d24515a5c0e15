// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate/wide_sums.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "ops/aggregate/wide_leaves.h"
#include "ops/aggregate/wide_payload.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/simd/aggregate.h"

namespace heddle::ops {
namespace {

// Nodes in the order of their leaves, with the wide rows of each.
struct NodeRows {
  TreeNode node;
  const double* plain = nullptr;
  std::vector<const double*> doubles, larger;
};

std::vector<NodeRows> RowsInOrder(const Matrix& nodes) {
  std::vector<NodeRows> rows;
  const auto each = [&](const auto& visit) {
    for (int64_t i = 0; i < nodes.rows(); ++i) visit(nodes.data() + i * nodes.columns());
  };
  each([&](const double* row) {
    if (NodeOf(row).level < kWideLevel) rows.push_back({NodeOf(row), row, {}, {}});
  });
  std::sort(rows.begin(), rows.end(),
            [](const NodeRows& a, const NodeRows& b) { return a.node.FirstLeaf() < b.node.FirstLeaf(); });
  each([&](const double* row) {
    TreeNode node = NodeOf(row);
    if (node.level < kWideLevel) return;
    const bool is_larger = node.level >= 2 * kWideLevel;
    node.level %= kWideLevel;
    for (NodeRows& known : rows)
      if (known.node == node) (is_larger ? known.larger : known.doubles).push_back(row);
  });
  return rows;
}

// The number at a place of a node; false if cells are infinite or NaN.
bool ReadNumber(const NodeRows& rows, int64_t place, WideNumber* number) {
  *number = rows.plain[2 + place];
  if (std::isfinite(rows.plain[2 + place])) return true;
  for (const double* row : rows.doubles)
    if (!std::isnan(row[2 + place])) {
      *number = row[2 + place];
      return true;
    }
  for (const double* row : rows.larger)
    if (!std::isnan(row[2 + place])) {
      *number = WideNumber::FromScaled(row[2 + place]);
      return true;
    }
  return false;
}

// `chunk(c)` reads column chunk c of a row of n cells, `result` is its aggregate so far.
template <typename ReadChunk>
double CorrectedRow(AggregateKind kind, int64_t n, const ReadChunk& chunk, double result) {
  const int64_t chunks = CeilDivide(n, kColumnChunk);
  for (int64_t c = 0; c < chunks; ++c) {
    const LeafCells cells = chunk(c);
    if (simd::FindNonFinite(cells.values, 0, cells.count) < cells.count) return result;
  }
  const WideLeaves leaves(kind, 8, 1, {0});
  WideTree tree(leaves.moments());
  for (int64_t c = 0; c < chunks; ++c) {
    LeafCells cells = chunk(c);
    cells.rows = std::min(kColumnChunk, n - c * kColumnChunk);
    tree.Push(c, leaves.Make(cells));
  }
  return ResultOf(kind, tree.Finish(), 0, 1, static_cast<double>(n));
}

// Calls body(i) for each of the numbers that is infinite or NaN.
template <typename Body>
void EachNonFinite(const double* numbers, int64_t count, const Body& body) {
  for (int64_t i = 0; (i = simd::FindNonFinite(numbers, i, count)) < count; ++i) body(i);
}

}  // namespace

void CorrectResults(const SumsOfMatrix& sums, const Matrix& nodes, double* results) {
  const int64_t count = ResultsOf(sums);
  if (AreFinite(results, count)) return;
  const std::vector<NodeRows> rows = RowsInOrder(nodes);
  if (rows.empty()) return;
  const double cells = static_cast<double>(sums.rows) *
                       (sums.scope == AggregateScope::kFull ? static_cast<double>(sums.columns) : 1.0);
  EachNonFinite(results, count, [&](int64_t r) {
    WideTree tree(IsSpread(sums.kind));
    for (const NodeRows& node : rows) {
      WidePayload payload;
      if (IsSpread(sums.kind)) payload.count = node.plain[2 + sums.offset];
      bool finite = true;
      EachPlace(sums, r, [&](int64_t place, int64_t) {
        finite = finite && ReadNumber(node, place, &payload.numbers.emplace_back());
      });
      if (!finite) return;
      tree.Push(node.node.FirstLeaf(), std::move(payload));
    }
    results[r] = ResultOf(sums.kind, tree.Finish(), 0, 1, cells);
  });
}

void CorrectRows(AggregateKind kind, const Matrix& x, int64_t begin, int64_t end, double* out) {
  const int64_t n = x.columns();
  if (!AddsUp(kind) || n == 0) return;
  if (!x.IsSparse() && !HoldsSingles(x))
    return CorrectDenseRows(kind, x.data() + begin * n, end - begin, n, n, out + begin);
  EachNonFinite(out + begin, end - begin, [&](int64_t i) {
    const int64_t row = begin + i;
    LeafCellReader reader;
    const auto chunk = [&](int64_t c) {
      return reader.Read(x, row, row + 1, c * kColumnChunk, std::min(n, (c + 1) * kColumnChunk),
                         IsSpread(kind));
    };
    out[row] = CorrectedRow(kind, n, chunk, out[row]);
  });
}

void CorrectDenseRows(AggregateKind kind, const double* x, int64_t rows, int64_t stride, int64_t n,
                      double* out) {
  if (!AddsUp(kind) || n == 0) return;
  EachNonFinite(out, rows, [&](int64_t i) {
    const auto chunk = [&](int64_t c) {
      const int64_t first = c * kColumnChunk, count = std::min(kColumnChunk, n - first);
      return LeafCells{x + i * stride + first, count, count};
    };
    out[i] = CorrectedRow(kind, n, chunk, out[i]);
  });
}

WideNumber WideSum(const SumsOfMatrix& sums, const Matrix& nodes, double sum) {
  if (std::isfinite(sum)) return sum;
  const std::vector<NodeRows> rows = RowsInOrder(nodes);
  WideTree tree(false);
  for (const NodeRows& node : rows) {
    WidePayload payload;
    bool finite = true;
    EachPlace(sums, 0, [&](int64_t place, int64_t) {
      finite = finite && ReadNumber(node, place, &payload.numbers.emplace_back());
    });
    if (!finite) return sum;
    tree.Push(node.node.FirstLeaf(), std::move(payload));
  }
  return tree.IsEmpty() ? WideNumber(sum) : JoinLanes(tree.Finish().numbers, 0, 1);
}

}  // namespace heddle::ops
