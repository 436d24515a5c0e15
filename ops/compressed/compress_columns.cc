// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>

#include "core/hash.h"
#include "ops/base/parallel.h"
#include "ops/compressed/plan_groups.h"

namespace heddle::ops {
namespace {

// Rows that one thread looks at for all groups before it goes on. Fewer than kMostTuples: a block never has
// too many tuples.
constexpr int64_t kBlockRows = int64_t{1} << 14;
static_assert(kBlockRows < kMostTuples);

// Cells by their bits; one NaN.
template <typename T>
T Canonical(T cell) {
  return std::isnan(cell) ? std::numeric_limits<T>::quiet_NaN() : cell;
}
template <typename T>
bool IsSame(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}
// -0.0 before +0.0, NaN behind everything.
template <typename T>
int Compare(T a, T b) {
  if (IsSame(a, b)) return 0;
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? 1 : -1;
  if (a != b) return a < b ? -1 : 1;
  return std::signbit(a) ? -1 : 1;
}

// Tuples of `width` cells, each once, numbered by first occurrence. Open addressing.
template <typename T>
class TupleTable {
 public:
  explicit TupleTable(int64_t width) : width_(width), slots_(64, kFree) {}
  int64_t size() const { return size_; }
  const T* tuple(int64_t i) const { return tuples_.data() + i * width_; }

  // The number of the tuple; -1 for a new one beyond kMostTuples.
  int64_t Add(const T* tuple) {
    if (size_ > 0 && Equal(last_, tuple)) return last_;
    size_t slot = Hash(tuple) & (slots_.size() - 1);
    while (slots_[slot] != kFree) {
      if (Equal(slots_[slot], tuple)) return last_ = slots_[slot];
      slot = (slot + 1) & (slots_.size() - 1);
    }
    if (size_ == kMostTuples) return -1;
    tuples_.insert(tuples_.end(), tuple, tuple + width_);
    slots_[slot] = static_cast<int32_t>(size_);
    last_ = static_cast<int32_t>(size_++);
    if (static_cast<size_t>(size_) * 2 > slots_.size()) Grow();
    return last_;
  }

 private:
  static constexpr int32_t kFree = -1;

  bool Equal(int64_t i, const T* other) const {
    return std::memcmp(tuple(i), other, static_cast<size_t>(width_) * sizeof(T)) == 0;
  }
  size_t Hash(const T* cells) const {
    uint64_t hash = 0;
    for (int64_t k = 0; k < width_; ++k) {
      uint64_t bits = 0;
      std::memcpy(&bits, cells + k, sizeof(T));
      hash = FoldHash(hash, bits);
    }
    return static_cast<size_t>(hash ^ hash >> 32);
  }
  void Grow() {
    slots_.assign(slots_.size() * 2, kFree);
    for (int64_t i = 0; i < size_; ++i) {
      size_t slot = Hash(tuple(i)) & (slots_.size() - 1);
      while (slots_[slot] != kFree) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = static_cast<int32_t>(i);
    }
  }

  int64_t width_;
  int64_t size_ = 0;
  int32_t last_ = 0;
  std::vector<T> tuples_;
  std::vector<int32_t> slots_;
};

// What a block of rows has of one group: its tuples, and of each row which one.
template <typename T>
struct BlockOfGroup {
  std::optional<TupleTable<T>> table;
  std::vector<uint16_t> codes;
};

// The cells of some columns, row by row.
template <typename T>
class Tuples {
 public:
  Tuples(const Matrix& matrix, const std::vector<int32_t>& columns) : matrix_(matrix), columns_(columns) {}

