// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/write/write_pieces.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ops/base/held_bytes.h"
#include "ops/cells/storage.h"
#include "ops/io/formats/write/joint_write.h"
#include "ops/io/formats/write/row_writer.h"
#include "ops/io/formats/write/visit_rows.h"
#include "ops/io/formats/write_stages.h"
#include "ops/panels/view_panels.h"

namespace heddle::ops {
namespace {

// Calls take(begin, rows) piece by piece.
template <typename Take>
Status VisitPieces(const PiecedValue& value, const Take& take) {
  for (int64_t begin = 0; begin < value.shape.rows;) {
    const int64_t end = std::min(begin + value.rows_at_once, value.shape.rows);
    HEDDLE_ASSIGN_OR_RETURN(const Value rows, value.read(begin, end));
    HEDDLE_RETURN_IF_ERROR(take(begin, rows));
    begin = end;
  }
  return OkStatus();
}

ValueInfo InfoOf(const PiecedValue& value) {
  return value.schema == nullptr ? ValueInfo::OfMatrix(value.shape)
                                 : ValueInfo::OfFrame(value.shape.rows, value.schema);
}

}  // namespace

Status WritePieces(const PiecedValue& value, const std::string& path, const WriteOptions& options,
                   Files& files) {
  const ValueInfo info = InfoOf(value);
  if (options.parts > 0 || !HasSections(info, options.format)) {
    HEDDLE_ASSIGN_OR_RETURN(const Value whole, value.read(0, value.shape.rows));
    return WriteValue(whole, path, options, files);
  }
  std::optional<KnownRows> known;
  if (!CanAppendRows(info, &path, options)) {
    ValueInfo typed = info;
    known.emplace();
    CountedCells cells;
    HEDDLE_RETURN_IF_ERROR(VisitPieces(value, [&](int64_t begin, const Value& rows) {
      if (rows.IsMatrix()) typed.element_type = rows.matrix().element_type();
      known->totals.Add(TotalsOf(rows, begin, options));
      cells.Add(CellsOf(rows, options));
      return OkStatus();
    }));
    HEDDLE_ASSIGN_OR_RETURN(known->coding, CodingOf(typed, known->totals, std::move(cells), options));
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<RowWriter> writer,
                          RowWriter::Begin(info, path, options, known, files));
  HEDDLE_RETURN_IF_ERROR(VisitPieces(value, [&](int64_t, const Value& rows) { return writer->Add(rows); }));
  return writer->Finish();
}

Status WriteCompressed(const KernelCall& call, const std::string& path, const WriteOptions& options) {
  const Matrix& matrix = call.inputs[0]->matrix();
  const int64_t row_bytes = std::max<int64_t>(1, matrix.columns() * BytesOf(matrix.element_type()));
  const bool is_sparse = call.input_infos[0].format == Format::kSparse;
  return WritePieces({.shape = matrix.shape(),
                      .rows_at_once = std::max<int64_t>(1, kMostHeldByWrite / row_bytes),
                      .read = [&](int64_t begin, int64_t end) -> Result<Value> {
                        const Matrix part = matrix.Rows(begin, end);
                        HEDDLE_ASSIGN_OR_RETURN(Matrix rows, is_sparse ? AsSparse(part) : AsDense(part));
                        return Value(std::move(rows));
                      }},
                     path, options, *call.context.files);
}

Status WritePanels(const KernelCall& call, const std::string& path, const WriteOptions& options) {
  const std::shared_ptr<const RowPanels> panels = DecodedPanels(call.inputs[0]->panels());
  ValueInfo info = call.input_infos[0];
  info.shape = panels->shape();
  const int64_t held = HeldBytesOf(call.node, kMostHeldByWrite);
  if (options.parts > 0) return WriteJointly(Value(panels), info, path, options, held, *call.context.files);
  return WritePieces({.shape = info.shape,
                      .schema = info.schema,
                      .rows_at_once = RowsAtOnce(info, held),
                      .read = [panels](int64_t begin, int64_t end) { return panels->Rows(begin, end); }},
                     path, options, *call.context.files);
}

}  // namespace heddle::ops
