// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/numpy/sparse_npz.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/text/utf8.h"
#include "core/values/sizes.h"
#include "ops/base/kernel.h"
#include "ops/io/formats/numpy/npy.h"
#include "ops/io/formats/plain_cells.h"

namespace heddle::ops {
namespace {

constexpr std::string_view kEnding = ".npy";

const ZipMember* Find(const std::vector<ZipMember>& members, std::string_view name) {
  const auto found = std::find_if(members.begin(), members.end(), [&](const ZipMember& member) {
    return member.name.ends_with(kEnding) &&
           std::string_view(member.name).substr(0, member.name.size() - kEnding.size()) == name;
  });
  return found == members.end() ? nullptr : &*found;
}

// One of the arrays.
struct Part {
  std::unique_ptr<InputFile> file;
  NpyHeader header;

  int64_t length() const { return header.shape().Cells(); }
  Status Read(int64_t begin, int64_t end, double* out) const {
    return ReadNpyCells(header, *file, begin, end, out);
  }
  Status ReadWhole(std::vector<int64_t>* out) const {
    std::vector<double> numbers(static_cast<size_t>(length()));
    HEDDLE_RETURN_IF_ERROR(Read(0, length(), numbers.data()));
    for (const double number : numbers) out->push_back(TruncateToInteger(number));
    return OkStatus();
  }
};

class Archive {
 public:
  Archive(const ReadOptions& options, const InputFile& archive, const std::vector<ZipMember>& members)
      : options_(options), archive_(archive), members_(members) {}

  bool Has(std::string_view name) const { return Find(members_, name) != nullptr; }
  Result<Part> Open(std::string_view name) const {
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file, OpenFile(name));
    HEDDLE_ASSIGN_OR_RETURN(NpyHeader header, ReadNpyHeader(options_.path, *file, 0, file->size()));
    return Part{std::move(file), std::move(header)};
  }
  // An array of whole numbers.
  Result<Part> OpenIndexes(std::string_view name) const {
    HEDDLE_ASSIGN_OR_RETURN(Part part, Open(name));
    if (part.header.kind != 'i' && part.header.kind != 'u')
      return Damaged(fmt::format("'{}' must be whole numbers", name));
    return part;
  }
  Result<std::string> Text(std::string_view name) const {
    constexpr size_t kMost = 16;
    HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file, OpenFile(name));
    return ReadNpyText(options_.path, *file, kMost);
  }
  Status Damaged(std::string_view what) const {
    return DataLoss("cannot read '{}': its arrays are not those of a sparse matrix: {}", options_.path, what);
  }
  const std::string& path() const { return options_.path; }

 private:
  Result<std::unique_ptr<InputFile>> OpenFile(std::string_view name) const {
    const ZipMember* const member = Find(members_, name);
    if (member == nullptr) return Damaged(fmt::format("'{}' is missing", name));
    return OpenZipMember(options_.path, archive_, *member);
  }

  const ReadOptions& options_;
  const InputFile& archive_;
  const std::vector<ZipMember>& members_;
};

// Which of the ranges that end at `ends` has place `at`; ends[0] is where the first begins.
int64_t RangeOf(const std::vector<int64_t>& ends, int64_t at) {
  return std::upper_bound(ends.begin(), ends.end(), at) - ends.begin() - 1;
}

Result<std::vector<int64_t>> ReadEnds(const Archive& archive, int64_t ranges, int64_t most) {
  HEDDLE_ASSIGN_OR_RETURN(const Part part, archive.OpenIndexes("indptr"));
  std::vector<int64_t> ends;
  if (part.length() - 1 != ranges) return archive.Damaged("'indptr' does not fit the shape");
  HEDDLE_RETURN_IF_ERROR(part.ReadWhole(&ends));
  if (ends.front() != 0 || !std::is_sorted(ends.begin(), ends.end()) || ends.back() > most)
    return archive.Damaged("'indptr' does not ascend from 0 to the number of 'indices'");
  return ends;
}

