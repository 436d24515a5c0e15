// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "ops/base/parallel.h"
#include "ops/compressed/plan_groups.h"
#include "ops/compressed/read_cost.h"
#include "ops/compressed/tuple_tables.h"

namespace heddle::ops {
namespace {

// Rows that one thread looks at for all groups before it goes on. Fewer than kMostTuples: a block never has
// too many tuples.
constexpr int64_t kBlockRows = int64_t{1} << 14;
static_assert(kBlockRows < kMostTuples);
// Cells that stay in the cache of a core while all groups look at theirs.
constexpr int64_t kTileCells = int64_t{1} << 14;

// -0.0 before +0.0, NaN behind everything.
template <typename T>
int Compare(T a, T b) {
  if (IsSameCell(a, b)) return 0;
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? 1 : -1;
  if (a != b) return a < b ? -1 : 1;
  return std::signbit(a) ? -1 : 1;
}

// What a block of rows has of one group: its tuples, and of each row which one.
template <typename T>
struct BlockOfGroup {
  std::optional<ValueTable<T>> values;  // Of groups of one column, while the block is looked at,
  std::optional<TupleTable<T>> tuples;  // and of others.
  std::vector<T> cells;                 // Then the tuples, one behind the other,
  std::vector<uint8_t> narrow_codes;    // the code of each row, where there are at most 256 tuples,
  std::vector<uint16_t> codes;          // or more,
  std::vector<int32_t> counts;          // the rows of each tuple,
  int64_t runs = 0;  // and how often one row has another tuple than the one before it, and once.

  int64_t size() const { return static_cast<int64_t>(counts.size()); }
  size_t rows() const { return std::max(codes.size(), narrow_codes.size()); }
  uint16_t CodeOf(size_t row) const { return codes.empty() ? narrow_codes[row] : codes[row]; }
  // Calls visit(codes), a pointer to one for each row.
  template <typename Visit>
  void WithCodes(Visit visit) const {
    if (codes.empty())
      visit(narrow_codes.data());
    else
      visit(codes.data());
  }
};

// Rows of a matrix as dense cells: its own, or decoded for the time being.
template <typename T>
class DenseRows {
 public:
  explicit DenseRows(const Matrix& matrix) : matrix_(matrix) {}

  const T* Cells(int64_t begin, int64_t end) {
    const int64_t columns = matrix_.columns();
    if (!matrix_.IsSparse()) return matrix_.data<T>() + begin * columns;
    decoded_.assign(static_cast<size_t>((end - begin) * columns), T{0});
    T* row = decoded_.data();
    for (int64_t i = begin; i < end; ++i, row += columns)
      for (int64_t e = matrix_.row_offsets()[i]; e < matrix_.row_offsets()[i + 1]; ++e)
        if (const T cell = matrix_.values<T>()[e]; cell != 0)  // The sign of a zero means nothing here.
          row[matrix_.column_indexes()[e]] = cell;
    return decoded_.data();
  }

 private:
  const Matrix& matrix_;
  std::vector<T> decoded_;
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

  // Finds the tuples of a block, in rows [begin, end) of it after the other; several blocks at once. `cells`
  // are all columns of these rows, `codes` have room for those of a block.
  void BeginBlock(int64_t block) {
    if (IsPlain()) return;
    BlockOfGroup<T>& found = blocks_[static_cast<size_t>(block)];
    if (planned_.columns.size() == 1)
      found.values.emplace();
    else
      found.tuples.emplace(static_cast<int64_t>(planned_.columns.size()));
  }
  void Look(int64_t block, int64_t begin, int64_t end, const T* cells, uint16_t* codes) {
    if (IsPlain()) return;
    BlockOfGroup<T>& found = blocks_[static_cast<size_t>(block)];
    codes += begin - block * kBlockRows;
    const int64_t stride = matrix_.columns(), rows = end - begin;
    if (found.values) {
      found.values->Add(cells + planned_.columns[0], stride, rows, codes);
      return;
    }
    std::vector<T> tuple(planned_.columns.size());
    for (int64_t i = 0; i < rows; ++i, cells += stride) {
      for (size_t k = 0; k < tuple.size(); ++k) tuple[k] = Canonical(cells[planned_.columns[k]]);
      // A block has fewer rows than a dictionary may have tuples.
      codes[i] = static_cast<uint16_t>(found.tuples->Add(tuple.data()));
    }
  }
  void EndBlock(int64_t block, const uint16_t* codes) {
    if (IsPlain()) return;
    BlockOfGroup<T>& found = blocks_[static_cast<size_t>(block)];
    const auto rows = static_cast<size_t>(std::min(kBlockRows, matrix_.rows() - block * kBlockRows));
    found.cells = found.values ? found.values->cells() : found.tuples->cells();
    found.counts.assign(found.cells.size() / planned_.columns.size(), 0);
    found.values.reset();
    found.tuples.reset();
    found.runs = 1;
    // Counts of even rows and of odd ones: an addition waits for the one before it to the same place.
    std::vector<int32_t> odd(found.counts.size(), 0);
    for (size_t i = 0; i + 1 < rows; i += 2) {
      ++found.counts[codes[i]];
      ++odd[codes[i + 1]];
    }
    if (rows % 2 != 0) ++found.counts[codes[rows - 1]];
    for (size_t i = 0; i < odd.size(); ++i) found.counts[i] += odd[i];
    for (size_t i = 1; i < rows; ++i) found.runs += codes[i] != codes[i - 1] ? 1 : 0;
    if (found.counts.size() <= 256)
      found.narrow_codes.assign(codes, codes + rows);
    else
      found.codes.assign(codes, codes + rows);
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
      const bool is_zero = std::all_of(only, only + group.width(), [](T x) { return IsSameCell(x, T{0}); });
      group.encoding = is_zero ? Encoding::kEmpty : Encoding::kConstant;
      if (is_zero) group.dictionary = Matrix();
      return group;
    }
    return Encode(std::move(group));
  }

