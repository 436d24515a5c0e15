// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/matrix_market.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>
#include <tuple>

#include "core/text/utf8.h"
#include "ops/io/formats/lines.h"

namespace heddle::ops {
namespace {

std::string TakeLowerWord(std::string_view* line) {
  std::string word(TakeBlankWord(line));
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word;
}

// The banner: %%MatrixMarket matrix LAYOUT FIELD SYMMETRY.
Status ReadBanner(const std::string& path, std::string_view line, MatrixMarketHeader* header) {
  if (!IsMatrixMarketBanner(line))
    return DataLoss("cannot read '{}': line 1 is not a MatrixMarket header", path)
        .WithNote("it is: %%MatrixMarket matrix coordinate real general");
  TakeBlankWord(&line);
  const std::string object = TakeLowerWord(&line);
  const std::string layout = TakeLowerWord(&line);
  const std::string field = TakeLowerWord(&line);
  std::string symmetry = TakeLowerWord(&line);
  if (symmetry.empty()) symmetry = "general";
  const auto refuse = [&](std::string_view why) {
    return DataLoss("cannot read '{}': it is a MatrixMarket {} ({} {} {}): {}", path, object, layout, field,
                    symmetry, why)
        .WithNote(
            "Heddle reads matrices: coordinate or array; real, integer or pattern; general, symmetric, "
            "skew-symmetric or hermitian");
  };
  if (object != "matrix") return refuse("that is no matrix");
  if (layout != "coordinate" && layout != "array") return refuse("the layout is not known");
  if (field == "complex") return refuse("its cells are complex numbers");
  if (field != "real" && field != "double" && field != "integer" && field != "unsigned-integer" &&
      field != "pattern")
    return refuse("the kind of its cells is not known");
  header->coordinates = layout == "coordinate";
  header->pattern = field == "pattern";
  if (header->pattern && !header->coordinates) return refuse("an array has values");
  if (symmetry == "symmetric" || symmetry == "hermitian")
    header->symmetry = Symmetry::kSymmetric;
  else if (symmetry == "skew-symmetric")
    header->symmetry = Symmetry::kSkew;
  else if (symmetry != "general")
    return refuse("the symmetry is not known");
  if (header->pattern && header->symmetry == Symmetry::kSkew) return refuse("a pattern has no signs");
  return OkStatus();
}

}  // namespace

std::string_view TakeBlankWord(std::string_view* line) {
  *line = Trim(*line);
  size_t end = 0;
  while (end < line->size() && !IsBlank((*line)[end])) ++end;
  const std::string_view word = line->substr(0, end);
  line->remove_prefix(end);
  return word;
}

bool TakeInteger(std::string_view* line, int64_t* value) {
  const std::string_view word = TakeBlankWord(line);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *value);
  return error == std::errc() && end == word.data() + word.size() && !word.empty();
}

bool IsMatrixMarketBanner(std::string_view line) { return TakeLowerWord(&line) == "%%matrixmarket"; }

Result<MatrixMarketHeader> ReadMatrixMarketHeader(const ReadOptions& options, const TextFile& text) {
  MatrixMarketHeader header;
  LineReader reader(text);
  std::string_view line;
  reader.Next(&line);
  HEDDLE_RETURN_IF_ERROR(reader.status());
  HEDDLE_RETURN_IF_ERROR(ReadBanner(options.path, line, &header));
  header.lines = 1;
  do {
    if (!reader.Next(&line)) {
      HEDDLE_RETURN_IF_ERROR(reader.status());
      return DataLoss("cannot read '{}': the size line is missing", options.path);
    }
    ++header.lines;
  } while (Trim(line).empty() || Trim(line).front() == '%');
  header.body = reader.offset();
  const std::string_view whole = Trim(line);
  Shape shape;
  if (!TakeInteger(&line, &shape.rows) || !TakeInteger(&line, &shape.columns) || shape.rows < 0 ||
      shape.columns < 0 || (header.coordinates && !TakeInteger(&line, &header.entries)) ||
      !Trim(line).empty())
    return DataLoss("cannot read '{}': line {}: '{}' is not a size line", options.path, header.lines,
                    ShownInLine(whole, 60))
        .WithNote(header.coordinates ? "a size line of coordinates is: rows columns entries"
                                     : "a size line of an array is: rows columns");
  if (header.symmetry != Symmetry::kGeneral && shape.rows != shape.columns)
    return DataLoss("cannot read '{}': a {} matrix is square, the file says {}", options.path,
                    header.symmetry == Symmetry::kSkew ? "skew-symmetric" : "symmetric", shape);
  if (!header.coordinates) {
    // Of a symmetric array the file has the lower triangle, of a skew-symmetric one without the diagonal.
    int64_t cells = shape.Cells();
    if (header.symmetry == Symmetry::kSymmetric && cells != INT64_MAX) cells = (cells + shape.rows) / 2;
    if (header.symmetry == Symmetry::kSkew && cells != INT64_MAX) cells = (cells - shape.rows) / 2;
    header.entries = cells;
  }
  for (const auto& [name, said, found] :
       {std::tuple{"rows", options.rows, shape.rows}, std::tuple{"cols", options.columns, shape.columns}})
    if (said != kUnknown && said != found)
      return DataLoss("cannot read '{}': {}={} was asked for, the file says {}", options.path, name, said,
                      found);
  header.shape = shape;
  return header;
}

}  // namespace heddle::ops