// csr, csc and bsr, whose cells are blocks of one cell in csr and csc.
class Compressed : public SparseNpz {
 public:
  Status Open(const Archive& archive, const std::string& format, const Shape& shape, bool is_list) {
    shape_ = shape;
    by_columns_ = format == "csc";
    is_list_ = is_list;
    HEDDLE_ASSIGN_OR_RETURN(indices_, archive.OpenIndexes("indices"));
    HEDDLE_ASSIGN_OR_RETURN(data_, archive.Open("data"));
    if (format == "bsr") {
      const std::vector<int64_t>& sizes = data_.header.sizes;
      if (sizes.size() != 3 || sizes[1] < 1 || sizes[2] < 1 || sizes[0] < indices_.length() ||
          data_.header.fortran)
        return archive.Damaged("'data' must be as many blocks as there are 'indices'");
      block_ = {sizes[1], sizes[2]};
    } else if (data_.length() < indices_.length()) {
      return archive.Damaged("'data' is shorter than 'indices'");
    }
    const int64_t ranges = is_list ? 1 : by_columns_ ? shape.columns : shape.rows / block_.rows;
    HEDDLE_ASSIGN_OR_RETURN(ends_, ReadEnds(archive, ranges, indices_.length()));
    stored_ = ends_.back() * block_.Cells();
    return OkStatus();
  }

  Status Fill(int64_t begin, int64_t end, StoredCell* out) override {
    const int64_t of_block = block_.Cells(), first = begin / of_block, last = (end - 1) / of_block + 1;
    numbers_.resize(static_cast<size_t>(last - first));
    values_.resize(static_cast<size_t>(end - begin));
    HEDDLE_RETURN_IF_ERROR(indices_.Read(first, last, numbers_.data()));
    HEDDLE_RETURN_IF_ERROR(data_.Read(begin, end, values_.data()));
    int64_t range = RangeOf(ends_, first);
    for (int64_t k = begin; k < end; ++k) {
      const int64_t block = k / of_block, in_block = k % of_block;
      while (ends_[static_cast<size_t>(range) + 1] <= block) ++range;
      const int64_t index = TruncateToInteger(numbers_[static_cast<size_t>(block - first)]);
      StoredCell& cell = out[k - begin];
      cell.value = values_[static_cast<size_t>(k - begin)];
      if (is_list_) {
        cell.row = index;
        cell.column = 0;
      } else if (by_columns_) {
        cell.row = index;
        cell.column = range;
      } else {
        cell.row = range * block_.rows + in_block / block_.columns;
        cell.column =
            SaturatingProduct(std::max<int64_t>(index, -1), block_.columns) + in_block % block_.columns;
      }
    }
    return OkStatus();
  }

 private:
  bool by_columns_ = false;
  bool is_list_ = false;
  Shape block_{1, 1};
  Part indices_, data_;
  std::vector<int64_t> ends_;
  std::vector<double> numbers_, values_;
};

class Coordinates : public SparseNpz {
 public:
  Status Open(const Archive& archive, const Shape& shape, bool is_list) {
    shape_ = shape;
    HEDDLE_ASSIGN_OR_RETURN(data_, archive.Open("data"));
    stored_ = data_.length();
    if (archive.Has("coords")) {
      HEDDLE_ASSIGN_OR_RETURN(rows_, archive.OpenIndexes("coords"));
      const int64_t indexes = is_list ? 1 : 2;
      if (rows_.length() != indexes * stored_ || rows_.header.fortran)
        return archive.Damaged("'coords' and 'data' do not fit each other");
      columns_begin_ = is_list ? kUnknown : stored_;
      return OkStatus();
    }
    HEDDLE_ASSIGN_OR_RETURN(rows_, archive.OpenIndexes("row"));
    HEDDLE_ASSIGN_OR_RETURN(columns_, archive.OpenIndexes("col"));
    if (rows_.length() != stored_ || columns_.length() != stored_)
      return archive.Damaged("'row', 'col' and 'data' must be as long as each other");
    return OkStatus();
  }

  Status Fill(int64_t begin, int64_t end, StoredCell* out) override {
    const auto count = static_cast<size_t>(end - begin);
    for (std::vector<double>* const numbers : {&row_, &column_, &value_}) numbers->assign(count, 0);
    HEDDLE_RETURN_IF_ERROR(rows_.Read(begin, end, row_.data()));
    if (columns_.file != nullptr)
      HEDDLE_RETURN_IF_ERROR(columns_.Read(begin, end, column_.data()));
    else if (columns_begin_ != kUnknown)
      HEDDLE_RETURN_IF_ERROR(rows_.Read(columns_begin_ + begin, columns_begin_ + end, column_.data()));
    HEDDLE_RETURN_IF_ERROR(data_.Read(begin, end, value_.data()));
    for (size_t k = 0; k < count; ++k)
      out[k] = {
          .row = TruncateToInteger(row_[k]), .column = TruncateToInteger(column_[k]), .value = value_[k]};
    return OkStatus();
  }

 private:
  Part rows_, columns_, data_;
  int64_t columns_begin_ = kUnknown;  // In `rows_`, which has both.
  std::vector<double> row_, column_, value_;
};

