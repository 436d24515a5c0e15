// SPDX-License-Identifier: Apache-2.0
#include "ops/base/stages.h"
#include "ops/catalog.h"
#include "ops/cells/stored_inputs.h"
#include "ops/io/files/file_versions.h"
#include "ops/io/formats/file_format.h"
#include "ops/io/formats/list_files.h"
#include "ops/io/formats/read_stages.h"
#include "ops/io/formats/share_rows.h"
#include "ops/io/formats/shared_look.h"
#include "ops/io/formats/write_stages.h"

namespace heddle::ops {
namespace {

/// read(path): a matrix, frame or scalar from a file (language reference 4.1). With data_type="list", which
/// only steps on lists ask for, the text that names the elements in a folder (ops/io/formats/list_files.h).
///
/// Shapes:  those of the file, found by a first look when the block is entered.
/// Error:   none; numbers are read to the nearest double.
/// Cost:    one scan to find lines, one pass to parse; every rank parses its own rows, or a share of the file
///          whose cells it sends to the ranks that keep them (ops/io/formats/read_stages.h).
Result<ValueInfo> InferRead(const InferContext& context) {
  const Node& node = context.node;
  if (context.inputs[0].IsTabular())
    return InvalidArgument("read: the path is a string, not a {}", Name(context.inputs[0].data_type));
  if (FileTypeOf(node).data_type == DataType::kList) return ValueInfo::OfScalar(ValueType::kString);
  if (context.files == nullptr || context.scalars[0] == nullptr) {
    FileType type = FileTypeOf(node);
    // Metadata may say which scalar it is.
    if (context.scalars[0] == nullptr && node.FindAttribute("value_type") == nullptr)
      type.value_type = ValueType::kUnknown;
    return ValueInfo::OfDeclared(type.data_type, type.value_type);
  }
  HEDDLE_ASSIGN_OR_RETURN(const ReadOptions options,
                          ResolveReadOptions(node, context.scalars[0]->ToText(), *context.files));
  if (options.data_type == DataType::kScalar) return ValueInfo::OfScalar(options.value_type);
  HEDDLE_ASSIGN_OR_RETURN(const FileSummary summary, Summarize(options, *context.files));
  if (options.data_type == DataType::kFrame) return ValueInfo::OfFrame(summary.shape.rows, summary.schema);
  return ValueInfo::OfMatrix(summary.shape, summary.format);
}

/// lookAtFile(): what read(path) asks for first, found by all ranks, each in its share of the file, and known
/// to each of them then (ops/io/formats/shared_look.h). The session runs it before a block that reads a large
/// file. The result, a row for each share, tells nothing.
Result<ValueInfo> InferLook(const InferContext& context) {
  return ValueInfo::OfMatrix({context.node.FindAttribute("shares")->AsInteger(), 1});
}

RowRule ReduceRows(const Node&, std::span<const ValueInfo>) { return RowRule::kReduce; }

Result<Value> RunLook(const KernelCall& call) {
  Files& files = *call.context.files;
  const int64_t shares = call.node.info.shape.rows;
  HEDDLE_ASSIGN_OR_RETURN(ReadOptions options, ResolveReadOptions(call.node, call.node.Text("path"), files));
  options.cancelled = call.context.cancelled;
  if (call.phase == Phase::kPartial) {
    HEDDLE_ASSIGN_OR_RETURN(
        Matrix rows, ShareAsRows(call.row_begin, LookAtShare(options, {call.row_begin, shares}, files)));
    return Value(std::move(rows));
  }
  if (call.phase == Phase::kFinish) {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> found, SharesInRows(call.inputs[0]->matrix()));
    AddSummary(options, found, files);
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix nothing, FilledMatrix(shares, 1, 0));
  return Value(std::move(nothing));
}

Result<Value> RunRead(const KernelCall& call) {
  Files& files = *call.context.files;
  const std::string path = call.inputs[0]->scalar().ToText();
  if (FileTypeOf(call.node).data_type == DataType::kList) {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<ListedElement> elements, ListElements(path, files));
    HEDDLE_RETURN_IF_ERROR(CheckUnchanged(path, files));
    return Value(Scalar(ToText(elements)));
  }
  HEDDLE_ASSIGN_OR_RETURN(ReadOptions options, ResolveReadOptions(call.node, path, files));
  options.cancelled = call.context.cancelled;
  options.by_groups = true;
  if (options.data_type == DataType::kScalar) {
    HEDDLE_ASSIGN_OR_RETURN(Scalar scalar, ReadScalar(options, files));
    HEDDLE_RETURN_IF_ERROR(CheckUnchanged(path, files));
    return Value(std::move(scalar));
  }
  HEDDLE_ASSIGN_OR_RETURN(const FileSummary summary, SummaryAsPlanned(call.node, options, files));
  if (call.node.info.IsFrame()) {
    HEDDLE_ASSIGN_OR_RETURN(Frame frame,
                            ReadFrameRows(options, summary, call.row_begin, call.row_end, files));
    HEDDLE_RETURN_IF_ERROR(CheckUnchanged(path, files));
    return Value(std::move(frame));
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix matrix, ReadRows(options, summary, call.row_begin, call.row_end, files));
  HEDDLE_RETURN_IF_ERROR(CheckUnchanged(path, files));
  return Value(std::move(matrix));
}

