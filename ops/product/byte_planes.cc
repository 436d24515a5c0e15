// SPDX-License-Identifier: Apache-2.0
#include "ops/product/byte_planes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/values/panels.h"
#include "ops/cells/code_units.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/simd/codes/codes.h"
#include "ops/simd/product/byte_products.h"

namespace heddle::ops {
namespace {

constexpr int64_t kDigitMask = (1 << BytePlanes::kDigitBits) - 1;

// cell * 2^-exponent, below 2^53.
int64_t WholeNumber(double cell, int exponent) {
  const int half = -exponent / 2;
  return static_cast<int64_t>(std::ldexp(std::ldexp(cell, half), -exponent - half));
}

void LookUpFourBits(const Codes& codes, const uint8_t* bytes, int64_t begin, int64_t end, uint8_t* out) {
  simd::FourBits part{codes.data(), {}};
  std::copy_n(bytes, part.bytes.size(), part.bytes.data());
  // The first of two codes in a byte may be that of another row.
  if (begin < end && begin % 2 != 0) *out++ = bytes[codes.At(begin++)];
  simd::AddFourBits({&part, 1}, begin, end - begin, out);
}

// The byte of the code of each row.
void LookUpCodes(const Codes& codes, const uint8_t* bytes, int64_t tuples, int64_t begin, int64_t end,
                 uint8_t* out) {
  switch (codes.bits()) {
    case 4: return LookUpFourBits(codes, bytes, begin, end, out);
    case 8: return simd::LookUpBytes(codes.data() + begin, end - begin, bytes, tuples, out);
    default: {
      const auto* const wide = reinterpret_cast<const uint16_t*>(codes.data()) + begin;
      for (int64_t i = 0; i < end - begin; ++i) out[i] = bytes[wide[i]];
    }
  }
}

// planes[p]: the byte of each tuple in plane p, which is written to out + p * stride.
void WriteGroup(const ColumnGroup& group, const std::vector<std::vector<uint8_t>>& planes, int64_t begin,
                int64_t end, int64_t stride, uint8_t* out) {
  if (group.encoding == Encoding::kDenseCodes) {
    for (const std::vector<uint8_t>& plane : planes) {
      LookUpCodes(group.codes, plane.data(), group.tuples(), begin, end, out);
      out += stride;
    }
    return;
  }
  const auto write = [&](int64_t from, int64_t to, uint32_t code) {
    for (size_t p = 0; p < planes.size(); ++p)
      std::memset(out + static_cast<int64_t>(p) * stride + (from - begin), planes[p][code],
                  static_cast<size_t>(to - from));
  };
  if (group.encoding == Encoding::kConstant) return write(begin, end, 0);
  GroupPlace place = PlaceOfRow(group, begin);
  if (group.encoding == Encoding::kRuns) return VisitRuns(group, begin, end, &place, write);
  write(begin, end, 0);
  VisitExceptions(group, begin, end, &place, [&](int64_t row, uint32_t code) {
    for (size_t p = 0; p < planes.size(); ++p)
      out[static_cast<int64_t>(p) * stride + (row - begin)] = planes[p][code];
  });
}

}  // namespace

BytePlanes::BytePlanes(const Matrix& x)
    : x_(x), columns_(static_cast<size_t>(x.columns())), units_(columns_.size()) {
  if (!x.IsCompressed()) {
    for (Column& column : columns_) column = {.first = planes_++, .planes = 1};
    std::fill(units_.begin(), units_.end(),
              ExactUnits{.exponent = 0, .most = static_cast<double>(kDigitMask)});
    return;
  }
  for (const ColumnGroup& group : x.groups().groups)
    for (int64_t k = 0; k < group.width(); ++k) {
      ExactUnits& units = units_[static_cast<size_t>(group.columns[static_cast<size_t>(k)])];
      units = UnitsOfColumn(group, k);
      are_exact_ = are_exact_ && AddExactly(units, 1);
    }
  if (!are_exact_) return;
  for (const ColumnGroup& group : x.groups().groups) {
    if (group.encoding == Encoding::kEmpty) continue;
    HoldsSingles(group.dictionary) ? AddGroup<float>(group) : AddGroup<double>(group);
  }
}

template <typename T>
void BytePlanes::AddGroup(const ColumnGroup& group) {
  Group of{&group, planes_, {}};
  const int64_t tuples = group.tuples();
  std::vector<int64_t> numbers(static_cast<size_t>(tuples));
  for (int64_t k = 0; k < group.width(); ++k) {
    const auto j = static_cast<size_t>(group.columns[static_cast<size_t>(k)]);
    Column& column = columns_[j];
    column.exponent = units_[j].most == 0 ? 0 : units_[j].exponent;
    for (int64_t t = 0; t < tuples; ++t)
      numbers[static_cast<size_t>(t)] = WholeNumber(
          static_cast<double>(group.dictionary.data<T>()[t * group.width() + k]), column.exponent);
    const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
    column.least = tuples == 0 ? 0 : *least;
    has_ones_ = has_ones_ || column.least != 0;
    const int64_t span = tuples == 0 ? 0 : *most - *least;
    column.first = planes_;
    for (int bits = 0; span >> bits != 0; bits += kDigitBits) {
      std::vector<uint8_t> bytes(static_cast<size_t>(CeilDivide(tuples, 16) * 16), 0);
      for (int64_t t = 0; t < tuples; ++t)
        bytes[static_cast<size_t>(t)] =
            static_cast<uint8_t>((numbers[static_cast<size_t>(t)] - column.least) >> bits & kDigitMask);
      of.planes.push_back(std::move(bytes));
      ++planes_;
    }
    column.planes = planes_ - column.first;
  }
  if (!of.planes.empty()) groups_.push_back(std::move(of));
}

bool BytePlanes::Write(int64_t begin, int64_t end, int64_t stride, uint8_t* out) const {
  if (!x_.IsCompressed()) return WriteDense(begin, end, stride, out);
  for (const Group& group : groups_)
    WriteGroup(*group.group, group.planes, x_.first_row() + begin, x_.first_row() + end, stride,
               out + group.first * stride);
  if (HasOnes()) std::memset(out + planes_ * stride, 1, static_cast<size_t>(end - begin));
  return true;
}

bool BytePlanes::WriteDense(int64_t begin, int64_t end, int64_t stride, uint8_t* out) const {
  constexpr int64_t kCells = 1024;
  const int64_t n = x_.columns(), height = std::max<int64_t>(1, kCells / std::max<int64_t>(n, 1));
  std::vector<uint8_t> bytes(static_cast<size_t>(height * n));
  for (int64_t row = begin; row < end; row += height) {
    const int64_t rows = std::min(height, end - row);
    if (!simd::ToBytes(x_.data() + row * n, rows * n, bytes.data())) return false;
    for (int64_t j = 0; j < n; ++j) {
      uint8_t* const to = out + j * stride + (row - begin);
      for (int64_t i = 0; i < rows; ++i) to[i] = bytes[static_cast<size_t>(i * n + j)];
    }
  }
  return true;
}

}  // namespace heddle::ops
