// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/transform.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/text/double_text.h"
#include "ops/transform/encoders.h"
#include "ops/transform/spec.h"

namespace heddle::ops::reference {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const std::string kDot = "\u00b7";

using Texts = std::vector<std::string>;

TransformSpec SpecOf(std::string_view text, const Schema& schema) {
  return *ParseTransformSpec("reference", text, schema);
}

bool IsNumber(const Frame& frame, int64_t j) { return frame.column(j).storage() != ColumnStorage::kTexts; }

// Empty: missing.
std::string TextAt(const Frame& frame, int64_t i, int64_t j) {
  if (frame.IsMissing(i, j)) return "";
  const Scalar cell = frame.At(i, j);
  if (cell.IsBoolean()) return cell.AsBoolean() ? "true" : "false";
  std::string text;
  frame.AppendText(i, j, &text);
  return text;
}

double NumberIn(const std::string& text) {
  if (text.empty()) return kNan;
  if (text == "true" || text == "TRUE") return 1;
  if (text == "false" || text == "FALSE") return 0;
  return *ParseDouble(text);
}

bool Replaced(const Frame& frame, const ColumnSpec& spec, int64_t i, int64_t j) {
  const std::string text = TextAt(frame, i, j);
  return spec.impute &&
         (text.empty() || (spec.impute != ImputeMethod::kMean && IsNumber(frame, j) && text == "NaN"));
}

std::string Imputed(const Frame& frame, const ColumnSpec& spec, int64_t j) {
  if (spec.impute == ImputeMethod::kConstant) return spec.constant;
  if (spec.impute == ImputeMethod::kMean) {
    long double sum = 0;
    int count = 0;
    for (int64_t i = 0; i < frame.rows(); ++i) {
      if (TextAt(frame, i, j).empty()) continue;
      sum += static_cast<long double>(NumberIn(TextAt(frame, i, j)));
      ++count;
    }
    return count == 0 ? "" : FormatDouble(static_cast<double>(sum / count));
  }
  // Of several the one that a java.util.HashMap gives first.
  std::vector<std::pair<std::string, int>> counts;
  for (int64_t i = 0; i < frame.rows(); ++i) {
    if (Replaced(frame, spec, i, j)) continue;
    const std::string text = TextAt(frame, i, j);
    const auto found =
        std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == text; });
    if (found == counts.end())
      counts.emplace_back(text, 1);
    else
      ++found->second;
  }
  std::stable_sort(counts.begin(), counts.end(), [&](const auto& a, const auto& b) {
    return JavaBucketOf(a.first, counts.size()) < JavaBucketOf(b.first, counts.size());
  });
  std::stable_sort(counts.begin(), counts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return counts.empty() ? "" : counts[0].first;
}

Texts TokensOf(const Frame& frame, const ColumnSpec& spec, int64_t j) {
  Texts tokens;
  for (int64_t i = 0; i <= frame.rows(); ++i) {
    std::string token;
    if (i < frame.rows())
      token = TextAt(frame, i, j);
    else if (spec.impute == ImputeMethod::kConstant)
      token = spec.constant;
    if (!token.empty() && std::find(tokens.begin(), tokens.end(), token) == tokens.end())
      tokens.push_back(token);
  }
  return tokens;
}

Texts BinsOf(const Frame& frame, const ColumnSpec& spec, int64_t j) {
  std::vector<double> x;
  for (int64_t i = 0; i < frame.rows(); ++i) {
    const std::string text = TextAt(frame, i, j);
    if (text != "NaN") x.push_back(text.empty() ? 0 : NumberIn(text));
  }
  std::sort(x.begin(), x.end());
  const double low = x.front(), high = x.back();
  std::vector<double> bounds = {low};
  const auto k = spec.bin_method == BinMethod::kEqualWidth && low == high ? 1 : spec.bins;
  for (int64_t i = 1; i <= k; ++i) {
    if (spec.bin_method == BinMethod::kEqualWidth) {
      bounds.push_back(low + static_cast<double>(i) * (high - low) / static_cast<double>(k));
      continue;
    }
    const auto n = static_cast<int64_t>(x.size());
    bounds.push_back(x[static_cast<size_t>((i * n + k - 1) / k - 1)]);
  }
  Texts cells;
  for (size_t i = 1; i < bounds.size(); ++i)
    cells.push_back(FormatDouble(bounds[i - 1]) + kDot + FormatDouble(bounds[i]));
  return cells;
}

