// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/numpy/npy.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "ops/io/formats/plain_cells.h"
#include "ops/io/formats/readers.h"

namespace heddle::ops {
namespace {

constexpr int64_t kBytesOfRead = int64_t{1} << 20;
// Of an array in Fortran order each column is read apart: so many cells at once that a read is worth it.
constexpr int64_t kRowsOfColumnRead = 1 << 9;
constexpr int64_t kHeaderMultiple = 64;  // NumPy lets the cells begin at one of these.

template <typename Bits>
Bits Swapped(Bits bits) {
  if constexpr (sizeof(Bits) == 2) return __builtin_bswap16(bits);
  if constexpr (sizeof(Bits) == 4) return __builtin_bswap32(bits);
  if constexpr (sizeof(Bits) == 8) return __builtin_bswap64(bits);
  return bits;
}

// A float of 16 bits: sign, 5 bits of exponent, 10 of fraction. Every one is a double.
double HalfToDouble(uint16_t half) {
  const uint64_t sign = uint64_t{half} >> 15 << 63, exponent = half >> 10 & 31, fraction = half & 1023;
  if (exponent == 31) return std::bit_cast<double>(sign | uint64_t{0x7ff} << 52 | fraction << 42);
  if (exponent == 0) {
    const double magnitude = static_cast<double>(fraction) * 0x1p-24;
    return std::bit_cast<double>(sign | std::bit_cast<uint64_t>(magnitude));
  }
  return std::bit_cast<double>(sign | (exponent + 1008) << 52 | fraction << 42);
}

// Converts `count` cells that lie one after the other to every `step`-th double of `out`.
template <typename T>
void Convert(const char* from, int64_t count, bool swapped, int64_t step, double* out) {
  using Bits = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
  for (int64_t k = 0; k < count; ++k) {
    Bits bits;
    std::memcpy(&bits, from + k * static_cast<int64_t>(sizeof(T)), sizeof(T));
    if (swapped) bits = Swapped(bits);
    out[k * step] = static_cast<double>(std::bit_cast<T>(bits));
  }
}

void ConvertHalves(const char* from, int64_t count, bool swapped, int64_t step, double* out) {
  for (int64_t k = 0; k < count; ++k) {
    uint16_t bits;
    std::memcpy(&bits, from + k * 2, 2);
    out[k * step] = HalfToDouble(swapped ? Swapped(bits) : bits);
  }
}

void ConvertBooleans(const char* from, int64_t count, bool, int64_t step, double* out) {
  for (int64_t k = 0; k < count; ++k) out[k * step] = from[k] != 0;
}

using ConvertCells = void (*)(const char* from, int64_t count, bool swapped, int64_t step, double* out);

ConvertCells ConverterOf(const NpyHeader& header) {
  if (header.kind == 'b') return ConvertBooleans;
  if (header.kind == 'f')
    return header.bytes == 2 ? ConvertHalves : header.bytes == 4 ? Convert<float> : Convert<double>;
  const bool sign = header.kind == 'i';
  switch (header.bytes) {
    case 1: return sign ? Convert<int8_t> : Convert<uint8_t>;
    case 2: return sign ? Convert<int16_t> : Convert<uint16_t>;
    case 4: return sign ? Convert<int32_t> : Convert<uint32_t>;
    default: return sign ? Convert<int64_t> : Convert<uint64_t>;
  }
}

// The cells of an array, wherever they are.
class ArrayCells {
 public:
  ArrayCells(const NpyHeader& header, const InputFile& file)
      : header_(header), file_(file), shape_(header.shape()), convert_(ConverterOf(header)) {}

  // Rows [begin, end), row by row.
  Status Fill(int64_t begin, int64_t end, double* out) const {
    if (!header_.fortran || header_.sizes.size() < 2)
      return Take(begin * shape_.columns, (end - begin) * shape_.columns, 1, out);
    for (int64_t j = 0; j < shape_.columns; ++j)
      HEDDLE_RETURN_IF_ERROR(
          Take(PlaceOfColumn(j) * shape_.rows + begin, end - begin, shape_.columns, out + j));
    return OkStatus();
  }

