// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

#include "ops/base/parallel.h"
#include "ops/cells/tuple_tables.h"
#include "ops/compressed/block_of_group.h"
#include "ops/compressed/numbered_columns.h"
#include "ops/compressed/plan_groups.h"
#include "ops/compressed/read_cost.h"
#include "ops/compressed/uncompressed_group.h"

namespace heddle::ops {
namespace {

// Rows that one thread looks at for all groups before it goes on. Fewer than kMostTuples: a block never has
// too many tuples.
constexpr int64_t kBlockRows = int64_t{1} << 14;
static_assert(kBlockRows < kMostTuples);
// Rows that are numbered at once.
constexpr int64_t kTileRows = 256;

// -0.0 before +0.0, NaN behind everything.
template <typename T>
int Compare(T a, T b) {
  if (IsSameCell(a, b)) return 0;
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? 1 : -1;
  if (a != b) return a < b ? -1 : 1;
  return std::signbit(a) ? -1 : 1;
}

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

template <typename T>
class GroupMaker {
 public:
  GroupMaker(const Matrix& matrix, const PlannedGroup& planned)
      : matrix_(matrix),
        planned_(planned),
        is_plain_(planned.encoding == Encoding::kUncompressed),
        blocks_(static_cast<size_t>((matrix.rows() + kBlockRows - 1) / kBlockRows)) {}

  bool IsPlain() const { return is_plain_; }
  const std::vector<int32_t>& columns() const { return planned_.columns; }

  // Finds the tuples of a block whose columns are numbered; several blocks at once. `joint` is memory.
  void Look(int64_t block, const NumberedColumns<T>& numbered, JointNumbers* joint) {
    if (IsPlain()) return;
    BlockOfGroup<T>& found = blocks_[static_cast<size_t>(block)];
    const auto rows = static_cast<size_t>(numbered.rows());
    const std::vector<int32_t>& columns = planned_.columns;
    const uint16_t* codes = numbered.numbers(columns[0]);
    if (columns.size() == 1) {
      found.cells = numbered.cells(columns[0]);
    } else {
      joint->Begin(codes, std::ssize(numbered.cells(columns[0])), numbered.rows());
      for (size_t k = 1; k < columns.size(); ++k)
        joint->Join(numbered.numbers(columns[k]), std::ssize(numbered.cells(columns[k])));
      codes = joint->numbers();
      for (const int32_t row : joint->first_rows())
        for (const int32_t column : columns)
          found.cells.push_back(numbered.cells(column)[numbered.numbers(column)[row]]);
    }
    found.counts.assign(found.cells.size() / columns.size(), 0);
    found.runs = CountRuns(codes, rows);
    if (found.counts.size() == 1) {
      found.counts[0] = static_cast<int32_t>(rows);
    } else if (found.counts.size() == 2) {
      found.counts[1] = static_cast<int32_t>(CountOf(1, codes, rows));
      found.counts[0] = static_cast<int32_t>(rows) - found.counts[1];
    } else {
      // Counts of even rows and of odd ones: an addition waits for the one before it to the same place.
      std::vector<int32_t> odd(found.counts.size(), 0);
      for (size_t i = 0; i + 1 < rows; i += 2) {
        ++found.counts[codes[i]];
        ++odd[codes[i + 1]];
      }
      if (rows % 2 != 0) ++found.counts[codes[rows - 1]];
      for (size_t i = 0; i < odd.size(); ++i) found.counts[i] += odd[i];
    }
    found.Keep(codes, rows);
  }

  // Joins what the blocks have found, and decides how the columns are stored: returns what that costs to
  // read. The sample may have promised too much: where the group costs more than its two parts were to cost,
  // these are looked at as well.
  double Choose() {
    if (IsPlain() || matrix_.rows() == 0) return 0;
    const double plain_bytes = PlainBytes();
    const double plain_cost = ReadCost({.encoding = Encoding::kUncompressed,
                                        .rows = static_cast<double>(matrix_.rows()),
                                        .columns = static_cast<double>(planned_.columns.size()),
                                        .bytes = plain_bytes});
    double cost = JoinTables() ? LeastCost(plain_bytes, plain_cost) : plain_cost;
    double planned_cost = 0;
    for (const PlannedGroup& part : planned_.parts) planned_cost += part.cost;
    if (!planned_.parts.empty() && cost > planned_cost) {
      double cost_of_parts = 0;
      for (const PlannedGroup& part : planned_.parts) {
        parts_.push_back(Part(part));
        cost_of_parts += parts_.back().Choose();
      }
      if (cost_of_parts < cost)
        cost = cost_of_parts;
      else
        parts_.clear();
    }
    if (!parts_.empty())
      blocks_ = {};
    else if (cost >= plain_cost)
      is_plain_ = true, cost = plain_cost;
    return cost;
  }

