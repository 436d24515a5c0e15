// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/values/value.h"
#include "ops/panels/panel_store.h"
#include "tests/support/frames.h"
#include "tests/unit/ops/compressed/random_groups.h"

// Values whose rows are a function of their numbers alone, and spill files in memory that fail when told to.
namespace heddle::ops::testing {

enum class Kind : uint8_t {
  kDoubles,
  kFloats,
  kSparseDoubles,
  kSparseFloats,
  kCompressedDoubles,
  kCompressedFloats,
  kFrame,
  kFrameWithoutMissing
};
constexpr Kind kKinds[] = {
    Kind::kDoubles,           Kind::kFloats,           Kind::kSparseDoubles, Kind::kSparseFloats,
    Kind::kCompressedDoubles, Kind::kCompressedFloats, Kind::kFrame,         Kind::kFrameWithoutMissing};

inline bool IsFrameKind(Kind kind) { return kind == Kind::kFrame || kind == Kind::kFrameWithoutMissing; }
inline int64_t ColumnsOf(Kind kind) { return IsFrameKind(kind) ? kColumnTypes : 5; }

/// A cell of row `row`; every third one is zero, and all of every fourth row.
inline double CellAt(int64_t row, int64_t column) {
  if (row % 4 == 3 || (row + column) % 3 == 0) return 0;
  return static_cast<double>((row * 7919 + column * 104729) % 1000003) / 8 - 1000;
}

template <typename T>
Matrix NumberedMatrix(int64_t begin, int64_t end, int64_t columns, bool is_sparse) {
  Matrix dense =
      *Matrix::Dense(end - begin, columns, sizeof(T) == 8 ? ElementType::kFloat64 : ElementType::kFloat32);
  for (int64_t row = begin; row < end; ++row)
    for (int64_t j = 0; j < columns; ++j)
      dense.mutable_data<T>()[(row - begin) * columns + j] = static_cast<T>(CellAt(row, j));
  return is_sparse ? *ToSparse(dense) : dense;
}

/// Rows [begin, end).
inline Value RowsOf(Kind kind, int64_t begin, int64_t end) {
  switch (kind) {
    case Kind::kDoubles: return Value(NumberedMatrix<double>(begin, end, ColumnsOf(kind), false));
    case Kind::kFloats: return Value(NumberedMatrix<float>(begin, end, ColumnsOf(kind), false));
    case Kind::kSparseDoubles: return Value(NumberedMatrix<double>(begin, end, ColumnsOf(kind), true));
    case Kind::kSparseFloats: return Value(NumberedMatrix<float>(begin, end, ColumnsOf(kind), true));
    case Kind::kCompressedDoubles:
      return Value(RandomGroups(NumberedMatrix<double>(begin, end, ColumnsOf(kind), false),
                                static_cast<uint32_t>(begin)));
    case Kind::kCompressedFloats:
      return Value(RandomGroups(NumberedMatrix<float>(begin, end, ColumnsOf(kind), false),
                                static_cast<uint32_t>(begin)));
    case Kind::kFrame: return Value(NumberedFrame(end - begin, begin));
    case Kind::kFrameWithoutMissing: return Value(NumberedFrame(end - begin, begin, false));
  }
  return {};
}

inline bool SameBytes(const void* a, const void* b, int64_t bytes) {
  return bytes == 0 || std::memcmp(a, b, static_cast<size_t>(bytes)) == 0;
}

/// Whether both are stored alike and hold the same bytes; rows of several compressed panels come dense.
inline bool AreSameRows(const Value& a, const Value& b) {
  if (a.kind() != b.kind() || a.shape() != b.shape()) return false;
  if (a.IsFrame())
    return *a.frame().schema() == *b.frame().schema() && Frame::SameCells(a.frame(), b.frame());
  if (a.matrix().IsCompressed() || b.matrix().IsCompressed())
    return !a.matrix().IsSparse() && !b.matrix().IsSparse() &&
           AreSameRows(Value(*ToDense(a.matrix())), Value(*ToDense(b.matrix())));
  const Matrix& x = a.matrix();
  const Matrix& y = b.matrix();
  if (x.storage() != y.storage() || x.element_type() != y.element_type() || x.stored() != y.stored())
    return false;
  const int64_t cell_bytes = BytesOf(x.element_type());
  if (!x.IsSparse()) return SameBytes(x.data<char>(), y.data<char>(), x.cells() * cell_bytes);
  const int64_t first = x.rows() == 0 ? 0 : x.row_offsets()[0];
  const int64_t other = y.rows() == 0 ? 0 : y.row_offsets()[0];
  for (int64_t row = 0; row < x.rows(); ++row)
    if (x.row_offsets()[row + 1] - first != y.row_offsets()[row + 1] - other) return false;
  return SameBytes(x.column_indexes() + first, y.column_indexes() + other, x.stored() * 4) &&
         SameBytes(x.values<char>() + first * cell_bytes, y.values<char>() + other * cell_bytes,
                   x.stored() * cell_bytes);
}

/// Spill files in memory.
class FilesInMemory : public SpillFiles {
 public:
  static constexpr int64_t kNever = INT64_MAX;
  std::atomic<int64_t> writes_left = kNever;  ///< Before one fails, and all behind it.
  std::atomic<int64_t> reads_left = kNever;   ///< Before a single one fails.
  std::atomic<int64_t> creates_left = kNever;
  std::atomic<int64_t> open_files = 0;
  std::atomic<int64_t> announced_bytes = 0;