  // Calls visit(row, tuple) for rows [begin, end); the tuple is there until visit returns.
  template <typename Visit>
  void ForRows(int64_t begin, int64_t end, Visit visit) {
    std::vector<T> tuple(columns_.size());
    if (!matrix_.IsSparse()) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = matrix_.data<T>() + i * matrix_.columns();
        for (size_t k = 0; k < columns_.size(); ++k) tuple[k] = Canonical(row[columns_[k]]);
        visit(i, tuple.data());
      }
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      const int32_t* at = matrix_.column_indexes() + matrix_.row_offsets()[i];
      const int32_t* last = matrix_.column_indexes() + matrix_.row_offsets()[i + 1];
      for (size_t k = 0; k < columns_.size(); ++k) {
        at = std::lower_bound(at, last, columns_[k]);
        tuple[k] = at != last && *at == columns_[k]
                       ? Canonical(matrix_.values<T>()[at - matrix_.column_indexes()])
                       : T{0};
        if (tuple[k] == 0) tuple[k] = 0;  // The sign of a zero means nothing here.
      }
      visit(i, tuple.data());
    }
  }

 private:
  const Matrix& matrix_;
  const std::vector<int32_t>& columns_;
};

template <typename T>
class GroupMaker {
 public:
  GroupMaker(const Matrix& matrix, const PlannedGroup& planned)
      : matrix_(matrix),
        planned_(planned),
        blocks_(static_cast<size_t>((matrix.rows() + kBlockRows - 1) / kBlockRows)) {}

  bool IsPlain() const { return planned_.encoding == Encoding::kUncompressed; }

  // Finds the tuples of a block. Several blocks at once.
  void Look(int64_t block) {
    if (IsPlain()) return;
    BlockOfGroup<T>& found = blocks_[static_cast<size_t>(block)];
    const int64_t begin = block * kBlockRows;
    const int64_t end = std::min(matrix_.rows(), begin + kBlockRows);
    found.table.emplace(static_cast<int64_t>(planned_.columns.size()));
    found.codes.resize(static_cast<size_t>(end - begin));
    Tuples<T>(matrix_, planned_.columns).ForRows(begin, end, [&](int64_t row, const T* tuple) {
      // A block has fewer rows than a dictionary may have tuples.
      found.codes[static_cast<size_t>(row - begin)] = static_cast<uint16_t>(found.table->Add(tuple));
    });
  }

  // Joins what the blocks have found, and writes the group.
  Result<ColumnGroup> Make() {
    if (IsPlain() || !JoinTables()) return Plain();
    ColumnGroup group;
    group.columns = planned_.columns;
    const int64_t tuples = table_->size();
    if (tuples == 0) return group;  // There are no rows.
    HEDDLE_RETURN_IF_ERROR(Order(&group));
    if (tuples == 1) {
      const T* only = group.dictionary.template data<T>();
      const bool is_zero = std::all_of(only, only + group.width(), [](T x) { return IsSame(x, T{0}); });
      group.encoding = is_zero ? Encoding::kEmpty : Encoding::kConstant;
      if (is_zero) group.dictionary = Matrix();
      return group;
    }
    return Encode(std::move(group));
  }

