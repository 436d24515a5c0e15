// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/binary/row_coding.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/hash.h"
#include "core/values/column_groups_bytes.h"
#include "core/values/sizes.h"
#include "ops/cells/storage.h"
#include "ops/cells/tuple_tables.h"
#include "ops/io/formats/binary/binary_layout.h"

namespace heddle::ops {
namespace {

constexpr double kBitsOfCell = 64;
constexpr double kBitsOfRow = 16;  // Of an exception or a run, in its block.
// How often a code has to stand for its cell, on average, where a dictionary has more than kFewTuples: others
// save little, and are read slowly.
constexpr double kLeastUses = 4;
constexpr int64_t kFewTuples = 16;

// How one column is stored best by itself, and how many bits of a row and of the dictionary that takes.
struct ColumnPlan {
  Encoding encoding = Encoding::kUncompressed;
  double bits = 0;
};

ColumnPlan PlanOf(const CountedCells::Column& column, double rows, double blocks, double bits_of_cell) {
  ColumnPlan plan = {.encoding = Encoding::kUncompressed, .bits = rows * bits_of_cell};
  if (column.are_many || rows == 0) return plan;
  const auto tuples = static_cast<int64_t>(column.cells.size());
  if (tuples == 1) {
    uint64_t bits_of_first = 0;
    std::memcpy(&bits_of_first, column.cells.data(), sizeof(bits_of_first));
    return {bits_of_first == 0 ? Encoding::kEmpty : Encoding::kConstant, kBitsOfCell};
  }
  const double code = CodeBits(tuples), dictionary = static_cast<double>(tuples) * kBitsOfCell;
  const auto most = static_cast<double>(*std::max_element(column.rows.begin(), column.rows.end()));
  const auto take = [&](Encoding encoding, double bits) {
    if (bits + dictionary < plan.bits) plan = {encoding, bits + dictionary};
  };
  const auto are_used = [&](double codes) {
    return tuples <= kFewTuples || codes >= kLeastUses * static_cast<double>(tuples);
  };
  if (are_used(rows)) take(Encoding::kDenseCodes, rows * code);
  // Each block says how many there are, and begins with a run.
  if (are_used(rows - most))
    take(Encoding::kDefault, (rows - most) * (kBitsOfRow + code) + blocks * kBitsOfCell);
  if (!are_used(rows)) return plan;
  take(Encoding::kRuns,
       (static_cast<double>(column.runs) + blocks) * (kBitsOfRow + code) + blocks * kBitsOfCell);
  return plan;
}

// Columns with dense codes that have one code together.
std::vector<std::vector<int32_t>> JoinColumns(const std::vector<int32_t>& columns,
                                              const std::vector<CountedCells::Column>& cells) {
  constexpr int64_t kMostTogether = 256;
  const auto tuples_of = [&](int32_t column) {
    return static_cast<int64_t>(cells[static_cast<size_t>(column)].cells.size());
  };
  std::vector<int32_t> order = columns;
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return tuples_of(a) < tuples_of(b); });
  std::vector<std::vector<int32_t>> groups;
  for (size_t at = 0; at < order.size();) {
    // Columns behind are joined as soon as some of them together take fewer bits than alone.
    int64_t tuples = tuples_of(order[at]), joined_tuples = tuples;
    int32_t alone = 0;  // Of those behind `end`.
    size_t end = at + 1;
    for (size_t next = end; next < order.size() && tuples * tuples_of(order[next]) <= kMostTogether; ++next) {
      tuples *= tuples_of(order[next]);
      alone += CodeBits(tuples_of(order[next]));
      if (CodeBits(tuples) >= CodeBits(joined_tuples) + alone) continue;
      end = next + 1;
      joined_tuples = tuples;
      alone = 0;
    }
    auto& group = groups.emplace_back(order.begin() + static_cast<int64_t>(at),
                                      order.begin() + static_cast<int64_t>(end));
    std::sort(group.begin(), group.end());
    at = end;
  }
  return groups;
}