Texts MetadataOf(const Frame& frame, const ColumnSpec& spec, int64_t j) {
  Texts cells;
  if (spec.encoder == Encoder::kRecode) {
    for (const std::string& token : TokensOf(frame, spec, j))
      cells.push_back(token + kDot + std::to_string(cells.size() + 1));
    const auto bucket = [&](const std::string& cell) {
      return JavaBucketOf(cell.substr(0, cell.rfind(kDot)), cells.size());
    };
    std::stable_sort(cells.begin(), cells.end(),
                     [&](const auto& a, const auto& b) { return bucket(a) < bucket(b); });
  }
  if (spec.encoder == Encoder::kBin) cells = BinsOf(frame, spec, j);
  if (spec.encoder == Encoder::kHash) cells.push_back(std::to_string(spec.hash_values));
  if (spec.impute) cells.push_back(Imputed(frame, spec, j) + kDot + "impute");
  return cells;
}

// Column j of the metadata as its cells before and behind the last dot, but for that of impute.
struct Known {
  Texts before, behind;
  std::string imputed;

  Known(const Frame& meta, int64_t j) {
    for (int64_t i = 0; i < meta.rows(); ++i) {
      const std::string cell = TextAt(meta, i, j);
      const size_t at = cell.rfind(kDot);
      if (at == std::string::npos) continue;
      std::string first = cell.substr(0, at);
      const std::string second = cell.substr(at + kDot.size());
      if (second == "impute") {
        imputed = first;
        continue;
      }
      // Codes and upper ends of bins both go up.
      const auto place = std::find_if(behind.begin(), behind.end(), [&](const std::string& other) {
        return NumberIn(second) < NumberIn(other);
      });
      before.insert(before.begin() + (place - behind.begin()), first);
      behind.insert(place, second);
    }
  }
  int64_t Width(const ColumnSpec& spec) const {
    if (!spec.dummycode) return 1;
    return spec.encoder == Encoder::kHash ? spec.hash_values : static_cast<int64_t>(before.size());
  }
};

double HashCode(const Frame& frame, const std::string& text, int64_t j, int64_t values) {
  int64_t hash = 0;
  switch (frame.column(j).type()) {
    case ColumnType::kString:
    case ColumnType::kCharacter: hash = JavaHash(text); break;
    case ColumnType::kInteger32: hash = std::stoll(text); break;
    case ColumnType::kBoolean: hash = static_cast<int64_t>(NumberIn(text)); break;
    case ColumnType::kInteger64: {
      const auto bits = static_cast<uint64_t>(std::stoll(text));
      hash = static_cast<int32_t>(static_cast<uint32_t>(bits) ^ static_cast<uint32_t>(bits >> 32));
      break;
    }
    case ColumnType::kFloat32: {
      const auto single = static_cast<float>(NumberIn(text));
      uint32_t bits = 0x7fc00000;
      if (!std::isnan(single))
        std::copy_n(reinterpret_cast<const char*>(&single), 4, reinterpret_cast<char*>(&bits));
      hash = static_cast<int32_t>(bits);
      break;
    }
    case ColumnType::kFloat64: {
      const double x = NumberIn(text);
      uint64_t bits = 0x7ff8000000000000;
      if (!std::isnan(x)) std::copy_n(reinterpret_cast<const char*>(&x), 8, reinterpret_cast<char*>(&bits));
      hash = static_cast<int32_t>(static_cast<uint32_t>(bits) ^ static_cast<uint32_t>(bits >> 32));
      break;
    }
  }
  return static_cast<double>((hash < 0 ? -hash : hash) % values + 1);
}

