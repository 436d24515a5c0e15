// SPDX-License-Identifier: Apache-2.0
#include "core/values/column_groups.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <set>

#include "core/values/group_rows.h"

namespace heddle {
namespace {

// Rows whose codes are in a buffer on the stack while their cells are written.
constexpr int64_t kRowsAtOnce = 512;

void CopyDenseCodes(const Codes& codes, int64_t begin, int64_t end, uint16_t* out) {
  if (codes.bits() == 16) {
    std::memcpy(out, reinterpret_cast<const uint16_t*>(codes.data()) + begin,
                static_cast<size_t>(end - begin) * sizeof(uint16_t));
  } else if (codes.bits() == 8) {
    const uint8_t* from = codes.data() + begin;
    for (int64_t i = 0; i < end - begin; ++i) out[i] = from[i];
  } else {
    for (int64_t i = begin; i < end; ++i) out[i - begin] = static_cast<uint16_t>(codes.At(i));
  }
}

// Calls count(place, code, rows): of the rows whose number is `place` modulo eight, so many have the code.
// There is a table for each place: the same count is not read again before it is written.
constexpr int64_t kCountedPlaces = 8;
constexpr size_t kByteValues = 256;

template <typename Count>
void CountBytes(const uint8_t* codes, int64_t rows, const Count& count) {
  std::array<int64_t, kCountedPlaces * kByteValues> tables{};
  int64_t row = 0;
  for (; row + kCountedPlaces <= rows; row += kCountedPlaces)
    for (size_t place = 0; place < kCountedPlaces; ++place)
      ++tables[place * kByteValues + codes[row + static_cast<int64_t>(place)]];
  for (size_t place = 0; row < rows; ++row, ++place) ++tables[place * kByteValues + codes[row]];
  for (size_t at = 0; at < tables.size(); ++at)
    if (tables[at] > 0) count(static_cast<int64_t>(at / kByteValues), at % kByteValues, tables[at]);
}

// Two codes in a byte, which are counted as pairs.
template <typename Count>
void CountHalfBytes(const uint8_t* pairs, int64_t bytes, const Count& count) {
  CountBytes(pairs, bytes, [&](int64_t place, size_t pair, int64_t rows) {
    count(2 * place, pair & 15, rows);
    count(2 * place + 1, pair >> 4, rows);
  });
}

// counts[c * tuples + code] += the rows of [begin, end) whose number from `begin` on is c modulo `classes`.
void CountDenseCodes(const Codes& codes, int64_t begin, int64_t end, int classes, int64_t tuples,
                     int64_t* counts) {
  const auto count_from = [&](int64_t first) {
    return [=](int64_t place, size_t code, int64_t rows) {
      counts[(first - begin + place) % classes * tuples + static_cast<int64_t>(code)] += rows;
    };
  };
  if (codes.bits() == 8) return CountBytes(codes.data() + begin, end - begin, count_from(begin));
  if (codes.bits() == 4) {
    const int64_t first = begin + (begin & 1), last = std::max(first, end - (end & 1));
    CountHalfBytes(codes.data() + first / 2, (last - first) / 2, count_from(first));
    if (first > begin) count_from(begin)(0, codes.At(begin), 1);
    if (last < end) count_from(last)(0, codes.At(last), 1);
    return;
  }
  const auto* const wide = reinterpret_cast<const uint16_t*>(codes.data());
  for (int64_t row = begin; row < end; ++row) ++counts[(row - begin) % classes * tuples + wide[row]];
}

// Cells of an uncompressed group.
template <typename T>
void CopyCells(const ColumnGroup& group, int64_t begin, int64_t end, T* cells, int64_t stride) {
  const Matrix& matrix = group.dictionary;
  const int64_t width = group.width();
  for (int64_t i = begin; i < end; ++i) {
    T* row = cells + (i - begin) * stride;
    if (!matrix.IsSparse()) {
      const T* from = matrix.data<T>() + i * width;
      for (int64_t k = 0; k < width; ++k) row[group.columns[static_cast<size_t>(k)]] = from[k];
      continue;
    }
    for (const int32_t column : group.columns) row[column] = 0;
    for (int64_t at = matrix.row_offsets()[i]; at < matrix.row_offsets()[i + 1]; ++at)
      row[group.columns[static_cast<size_t>(matrix.column_indexes()[at])]] = matrix.values<T>()[at];
  }
}

// Writes tuple codes[i] to row i.
template <typename T>
void LookUp(const ColumnGroup& group, const uint16_t* codes, int64_t rows, T* cells, int64_t stride) {
  const int64_t width = group.width();
  const T* dictionary = group.dictionary.data<T>();
  if (width == 1) {
    T* column = cells + group.columns[0];
    for (int64_t i = 0; i < rows; ++i) column[i * stride] = dictionary[codes[i]];
    return;
  }
  const int32_t* columns = group.columns.data();
  const bool is_adjacent = columns[width - 1] - columns[0] == width - 1;
  for (int64_t i = 0; i < rows; ++i) {
    const T* tuple = dictionary + codes[i] * width;
    T* row = cells + i * stride;
    if (is_adjacent)
      std::memcpy(row + columns[0], tuple, static_cast<size_t>(width) * sizeof(T));
    else
      for (int64_t k = 0; k < width; ++k) row[columns[k]] = tuple[k];
  }
}

Status Damaged(size_t group, std::string_view what) {
  return DataLoss("a compressed matrix is damaged: group {}: {}", group + 1, what);
}

Status VerifyGroup(const ColumnGroups& all, size_t g) {
  const ColumnGroup& group = all.groups[g];
  const auto width = static_cast<int64_t>(group.columns.size());
  if (width == 0) return Damaged(g, "it has no columns");
  if (group.encoding == Encoding::kEmpty)
    return group.dictionary.cells() == 0 ? OkStatus() : Damaged(g, "its dictionary is none");
  if (group.dictionary.columns() != width || group.dictionary.element_type() != all.element_type)
    return Damaged(g, "its dictionary is of other columns");
  if (group.encoding == Encoding::kUncompressed)
    return group.dictionary.rows() == all.rows ? OkStatus() : Damaged(g, "rows are missing");
  const int64_t tuples = group.dictionary.rows();
  if (group.dictionary.IsSparse() || tuples < 1 || tuples > kMostTuples)
    return Damaged(g, "its dictionary is none");
  if (group.encoding == Encoding::kConstant)
    return tuples == 1 ? OkStatus() : Damaged(g, "its dictionary is none");
  if (tuples > int64_t{1} << group.codes.bits()) return Damaged(g, "a code cannot name all of its tuples");
  const int64_t count = group.codes.count();
  for (int64_t i = 0; i < count; ++i)
    if (group.codes.At(i) >= tuples) return Damaged(g, "a code is beyond its dictionary");
  if (group.encoding == Encoding::kDenseCodes)
    return count == all.rows ? OkStatus() : Damaged(g, "codes are missing");
  if (group.encoding == Encoding::kRuns) {
    if (static_cast<int64_t>(group.starts.size()) != count || (count == 0) != (all.rows == 0))
      return Damaged(g, "runs are missing");
    for (size_t i = 0; i < group.starts.size(); ++i) {
      const int64_t least = i == 0 ? 0 : group.starts[i - 1] + 1;
      if (group.starts[i] < least || (i == 0 && group.starts[0] != 0) || group.starts[i] >= all.rows)
        return Damaged(g, "runs do not ascend");
    }
    return OkStatus();
  }
  const int64_t segments = (all.rows + kSegmentRows - 1) / kSegmentRows;
  if (static_cast<int64_t>(group.segments.size()) != segments + 1 || group.segments.front() != 0 ||
      group.segments.back() != count ||
      (count > 0 && group.positions->bytes() < count * static_cast<int64_t>(sizeof(uint16_t))))
    return Damaged(g, "exceptions are missing");
  if (!std::is_sorted(group.segments.begin(), group.segments.end()))
    return Damaged(g, "segments do not ascend");
  for (int64_t segment = 0; segment < segments; ++segment) {
    const int64_t first = group.segments[static_cast<size_t>(segment)];
    const int64_t last = group.segments[static_cast<size_t>(segment) + 1];
    for (int64_t at = first; at < last; ++at) {
      if (at > first && group.exception_rows()[at] <= group.exception_rows()[at - 1])
        return Damaged(g, "exceptions do not ascend");
      if (segment * kSegmentRows + group.exception_rows()[at] >= all.rows)
        return Damaged(g, "an exception is behind the last row");
    }
  }
  return OkStatus();
}

}  // namespace

struct Codes::KeptCounts {
  std::mutex mutex;
  std::shared_ptr<const std::vector<int64_t>> counts;
};

std::string_view Name(Encoding encoding) {
  switch (encoding) {
    case Encoding::kEmpty: return "EMPTY";
    case Encoding::kConstant: return "CONST";
    case Encoding::kDenseCodes: return "DDC";
    case Encoding::kDefault: return "SDC";
    case Encoding::kRuns: return "RLE";
    case Encoding::kUncompressed: return "UNCOMPRESSED";
  }
  return "";
}

Result<Codes> Codes::Make(int64_t count, int32_t bits) {
  Codes codes;
  codes.count_ = count;
  codes.bits_ = bits;
  const int64_t bytes = std::max<int64_t>(CodeBytes(count, bits), 1);
  HEDDLE_ASSIGN_OR_RETURN(codes.buffer_, Buffer::Allocate(bytes));
  codes.kept_ = std::make_shared<KeptCounts>();
  codes.mutable_data()[bytes - 1] = 0;  // Half of it may be no code: it travels all the same.
  return codes;
}

std::shared_ptr<const std::vector<int64_t>> Codes::counts() const {
  if (kept_ == nullptr) return nullptr;
  const std::lock_guard lock(kept_->mutex);
  return kept_->counts;
}

void Codes::KeepCounts(std::vector<int64_t> counts) const {
  while (!counts.empty() && counts.back() == 0) counts.pop_back();
  auto kept = std::make_shared<const std::vector<int64_t>>(std::move(counts));
  HEDDLE_CHECK(kept_ != nullptr, "these are codes");
  const std::lock_guard lock(kept_->mutex);
  kept_->counts = std::move(kept);
}

int64_t ColumnGroup::bytes() const {
  return dictionary.bytes() + codes.bytes() +
         static_cast<int64_t>((columns.size()) * sizeof(int32_t) +
                              (starts.size() + segments.size()) * sizeof(int64_t)) +
         (positions == nullptr ? 0 : positions->bytes());
}

int64_t ColumnGroups::bytes() const {
  std::set<const void*> counted;
  int64_t bytes = 0;
  for (const ColumnGroup& group : groups) {
    bytes += group.bytes();
    if (group.dictionary.cells() > 0 && !counted.insert(group.dictionary.data<void>()).second)
      bytes -= group.dictionary.bytes();
  }
  return bytes;
}

Status Verify(const ColumnGroups& groups) {
  std::vector<bool> seen(static_cast<size_t>(groups.columns), false);
  int64_t columns = 0;
  for (size_t g = 0; g < groups.groups.size(); ++g) {
    int32_t least = 0;
    for (const int32_t column : groups.groups[g].columns) {
      if (column < least || column >= groups.columns) return Damaged(g, "its columns are not in the matrix");
      if (seen[static_cast<size_t>(column)]) return Damaged(g, "another group has one of its columns");
      seen[static_cast<size_t>(column)] = true;
      least = column + 1;
      ++columns;
    }
    HEDDLE_RETURN_IF_ERROR(VerifyGroup(groups, g));
  }
  if (columns != groups.columns)
    return DataLoss("a compressed matrix is damaged: {} of its {} columns are missing",
                    groups.columns - columns, groups.columns);
  return OkStatus();
}

void DecodeCodes(const ColumnGroup& group, int64_t begin, int64_t end, uint16_t* codes) {
  switch (group.encoding) {
    case Encoding::kEmpty:
    case Encoding::kUncompressed: HEDDLE_CHECK(false, "such a group has no codes"); break;
    case Encoding::kConstant: std::fill(codes, codes + (end - begin), uint16_t{0}); break;
    case Encoding::kDenseCodes: CopyDenseCodes(group.codes, begin, end, codes); break;
    case Encoding::kDefault:
      std::fill(codes, codes + (end - begin), uint16_t{0});
      ForExceptions(group, begin, end,
                    [&](int64_t row, uint32_t code) { codes[row - begin] = static_cast<uint16_t>(code); });
      break;
    case Encoding::kRuns:
      ForRuns(group, begin, end, [&](int64_t first, int64_t last, uint32_t code) {
        std::fill(codes + (first - begin), codes + (last - begin), static_cast<uint16_t>(code));
      });
      break;
  }
}

template <typename T>
void DecodeRows(const ColumnGroup& group, int64_t begin, int64_t end, T* cells, int64_t stride) {
  if (group.encoding == Encoding::kUncompressed) {
    CopyCells(group, begin, end, cells, stride);
    return;
  }
  if (group.encoding == Encoding::kEmpty) {
    for (int64_t i = 0; i < end - begin; ++i)
      for (const int32_t column : group.columns) cells[i * stride + column] = 0;
    return;
  }
  std::array<uint16_t, kRowsAtOnce> codes;
  for (int64_t row = begin; row < end; row += kRowsAtOnce) {
    const int64_t last = std::min(end, row + kRowsAtOnce);
    DecodeCodes(group, row, last, codes.data());
    LookUp(group, codes.data(), last - row, cells + (row - begin) * stride, stride);
  }
}

template <typename T>
void DecodeRows(const ColumnGroups& groups, int64_t begin, int64_t end, T* cells) {
  // Rows whose cells stay in the cache while one group after the other writes its own.
  const int64_t height = std::clamp<int64_t>(4096 / std::max<int64_t>(groups.columns, 1), 16, kRowsAtOnce);
  for (int64_t row = begin; row < end; row += height) {
    const int64_t last = std::min(end, row + height);
    for (const ColumnGroup& group : groups.groups)
      DecodeRows(group, row, last, cells + (row - begin) * groups.columns, groups.columns);
  }
}

Result<Matrix> DecodeRows(const ColumnGroups& groups, int64_t begin, int64_t end) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix rows, Matrix::Dense(end - begin, groups.columns, groups.element_type));
  if (groups.element_type == ElementType::kFloat64)
    DecodeRows(groups, begin, end, rows.mutable_data<double>());
  else
    DecodeRows(groups, begin, end, rows.mutable_data<float>());
  return rows;
}