// All combinations of the cells of the columns; the last column changes first.
Result<Matrix> CombinationsOf(const std::vector<int32_t>& columns,
                              const std::vector<CountedCells::Column>& cells) {
  int64_t tuples = 1;
  for (const int32_t column : columns)
    tuples *= static_cast<int64_t>(cells[static_cast<size_t>(column)].cells.size());
  const auto width = static_cast<int64_t>(columns.size());
  HEDDLE_ASSIGN_OR_RETURN(Matrix dictionary, Matrix::Dense(tuples, width));
  int64_t repeats = 1;
  for (int64_t k = width - 1; k >= 0; --k) {
    const std::vector<double>& own = cells[static_cast<size_t>(columns[static_cast<size_t>(k)])].cells;
    const auto count = static_cast<int64_t>(own.size());
    for (int64_t i = 0; i < tuples; ++i)
      dictionary.mutable_data()[i * width + k] = own[static_cast<size_t>(i / repeats % count)];
    repeats *= count;
  }
  return dictionary;
}

// The cell that most rows have comes first.
Result<Matrix> MostFrequentFirst(const CountedCells::Column& column) {
  const auto count = static_cast<int64_t>(column.cells.size());
  HEDDLE_ASSIGN_OR_RETURN(Matrix dictionary, Matrix::Dense(count, 1));
  std::copy(column.cells.begin(), column.cells.end(), dictionary.mutable_data());
  const auto most = std::max_element(column.rows.begin(), column.rows.end()) - column.rows.begin();
  std::rotate(dictionary.mutable_data(), dictionary.mutable_data() + most,
              dictionary.mutable_data() + most + 1);
  return dictionary;
}

Status AddGroup(Encoding encoding, std::vector<int32_t> columns, Result<Matrix> dictionary,
                ColumnGroups* groups) {
  ColumnGroup group;
  group.encoding = encoding;
  group.columns = std::move(columns);
  HEDDLE_ASSIGN_OR_RETURN(group.dictionary, std::move(dictionary));
  const bool has_codes =
      encoding == Encoding::kDenseCodes || encoding == Encoding::kDefault || encoding == Encoding::kRuns;
  if (has_codes) {
    HEDDLE_ASSIGN_OR_RETURN(group.codes, Codes::Make(0, CodeBits(group.tuples())));
  }
  if (encoding == Encoding::kDefault) {
    HEDDLE_ASSIGN_OR_RETURN(group.positions, Buffer::Allocate(1));
    group.segments.push_back(0);
  }
  groups->groups.push_back(std::move(group));
  return OkStatus();
}

// With its length in front, padded.
std::string HeaderOf(const ColumnGroups& groups) {
  std::string header(sizeof(uint64_t), 0);
  AppendFlatGroups(groups, &header);
  const uint64_t bytes = header.size() - sizeof(bytes);
  std::memcpy(header.data(), &bytes, sizeof(bytes));
  header.resize(static_cast<size_t>(RoundUpTo8(static_cast<int64_t>(header.size()))));
  return header;
}

// The part of a block that a group takes, where it follows from the number of rows: else how many exceptions
// or runs there are comes first.
int64_t BytesOfCodes(const ColumnGroup& group, int64_t count) {
  return RoundUpTo8(CodeBytes(count, group.codes.bits()));
}
int64_t BytesOfList(const ColumnGroup& group, int64_t count) {
  return 8 + RoundUpTo8(2 * count) + BytesOfCodes(group, count);
}

int64_t BytesOfGroup(const ColumnGroup& group, int64_t rows, BlockLayout layout, bool most) {
  switch (group.encoding) {
    case Encoding::kEmpty:
    case Encoding::kConstant: return 0;
    case Encoding::kDenseCodes: return BytesOfCodes(group, rows);
    case Encoding::kDefault: return BytesOfList(group, most ? rows : 0);
    case Encoding::kRuns: return BytesOfList(group, most ? rows : 1);
    case Encoding::kUncompressed: break;
  }
  return BytesOfMatrixBlock(layout == BlockLayout::kGroups64 ? BlockLayout::kDense64 : BlockLayout::kDense32,
                            rows, group.width(), 0);
}

int64_t BytesOfBlock(const ColumnGroups& groups, int64_t rows, BlockLayout layout, bool most) {
  int64_t bytes = 0;
  for (const ColumnGroup& group : groups.groups)
    bytes = SaturatingSum(bytes, BytesOfGroup(group, rows, layout, most));
  return bytes;
}