 private:
  // Numbers of the tuples of each block in the table of all. False when there are too many.
  bool JoinTables() {
    const auto width = static_cast<int64_t>(planned_.columns.size());
    table_.emplace(width);
    numbers_.resize(blocks_.size());
    for (size_t b = 0; b < blocks_.size(); ++b)
      for (int64_t i = 0; i < blocks_[b].size(); ++i) {
        const int64_t number = table_->Add(blocks_[b].cells.data() + i * width);
        if (number < 0) return false;
        numbers_[b].push_back(static_cast<int32_t>(number));
      }
    return true;
  }

  // Calls visit(row, code) for the rows of a block in their order.
  template <typename Visit>
  void ForRows(size_t block, Visit visit) const {
    const std::vector<uint16_t> final_codes = FinalCodes(block);
    blocks_[block].WithCodes([&](const auto* codes) {
      for (size_t i = 0; i < blocks_[block].rows(); ++i)
        visit(static_cast<int64_t>(block) * kBlockRows + static_cast<int64_t>(i), final_codes[codes[i]]);
    });
  }

  // Of the tuples of a block: their places in the dictionary.
  std::vector<uint16_t> FinalCodes(size_t block) const {
    std::vector<uint16_t> codes;
    for (const int32_t number : numbers_[block])
      codes.push_back(static_cast<uint16_t>(code_of_[static_cast<size_t>(number)]));
    return codes;
  }

  void Count() {
    counts_.assign(static_cast<size_t>(table_->size()), 0);
    runs_ = 0;
    int32_t before = -1;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const BlockOfGroup<T>& block = blocks_[b];
      for (size_t i = 0; i < block.counts.size(); ++i)
        counts_[static_cast<size_t>(numbers_[b][i])] += block.counts[i];
      runs_ += block.runs - (numbers_[b][block.CodeOf(0)] == before ? 1 : 0);
      before = numbers_[b][block.CodeOf(block.rows() - 1)];
    }
  }