 private:
  // Numbers of the tuples of each block in the table of all. False when there are too many.
  bool JoinTables() {
    table_.emplace(static_cast<int64_t>(planned_.columns.size()));
    numbers_.resize(blocks_.size());
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const TupleTable<T>& block = *blocks_[b].table;
      for (int64_t i = 0; i < block.size(); ++i) {
        const int64_t number = table_->Add(block.tuple(i));
        if (number < 0) return false;
        numbers_[b].push_back(static_cast<int32_t>(number));
      }
    }
    return true;
  }

  // Calls visit(row, number) in the order of the rows.
  template <typename Visit>
  void ForRows(Visit visit) const {
    for (size_t b = 0; b < blocks_.size(); ++b)
      for (size_t i = 0; i < blocks_[b].codes.size(); ++i)
        visit(static_cast<int64_t>(b) * kBlockRows + static_cast<int64_t>(i),
              numbers_[b][blocks_[b].codes[i]]);
  }

  // Sorts the tuples, counts them, and chooses the encoding that takes the fewest bytes.
  Status Order(ColumnGroup* group) {
    const int64_t tuples = table_->size();
    const int64_t width = group->width();
    counts_.assign(static_cast<size_t>(tuples), 0);
    runs_ = 0;
    int32_t before = -1;
    ForRows([&](int64_t, int32_t number) {
      ++counts_[static_cast<size_t>(number)];
      if (number != before) ++runs_;
      before = number;
    });
    std::vector<int32_t> order(static_cast<size_t>(tuples));
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      for (int64_t k = 0; k < width; ++k)
        if (const int c = Compare(table_->tuple(a)[k], table_->tuple(b)[k]); c != 0) return c < 0;
      return false;
    });
    const double bits = CodeBits(tuples);
    const double rows = static_cast<double>(matrix_.rows());
    const auto frequent = std::max_element(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return counts_[static_cast<size_t>(a)] < counts_[static_cast<size_t>(b)];
    });
    const double exceptions = rows - static_cast<double>(counts_[static_cast<size_t>(*frequent)]);
    double least = rows * bits / 8;
    group->encoding = Encoding::kDenseCodes;
    const double of_default = exceptions * (bits / 8 + sizeof(uint16_t)) + rows / kSegmentRows * 8;
    if (of_default < least) least = of_default, group->encoding = Encoding::kDefault;
    if (static_cast<double>(runs_) * (bits / 8 + sizeof(int64_t)) < least) group->encoding = Encoding::kRuns;
    if (group->encoding == Encoding::kDefault) std::rotate(order.begin(), frequent, frequent + 1);
    code_of_.resize(static_cast<size_t>(tuples));
    HEDDLE_ASSIGN_OR_RETURN(group->dictionary, Matrix::Dense(tuples, width, matrix_.element_type()));
    for (int64_t i = 0; i < tuples; ++i) {
      const int32_t number = order[static_cast<size_t>(i)];
      code_of_[static_cast<size_t>(number)] = static_cast<uint32_t>(i);
      std::copy_n(table_->tuple(number), width, group->dictionary.template mutable_data<T>() + i * width);
    }
    return OkStatus();
  }

  Result<ColumnGroup> Encode(ColumnGroup group) {
    const int32_t bits = CodeBits(table_->size());
    const int64_t rows = matrix_.rows();
    if (group.encoding == Encoding::kDenseCodes) {
      HEDDLE_ASSIGN_OR_RETURN(group.codes, Codes::Make(rows, bits));
      ForRows(
          [&](int64_t row, int32_t number) { group.codes.Set(row, code_of_[static_cast<size_t>(number)]); });
    } else if (group.encoding == Encoding::kRuns) {
      HEDDLE_ASSIGN_OR_RETURN(group.codes, Codes::Make(runs_, bits));
      int32_t before = -1;
      ForRows([&](int64_t row, int32_t number) {
        if (number == before) return;
        before = number;
        group.codes.Set(static_cast<int64_t>(group.starts.size()), code_of_[static_cast<size_t>(number)]);
        group.starts.push_back(row);
      });
    } else {
      int64_t frequent = 0;
      for (size_t number = 0; number < code_of_.size(); ++number)
        if (code_of_[number] == 0) frequent = counts_[number];
      const int64_t exceptions = rows - frequent;
      HEDDLE_ASSIGN_OR_RETURN(group.codes, Codes::Make(exceptions, bits));
      HEDDLE_ASSIGN_OR_RETURN(group.positions,
                              Buffer::Allocate(exceptions * static_cast<int64_t>(sizeof(uint16_t))));
      auto* positions = static_cast<uint16_t*>(group.positions->data());
      int64_t at = 0;
      ForRows([&](int64_t row, int32_t number) {
        if (row % kSegmentRows == 0) group.segments.push_back(at);
        const uint32_t code = code_of_[static_cast<size_t>(number)];
        if (code == 0) return;
        group.codes.Set(at, code);
        positions[at++] = static_cast<uint16_t>(row % kSegmentRows);
      });
      group.segments.push_back(at);
    }
    return group;
  }

  // The columns as they are, dense or CSR as the matrix is.
  Result<ColumnGroup> Plain() const {
    ColumnGroup group;
    group.encoding = Encoding::kUncompressed;
    group.columns = planned_.columns;
    const int64_t width = group.width();
    Tuples<T> tuples(matrix_, planned_.columns);
    if (!matrix_.IsSparse()) {
      HEDDLE_ASSIGN_OR_RETURN(group.dictionary, Matrix::Dense(matrix_.rows(), width, matrix_.element_type()));
      T* cells = group.dictionary.template mutable_data<T>();
      tuples.ForRows(0, matrix_.rows(),
                     [&](int64_t row, const T* tuple) { std::copy_n(tuple, width, cells + row * width); });
      return group;
    }
    int64_t entries = 0;
    tuples.ForRows(0, matrix_.rows(), [&](int64_t, const T* tuple) {
      entries += width - std::count(tuple, tuple + width, T{0});
    });
    HEDDLE_ASSIGN_OR_RETURN(group.dictionary,
                            Matrix::Sparse(matrix_.rows(), width, entries, matrix_.element_type()));
    Matrix& sparse = group.dictionary;
    int64_t at = 0;
    tuples.ForRows(0, matrix_.rows(), [&](int64_t row, const T* tuple) {
      for (int64_t k = 0; k < width; ++k) {
        if (tuple[k] == 0) continue;
        sparse.mutable_column_indexes()[at] = static_cast<int32_t>(k);
        sparse.template mutable_values<T>()[at++] = tuple[k];
      }
      sparse.mutable_row_offsets()[row + 1] = at;
    });
    return group;
  }

  const Matrix& matrix_;
  const PlannedGroup& planned_;
  std::vector<BlockOfGroup<T>> blocks_;
  std::optional<TupleTable<T>> table_;
  std::vector<std::vector<int32_t>> numbers_;  // Of each block: its tuples in the table of all.
  std::vector<int64_t> counts_;                // Rows of each tuple of the table.
  int64_t runs_ = 0;
  std::vector<uint32_t> code_of_;  // Of each tuple of the table: its place in the dictionary.
};