template void DecodeRows(const ColumnGroup&, int64_t, int64_t, double*, int64_t);
template void DecodeRows(const ColumnGroup&, int64_t, int64_t, float*, int64_t);
template void DecodeRows(const ColumnGroups&, int64_t, int64_t, double*);
template void DecodeRows(const ColumnGroups&, int64_t, int64_t, float*);

bool HoldsAllCodes(const ColumnGroup& group, int64_t begin, int64_t end) {
  if (begin != 0) return false;
  const int64_t count = group.codes.count();
  switch (group.encoding) {
    case Encoding::kDenseCodes: return end == count;
    case Encoding::kDefault: {
      if (count == 0) return true;
      const auto after = std::lower_bound(group.segments.begin(), group.segments.end(), count);
      return end > (after - group.segments.begin() - 1) * kSegmentRows + group.exception_rows()[count - 1];
    }
    case Encoding::kRuns: return count == 0 || end > group.starts.back();
    default: return true;
  }
}

std::vector<int64_t> CountTuples(const ColumnGroup& group, int64_t begin, int64_t end, int classes) {
  const int64_t tuples = group.tuples();
  std::vector<int64_t> counts(static_cast<size_t>(classes * tuples), 0);
  if (tuples == 0 || begin >= end) return counts;
  const auto count_of = [&](int64_t c, uint32_t tuple) -> int64_t& {
    return counts[static_cast<size_t>(c * tuples + tuple)];
  };
  // Every row of [first, last) has the tuple.
  const auto add_rows = [&](int64_t first, int64_t last, uint32_t tuple) {
    for (int64_t c = 0; c < std::min<int64_t>(classes, last - first); ++c)
      count_of((first - begin + c) % classes, tuple) += (last - first - c + classes - 1) / classes;
  };
  switch (group.encoding) {
    case Encoding::kEmpty:
    case Encoding::kUncompressed: break;
    case Encoding::kConstant: add_rows(begin, end, 0); break;
    case Encoding::kDenseCodes:
      if (const auto kept = group.codes.counts();
          kept != nullptr && classes == 1 && HoldsAllCodes(group, begin, end))
        std::copy(kept->begin(), kept->end(), counts.begin());
      else
        CountDenseCodes(group.codes, begin, end, classes, tuples, counts.data());
      break;
    case Encoding::kDefault: {
      add_rows(begin, end, 0);
      const auto count_exceptions = [&](int64_t c, uint32_t code, int64_t exceptions) {
        count_of(c, code) += exceptions;
        count_of(c, 0) -= exceptions;
      };
      if (const auto kept = group.codes.counts();
          kept != nullptr && classes == 1 && HoldsAllCodes(group, begin, end))
        for (size_t code = 0; code < kept->size(); ++code)
          count_exceptions(0, static_cast<uint32_t>(code), (*kept)[code]);
      else
        ForExceptions(group, begin, end, [&](int64_t row, uint32_t code) {
          count_exceptions((row - begin) % classes, code, 1);
        });
      break;
    }
    case Encoding::kRuns: ForRuns(group, begin, end, add_rows); break;
  }
  return counts;
}

