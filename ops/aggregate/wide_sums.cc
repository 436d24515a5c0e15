// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate/wide_sums.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/parallel.h"
#include "ops/reduction/reduction_tree.h"
#include "ops/reduction/wide_number.h"
#include "ops/simd/aggregate.h"

namespace heddle::ops {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kTaskCells = 1 << 18;
constexpr int kMostTaskLevels = 6;
// Up to so many columns each has eight chains.
constexpr int64_t kNarrow = 8;

// Whether none of any number of results is infinite or NaN: on all threads where they are many.
bool AreFinite(const double* numbers, int64_t count) {
  if (count <= kTaskCells) return simd::FindNonFinite(numbers, 0, count) == count;
  std::atomic<bool> finite = true;
  ParallelFor(count, kTaskCells, [&](int64_t begin, int64_t end) {
    if (simd::FindNonFinite(numbers, begin, end) < end) finite = false;
  });
  return finite;
}

// Cells of a leaf, row-major: all of them, or `count` entries, the k-th at place places[k].
struct LeafCells {
  const double* values = nullptr;
  int64_t count = 0;
  int64_t rows = 0;
  bool is_sparse = false;
  const int64_t* places = nullptr;
  int64_t PlaceOf(int64_t k) const { return is_sparse ? places[k] : k; }
};

// Reads cells of a matrix as LeafCells. Belongs to one thread.
class CellReader {
 public:
  // Rows [begin, end) of x and columns [column_begin, column_end), all of them or some of one row. `all`:
  // absent cells, too.
  LeafCells Read(const Matrix& x, int64_t begin, int64_t end, int64_t column_begin, int64_t column_end,
                 bool all) {
    const int64_t width = column_end - column_begin, cells = (end - begin) * width;
    const int64_t first = begin * x.columns() + column_begin;
    if (!x.IsSparse() && !HoldsSingles(x)) return {x.data() + first, cells, end - begin};
    values_.clear();
    places_.clear();
    if (!x.IsSparse() || all) values_.resize(static_cast<size_t>(cells), 0.0);
    if (!x.IsSparse()) {
      SelectedElementwiseKernels().widen(x.data<float>() + first, values_.data(), cells);
      return {values_.data(), cells, end - begin};
    }
    for (int64_t i = begin; i < end; ++i) {
      const EntryRange range = EntriesOf(x, i, column_begin, column_end);
      for (int64_t e = range.begin; e < range.end; ++e) {
        const int64_t place = (i - begin) * width + x.column_indexes()[e] - column_begin;
        if (all) {
          values_[static_cast<size_t>(place)] = x.values()[e];
        } else {
          values_.push_back(x.values()[e]);
          places_.push_back(place);
        }
      }
    }
    if (all) return {values_.data(), cells, end - begin};
    return {values_.data(), static_cast<int64_t>(values_.size()), end - begin, true, places_.data()};
  }

 private:
  std::vector<double> values_;
  std::vector<int64_t> places_;
};

// What a node holds of some results: of each its lanes (lane r of result k at r * results + k), or means and
// then squares.
struct WidePayload {
  double count = 0;
  std::vector<WideNumber> numbers;
};

WidePayload Join(bool moments, WidePayload a, const WidePayload& b) {
  const size_t half = a.numbers.size() / 2;
  if (!moments) {
    for (size_t i = 0; i < a.numbers.size(); ++i) a.numbers[i] = a.numbers[i] + b.numbers[i];
    return a;
  }
  const double count = a.count + b.count, share = b.count / count, weight = a.count * share;
  for (size_t i = 0; i < half; ++i) {
    const WideNumber delta = b.numbers[i] - a.numbers[i];
    a.numbers[i] = a.numbers[i] + delta * share;
    a.numbers[half + i] = (a.numbers[half + i] + b.numbers[half + i]) + (delta * delta) * weight;
  }
  a.count = count;
  return a;
}

// Joins payloads that come in the order of their leaves (docs/numerics.md, section 2).
class WideTree {
 public:
  explicit WideTree(bool moments) : moments_(moments) {}
  void Push(int64_t leaf, WidePayload payload) {
    while (stack_.size() >= 2 && CommonLevel(stack_[stack_.size() - 2].first, stack_.back().first) <
                                     CommonLevel(stack_.back().first, leaf))
      JoinTop();
    stack_.emplace_back(leaf, std::move(payload));
  }
  bool IsEmpty() const { return stack_.empty(); }
  WidePayload Finish() {
    while (stack_.size() > 1) JoinTop();
    WidePayload root = std::move(stack_.back().second);
    stack_.clear();
    return root;
  }