  // Sorts the tuples, counts them, and chooses the encoding that costs least to read.
  Status Order(ColumnGroup* group) {
    const int64_t tuples = table_->size();
    const int64_t width = group->width();
    Count();
    std::vector<int32_t> order(static_cast<size_t>(tuples));
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      for (int64_t k = 0; k < width; ++k)
        if (const int c = Compare(table_->tuple(a)[k], table_->tuple(b)[k]); c != 0) return c < 0;
      return false;
    });
    const double code_bytes = CodeBits(tuples) / 8.0;
    const double rows = static_cast<double>(matrix_.rows());
    const auto frequent = std::max_element(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return counts_[static_cast<size_t>(a)] < counts_[static_cast<size_t>(b)];
    });
    const double exceptions = rows - static_cast<double>(counts_[static_cast<size_t>(*frequent)]);
    double least = std::numeric_limits<double>::max();
    const auto offer = [&](Encoding encoding, double bytes, double count) {
      const double cost = ReadCost({.encoding = encoding,
                                    .rows = rows,
                                    .columns = static_cast<double>(width),
                                    .tuples = static_cast<double>(tuples),
                                    .exceptions = count,
                                    .bytes = bytes});
      if (cost >= least) return;
      least = cost;
      group->encoding = encoding;
    };
    offer(Encoding::kDenseCodes, rows * code_bytes, 0);
    offer(Encoding::kDefault, exceptions * (code_bytes + sizeof(uint16_t)) + rows / kSegmentRows * 8,
          exceptions);
    offer(Encoding::kRuns, static_cast<double>(runs_) * (code_bytes + sizeof(int64_t)),
          static_cast<double>(runs_));
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
    if (group.encoding == Encoding::kDenseCodes) {
      HEDDLE_ASSIGN_OR_RETURN(group.codes, Codes::Make(matrix_.rows(), bits));
      ForBlocks(true, [&](size_t block) { WriteDenseCodes(block, &group.codes); });
      return group;
    }
    if (group.encoding == Encoding::kDefault) return EncodeExceptions(std::move(group), bits);
    HEDDLE_ASSIGN_OR_RETURN(group.codes, Codes::Make(runs_, bits));
    int32_t before = -1;
    for (size_t block = 0; block < blocks_.size(); ++block)
      ForRows(block, [&](int64_t row, uint16_t code) {
        if (code == before) return;
        before = code;
        group.codes.Set(static_cast<int64_t>(group.starts.size()), code);
        group.starts.push_back(row);
      });
    return group;
  }

  void ForBlocks(bool at_once, const std::function<void(size_t block)>& visit) const {
    if (!at_once) {
      for (size_t block = 0; block < blocks_.size(); ++block) visit(block);
      return;
    }
    ParallelFor(static_cast<int64_t>(blocks_.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) visit(static_cast<size_t>(block));
    });
  }

  // Blocks begin at even rows: two of them share no byte of codes.
  void WriteDenseCodes(size_t block, Codes* codes) const {
    const std::vector<uint16_t> final_codes = FinalCodes(block);
    const auto first = static_cast<int64_t>(block) * kBlockRows;
    const size_t rows = blocks_[block].rows();
    blocks_[block].WithCodes([&](const auto* own) {
      if (codes->bits() == 16) {
        auto* out = reinterpret_cast<uint16_t*>(codes->mutable_data()) + first;
        for (size_t i = 0; i < rows; ++i) out[i] = final_codes[own[i]];
      } else if (codes->bits() == 8) {
        uint8_t* out = codes->mutable_data() + first;
        for (size_t i = 0; i < rows; ++i) out[i] = static_cast<uint8_t>(final_codes[own[i]]);
      } else {
        uint8_t* out = codes->mutable_data() + first / 2;
        for (size_t i = 0; i < rows; i += 2) {
          const unsigned next = i + 1 < rows ? final_codes[own[i + 1]] : 0;
          *out++ = static_cast<uint8_t>(final_codes[own[i]] | next << 4);
        }
      }
    });
  }

  // Those of a block stand behind those of the blocks before it, whose counts are known.
  Result<ColumnGroup> EncodeExceptions(ColumnGroup group, int32_t bits) {
    std::vector<int64_t> first(blocks_.size() + 1, 0);
    for (size_t b = 0; b < blocks_.size(); ++b) {
      first[b + 1] = first[b] + static_cast<int64_t>(blocks_[b].rows());
      for (size_t i = 0; i < numbers_[b].size(); ++i)
        if (code_of_[static_cast<size_t>(numbers_[b][i])] == 0) first[b + 1] -= blocks_[b].counts[i];
      if (static_cast<int64_t>(b) * kBlockRows % kSegmentRows == 0) group.segments.push_back(first[b]);
    }
    group.segments.push_back(first.back());
    HEDDLE_ASSIGN_OR_RETURN(group.codes, Codes::Make(first.back(), bits));
    HEDDLE_ASSIGN_OR_RETURN(group.positions,
                            Buffer::Allocate(first.back() * static_cast<int64_t>(sizeof(uint16_t))));
    auto* const positions = static_cast<uint16_t*>(group.positions->data());
    // Two blocks may share a byte of codes of 4 bits.
    ForBlocks(bits != 4, [&](size_t block) {
      int64_t at = first[block];
      ForRows(block, [&](int64_t row, uint16_t code) {
        if (code == 0) return;
        group.codes.Set(at, code);
        positions[at++] = static_cast<uint16_t>(row % kSegmentRows);
      });
    });
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
      ParallelFor(matrix_.rows(), kBlockRows, [&](int64_t begin, int64_t end) {
        Tuples<T>(matrix_, planned_.columns).ForRows(begin, end, [&](int64_t row, const T* tuple) {
          std::copy_n(tuple, width, cells + row * width);
        });
      });
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
  const int64_t tile_rows = std::clamp<int64_t>(kTileCells / std::max<int64_t>(matrix.columns(), 1), 8, 1024);
  const auto height = static_cast<size_t>(std::min(kBlockRows, matrix.rows()));
  ParallelFor((matrix.rows() + kBlockRows - 1) / kBlockRows, 1, [&](int64_t begin, int64_t end) {
    DenseRows<T> rows(matrix);
    std::vector<uint16_t> codes(makers.size() * height);
    for (int64_t block = begin; block < end && !IsCancelled(context.cancelled); ++block) {
      for (GroupMaker<T>& maker : makers) maker.BeginBlock(block);
      const int64_t last = std::min(matrix.rows(), (block + 1) * kBlockRows);
      for (int64_t row = block * kBlockRows; row < last; row += tile_rows) {
        const int64_t behind = std::min(last, row + tile_rows);
        const T* const cells = rows.Cells(row, behind);
        for (size_t g = 0; g < makers.size(); ++g)
          makers[g].Look(block, row, behind, cells, codes.data() + g * height);
      }
      for (size_t g = 0; g < makers.size(); ++g) makers[g].EndBlock(block, codes.data() + g * height);
    }
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