// Writes the parts of a block, which must be large enough, one behind the other.
class Parts {
 public:
  explicit Parts(char* out) : begin_(out), out_(out) {}
  int64_t bytes() const { return out_ - begin_; }

  void PutCount(uint64_t count) {
    std::memcpy(out_, &count, sizeof(count));
    out_ += sizeof(count);
  }
  void PutRows(const std::vector<uint16_t>& rows) {
    std::copy(rows.begin(), rows.end(), reinterpret_cast<uint16_t*>(out_));
    Behind(2 * static_cast<int64_t>(rows.size()));
  }
  void PutCodes(const uint16_t* codes, int64_t count, int32_t bits) {
    auto* const bytes = reinterpret_cast<uint8_t*>(out_);
    if (bits == 16)
      std::copy_n(codes, count, reinterpret_cast<uint16_t*>(out_));
    else if (bits == 8)
      std::transform(codes, codes + count, bytes, [](uint16_t code) { return static_cast<uint8_t>(code); });
    else
      for (int64_t i = 0; i < count; i += 2)
        bytes[i / 2] = static_cast<uint8_t>(codes[i] | (i + 1 < count ? codes[i + 1] << 4 : 0));
    Behind(CodeBytes(count, bits));
  }
  // Cells of these columns.
  template <typename T>
  void PutCells(const std::vector<int32_t>& columns, const Matrix& rows) {
    auto* cells = reinterpret_cast<T*>(out_);
    for (int64_t i = 0; i < rows.rows(); ++i)
      for (const int32_t column : columns)
        *cells++ = static_cast<T>(Canonical(rows.data()[i * rows.columns() + column]));
    Behind(rows.rows() * static_cast<int64_t>(columns.size() * sizeof(T)));
  }

 private:
  // What follows begins at a multiple of 8 bytes.
  void Behind(int64_t bytes) {
    std::memset(out_ + bytes, 0, static_cast<size_t>(RoundUpTo8(bytes) - bytes));
    out_ += RoundUpTo8(bytes);
  }
  char* const begin_;
  char* out_;
};

}  // namespace

RowCoding::Codebook::Codebook(const ColumnGroup& group)
    : tuples_(group.dictionary.data()), count_(group.tuples()), width_(group.width()) {
  size_t slots = 16;
  while (slots < 2 * static_cast<size_t>(count_)) slots *= 2;
  slots_.assign(slots, -1);
  for (int64_t i = 0; i < count_; ++i) {
    size_t slot = SlotOf(tuples_ + i * width_);
    while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = static_cast<int32_t>(i);
  }
}

size_t RowCoding::Codebook::SlotOf(const double* tuple) const {
  uint64_t hash = 0;
  for (int64_t k = 0; k < width_; ++k) {
    uint64_t bits = 0;
    std::memcpy(&bits, tuple + k, sizeof(bits));
    hash = FoldHash(hash, bits);
  }
  return SpreadHash(hash) & (slots_.size() - 1);
}

int64_t RowCoding::Codebook::Find(const double* tuple) const {
  for (size_t slot = SlotOf(tuple); slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1))
    if (std::memcmp(tuples_ + slots_[slot] * width_, tuple, static_cast<size_t>(width_) * sizeof(double)) ==
        0)
      return slots_[slot];
  return -1;
}

RowCoding::RowCoding(ColumnGroups groups) : groups_(std::move(groups)) {}

int64_t RowCoding::RowsOfBlock(int64_t columns) {
  constexpr int64_t kCellsOfBlock = 1 << 17;
  return std::clamp<int64_t>(kCellsOfBlock / std::max<int64_t>(1, columns), 2, kSegmentRows) / 2 * 2;
}