double CodeOf(const Frame& frame, const ColumnSpec& spec, const Known& known, int64_t i, int64_t j) {
  const std::string text = Replaced(frame, spec, i, j) ? known.imputed : TextAt(frame, i, j);
  if (spec.encoder == Encoder::kPassThrough) {
    const bool replaces_nan = spec.impute && spec.impute != ImputeMethod::kMean && !known.imputed.empty();
    return text == "NaN" && replaces_nan ? NumberIn(known.imputed) : NumberIn(text);
  }
  if (text.empty()) return kNan;
  if (spec.encoder == Encoder::kHash) return HashCode(frame, text, j, spec.hash_values);
  const bool bins = spec.encoder == Encoder::kBin;
  if (bins && std::isnan(NumberIn(text))) return kNan;
  if (bins && spec.bin_method == BinMethod::kEqualWidth) {
    const double low = NumberIn(known.before.front()), high = NumberIn(known.behind.back());
    const auto count = static_cast<double>(known.before.size());
    if (low == high) return 1;
    return std::clamp(std::ceil((NumberIn(text) - low) / (high - low) * count), 1.0, count);
  }
  for (size_t k = 0; k < known.before.size(); ++k) {
    if (bins ? NumberIn(text) <= NumberIn(known.behind[k]) : text == known.before[k])
      return bins ? static_cast<double>(k + 1) : NumberIn(known.behind[k]);
  }
  return bins ? static_cast<double>(known.before.size()) : kNan;
}

Frame FrameOfTexts(const Schema& schema, const std::vector<Texts>& columns, size_t rows) {
  Schema texts = schema;
  std::vector<Column> made;
  for (size_t j = 0; j < columns.size(); ++j) {
    texts.types[j] = ColumnType::kString;
    int64_t bytes = 0;
    for (const std::string& cell : columns[j]) bytes += static_cast<int64_t>(cell.size());
    Column column = *Column::Make(ColumnType::kString, static_cast<int64_t>(rows), bytes, true);
    std::string all;
    column.mutable_offsets()[0] = 0;
    for (size_t i = 0; i < rows; ++i) {
      if (i < columns[j].size()) all += columns[j][i];
      column.mutable_missing()[i] = i >= columns[j].size() || columns[j][i].empty();
      column.mutable_offsets()[i + 1] = static_cast<int64_t>(all.size());
    }
    std::copy(all.begin(), all.end(), column.mutable_texts());
    made.push_back(std::move(column));
  }
  return Frame(std::make_shared<const Schema>(texts), std::move(made));
}

}  // namespace

std::pair<Matrix, Frame> TransformEncode(const Frame& target, std::string_view text) {
  const TransformSpec spec = SpecOf(text, *target.schema());
  std::vector<Texts> columns;
  size_t rows = 0;
  for (int64_t j = 0; j < target.columns(); ++j) {
    columns.push_back(MetadataOf(target, spec.columns[static_cast<size_t>(j)], j));
    rows = std::max(rows, columns.back().size());
  }
  const Frame meta = FrameOfTexts(*target.schema(), columns, rows);
  return {TransformApply(target, meta, text), meta};
}

Matrix TransformApply(const Frame& target, const Frame& meta, std::string_view text) {
  const TransformSpec spec = SpecOf(text, *target.schema());
  std::vector<std::vector<double>> rows;
  int64_t width = 0;
  for (int64_t j = 0; j < target.columns(); ++j) {
    const ColumnSpec& one = spec.columns[static_cast<size_t>(j)];
    width += Known(meta, j).Width(one);
  }
  for (int64_t i = 0; i < target.rows(); ++i) {
    bool stays = true;
    std::vector<double> row;
    for (int64_t j = 0; j < target.columns(); ++j) {
      const ColumnSpec& one = spec.columns[static_cast<size_t>(j)];
      const Known known(meta, j);
      const double code = CodeOf(target, one, known, i, j);
      if (one.omit && TextAt(target, i, j).empty()) stays = false;
      for (int64_t k = 1; k <= known.Width(one); ++k)
        row.push_back(one.dummycode ? (code == static_cast<double>(k) ? 1 : 0) : code);
    }
    if (stays) rows.push_back(row);
  }
  Matrix result = *Matrix::Dense(static_cast<int64_t>(rows.size()), width);
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy(rows[i].begin(), rows[i].end(), result.mutable_data() + static_cast<int64_t>(i) * width);
  return result;
}

