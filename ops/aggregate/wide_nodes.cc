// SPDX-License-Identifier: Apache-2.0
// From a partial value with infinite sums of finite cells to the nodes in wide numbers that stand beside it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "ops/aggregate/wide_leaves.h"
#include "ops/aggregate/wide_payload.h"
#include "ops/aggregate/wide_sums.h"
#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/simd/aggregate.h"

namespace heddle::ops {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int kMostTaskLevels = 6;

bool IsFiniteIn(const SumsOfMatrix& sums, const double* row, int64_t r) {
  bool finite = true;
  EachPlace(sums, r, [&](int64_t place, int64_t) { finite = finite && std::isfinite(row[2 + place]); });
  return finite;
}

// The first failure that any task reported. Thread-safe.
class FirstFailure {
 public:
  void Report(Status status) {
    if (!failed_.exchange(true)) status_ = std::move(status);
  }
  bool failed() const { return failed_; }
  /// When all tasks have ended.
  Status Take() { return std::move(status_); }

 private:
  std::atomic<bool> failed_ = false;
  Status status_;
};

class WideNodes {
 public:
  WideNodes(const SumsOfMatrix& sums, const RowsOfMatrix& rows, const std::atomic<bool>* cancelled)
      : sums_(sums), rows_(rows), cancelled_(cancelled), leaves_(sums) {}

  Result<Matrix> Run(Matrix nodes) {
    FindSuspects(nodes);
    if (suspects_.empty()) return nodes;
    std::vector<const double*> plain;
    for (int64_t i = 0; i < nodes.rows(); ++i)
      if (const double* const row = nodes.data() + i * nodes.columns(); NodeOf(row).level < kWideLevel)
        plain.push_back(row);
    for (const double* const row : plain) HEDDLE_RETURN_IF_ERROR(DropExplained(row));
    if (suspects_.empty()) return nodes;
    std::vector<std::vector<double>> added;
    for (const double* const row : plain) HEDDLE_RETURN_IF_ERROR(AddRows(row, nodes.columns(), &added));
    HEDDLE_ASSIGN_OR_RETURN(
        Matrix all, Matrix::Dense(nodes.rows() + static_cast<int64_t>(added.size()), nodes.columns()));
    double* to = std::copy_n(nodes.data(), nodes.cells(), all.mutable_data());
    for (const std::vector<double>& row : added) to = std::copy(row.begin(), row.end(), to);
    return all;
  }

 private:
  void FindSuspects(const Matrix& nodes) {
    const int64_t results = ResultsOf(sums_);
    std::vector<bool> is_suspect;
    for (int64_t i = 0; i < nodes.rows(); ++i) {
      const double* const row = nodes.data() + i * nodes.columns();
      const double* const payload = row + 2 + sums_.offset;
      const int64_t width = IsSpread(sums_.kind) ? 1 + 2 * results : LanesOf(sums_) * results;
      if (AreFinite(payload, width)) continue;
      for (int64_t at = 0; (at = simd::FindNonFinite(payload, at, width)) < width; ++at) {
        if (NodeOf(row).level >= kWideLevel) break;
        is_suspect.resize(static_cast<size_t>(results), false);
        is_suspect[static_cast<size_t>((at - (IsSpread(sums_.kind) ? 1 : 0)) % results)] = true;
      }
    }
    for (size_t r = 0; r < is_suspect.size(); ++r)
      if (is_suspect[r]) suspects_.push_back(static_cast<int64_t>(r));
  }

  // Leaves of a node in tasks: body(reader, first, last), until one fails.
  template <typename Body>
  Status EachRun(int64_t begin, int64_t end, const Body& body) const {
    const int64_t grain = std::max<int64_t>(1, kCellsOfTask / std::max<int64_t>(leaves_.Cells(), 1));
    FirstFailure failure;
    ParallelFor(end - begin, grain, [&](int64_t first, int64_t last) {
      if (failure.failed()) return;
      LeavesOfMatrix::Reader reader(leaves_, rows_);
      if (Status status = body(reader, begin + first, begin + last); !status.ok())
        failure.Report(std::move(status));
    });
    HEDDLE_RETURN_IF_ERROR(failure.Take());
    if (IsCancelled(cancelled_)) return Cancelled("cancelled");
    return OkStatus();
  }