 private:
  void JoinTop() {
    WidePayload right = std::move(stack_.back().second);
    stack_.pop_back();
    stack_.back().second = Join(moments_, std::move(stack_.back().second), right);
  }
  const bool moments_;
  std::vector<std::pair<int64_t, WidePayload>> stack_;
};

// L over the lanes of result k of so many results.
WideNumber JoinLanes(const std::vector<WideNumber>& numbers, size_t k, size_t results) {
  if (numbers.size() == results) return numbers[k];
  const auto r = [&](size_t lane) { return numbers[lane * results + k]; };
  return ((r(0) + r(4)) + (r(2) + r(6))) + ((r(1) + r(5)) + (r(3) + r(7)));
}

// The aggregates of some columns of the matrices that leaves are.
class WideLeaves {
 public:
  // `columns`: those wanted, ascending, of so many.
  WideLeaves(AggregateKind kind, int64_t lanes, int64_t all_columns, std::vector<int64_t> columns)
      : moments_(IsSpread(kind)), lanes_(lanes), all_(all_columns), columns_(std::move(columns)) {
    if (all_ == 1) return;
    number_of_.assign(static_cast<size_t>(all_), -1);
    for (size_t k = 0; k < columns_.size(); ++k)
      number_of_[static_cast<size_t>(columns_[k])] = static_cast<int64_t>(k);
  }

  bool moments() const { return moments_; }
  WidePayload Make(const LeafCells& cells) const {
    WidePayload payload{static_cast<double>(cells.rows), Sum(cells, [](double x, size_t) { return x; })};
    if (!moments_) return payload;
    const size_t results = columns_.size();
    std::vector<WideNumber> means;
    for (size_t k = 0; k < results; ++k)
      means.push_back(JoinLanes(payload.numbers, k, results) / payload.count);
    const std::vector<WideNumber> squares = Sum(cells, [&](double x, size_t k) {
      const WideNumber d = WideNumber(x) - means[k];
      return d * d;
    });
    payload.numbers = means;
    for (size_t k = 0; k < results; ++k) payload.numbers.push_back(JoinLanes(squares, k, results));
    return payload;
  }

 private:
  template <typename Term>
  std::vector<WideNumber> Sum(const LeafCells& cells, const Term& term) const {
    const auto results = static_cast<int64_t>(columns_.size());
    std::vector<WideNumber> sums(static_cast<size_t>(lanes_ * results));
    const auto add = [&](int64_t row, int64_t k, double x) {
      WideNumber& sum = sums[static_cast<size_t>(row % lanes_ * results + k)];
      sum = sum + term(x, static_cast<size_t>(k));
    };
    if (!cells.is_sparse) {
      for (int64_t i = 0; i < cells.rows; ++i)
        for (int64_t k = 0; k < results; ++k)
          add(i, k, cells.values[i * all_ + columns_[static_cast<size_t>(k)]]);
      return sums;
    }
    for (int64_t c = 0; c < cells.count; ++c) {
      const int64_t k = all_ == 1 ? 0 : number_of_[static_cast<size_t>(cells.places[c] % all_)];
      if (k >= 0) add(cells.places[c] / all_, k, cells.values[c]);
    }
    return sums;
  }

  const bool moments_;
  const int64_t lanes_, all_;
  const std::vector<int64_t> columns_;
  std::vector<int64_t> number_of_;  // By column: its place among those wanted, or -1.
};

// Result k of a root; `cells` are those that it adds up.
double ResultOf(AggregateKind kind, const WidePayload& root, size_t k, size_t results, double cells) {
  if (!IsSpread(kind)) {
    const WideNumber sum = JoinLanes(root.numbers, k, results);
    // A mean of doubles is one, whatever a rounding adds to the largest.
    return kind == AggregateKind::kMean ? (sum / cells).ToNearestDouble() : sum.ToDouble();
  }
  if (root.count < 2) return SpreadOf(kind, root.count, 0.0);
  const WideNumber variance = root.numbers[results + k] / (root.count - 1.0);
  return kind == AggregateKind::kDeviation ? SquareRoot(variance).ToDouble() : variance.ToDouble();
}

// How leaves of a full or column aggregate lie in its matrix.
class Leaves {
 public:
  explicit Leaves(const SumsOfMatrix& sums)
      : full_(sums.scope == AggregateScope::kFull),
        rows_(sums.rows),
        columns_(sums.columns),
        height_(full_                 ? FullPanelHeight(sums.rows, sums.columns)
                : IsSpread(sums.kind) ? MomentsPanelHeight(sums.rows, sums.columns)
                                      : ColumnPanelHeight(sums.rows, sums.columns)),
        chunks_(full_ ? CeilDivide(sums.columns, kColumnChunk) : 1),
        needs_all_(IsSpread(sums.kind)) {}

  int64_t Count() const { return CeilDivide(rows_, height_) * chunks_; }
  int64_t Cells() const { return height_ * std::min(columns_, chunks_ > 1 ? kColumnChunk : columns_); }

  // Reads leaves of one thread.
  class Reader {
   public:
    Reader(const Leaves& leaves, const RowsOfMatrix& rows) : leaves_(leaves), rows_of_(rows) {}
    Result<LeafCells> Read(int64_t leaf) {
      const int64_t begin = leaf / leaves_.chunks_ * leaves_.height_;
      const int64_t end = std::min(leaves_.rows_, begin + leaves_.height_);
      const int64_t column = leaf % leaves_.chunks_ * kColumnChunk;
      const int64_t column_end =
          leaves_.chunks_ == 1 ? leaves_.columns_ : std::min(leaves_.columns_, column + kColumnChunk);
      if (begin != begin_) {
        HEDDLE_ASSIGN_OR_RETURN(piece_, rows_of_(begin, end));
        begin_ = begin;
      }
      LeafCells cells = cells_.Read(piece_, 0, end - begin, column, column_end, leaves_.needs_all_);
      // All cells are dealt to the lanes of one result.
      if (leaves_.full_) cells.rows = (end - begin) * (column_end - column);
      return cells;
    }

