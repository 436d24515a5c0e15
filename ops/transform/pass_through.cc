// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "core/text/utf8.h"
#include "ops/base/parallel.h"
#include "ops/frame/convert.h"
#include "ops/transform/encoders.h"

namespace heddle::ops {
namespace {

constexpr int64_t kGrainRows = int64_t{1} << 14;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// nullopt where a text is no number.
std::optional<double> NumberAt(const ColumnInput& input, int64_t i) {
  const Column& cells = input.cells;
  if (cells.IsMissing(i)) return kNan;
  switch (cells.storage()) {
    case ColumnStorage::kDoubles: return cells.doubles()[i];
    case ColumnStorage::kIntegers: return static_cast<double>(cells.integers()[i]);
    case ColumnStorage::kBooleans: return cells.booleans()[i];
    case ColumnStorage::kTexts: return NumberInText(cells.TextAt(i));
  }
  HEDDLE_CHECK(false, "cells of every storage are numbers or texts");
}

Status NoNumber(const ColumnInput& input, std::string_view text) {
  return FailedPrecondition("{}: '{}' in column {} is not a number", input.op, ShownInLine(text, 40),
                            input.name)
      .WithNote("recode, dummycode and hash make numbers of texts");
}

}  // namespace

bool ColumnInput::NeedsDistinct(const ColumnSpec& spec) {
  return spec.encoder == Encoder::kRecode || spec.encoder == Encoder::kWordEmbedding ||
         spec.encoder == Encoder::kHash || spec.impute == ImputeMethod::kMode;
}

bool ColumnInput::IsMissing(int64_t row) const {
  return cells.IsMissing(row) || (cells.storage() == ColumnStorage::kTexts && cells.TextAt(row).empty());
}

bool ColumnInput::IsReplaced(int64_t row) const {
  if (!spec.impute) return false;
  if (IsMissing(row)) return true;
  return spec.impute != ImputeMethod::kMean && cells.storage() == ColumnStorage::kDoubles &&
         std::isnan(cells.doubles()[row]);
}

Status NumbersOf(const ColumnInput& input, std::span<double> numbers) {
  const auto rows = static_cast<int64_t>(numbers.size());
  std::atomic<int64_t> first = rows;  // The first row that holds no number.
  ParallelFor(rows, kGrainRows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const std::optional<double> number = NumberAt(input, i);
      numbers[static_cast<size_t>(i)] = number.value_or(kNan);
      if (number) continue;
      int64_t seen = first;
      while (i < seen && !first.compare_exchange_weak(seen, i)) {
      }
      return;
    }
  });
  return first == rows ? OkStatus() : NoNumber(input, input.cells.TextAt(first));
}

Status PassThrough(const ColumnInput& input, const ColumnMetadata& metadata, std::span<double> codes) {
  HEDDLE_RETURN_IF_ERROR(NumbersOf(input, codes));
  if (!input.spec.impute || !metadata.imputed) return OkStatus();
  const std::optional<double> value = NumberInText(*metadata.imputed);
  if (!value) return NoNumber(input, *metadata.imputed);
  // Texts that say NaN, too.
  const bool replaces_nan = input.spec.impute != ImputeMethod::kMean && !metadata.imputed->empty();
  for (size_t i = 0; i < codes.size(); ++i)
    if (input.IsReplaced(static_cast<int64_t>(i)) || (replaces_nan && std::isnan(codes[i])))
      codes[i] = *value;
  return OkStatus();
}

}  // namespace heddle::ops
