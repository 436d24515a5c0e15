// SPDX-License-Identifier: Apache-2.0
#include "core/values/column_groups_bytes.h"

#include <cstring>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "core/values/sizes.h"

namespace heddle {
namespace {

// Numbers before the arrays of a matrix, and of each group.
struct FlatMatrix {
  int64_t rows;
  int64_t columns;
  int64_t groups;
  int64_t element_type;
};
struct FlatGroup {
  int32_t encoding;
  int32_t code_bits;
  int64_t width;
  int64_t codes;
  int64_t same_dictionary;  // Of an earlier group that shares it; -1: it follows.
  int64_t tuples;
  int64_t entries;  // Of a CSR dictionary; -1 of a dense one.
};

// Takes arrays one behind the other: counts them, or copies them to `to`.
class Sink {
 public:
  explicit Sink(char* to) : to_(to) {}
  void Put(const void* from, int64_t bytes) {
    if (to_ != nullptr && bytes > 0) std::memcpy(to_ + bytes_, from, static_cast<size_t>(bytes));
    bytes_ += bytes;
  }
  template <typename T>
  void PutArray(const T* from, int64_t count) {
    Put(from, count * static_cast<int64_t>(sizeof(T)));
  }
  int64_t bytes() const { return bytes_; }

 private:
  char* to_;
  int64_t bytes_ = 0;
};

void PutDictionary(const Matrix& dictionary, Sink* sink) {
  const int64_t element = BytesOf(dictionary.element_type());
  if (!dictionary.IsSparse()) return sink->Put(dictionary.data<char>(), dictionary.cells() * element);
  const int64_t first = dictionary.rows() == 0 ? 0 : dictionary.row_offsets()[0];
  for (int64_t i = 0; i < dictionary.rows(); ++i) {
    const int64_t end = dictionary.row_offsets()[i + 1] - first;
    sink->PutArray(&end, 1);
  }
  sink->PutArray(dictionary.column_indexes() + first, dictionary.stored());
  sink->Put(dictionary.values<char>() + first * element, dictionary.stored() * element);
}

void PutGroups(const ColumnGroups& all, Sink* sink) {
  const FlatMatrix matrix = {all.rows, all.columns, static_cast<int64_t>(all.groups.size()),
                             static_cast<int64_t>(all.element_type)};
  sink->PutArray(&matrix, 1);
  std::map<std::tuple<const char*, int64_t, int64_t>, int64_t>
      first_with;  // A dictionary that several share.
  for (size_t g = 0; g < all.groups.size(); ++g) {
    const ColumnGroup& group = all.groups[g];
    FlatGroup flat = {.encoding = static_cast<int32_t>(group.encoding),
                      .code_bits = group.codes.bits(),
                      .width = group.width(),
                      .codes = group.codes.count(),
                      .same_dictionary = -1,
                      .tuples = group.dictionary.rows(),
                      .entries = group.dictionary.IsSparse() ? group.dictionary.stored() : -1};
    const std::tuple key(group.dictionary.data<char>(), flat.tuples, flat.width);
    if (flat.tuples > 0 && !group.dictionary.IsSparse()) {
      const auto [first, is_new] = first_with.emplace(key, static_cast<int64_t>(g));
      if (!is_new) flat.same_dictionary = first->second;
    }
    sink->PutArray(&flat, 1);
    sink->PutArray(group.columns.data(), flat.width);
    if (flat.same_dictionary < 0) PutDictionary(group.dictionary, sink);
    sink->Put(group.codes.data(), group.codes.bytes());
    if (group.encoding == Encoding::kRuns) sink->PutArray(group.starts.data(), flat.codes);
    if (group.encoding == Encoding::kDefault) {
      sink->PutArray(group.exception_rows(), flat.codes);
      sink->PutArray(group.segments.data(), static_cast<int64_t>(group.segments.size()));
    }
  }
}

// Those of a view are copied; the others belong to the matrix.
Result<std::shared_ptr<const ColumnGroups>> GroupsOf(const Matrix& compressed) {
  const ColumnGroups& groups = compressed.groups();
  if (compressed.first_row() == 0 && compressed.rows() == groups.rows)
    return std::shared_ptr<const ColumnGroups>(std::shared_ptr<const void>(), &groups);
  return SliceGroups(compressed.groups(), compressed.first_row(), compressed.first_row() + compressed.rows());
}

Status Damaged() { return DataLoss("a compressed matrix is damaged: its bytes are cut off, or none"); }

// Takes arrays from the bytes; false where they are not there.
class Source {
 public:
  explicit Source(std::span<const char> bytes) : bytes_(bytes) {}
  bool Has(int64_t count, int64_t size) const {
    return count >= 0 && count <= static_cast<int64_t>(bytes_.size()) / size;
  }
  template <typename T>
  bool Take(T* to, int64_t count) {
    if (!Has(count, static_cast<int64_t>(sizeof(T)))) return false;
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    if (bytes > 0) std::memcpy(static_cast<void*>(to), bytes_.data(), bytes);
    bytes_ = bytes_.subspan(bytes);
    return true;
  }
  template <typename T>
  bool Take(std::vector<T>* to, int64_t count) {
    if (!Has(count, static_cast<int64_t>(sizeof(T)))) return false;
    to->resize(static_cast<size_t>(count));
    return Take(to->data(), count);
  }
  bool IsEmpty() const { return bytes_.empty(); }