Result<std::shared_ptr<const RowCoding>> RowCoding::Choose(CountedCells cells, const Shape& shape,
                                                           ElementType type, int64_t stored) {
  const std::shared_ptr<const RowCoding> none;
  if (cells.columns().empty() || shape.rows == 0) return none;
  // What is known of a column goes as soon as its dictionary is there.
  std::vector<CountedCells::Column> columns = std::move(cells).TakeColumns();
  const auto rows = static_cast<double>(shape.rows);
  ColumnGroups groups;
  groups.columns = shape.columns;
  const double blocks = std::ceil(rows / static_cast<double>(RowsOfBlock(shape.columns)));
  const double bits_of_cell = 8.0 * static_cast<double>(BytesOf(type));
  double bits = 0;
  std::vector<int32_t> with_codes, uncompressed, empty;
  for (int32_t j = 0; j < static_cast<int32_t>(shape.columns); ++j) {
    CountedCells::Column& column = columns[static_cast<size_t>(j)];
    const ColumnPlan plan = PlanOf(column, rows, blocks, bits_of_cell);
    bits += plan.bits;
    switch (plan.encoding) {
      case Encoding::kEmpty: empty.push_back(j); break;
      case Encoding::kConstant:
        HEDDLE_RETURN_IF_ERROR(AddGroup(plan.encoding, {j}, FilledMatrix(1, 1, column.cells[0]), &groups));
        break;
      case Encoding::kDenseCodes: with_codes.push_back(j); break;
      case Encoding::kDefault:
        HEDDLE_RETURN_IF_ERROR(AddGroup(plan.encoding, {j}, MostFrequentFirst(column), &groups));
        break;
      case Encoding::kRuns:
        HEDDLE_RETURN_IF_ERROR(AddGroup(plan.encoding, {j}, CombinationsOf({j}, columns), &groups));
        break;
      case Encoding::kUncompressed: uncompressed.push_back(j); break;
    }
    if (plan.encoding != Encoding::kDenseCodes) column = {};
  }
  // What a file without groups takes, of dense blocks or of CSR ones.
  const double plain = std::min(rows * static_cast<double>(shape.columns) * bits_of_cell,
                                static_cast<double>(stored) * (bits_of_cell + 32) + rows * 32);
  if (bits >= 0.9 * plain) return none;
  for (const std::vector<int32_t>& joined : JoinColumns(with_codes, columns)) {
    HEDDLE_RETURN_IF_ERROR(
        AddGroup(Encoding::kDenseCodes, joined, CombinationsOf(joined, columns), &groups));
    for (const int32_t column : joined) columns[static_cast<size_t>(column)] = {};
  }
  if (!empty.empty()) HEDDLE_RETURN_IF_ERROR(AddGroup(Encoding::kEmpty, empty, Matrix(), &groups));
  if (!uncompressed.empty())
    HEDDLE_RETURN_IF_ERROR(AddGroup(Encoding::kUncompressed, uncompressed,
                                    Matrix::Dense(0, static_cast<int64_t>(uncompressed.size())), &groups));
  std::sort(groups.groups.begin(), groups.groups.end(),
            [](const ColumnGroup& a, const ColumnGroup& b) { return a.columns.front() < b.columns.front(); });
  std::string header = HeaderOf(groups);
  return WithCodebooks(std::move(groups), std::move(header));
}

std::shared_ptr<const RowCoding> RowCoding::WithCodebooks(ColumnGroups groups, std::string header) {
  std::shared_ptr<RowCoding> coding(new RowCoding(std::move(groups)));
  for (const ColumnGroup& group : coding->groups_.groups) coding->codebooks_.emplace_back(group);
  coding->header_ = std::move(header);
  return coding;
}

Result<std::shared_ptr<const RowCoding>> RowCoding::Of(std::string_view header, int64_t columns) {
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const RowCoding> parsed, Parse(header, columns));
  return WithCodebooks(parsed->groups_, std::string(header));
}