int64_t CountNonzeros(const ColumnGroups& groups, int64_t begin, int64_t end) {
  int64_t count = 0;
  for (const ColumnGroup& group : groups.groups) {
    if (group.encoding == Encoding::kUncompressed) count += group.dictionary.Rows(begin, end).CountNonzeros();
    const std::vector<int64_t> rows = CountTuples(group, begin, end);
    for (size_t tuple = 0; tuple < rows.size(); ++tuple) {
      const auto at = static_cast<int64_t>(tuple);
      if (rows[tuple] > 0) count += rows[tuple] * group.dictionary.Rows(at, at + 1).CountNonzeros();
    }
  }
  return count;
}

namespace {

Result<Codes> SliceCodes(const Codes& codes, int64_t begin, int64_t end) {
  HEDDLE_ASSIGN_OR_RETURN(Codes slice, Codes::Make(end - begin, codes.bits()));
  if (codes.bits() == 4)
    for (int64_t i = begin; i < end; ++i) slice.Set(i - begin, codes.At(i));
  else if (begin < end)
    std::memcpy(slice.mutable_data(), codes.data() + CodeBytes(begin, codes.bits()),
                static_cast<size_t>(slice.bytes()));
  return slice;
}

Status SliceExceptions(const ColumnGroup& group, int64_t begin, int64_t end, ColumnGroup* slice) {
  int64_t count = 0;
  ForExceptions(group, begin, end, [&](int64_t, uint32_t) { ++count; });
  HEDDLE_ASSIGN_OR_RETURN(slice->codes, Codes::Make(count, group.codes.bits()));
  HEDDLE_ASSIGN_OR_RETURN(slice->positions, Buffer::Allocate(std::max<int64_t>(
                                                count * static_cast<int64_t>(sizeof(uint16_t)), 1)));
  auto* const positions = static_cast<uint16_t*>(slice->positions->data());
  slice->segments.assign(static_cast<size_t>((end - begin + kSegmentRows - 1) / kSegmentRows + 1), 0);
  int64_t at = 0;
  ForExceptions(group, begin, end, [&](int64_t row, uint32_t code) {
    slice->codes.Set(at, code);
    positions[at++] = static_cast<uint16_t>((row - begin) % kSegmentRows);
    ++slice->segments[static_cast<size_t>((row - begin) / kSegmentRows) + 1];
  });
  for (size_t i = 1; i < slice->segments.size(); ++i) slice->segments[i] += slice->segments[i - 1];
  return OkStatus();
}

Status SliceRuns(const ColumnGroup& group, int64_t begin, int64_t end, ColumnGroup* slice) {
  std::vector<uint32_t> codes;
  ForRuns(group, begin, end, [&](int64_t first, int64_t, uint32_t code) {
    slice->starts.push_back(first - begin);
    codes.push_back(code);
  });
  HEDDLE_ASSIGN_OR_RETURN(slice->codes, Codes::Make(static_cast<int64_t>(codes.size()), group.codes.bits()));
  for (size_t i = 0; i < codes.size(); ++i) slice->codes.Set(static_cast<int64_t>(i), codes[i]);
  return OkStatus();
}

}  // namespace

