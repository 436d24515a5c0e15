// SPDX-License-Identifier: Apache-2.0
#include "ops/frame/part_failures.h"

#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace heddle::ops {
namespace {

enum ReportColumn { kPlace, kStep, kCode, kMessage, kNotes, kReportColumns };
constexpr char kBetweenNotes = '\n';

Result<Frame> FrameOfReport(std::vector<Column> columns) {
  Schema schema;
  for (const Column& column : columns) schema.types.push_back(column.type());
  return Frame(std::make_shared<const Schema>(std::move(schema)), std::move(columns));
}

Status WithNotes(Status status, std::string_view notes) {
  while (!notes.empty()) {
    const size_t end = notes.find(kBetweenNotes);
    status = status.WithNote(std::string(notes.substr(0, end)));
    notes = end == notes.npos ? std::string_view() : notes.substr(end + 1);
  }
  return status;
}

}  // namespace

Result<Value> ReportOf(std::span<const PartFailure> failures) {
  std::vector<int64_t> places, steps, codes;
  std::vector<std::string_view> messages;
  std::vector<std::string> notes;
  for (const PartFailure& failure : failures) {
    if (failure.status.ok()) continue;
    if (failure.status.code() != StatusCode::kFailedPrecondition && !failure.is_of_data)
      return failure.status;
    places.push_back(failure.place);
    steps.push_back(failure.step);
    codes.push_back(static_cast<int64_t>(failure.status.code()));
    messages.push_back(failure.status.message());
    std::string& lines = notes.emplace_back();
    for (const std::string& note : failure.status.notes()) {
      if (!lines.empty()) lines += kBetweenNotes;
      lines += note;
    }
  }
  const std::vector<std::string_view> note_texts(notes.begin(), notes.end());
  std::vector<Column> columns(kReportColumns);
  HEDDLE_ASSIGN_OR_RETURN(columns[kPlace], Column::OfIntegers(places));
  HEDDLE_ASSIGN_OR_RETURN(columns[kStep], Column::OfIntegers(steps));
  HEDDLE_ASSIGN_OR_RETURN(columns[kCode], Column::OfIntegers(codes));
  HEDDLE_ASSIGN_OR_RETURN(columns[kMessage], Column::OfTexts(messages));
  HEDDLE_ASSIGN_OR_RETURN(columns[kNotes], Column::OfTexts(note_texts));
  HEDDLE_ASSIGN_OR_RETURN(Frame report, FrameOfReport(std::move(columns)));
  return Value(std::move(report));
}

Status FirstReportedFailure(const Value& reports) {
  const Frame& frame = reports.frame();
  if (frame.rows() == 0) return OkStatus();
  const Column places = frame.column(kPlace), steps = frame.column(kStep);
  int64_t first = 0;
  for (int64_t i = 1; i < frame.rows(); ++i)
    if (std::tuple(places.integers()[i], steps.integers()[i]) <
        std::tuple(places.integers()[first], steps.integers()[first]))
      first = i;
  const Column codes = frame.column(kCode), messages = frame.column(kMessage), notes = frame.column(kNotes);
  const auto code = static_cast<StatusCode>(codes.integers()[first]);
  return WithNotes(Status(code, std::string(messages.TextAt(first))), notes.TextAt(first));
}

Status MakeReported(Result<Value> rows, int64_t place, int64_t step, std::span<Value> outputs) {
  const PartFailure failure{place, step, rows.status()};
  HEDDLE_ASSIGN_OR_RETURN(outputs[1], ReportOf({&failure, 1}));
  outputs[0] = rows.ok() ? *std::move(rows) : Value(Frame());
  return OkStatus();
}

Status GiveReported(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_RETURN_IF_ERROR(FirstReportedFailure(call.Received(1)));
  outputs[0] = call.Received(0);
  return OkStatus();
}

}  // namespace heddle::ops