Result<std::shared_ptr<const RowCoding>> RowCoding::Parse(std::string_view header, int64_t columns) {
  const Status damaged = DataLoss("its column groups are damaged");
  if (header.size() < sizeof(uint64_t)) return damaged;
  const auto bytes = Load<uint64_t>(header.data());
  header.remove_prefix(sizeof(uint64_t));
  if (bytes > header.size() || RoundUpTo8(static_cast<int64_t>(bytes)) != static_cast<int64_t>(header.size()))
    return damaged;
  Result<Matrix> groups = UnflattenGroups({header.data(), static_cast<size_t>(bytes)});
  if (!groups.ok()) return groups.status().code() == StatusCode::kDataLoss ? damaged : groups.status();
  const ColumnGroups& found = groups->groups();
  if (found.rows != 0 || found.columns != columns || found.element_type != ElementType::kFloat64)
    return damaged;
  int64_t uncompressed = 0;
  for (const ColumnGroup& group : found.groups) {
    if (group.encoding == Encoding::kUncompressed) {
      if (group.dictionary.IsSparse()) return damaged;
      ++uncompressed;
    } else if (group.codes.data() != nullptr && group.codes.bits() != CodeBits(group.tuples())) {
      return damaged;
    }
  }
  if (uncompressed > 1) return damaged;
  return std::shared_ptr<const RowCoding>(new RowCoding(found));
}

int64_t RowCoding::LeastBytes(int64_t rows, BlockLayout layout) const {
  return BytesOfBlock(groups_, rows, layout, false);
}
int64_t RowCoding::MostBytes(int64_t rows, BlockLayout layout) const {
  return BytesOfBlock(groups_, rows, layout, true);
}

Status RowCoding::FindCodes(size_t group, const Matrix& rows, uint16_t* codes) const {
  const ColumnGroup& own = groups_.groups[group];
  const Codebook& codebook = codebooks_[group];
  std::vector<double> tuple(own.columns.size());
  int64_t last = -1;
  for (int64_t i = 0; i < rows.rows(); ++i) {
    bool is_last = last >= 0;
    for (size_t k = 0; k < tuple.size(); ++k) {
      const double cell = Canonical(rows.data()[i * rows.columns() + own.columns[k]]);
      is_last = is_last && IsSameCell(cell, tuple[k]);
      tuple[k] = cell;
    }
    if (!is_last) last = codebook.Find(tuple.data());
    if (last < 0) return Internal("write: the rows are others than those that were counted");
    codes[i] = static_cast<uint16_t>(last);
  }
  return OkStatus();
}

Status RowCoding::Encode(const Matrix& matrix, int64_t begin, int64_t end, EncodedBlock* block) const {
  const bool are_floats = matrix.element_type() == ElementType::kFloat32;
  block->layout = are_floats ? BlockLayout::kGroups32 : BlockLayout::kGroups64;
  block->borrowed = {};
  HEDDLE_ASSIGN_OR_RETURN(Matrix rows, ToDense(matrix.Rows(begin, end)));
  HEDDLE_ASSIGN_OR_RETURN(rows, ToElementType(rows, ElementType::kFloat64));
  block->stored = CountStoredCells(rows);
  HEDDLE_RETURN_IF_ERROR(block->bytes.Renew(MostBytes(end - begin, block->layout), "a binary file"));
  Parts parts(block->bytes.data());
  std::vector<uint16_t> all(static_cast<size_t>(end - begin)), listed_rows, listed;
  for (size_t g = 0; g < groups_.groups.size(); ++g) {
    const ColumnGroup& group = groups_.groups[g];
    if (group.encoding == Encoding::kUncompressed) {
      are_floats ? parts.PutCells<float>(group.columns, rows) : parts.PutCells<double>(group.columns, rows);
      continue;
    }
    if (group.encoding == Encoding::kEmpty || group.encoding == Encoding::kConstant) continue;
    HEDDLE_RETURN_IF_ERROR(FindCodes(g, rows, all.data()));
    if (group.encoding == Encoding::kDenseCodes) {
      parts.PutCodes(all.data(), end - begin, group.codes.bits());
      continue;
    }
    listed_rows.clear();
    listed.clear();
    for (size_t i = 0; i < all.size(); ++i) {
      if (group.encoding == Encoding::kDefault ? all[i] == 0 : i > 0 && all[i] == all[i - 1]) continue;
      listed_rows.push_back(static_cast<uint16_t>(i));
      listed.push_back(all[i]);
    }
    parts.PutCount(listed.size());
    parts.PutRows(listed_rows);
    parts.PutCodes(listed.data(), static_cast<int64_t>(listed.size()), group.codes.bits());
  }
  block->borrowed = {block->bytes.data(), static_cast<size_t>(parts.bytes())};
  return OkStatus();
}

}  // namespace heddle::ops