Result<std::shared_ptr<const ColumnGroups>> SliceGroups(const ColumnGroups& groups, int64_t begin,
                                                        int64_t end) {
  auto slices = std::make_shared<ColumnGroups>();
  slices->rows = end - begin;
  slices->columns = groups.columns;
  slices->element_type = groups.element_type;
  for (const ColumnGroup& group : groups.groups) {
    ColumnGroup slice;
    slice.encoding = group.encoding;
    slice.columns = group.columns;
    slice.dictionary =
        group.encoding == Encoding::kUncompressed ? group.dictionary.Rows(begin, end) : group.dictionary;
    switch (group.encoding) {
      case Encoding::kEmpty:
      case Encoding::kConstant:
      case Encoding::kUncompressed: break;
      case Encoding::kDenseCodes: {
        HEDDLE_ASSIGN_OR_RETURN(slice.codes, SliceCodes(group.codes, begin, end));
        break;
      }
      case Encoding::kDefault: HEDDLE_RETURN_IF_ERROR(SliceExceptions(group, begin, end, &slice)); break;
      case Encoding::kRuns: HEDDLE_RETURN_IF_ERROR(SliceRuns(group, begin, end, &slice)); break;
    }
    slices->groups.push_back(std::move(slice));
  }
  return std::shared_ptr<const ColumnGroups>(std::move(slices));
}

}  // namespace heddle