  // Calls visit(maker) for those whose groups are made: this one, or its parts.
  template <typename Visit>
  void ForChosen(Visit visit) {
    if (parts_.empty()) return visit(*this);
    for (GroupMaker& part : parts_) part.ForChosen(visit);
  }

  // Writes the group; not of plain columns.
  Result<ColumnGroup> Make() {
    ColumnGroup group;
    group.columns = planned_.columns;
    if (matrix_.rows() == 0) return group;
    HEDDLE_RETURN_IF_ERROR(Order(&group));
    if (table_->size() == 1) {
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

  // Some of the columns, which are a part of the plan: their tuples are columns of those that were found.
  GroupMaker Part(const PlannedGroup& part) const {
    GroupMaker maker(matrix_, part);
    std::vector<size_t> places;  // Of the columns of the part among all.
    for (const int32_t column : part.columns)
      places.push_back(
          static_cast<size_t>(std::lower_bound(planned_.columns.begin(), planned_.columns.end(), column) -
                              planned_.columns.begin()));
    ForBlocks(true, [&](size_t block) {
      maker.blocks_[block] = ColumnsOf(blocks_[block], planned_.columns.size(), places);
    });
    return maker;
  }

  // Of the cells as the matrix has them.
  double PlainBytes() const {
    const auto rows = static_cast<double>(matrix_.rows());
    const auto width = planned_.columns.size();
    if (!matrix_.IsSparse()) return rows * static_cast<double>(width * sizeof(T));
    double entries = 0;
    for (const BlockOfGroup<T>& block : blocks_)
      for (size_t i = 0; i < block.counts.size(); ++i) {
        const T* tuple = block.cells.data() + i * width;
        entries += static_cast<double>(block.counts[i]) *
                   static_cast<double>(static_cast<int64_t>(width) - std::count(tuple, tuple + width, T{0}));
      }
    return rows * sizeof(int64_t) + entries * static_cast<double>(sizeof(T) + sizeof(int32_t));
  }

  // Counts the tuples, and chooses the encoding that costs least to read; returns that cost. Groups that are
  // no smaller than their cells are none.
  double LeastCost(double plain_bytes, double plain_cost) {
    Count();
    const auto tuples = static_cast<double>(table_->size());
    const auto rows = static_cast<double>(matrix_.rows());
    const auto width = static_cast<double>(planned_.columns.size());
    const double code_bytes = CodeBits(table_->size()) / 8.0;
    const double exceptions = rows - static_cast<double>(*std::max_element(counts_.begin(), counts_.end()));
    double least = plain_cost;
    const auto offer = [&](Encoding encoding, double bytes, double count) {
      bytes += tuples * width * static_cast<double>(sizeof(T));
      const double cost = ReadCost({.encoding = encoding,
                                    .rows = rows,
                                    .columns = width,
                                    .tuples = tuples,
                                    .exceptions = count,
                                    .bytes = bytes});
      if (cost >= least || bytes >= plain_bytes) return;
      least = cost;
      encoding_ = encoding;
    };
    if (tuples == 1) {
      offer(Encoding::kConstant, 0, 0);
      return least;
    }
    offer(Encoding::kDenseCodes, rows * code_bytes, 0);
    offer(Encoding::kDefault, exceptions * (code_bytes + sizeof(uint16_t)) + rows / kSegmentRows * 8,
          exceptions);
    offer(Encoding::kRuns, static_cast<double>(runs_) * (code_bytes + sizeof(int64_t)),
          static_cast<double>(runs_));
    return least;
  }

  // Sorts the tuples.
  Status Order(ColumnGroup* group) {
    const int64_t tuples = table_->size();
    const int64_t width = group->width();
    group->encoding = encoding_;
    std::vector<int32_t> order(static_cast<size_t>(tuples));
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      for (int64_t k = 0; k < width; ++k)
        if (const int c = Compare(table_->tuple(a)[k], table_->tuple(b)[k]); c != 0) return c < 0;
      return false;
    });
    const auto frequent = std::max_element(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return counts_[static_cast<size_t>(a)] < counts_[static_cast<size_t>(b)];
    });
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