template <typename T>
Result<ColumnGroups> Compress(const Matrix& matrix, const CompressionPlan& plan,
                              const KernelContext& context) {
  ColumnGroups result;
  result.rows = matrix.rows();
  result.columns = matrix.columns();
  result.element_type = matrix.element_type();
  std::vector<GroupMaker<T>> makers;
  makers.reserve(plan.groups.size());
  for (const PlannedGroup& group : plan.groups) makers.emplace_back(matrix, group);
  ParallelFor((matrix.rows() + kBlockRows - 1) / kBlockRows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end && !IsCancelled(context.cancelled); ++block)
      for (GroupMaker<T>& maker : makers) maker.Look(block);
  });
  if (IsCancelled(context.cancelled)) return Cancelled("compress");
  std::vector<Status> made(makers.size(), OkStatus());
  result.groups.resize(makers.size());
  ParallelFor(static_cast<int64_t>(makers.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end && !IsCancelled(context.cancelled); ++g) {
      Result<ColumnGroup> group = makers[static_cast<size_t>(g)].Make();
      if (group.ok())
        result.groups[static_cast<size_t>(g)] = *std::move(group);
      else
        made[static_cast<size_t>(g)] = group.status();
    }
  });
  if (IsCancelled(context.cancelled)) return Cancelled("compress");
  for (const Status& status : made) HEDDLE_RETURN_IF_ERROR(status);
  return result;
}

}  // namespace

Result<ColumnGroups> CompressColumns(const Matrix& matrix, const CompressionPlan& plan,
                                     const KernelContext& context) {
  return matrix.element_type() == ElementType::kFloat64 ? Compress<double>(matrix, plan, context)
                                                        : Compress<float>(matrix, plan, context);
}

}  // namespace heddle::ops