 private:
  std::span<const char> bytes_;
};

Result<Matrix> TakeDictionary(const FlatGroup& flat, ElementType type, Source* source) {
  const int64_t element = BytesOf(type);
  int64_t cells = 0;
  if (flat.tuples < 0 || __builtin_mul_overflow(flat.tuples, flat.width, &cells)) return Damaged();
  if (flat.entries < 0) {
    if (!source->Has(cells, element)) return Damaged();
    HEDDLE_ASSIGN_OR_RETURN(Matrix dense, Matrix::Dense(flat.tuples, flat.width, type));
    if (!source->Take(dense.mutable_data<char>(), cells * element)) return Damaged();
    return dense;
  }
  if (!source->Has(flat.tuples, sizeof(int64_t)) || !source->Has(flat.entries, sizeof(int32_t) + element))
    return Damaged();
  HEDDLE_ASSIGN_OR_RETURN(Matrix sparse, Matrix::Sparse(flat.tuples, flat.width, flat.entries, type));
  int64_t* const ends = sparse.mutable_row_offsets() + 1;
  int32_t* const columns = sparse.mutable_column_indexes();
  if (!source->Take(ends, flat.tuples) || !source->Take(columns, flat.entries) ||
      !source->Take(sparse.mutable_values<char>(), flat.entries * element))
    return Damaged();
  for (int64_t i = 0; i < flat.tuples; ++i) {
    const int64_t begin = sparse.row_offsets()[i];
    if (ends[i] < begin || ends[i] > flat.entries) return Damaged();
    for (int64_t k = begin; k < ends[i]; ++k)
      if (columns[k] < 0 || columns[k] >= flat.width || (k > begin && columns[k] <= columns[k - 1]))
        return Damaged();
  }
  if (flat.tuples == 0 ? flat.entries != 0 : ends[flat.tuples - 1] != flat.entries) return Damaged();
  return sparse;
}

Result<ColumnGroup> TakeGroup(const ColumnGroups& all, Source* source) {
  FlatGroup flat;
  ColumnGroup group;
  if (!source->Take(&flat, 1) || flat.encoding < 0 ||
      flat.encoding > static_cast<int32_t>(Encoding::kUncompressed) || flat.codes < 0 ||
      flat.codes > all.rows || (flat.code_bits != 4 && flat.code_bits != 8 && flat.code_bits != 16) ||
      flat.same_dictionary >= static_cast<int64_t>(all.groups.size()) ||
      !source->Take(&group.columns, flat.width))
    return Damaged();
  group.encoding = static_cast<Encoding>(flat.encoding);
  if (flat.same_dictionary >= 0) {
    group.dictionary = all.groups[static_cast<size_t>(flat.same_dictionary)].dictionary;
  } else {
    HEDDLE_ASSIGN_OR_RETURN(group.dictionary, TakeDictionary(flat, all.element_type, source));
  }
  const bool has_codes = group.encoding == Encoding::kDenseCodes || group.encoding == Encoding::kDefault ||
                         group.encoding == Encoding::kRuns;
  if (!has_codes) return flat.codes == 0 ? Result<ColumnGroup>(std::move(group)) : Damaged();
  if (!source->Has(CodeBytes(flat.codes, flat.code_bits), 1)) return Damaged();
  HEDDLE_ASSIGN_OR_RETURN(group.codes, Codes::Make(flat.codes, flat.code_bits));
  if (!source->Take(group.codes.mutable_data(), group.codes.bytes())) return Damaged();
  if (group.encoding == Encoding::kRuns && !source->Take(&group.starts, flat.codes)) return Damaged();
  if (group.encoding == Encoding::kDefault) {
    if (!source->Has(flat.codes, sizeof(uint16_t))) return Damaged();
    const auto bytes = flat.codes * static_cast<int64_t>(sizeof(uint16_t));
    HEDDLE_ASSIGN_OR_RETURN(group.positions, Buffer::Allocate(std::max<int64_t>(bytes, 1)));
    if (!source->Take(static_cast<uint16_t*>(group.positions->data()), flat.codes) ||
        !source->Take(&group.segments, (all.rows + kSegmentRows - 1) / kSegmentRows + 1))
      return Damaged();
  }
  return group;
}

}  // namespace

int64_t MostFlatBytes(const Matrix& compressed) {
  Sink sink(nullptr);
  PutGroups(compressed.groups(), &sink);
  return sink.bytes();
}

Result<std::shared_ptr<Buffer>> FlattenGroups(const Matrix& compressed) {
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const ColumnGroups> groups, GroupsOf(compressed));
  Sink counted(nullptr);
  PutGroups(*groups, &counted);
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> flat, Buffer::Allocate(counted.bytes()));
  Sink copied(static_cast<char*>(flat->data()));
  PutGroups(*groups, &copied);
  return flat;
}

