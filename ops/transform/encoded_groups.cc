// SPDX-License-Identifier: Apache-2.0
#include "ops/transform/encoded_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "ops/base/parallel.h"
#include "ops/cells/storage.h"
#include "ops/compressed/arrange_groups.h"
#include "ops/compressed/compression_records.h"
#include "ops/compressed/plan_groups.h"
#include "ops/compressed/read_cost.h"

namespace heddle::ops {
namespace {

// A dictionary of dummies has a cell for each tuple and place. Products read it whole, and of CSR rows an
// entry for each row, which takes longer.
constexpr double kDictionaryCellsOfRow = 4;

// Dictionaries of dummies and vectors; columns with the same codes in the same order share one.
class Dictionaries {
 public:
  explicit Dictionaries(const EncodedCells& cells) : cells_(cells) {}

  Result<Matrix> Of(EncodedForm form, int64_t width, const Matrix& codes) {
    std::vector<int64_t> places;  // -1: no entry.
    for (int64_t tuple = 0; tuple < codes.rows(); ++tuple) {
      const double code = codes.data()[tuple];
      places.push_back(code >= 1 && code <= static_cast<double>(PlacesOf(form, width))
                           ? static_cast<int64_t>(code) - 1
                           : -1);
    }
    Matrix& known = made_[{form, width, places}];
    if (known.cells() > 0) return known;
    HEDDLE_ASSIGN_OR_RETURN(Matrix made, FilledMatrix(codes.rows(), width, 0));
    double* row = made.mutable_data();
    for (const int64_t place : places) {
      if (place >= 0 && form == EncodedForm::kDummy) row[place] = 1;
      if (place >= 0 && form == EncodedForm::kVector) {
        HEDDLE_ASSIGN_OR_RETURN(const Matrix vector, ToDense(cells_.embedding->Rows(place, place + 1)));
        for (int64_t k = 0; k < width; ++k)
          if (vector.data()[k] != 0) row[k] = vector.data()[k];
      }
      row += width;
    }
    return known = std::move(made);
  }

 private:
  int64_t PlacesOf(EncodedForm form, int64_t width) const {
    return form == EncodedForm::kDummy ? width : cells_.embedding->rows();
  }