// Row i of the data is a diagonal, whose cell in column j stands at place j.
class Diagonals : public SparseNpz {
 public:
  Status Open(const Archive& archive, const Shape& shape) {
    shape_ = shape;
    HEDDLE_ASSIGN_OR_RETURN(data_, archive.Open("data"));
    HEDDLE_ASSIGN_OR_RETURN(const Part offsets, archive.OpenIndexes("offsets"));
    HEDDLE_RETURN_IF_ERROR(offsets.ReadWhole(&offsets_));
    const std::vector<int64_t>& sizes = data_.header.sizes;
    if (sizes.size() != 2 || sizes[0] != offsets.length() || data_.header.fortran)
      return archive.Damaged("'data' must have a row for each of 'offsets'");
    length_ = sizes[1];
    stored_ = data_.length();
    return OkStatus();
  }

  Status Fill(int64_t begin, int64_t end, StoredCell* out) override {
    values_.resize(static_cast<size_t>(end - begin));
    HEDDLE_RETURN_IF_ERROR(data_.Read(begin, end, values_.data()));
    for (int64_t k = begin; k < end; ++k) {
      const int64_t column = k % length_, offset = offsets_[static_cast<size_t>(k / length_)];
      int64_t row = 0;
      const bool is_inside = !__builtin_sub_overflow(column, offset, &row) && row >= 0 && row < shape_.rows &&
                             column < shape_.columns;
      out[k - begin] =
          is_inside ? StoredCell{row, column, values_[static_cast<size_t>(k - begin)]} : StoredCell();
    }
    return OkStatus();
  }

 private:
  Part data_;
  std::vector<int64_t> offsets_;
  int64_t length_ = 1;
  std::vector<double> values_;
};

}  // namespace

bool HoldsSparse(const std::vector<ZipMember>& members) {
  return Find(members, "format") != nullptr && Find(members, "shape") != nullptr &&
         Find(members, "data") != nullptr;
}

Result<std::unique_ptr<SparseNpz>> OpenSparseNpz(const ReadOptions& options, const InputFile& file,
                                                 const std::vector<ZipMember>& members) {
  const Archive archive(options, file, members);
  HEDDLE_ASSIGN_OR_RETURN(const std::string format, archive.Text("format"));
  HEDDLE_ASSIGN_OR_RETURN(const Part shape_part, archive.OpenIndexes("shape"));
  constexpr int64_t kMostIndexes = 64;
  if (shape_part.length() < 1 || shape_part.length() > kMostIndexes)
    return archive.Damaged("'shape' is none");
  std::vector<int64_t> sizes;
  HEDDLE_RETURN_IF_ERROR(shape_part.ReadWhole(&sizes));
  if (sizes.size() > 2)
    return DataLoss("cannot read '{}': it is a sparse array of {} indexes", options.path, sizes.size())
        .WithNote("Heddle reads those of one or two; array.reshape() makes a matrix");
  const bool is_list = sizes.size() == 1;
  const Shape shape{sizes[0], is_list ? 1 : sizes[1]};
  if (shape.rows < 0 || shape.columns < 0) return archive.Damaged("'shape' is none");
  if (format == "csr" || (!is_list && (format == "csc" || format == "bsr"))) {
    auto sparse = std::make_unique<Compressed>();
    HEDDLE_RETURN_IF_ERROR(sparse->Open(archive, format, shape, is_list));
    return std::unique_ptr<SparseNpz>(std::move(sparse));
  }
  if (format == "coo") {
    auto sparse = std::make_unique<Coordinates>();
    HEDDLE_RETURN_IF_ERROR(sparse->Open(archive, shape, is_list));
    return std::unique_ptr<SparseNpz>(std::move(sparse));
  }
  if (format == "dia" && !is_list) {
    auto sparse = std::make_unique<Diagonals>();
    HEDDLE_RETURN_IF_ERROR(sparse->Open(archive, shape));
    return std::unique_ptr<SparseNpz>(std::move(sparse));
  }
  return DataLoss("cannot read '{}': it is a sparse matrix in format '{}'", options.path,
                  ShownInLine(format, 20))
      .WithNote("Heddle reads csr, csc, coo, bsr and dia: scipy.sparse.save_npz(FILE, matrix.tocsr())");
}