  // Results with a cell that is infinite or NaN are what they are.
  Status DropExplained(const double* row) {
    std::vector<int64_t> number_of(static_cast<size_t>(ResultsOf(sums_)), -1);
    int64_t count = 0;
    for (const int64_t r : suspects_)
      if (!IsFiniteIn(sums_, row, r)) number_of[static_cast<size_t>(r)] = count++;
    if (count == 0) return OkStatus();
    std::vector<std::atomic<bool>> explained(static_cast<size_t>(count));
    std::atomic<int64_t> left = count;
    const TreeNode node = NodeOf(row);
    HEDDLE_RETURN_IF_ERROR(EachRun(
        node.FirstLeaf(), (node.index + 1) << node.level,
        [&](LeavesOfMatrix::Reader& reader, int64_t first, int64_t last) -> Status {
          for (int64_t leaf = first; leaf < last && left > 0 && !IsCancelled(cancelled_); ++leaf) {
            HEDDLE_ASSIGN_OR_RETURN(const LeafCells cells, reader.Read(leaf));
            const auto results = static_cast<int64_t>(number_of.size());
            for (int64_t at = 0;
                 left > 0 && (at = simd::FindNonFinite(cells.values, at, cells.count)) < cells.count; ++at) {
              const int64_t k = number_of[static_cast<size_t>(cells.PlaceOf(at) % results)];
              if (k >= 0 && !explained[static_cast<size_t>(k)].exchange(true)) --left;
            }
          }
          return OkStatus();
        }));
    std::erase_if(suspects_, [&](int64_t r) {
      const int64_t k = number_of[static_cast<size_t>(r)];
      return k >= 0 && explained[static_cast<size_t>(k)];
    });
    return OkStatus();
  }

  Status AddRows(const double* row, int64_t width, std::vector<std::vector<double>>* added) const {
    std::vector<int64_t> wanted;
    for (const int64_t r : suspects_)
      if (!IsFiniteIn(sums_, row, r)) wanted.push_back(r);
    if (wanted.empty()) return OkStatus();
    const TreeNode node = NodeOf(row);
    HEDDLE_ASSIGN_OR_RETURN(const WidePayload payload, MakeNode(node, wanted));
    std::vector<double> doubles(static_cast<size_t>(width), kNan);
    doubles[0] = static_cast<double>(node.index);
    std::vector<double> larger = doubles;
    doubles[1] = node.level + kWideLevel;
    larger[1] = node.level + 2 * kWideLevel;
    for (size_t k = 0; k < wanted.size(); ++k)
      EachPlace(sums_, wanted[k], [&](int64_t place, int64_t i) {
        const WideNumber& number = payload.numbers[static_cast<size_t>(i) * wanted.size() + k];
        (number.IsBeyond() ? larger : doubles)[static_cast<size_t>(2 + place)] = number.stored();
      });
    added->push_back(std::move(doubles));
    added->push_back(std::move(larger));
    return OkStatus();
  }

  // In tasks that are nodes below it.
  Result<WidePayload> MakeNode(const TreeNode& node, const std::vector<int64_t>& wanted) const {
    const WideLeaves wide(sums_.kind, LanesOf(sums_), ResultsOf(sums_), wanted);
    const int down = std::min(node.level, kMostTaskLevels), level = node.level - down;
    std::vector<WidePayload> parts(size_t{1} << down);
    FirstFailure failure;
    ParallelFor(static_cast<int64_t>(parts.size()), 1, [&](int64_t begin, int64_t end) {
      LeavesOfMatrix::Reader reader(leaves_, rows_);
      for (int64_t part = begin; part < end && !failure.failed(); ++part) {
        const int64_t first = ((node.index << down) + part) << level;
        WideTree tree(wide.moments());
        for (int64_t leaf = first; leaf < first + (int64_t{1} << level) && !IsCancelled(cancelled_); ++leaf) {
          Result<LeafCells> cells = reader.Read(leaf);
          if (!cells.ok()) return failure.Report(cells.status());
          tree.Push(leaf, wide.Make(*cells));
        }
        if (!tree.IsEmpty()) parts[static_cast<size_t>(part)] = tree.Finish();
      }
    });
    HEDDLE_RETURN_IF_ERROR(failure.Take());
    if (IsCancelled(cancelled_)) return Cancelled("cancelled");
    for (size_t step = 1; step < parts.size(); step *= 2)
      for (size_t p = 0; p + step < parts.size(); p += 2 * step)
        parts[p] = JoinPayloads(wide.moments(), std::move(parts[p]), parts[p + step]);
    return std::move(parts[0]);
  }

  const SumsOfMatrix& sums_;
  const RowsOfMatrix& rows_;
  const std::atomic<bool>* const cancelled_;
  const LeavesOfMatrix leaves_;
  std::vector<int64_t> suspects_;  // Results, ascending.
};

}  // namespace

Result<Matrix> AddWideNodes(const SumsOfMatrix& sums, Matrix nodes, const RowsOfMatrix& rows,
                            const std::atomic<bool>* cancelled) {
  return WideNodes(sums, rows, cancelled).Run(std::move(nodes));
}

Result<Matrix> NodesOf(const KernelCall& call, const SumsOfMatrix& sums,
                       const std::function<Result<Matrix>()>& partial, const RowsOfMatrix& rows) {
  if (call.phase == Phase::kFinish) return call.inputs[0]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(Matrix nodes, partial());
  if (!AddsUp(sums.kind)) return nodes;
  return AddWideNodes(sums, std::move(nodes), rows, call.context.cancelled);
}

}  // namespace heddle::ops