  const EncodedCells& cells_;
  std::map<std::tuple<EncodedForm, int64_t, std::vector<int64_t>>, Matrix> made_;
};

// What column j of the frame becomes, as entries.
Result<ColumnGroup> EntriesOf(const EncodedCells& cells, EncodedForm form, size_t j, int64_t width,
                              int64_t frame_rows) {
  EncodedCells one{.codes = {}, .words = {cells.words[j]}, .embedding = cells.embedding};
  if (form == EncodedForm::kCounts) {
    HEDDLE_ASSIGN_OR_RETURN(one.codes, Matrix::Dense(1, frame_rows));
  } else {
    auto codes = std::make_shared<ColumnGroups>();
    codes->rows = frame_rows;
    codes->columns = 1;
    codes->groups = {cells.groups[j]};
    HEDDLE_ASSIGN_OR_RETURN(const Matrix column, AsDense(Matrix::OfGroups(std::move(codes))));
    one.codes = column.Reshaped(1, frame_rows);
  }
  EncodedLayout layout;
  layout.first = {0, width};
  layout.forms = {form};
  ColumnGroup group;
  group.encoding = Encoding::kUncompressed;
  HEDDLE_ASSIGN_OR_RETURN(group.dictionary, AssembleEncoded(one, layout, std::nullopt, Format::kSparse));
  return group;
}

bool HasTuples(const ColumnGroup& group) {
  return group.encoding != Encoding::kEmpty && group.encoding != Encoding::kUncompressed;
}

}  // namespace

Result<ColumnGroup> GroupOfCodes(Matrix codes, Format format, const KernelContext& context) {
  if (format == Format::kSparse) {
    double* const cells = codes.mutable_data();
    for (int64_t i = 0; i < codes.rows(); ++i) cells[i] += 0.0;
  }
  CompressionPlan plan;
  plan.groups = {{.columns = {0}, .encoding = Encoding::kDenseCodes}};
  HEDDLE_ASSIGN_OR_RETURN(ColumnGroups groups, CompressColumns(codes, plan, context));
  return std::move(groups.groups[0]);
}

Result<Matrix> AssembleGroups(const EncodedCells& cells, const EncodedLayout& layout, int64_t frame_rows,
                              const std::optional<std::vector<int64_t>>& rows, const KernelContext& context) {
  auto result = std::make_shared<ColumnGroups>();
  result->rows = frame_rows;
  result->columns = layout.columns();
  Dictionaries dictionaries(cells);
  for (size_t j = 0; j < layout.forms.size(); ++j) {
    if (IsCancelled(context.cancelled)) return Cancelled("cancelled");
    const int64_t width = layout.WidthOf(j);
    if (width == 0) continue;
    const EncodedForm form = layout.forms[j];
    ColumnGroup group = cells.groups[j];
    const double dictionary_cells = static_cast<double>(group.tuples()) * static_cast<double>(width);
    if (form != EncodedForm::kNumber) {
      if (form != EncodedForm::kCounts && HasTuples(group) &&
          dictionary_cells <= kDictionaryCellsOfRow * static_cast<double>(frame_rows)) {
        HEDDLE_ASSIGN_OR_RETURN(group.dictionary, dictionaries.Of(form, width, group.dictionary));
      } else if (form == EncodedForm::kCounts || group.encoding != Encoding::kEmpty) {
        HEDDLE_ASSIGN_OR_RETURN(group, EntriesOf(cells, form, j, width, frame_rows));
      }
    }
    group.columns.resize(static_cast<size_t>(width));
    std::iota(group.columns.begin(), group.columns.end(), static_cast<int32_t>(layout.first[j]));
    result->groups.push_back(std::move(group));
  }
  const Matrix all = Matrix::OfGroups(std::move(result));
  if (!rows) return all;
  return GatherGroupRows(all, *rows, context);
}

std::string WhyNoGroups(const Shape& whole, Format format, const Scalar* reads) {
  // Memory is saved, time is not.
  if (format == Format::kSparse)
    return reads == nullptr ? std::string() : "rows of few entries are read as fast as they are";
  return whole.IsKnown() ? WhyTooSmall(KnownBytes(ValueInfo::OfMatrix(whole)), reads) : std::string();
}

std::string WhyByCells(const Matrix& encoded, int64_t whole_rows, Format format, const Scalar* reads,
                       int64_t* plain_bytes) {
  const ColumnGroups& groups = encoded.groups();
  if (format == Format::kSparse) {
    constexpr int64_t kEntryBytes = sizeof(double) + sizeof(int32_t);
    *plain_bytes =
        encoded.CountNonzeros() * kEntryBytes + (encoded.rows() + 1) * static_cast<int64_t>(sizeof(int64_t));
    // Cells that are read by entries beside others that are read by codes are decoded for each other.
    if (std::any_of(groups.groups.begin(), groups.groups.end(),
                    [](const ColumnGroup& group) { return group.encoding == Encoding::kUncompressed; }))
      return "a column has more codes than rows pay for";
  } else {
    *plain_bytes = encoded.cells() * static_cast<int64_t>(sizeof(double));
  }
  const double parts =
      static_cast<double>(whole_rows) / static_cast<double>(std::max<int64_t>(encoded.rows(), 1));
  const auto whole_bytes = static_cast<int64_t>(static_cast<double>(*plain_bytes) * std::max(1.0, parts));
  if (std::string why = WhyTooSmall(whole_bytes, reads); !why.empty()) return why;
  const auto plain = static_cast<double>(std::max<int64_t>(*plain_bytes, 1));
  const double share = static_cast<double>(groups.bytes()) / plain;
  // Rows of few entries are read as fast as codes, so that what counts is memory.
  constexpr double kMostShare = 0.9;
  if (format == Format::kSparse)
    return share < kMostShare ? "" : fmt::format("it would take {:.2f} of its bytes", share);
  CompressionPlan plan;
  plan.plain_cost = PlainReadCost(plain, static_cast<double>(encoded.cells()), /*is_sparse=*/false);
  const double cost = ReadCost(groups);
  return plan.PaysWith(cost)
             ? ""
             : fmt::format("it would take {:.2f} of its bytes, and {:.2f} of the time to read it", share,
                           cost / plan.plain_cost);
}

}  // namespace heddle::ops