void AppendFlatGroups(const ColumnGroups& groups, std::string* bytes) {
  Sink counted(nullptr);
  PutGroups(groups, &counted);
  const size_t before = bytes->size();
  bytes->resize(before + static_cast<size_t>(counted.bytes()));
  Sink copied(bytes->data() + before);
  PutGroups(groups, &copied);
}

Result<Matrix> UnflattenGroups(std::span<const char> bytes) {
  Source source(bytes);
  FlatMatrix flat;
  if (!source.Take(&flat, 1) || flat.rows < 0 || flat.columns < 0 || flat.groups < 0 ||
      flat.rows > kMostLength || flat.columns > std::numeric_limits<int32_t>::max() ||
      (flat.columns > 0 && flat.rows > kMostLength / flat.columns) || flat.element_type < 0 ||
      flat.element_type > static_cast<int64_t>(ElementType::kFloat32) ||
      !source.Has(flat.groups, sizeof(FlatGroup)) || !source.Has(flat.columns, sizeof(int32_t)))
    return Damaged();
  auto groups = std::make_shared<ColumnGroups>();
  groups->rows = flat.rows;
  groups->columns = flat.columns;
  groups->element_type = static_cast<ElementType>(flat.element_type);
  for (int64_t i = 0; i < flat.groups; ++i) {
    HEDDLE_ASSIGN_OR_RETURN(ColumnGroup group, TakeGroup(*groups, &source));
    groups->groups.push_back(std::move(group));
  }
  if (!source.IsEmpty()) return Damaged();
  HEDDLE_RETURN_IF_ERROR(Verify(*groups));
  return Matrix::OfGroups(std::move(groups));
}

}  // namespace heddle