// Rows of text and of what is compressed cost more than those of a spill file.
Result<RowOrigin> OriginOfRead(const Node& node, std::span<const Value* const> inputs,
                               const KernelContext& context) {
  const std::string path = inputs[0]->scalar().ToText();
  HEDDLE_ASSIGN_OR_RETURN(const ReadOptions options, ResolveReadOptions(node, path, *context.files));
  HEDDLE_ASSIGN_OR_RETURN(std::string fingerprint, OriginOfRows(path, *context.files));
  const bool is_costly = options.format != FileFormat::kBinary && options.format != FileFormat::kNpy;
  return RowOrigin{is_costly, std::move(fingerprint)};
}

RowRule RowRuleOfRead(const Node& node, std::span<const ValueInfo>) {
  return SendsCells(node) ? RowRule::kWhole : RowRule::kGenerate;
}

/// write(x, path): a matrix, frame or scalar into a file, whole or not at all, and its .mtd (language
/// reference 4.2). With data_type="list", again of steps only, x names the elements that are in a folder now.
Result<ValueInfo> InferWrite(const InferContext& context) {
  if (context.inputs[1].IsTabular())
    return InvalidArgument("write: the path is a string, not a {}", Name(context.inputs[1].data_type));
  if (context.inputs.size() > 2 && context.inputs[2].IsTabular())
    return InvalidArgument("write: the format is a string, not a {}", Name(context.inputs[2].data_type));
  const Scalar* const format = context.scalars.size() > 2 ? context.scalars[2] : nullptr;
  HEDDLE_RETURN_IF_ERROR(WriteOptionsOf(context.node, format).status());
  return ValueInfo{};
}

bool IsCompressed(const Value& value) { return value.IsMatrix() && value.matrix().IsCompressed(); }

Result<Value> RunWrite(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const WriteOptions options, WriteOptionsOf(call.node, call.inputs, call.context));
  const std::string path = call.inputs[1]->scalar().ToText();
  HEDDLE_RETURN_IF_ERROR(KeepRowsOf(path, call.context));
  const bool of_list = FileTypeOf(call.node).data_type == DataType::kList;
  const Status status = of_list ? FinishList(call.inputs[0]->scalar().ToText(), path, *call.context.files)
                        : call.phase == Phase::kFinish ? FinishStagedWrite(call, path, options)
                        : call.inputs[0]->IsPanels()   ? WritePanels(call, path, options)
                        : IsCompressed(*call.inputs[0])
                            ? WriteCompressed(call, path, options)
                            : WriteValue(*call.inputs[0], path, options, *call.context.files);
  CountWriteOf(path, call.context);
  HEDDLE_RETURN_IF_ERROR(status);
  return Value();
}

Result<std::optional<Value>> RunWriteOfGroups(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(Value nothing, RunWrite(call));
  return std::optional<Value>(std::move(nothing));
}

constexpr Operator kOperators[] = {
    {.name = "lookAtFile",
     .min_inputs = 0,
     .max_inputs = 0,
     .infer = InferLook,
     .row_rule = ReduceRows,
     .run = RunLook,
     .may_fail = true,
     .pure = false,
     .takes_singles = TakesAnySingles,
     .files = true},
    {.name = "read",
     .form = CallForm::kRead,
     .parameters =
         "path @format? @data_type? @value_type? @rows? @cols? @nnz? @header? @sep? @fill? "
         "@default? @naStrings? @schema? @rows_in_block? @cols_in_block? @indSep? @dataset? @transposed? "
         "@zero_based?",
     .aliases = "readMM",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = InferRead,
     .row_rule = RowRuleOfRead,
     .row_origin = OriginOfRead,
     .staged = &kStagedRead,
     .run = RunRead,
     .may_fail = true,
     .pure = false,
     .role = Role::kRead,
     .files = true},
    {.name = "write",
     .form = CallForm::kWrite,
     .parameters =
         "x path format_of_run? @format? @data_type? @value_type? @sep? @header? @sparse? @description? "
         "@rows_in_block? @cols_in_block? @indSep? @dataset? @compression? @parts?",
     .min_inputs = 2,
     .max_inputs = 3,
     .infer = InferWrite,
     .input_use = FirstByRows,
     .panel_use = PanelUseOfWrite,
     .staged = &kStagedWrite,
     .run = RunWrite,
     .run_compressed = RunWriteOfGroups,
     .effect = true,
     .may_fail = true,
     .pure = false,
     .takes_singles = TakesAnySingles,
     .storages = kAnyStorage,
     .takes_frames = true,
     .role = Role::kWrite,
     .files = true},
};

}  // namespace

std::span<const Operator> FileOperators() { return kOperators; }

}  // namespace heddle::ops