   private:
    const Leaves& leaves_;
    const RowsOfMatrix& rows_of_;
    int64_t begin_ = -1;
    Matrix piece_;
    CellReader cells_;
  };

 private:
  const bool full_;
  const int64_t rows_, columns_, height_, chunks_;
  const bool needs_all_;
};

int64_t ResultsOf(const SumsOfMatrix& sums) { return sums.scope == AggregateScope::kFull ? 1 : sums.columns; }
int64_t LanesOf(const SumsOfMatrix& sums) {
  return sums.scope == AggregateScope::kFull || sums.columns <= kNarrow ? 8 : 1;
}

// The numbers of result r in a payload of doubles, and where those of WidePayload are.
template <typename Visit>
void EachPlace(const SumsOfMatrix& sums, int64_t r, const Visit& visit) {
  const int64_t results = ResultsOf(sums);
  const bool moments = IsSpread(sums.kind);
  const int64_t count = moments ? 2 : LanesOf(sums);
  for (int64_t i = 0; i < count; ++i) visit(sums.offset + (moments ? 1 : 0) + i * results + r, i);
}

TreeNode NodeOf(const double* row) { return {static_cast<int64_t>(row[0]), static_cast<int>(row[1])}; }

bool IsFiniteIn(const SumsOfMatrix& sums, const double* row, int64_t r) {
  bool finite = true;
  EachPlace(sums, r, [&](int64_t place, int64_t) { finite = finite && std::isfinite(row[2 + place]); });
  return finite;
}

// A failure of some task, the first that was told.
class FirstFailure {
 public:
  void Tell(Status status) {
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
    const int64_t grain = std::max<int64_t>(1, kTaskCells / std::max<int64_t>(leaves_.Cells(), 1));
    FirstFailure failure;
    ParallelFor(end - begin, grain, [&](int64_t first, int64_t last) {
      if (failure.failed()) return;
      Leaves::Reader reader(leaves_, rows_);
      if (Status status = body(reader, begin + first, begin + last); !status.ok())
        failure.Tell(std::move(status));
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
        [&](Leaves::Reader& reader, int64_t first, int64_t last) -> Status {
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
      Leaves::Reader reader(leaves_, rows_);
      for (int64_t part = begin; part < end && !failure.failed(); ++part) {
        const int64_t first = ((node.index << down) + part) << level;
        WideTree tree(wide.moments());
        for (int64_t leaf = first; leaf < first + (int64_t{1} << level) && !IsCancelled(cancelled_); ++leaf) {
          Result<LeafCells> cells = reader.Read(leaf);
          if (!cells.ok()) return failure.Tell(cells.status());
          tree.Push(leaf, wide.Make(*cells));
        }
        if (!tree.IsEmpty()) parts[static_cast<size_t>(part)] = tree.Finish();
      }
    });
    HEDDLE_RETURN_IF_ERROR(failure.Take());
    if (IsCancelled(cancelled_)) return Cancelled("cancelled");
    for (size_t step = 1; step < parts.size(); step *= 2)
      for (size_t p = 0; p + step < parts.size(); p += 2 * step)
        parts[p] = Join(wide.moments(), std::move(parts[p]), parts[p + step]);
    return std::move(parts[0]);
  }

  const SumsOfMatrix& sums_;
  const RowsOfMatrix& rows_;
  const std::atomic<bool>* const cancelled_;
  const Leaves leaves_;
  std::vector<int64_t> suspects_;  // Results, ascending.
};

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

Result<Matrix> AddWideNodes(const SumsOfMatrix& sums, Matrix nodes, const RowsOfMatrix& rows,
                            const std::atomic<bool>* cancelled) {
  return WideNodes(sums, rows, cancelled).Run(std::move(nodes));
}

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
    CellReader reader;
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

WideNumber WideSum(const Matrix& x, double sum) {
  if (std::isfinite(sum) || simd::FindNonFinite(x.data(), 0, x.cells()) < x.cells()) return sum;
  const SumsOfMatrix sums{.rows = x.rows(), .columns = x.columns()};
  const Leaves leaves(sums);
  const RowsOfMatrix rows = [&](int64_t begin, int64_t end) -> Result<Matrix> { return x.Rows(begin, end); };
  Leaves::Reader reader(leaves, rows);
  const WideLeaves wide(sums.kind, LanesOf(sums), 1, {0});
  WideTree tree(false);
  for (int64_t leaf = 0; leaf < leaves.Count(); ++leaf)
    if (const Result<LeafCells> cells = reader.Read(leaf); cells.ok()) tree.Push(leaf, wide.Make(*cells));
  return tree.IsEmpty() ? WideNumber(sum) : JoinLanes(tree.Finish().numbers, 0, 1);
}

}  // namespace heddle::ops