  const Matrix& matrix_;
  const PlannedGroup& planned_;
  bool is_plain_;
  std::vector<BlockOfGroup<T>> blocks_;
  std::vector<GroupMaker> parts_;  // What is made in place of the group.
  std::optional<TupleTable<T>> table_;
  std::vector<std::vector<int32_t>> numbers_;  // Of each block: its tuples in the table of all.
  std::vector<int64_t> counts_;                // Rows of each tuple of the table.
  int64_t runs_ = 0;
  Encoding encoding_ = Encoding::kDenseCodes;
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
  std::vector<int32_t> columns;  // Of groups that may have codes.
  for (const GroupMaker<T>& maker : makers)
    if (!maker.IsPlain()) columns.insert(columns.end(), maker.columns().begin(), maker.columns().end());
  ParallelFor((matrix.rows() + kBlockRows - 1) / kBlockRows, 1, [&](int64_t begin, int64_t end) {
    DenseRows<T> rows(matrix);
    NumberedColumns<T> numbered(columns, matrix.columns(), std::min(kBlockRows, matrix.rows()));
    JointNumbers joint;
    for (int64_t block = begin; block < end; ++block) {
      numbered.Begin();
      const int64_t last = std::min(matrix.rows(), (block + 1) * kBlockRows);
      for (int64_t row = block * kBlockRows; row < last; row += kTileRows) {
        if (IsCancelled(context.cancelled)) return;
        const int64_t behind = std::min(last, row + kTileRows);
        numbered.Add(rows.Cells(row, behind), behind - row);
      }
      for (GroupMaker<T>& maker : makers) maker.Look(block, numbered, &joint);
    }
  });
  if (IsCancelled(context.cancelled)) return Cancelled("compress");
  ParallelFor(static_cast<int64_t>(makers.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end && !IsCancelled(context.cancelled); ++g)
      makers[static_cast<size_t>(g)].Choose();
  });
  std::vector<int32_t> plain;
  std::vector<GroupMaker<T>*> chosen;
  for (GroupMaker<T>& maker : makers)
    maker.ForChosen([&](GroupMaker<T>& one) {
      if (one.IsPlain())
        plain.insert(plain.end(), one.columns().begin(), one.columns().end());
      else
        chosen.push_back(&one);
    });
  std::vector<Status> made(chosen.size(), OkStatus());
  result.groups.resize(chosen.size());
  ParallelFor(static_cast<int64_t>(chosen.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end && !IsCancelled(context.cancelled); ++g) {
      Result<ColumnGroup> group = chosen[static_cast<size_t>(g)]->Make();
      if (group.ok())
        result.groups[static_cast<size_t>(g)] = *std::move(group);
      else
        made[static_cast<size_t>(g)] = group.status();
    }
  });
  if (IsCancelled(context.cancelled)) return Cancelled("compress");
  for (const Status& status : made) HEDDLE_RETURN_IF_ERROR(status);
  if (!plain.empty()) {
    // Their rows are read at once.
    std::sort(plain.begin(), plain.end());
    HEDDLE_ASSIGN_OR_RETURN(ColumnGroup group, UncompressedGroup<T>(matrix, plain));
    result.groups.push_back(std::move(group));
  }
  std::sort(result.groups.begin(), result.groups.end(),
            [](const ColumnGroup& a, const ColumnGroup& b) { return a.columns[0] < b.columns[0]; });
  return result;
}

}  // namespace

Result<ColumnGroups> CompressColumns(const Matrix& matrix, const CompressionPlan& plan,
                                     const KernelContext& context) {
  return matrix.element_type() == ElementType::kFloat64 ? Compress<double>(matrix, plan, context)
                                                        : Compress<float>(matrix, plan, context);
}

}  // namespace heddle::ops