namespace {

// The cells of a row that are not 0, by their columns.
template <typename T, typename Visit>
void VisitRow(const Matrix& matrix, int64_t row, const Visit& visit) {
  if (matrix.IsSparse()) {
    for (int64_t k = matrix.row_offsets()[row]; k < matrix.row_offsets()[row + 1]; ++k)
      if (matrix.values<T>()[k] != 0)
        visit(int64_t{matrix.column_indexes()[k]}, static_cast<double>(matrix.values<T>()[k]));
    return;
  }
  const T* const cells = matrix.data<T>() + row * matrix.columns();
  for (int64_t j = 0; j < matrix.columns(); ++j)
    if (cells[j] != 0) visit(j, static_cast<double>(cells[j]));
}

// Bytes on their way to a sink.
class Bytes {
 public:
  explicit Bytes(const ByteSink& sink) : sink_(sink) {}
  void Append(int64_t number, bool narrow) {
    if (narrow)
      AppendBytes(static_cast<int32_t>(number));
    else
      AppendBytes(number);
  }
  void Append(double number) { AppendBytes(number); }
  Status FlushIfLarge() { return bytes_.size() < kLarge ? OkStatus() : Flush(); }
  Status Flush() {
    HEDDLE_RETURN_IF_ERROR(sink_(bytes_));
    bytes_.clear();
    return OkStatus();
  }

 private:
  static constexpr size_t kLarge = 1 << 20;
  template <typename T>
  void AppendBytes(T number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof(T));
  }

  const ByteSink& sink_;
  std::string bytes_;
};

}  // namespace

Status WriteSparseNpz(const Matrix& matrix, const std::atomic<bool>* cancelled, const ByteSink& sink) {
  const int64_t stored = matrix.CountNonzeros();
  const bool narrow = std::max(stored, matrix.columns()) <= std::numeric_limits<int32_t>::max();
  const std::string index_kind = narrow ? "<i4" : "<i8";
  const int64_t index_bytes = narrow ? 4 : 8;
  // A member whose cells `append(row, column, value, &bytes)` adds for the cells that are not 0, and
  // `end_row(cells so far, &bytes)` for each row.
  const auto list = [&](const std::string& kind, int64_t length, const auto& append, const auto& end_row) {
    return [&, kind, length, append, end_row](const ByteSink& to) -> Status {
      HEDDLE_RETURN_IF_ERROR(to(HeaderOfArray(kind, fmt::format("{},", length))));
      Bytes bytes(to);
      int64_t count = 0;
      end_row(count, &bytes);
      for (int64_t i = 0; i < matrix.rows(); ++i) {
        if (IsCancelled(cancelled)) return Cancelled("cancelled");
        const auto take = [&](int64_t column, double value) {
          append(column, value, &bytes);
          ++count;
        };
        matrix.element_type() == ElementType::kFloat64 ? VisitRow<double>(matrix, i, take)
                                                       : VisitRow<float>(matrix, i, take);
        end_row(count, &bytes);
        HEDDLE_RETURN_IF_ERROR(bytes.FlushIfLarge());
      }
      return bytes.Flush();
    };
  };
  const auto nothing_in_cell = [](int64_t, double, Bytes*) {};
  const auto nothing_in_row = [](int64_t, Bytes*) {};
  const auto text = [](std::string bytes) { return [bytes](const ByteSink& to) { return to(bytes); }; };
  const auto header_bytes = [](const std::string& kind, int64_t length) {
    return static_cast<int64_t>(HeaderOfArray(kind, fmt::format("{},", length)).size());
  };
  const std::string format = HeaderOfArray("|S3", "") + "csr";
  std::string shape = HeaderOfArray("<i8", "2,");
  for (const int64_t size : {matrix.rows(), matrix.columns()})
    shape.append(reinterpret_cast<const char*>(&size), sizeof(size));
  return WriteZip(
      {{"indices.npy", header_bytes(index_kind, stored) + stored * index_bytes,
        list(
            index_kind, stored,
            [narrow](int64_t column, double, Bytes* bytes) { bytes->Append(column, narrow); },
            nothing_in_row)},
       {"indptr.npy", header_bytes(index_kind, matrix.rows() + 1) + (matrix.rows() + 1) * index_bytes,
        list(index_kind, matrix.rows() + 1, nothing_in_cell,
             [narrow](int64_t count, Bytes* bytes) { bytes->Append(count, narrow); })},
       {"format.npy", static_cast<int64_t>(format.size()), text(format)},
       {"shape.npy", static_cast<int64_t>(shape.size()), text(shape)},
       {"data.npy", header_bytes("<f8", stored) + stored * 8,
        list(
            "<f8", stored, [](int64_t, double value, Bytes* bytes) { bytes->Append(CanonicalCell(value)); },
            nothing_in_row)}},
      sink);
}

}  // namespace heddle::ops