  Result<std::unique_ptr<SpillFile>> Create() override {
    if (creates_left-- <= 0) return ResourceExhausted("no file");
    auto file = std::make_unique<File>(*this);
    const std::lock_guard lock(mutex_);
    files_.push_back(file.get());
    return std::unique_ptr<SpillFile>(std::move(file));
  }
  /// Turns a bit of byte `at` of all files together, in the order of their creation; false: there is none.
  bool TurnBit(int64_t at) {
    const std::lock_guard lock(mutex_);
    for (File* file : files_) {
      if (at < static_cast<int64_t>(file->bytes.size())) {
        file->bytes[static_cast<size_t>(at)] ^= 4;
        return true;
      }
      at -= static_cast<int64_t>(file->bytes.size());
    }
    return false;
  }

 private:
  class File : public SpillFile {
   public:
    explicit File(FilesInMemory& files) : files_(files) { ++files_.open_files; }
    ~File() override {
      --files_.open_files;
      const std::lock_guard lock(files_.mutex_);
      std::erase(files_.files_, this);
    }
    Status WriteAt(int64_t offset, const void* from, int64_t count) override {
      if (files_.writes_left-- <= 0) return ResourceExhausted("no room");
      const std::lock_guard lock(mutex_);
      if (static_cast<int64_t>(bytes.size()) < offset + count)
        bytes.resize(static_cast<size_t>(offset + count));
      std::memcpy(bytes.data() + offset, from, static_cast<size_t>(count));
      return OkStatus();
    }
    Status ReadAt(int64_t offset, void* to, int64_t count) const override {
      if (files_.reads_left-- == 0) return DataLoss("no bytes");
      const std::lock_guard lock(mutex_);
      if (offset + count > static_cast<int64_t>(bytes.size())) return DataLoss("behind the end");
      std::memcpy(to, bytes.data() + offset, static_cast<size_t>(count));
      return OkStatus();
    }
    void Announce(int64_t offset, int64_t count) const override {
      const std::lock_guard lock(mutex_);
      EXPECT_LE(offset + count, static_cast<int64_t>(bytes.size()));
      files_.announced_bytes += count;
    }
    const std::string& folder() const override { return folder_; }

    std::string bytes;

   private:
    FilesInMemory& files_;
    mutable std::mutex mutex_;
    const std::string folder_ = "memory";
  };

  std::mutex mutex_;
  std::vector<File*> files_;
};

/// Adds the rows in panels of these heights, over and over.
inline Result<std::shared_ptr<const RowPanels>> Collected(PanelStore& store, Kind kind, int64_t rows,
                                                          const std::vector<int64_t>& heights) {
  const auto collector = store.Collect({rows, ColumnsOf(kind)}, IsFrameKind(kind));
  size_t next = 0;
  for (int64_t begin = 0; begin < rows;) {
    const int64_t end = std::min(rows, begin + heights[next++ % heights.size()]);
    HEDDLE_RETURN_IF_ERROR(collector->Add(RowsOf(kind, begin, end)));
    begin = end;
  }
  return collector->Finish();
}

}  // namespace heddle::ops::testing