Frame TransformDecode(const Matrix& target, const Frame& meta, std::string_view text) {
  const TransformSpec spec = SpecOf(text, *meta.schema());
  Schema schema = *meta.schema();
  std::vector<Column> columns;
  int64_t at = 0;
  for (int64_t j = 0; j < meta.columns(); ++j) {
    const ColumnSpec& one = spec.columns[static_cast<size_t>(j)];
    const Known known(meta, j);
    const bool texts = one.encoder == Encoder::kRecode || one.encoder == Encoder::kBin || one.dummycode;
    std::vector<double> numbers;
    Texts cells;
    for (int64_t i = 0; i < target.rows(); ++i) {
      double code = one.dummycode ? kNan : target.At(i, at);
      for (int64_t k = known.Width(one); one.dummycode && k >= 1; --k)
        if (target.At(i, at + k - 1) != 0) code = static_cast<double>(k);
      numbers.push_back(code);
      const double nearest = std::floor(code + 0.5);
      cells.emplace_back();
      if (one.encoder == Encoder::kBin && std::isnan(code)) cells.back() = "NaN";
      const int64_t most = one.encoder == Encoder::kHash ? one.hash_values : std::ssize(known.before);
      if (!(nearest >= 1 && nearest <= static_cast<double>(most))) continue;
      if (one.encoder == Encoder::kHash) {
        cells.back() = FormatDouble(code);
        continue;
      }
      const auto k = static_cast<size_t>(nearest) - 1;
      cells.back() = known.before[k];
      if (one.encoder != Encoder::kBin) continue;
      const double low = NumberIn(known.before[k]), width = NumberIn(known.behind[k]) - low;
      cells.back() = FormatDouble(low + width / 2 + (code - nearest) * width);
    }
    at += known.Width(one);
    schema.types[static_cast<size_t>(j)] = texts ? ColumnType::kString : ColumnType::kFloat64;
    columns.push_back(texts ? FrameOfTexts(Schema{{ColumnType::kString}, {}}, {cells}, cells.size()).column(0)
                            : *Column::OfDoubles(numbers));
  }
  return Frame(std::make_shared<const Schema>(schema), std::move(columns));
}

Matrix TransformColumnMap(const Frame& meta, std::string_view text) {
  const TransformSpec spec = SpecOf(text, *meta.schema());
  Matrix result = *Matrix::Dense(meta.columns(), 3);
  int64_t next = 1;
  for (int64_t j = 0; j < meta.columns(); ++j) {
    const ColumnSpec& one = spec.columns[static_cast<size_t>(j)];
    const int64_t width = Known(meta, j).Width(one);
    result.mutable_data()[3 * j] = static_cast<double>(j + 1);
    result.mutable_data()[3 * j + 1] = static_cast<double>(next);
    result.mutable_data()[3 * j + 2] = static_cast<double>(next + width - 1);
    next += width;
  }
  return result;
}

Matrix CategoricalMask(const Frame& meta, std::string_view text) {
  const TransformSpec spec = SpecOf(text, *meta.schema());
  std::vector<double> mask;
  for (int64_t j = 0; j < meta.columns(); ++j) {
    const ColumnSpec& one = spec.columns[static_cast<size_t>(j)];
    for (int64_t k = 0; k < Known(meta, j).Width(one); ++k)
      mask.push_back(one.encoder == Encoder::kPassThrough ? 0 : 1);
  }
  Matrix result = *Matrix::Dense(1, static_cast<int64_t>(mask.size()));
  std::copy(mask.begin(), mask.end(), result.mutable_data());
  return result;
}

}  // namespace heddle::ops::reference