  // Cells [first, first + count) of the file into every `step`-th of `out`.
  Status Take(int64_t first, int64_t count, int64_t step, double* out) const {
    CountedBytes buffer;
    const int64_t at_once = kBytesOfRead / header_.bytes;
    for (int64_t done = 0; done < count; done += at_once) {
      const int64_t cells = std::min(at_once, count - done);
      HEDDLE_ASSIGN_OR_RETURN(
          const std::string_view bytes,
          file_.Read(header_.cells_begin + (first + done) * header_.bytes, cells * header_.bytes, &buffer));
      convert_(bytes.data(), cells, header_.swapped, step, out + done * step);
    }
    return OkStatus();
  }

 private:
  // The columns of a matrix count the indexes behind the first one with the last one fastest, those of an
  // array in Fortran order with the first of them fastest.
  int64_t PlaceOfColumn(int64_t column) const {
    int64_t place = 0, rest = column, stride = shape_.columns;
    for (size_t i = header_.sizes.size() - 1; i >= 1; --i) {
      const int64_t size = header_.sizes[i];
      stride /= size;
      place += rest % size * stride;
      rest /= size;
    }
    return place;
  }

  const NpyHeader& header_;
  const InputFile& file_;
  const Shape shape_;
  const ConvertCells convert_;
};

}  // namespace

Result<FileSummary> SummarizeArray(const ReadOptions& options, const NpyHeader& header) {
  FileSummary summary;
  summary.shape = header.shape();
  HEDDLE_RETURN_IF_ERROR(CheckSaidSizes(options, summary.shape));
  summary.stored = options.nonzeros;
  summary.format = ChooseFormat(summary.shape, summary.stored);
  return summary;
}

Result<Matrix> ReadArrayRows(const ReadOptions& options, const FileSummary& summary, const NpyHeader& header,
                             const InputFile& file, int64_t row_begin, int64_t row_end) {
  const ArrayCells cells(header, file);
  return CollectRows(options, summary, row_begin, row_end, header.fortran ? kRowsOfColumnRead : 1,
                     [&](int64_t begin, int64_t end, double* out) { return cells.Fill(begin, end, out); });
}

Status ReadNpyCells(const NpyHeader& header, const InputFile& file, int64_t begin, int64_t end, double* out) {
  return ArrayCells(header, file).Take(begin, end - begin, 1, out);
}

std::string HeaderOfArray(std::string_view kind, const std::string& sizes) {
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", kind, sizes);
  const auto before = static_cast<int64_t>(kNpyMark.size()) + 4;
  const int64_t whole = (before + static_cast<int64_t>(text.size()) + 1 + kHeaderMultiple - 1) /
                        kHeaderMultiple * kHeaderMultiple;
  text.resize(static_cast<size_t>(whole - before - 1), ' ');
  text += '\n';
  std::string bytes(kNpyMark);
  bytes += {'\1', '\0', static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
  return bytes + text;
}

std::string HeaderOfMatrix(const Shape& shape) {
  return HeaderOfArray("<f8", fmt::format("{}, {}", shape.rows, shape.columns));
}

int64_t BytesOfArray(const Shape& shape) {
  return static_cast<int64_t>(HeaderOfMatrix(shape).size()) + shape.Cells() * 8;
}

Status WriteArray(const Matrix& matrix, const std::optional<Packing>& packing,
                  const std::atomic<bool>* cancelled, const ByteSink& sink) {
  HEDDLE_RETURN_IF_ERROR(PackingSink(packing, sink)(HeaderOfMatrix(matrix.shape())));
  return GiveCells(matrix, packing, cancelled, sink);
}

Result<FileSummary> SummarizeNpy(const ReadOptions& options, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file, OpenOneFile(options, files));
  HEDDLE_ASSIGN_OR_RETURN(NpyHeader header, ReadNpyHeader(options.path, *file, 0, file->size()));
  if (options.transposed) header.Transpose();
  HEDDLE_ASSIGN_OR_RETURN(FileSummary summary, SummarizeArray(options, header));
  summary.text_bytes = file->size();
  return summary;
}

Result<Matrix> ReadNpy(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                       int64_t row_end, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file, OpenOneFile(options, files));
  HEDDLE_ASSIGN_OR_RETURN(NpyHeader header, ReadNpyHeader(options.path, *file, 0, file->size()));
  if (options.transposed) header.Transpose();
  if (file->size() != summary.text_bytes || header.shape() != summary.shape) return ItChanged(options);
  return ReadArrayRows(options, summary, header, *file, row_begin, row_end);
}

}  // namespace heddle::ops
