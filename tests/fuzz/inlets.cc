// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/inlets.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>

#include "compiler/compile.h"
#include "compiler/parse/parser.h"
#include "core/memory/counted_heap.h"
#include "core/text/utf8.h"
#include "core/values/column_groups_bytes.h"
#include "ops/base/kernel.h"
#include "ops/catalog.h"
#include "ops/io/exchange/convert_file.h"
#include "ops/io/exchange/inspect_file.h"
#include "ops/io/formats/file_format.h"
#include "ops/io/formats/libraries/format_module.h"
#include "ops/map/java_expression.h"
#include "ops/map/java_regex.h"
#include "ops/map/moving_average.h"
#include "ops/map/syntactic_patterns.h"
#include "ops/text/java_text.h"
#include "ops/transform/spec.h"
#include "tests/fuzz/inlet_seeds.h"
#include "tests/support/process.h"

namespace heddle::fuzz {
namespace {

using Attributes = std::vector<std::pair<std::string, Scalar>>;

// Every cell is looked at, as an operator would.
Status Use(const Matrix& matrix) {
  double sum = 0;
  if (!matrix.IsSparse()) {
    for (int64_t i = 0; i < matrix.cells(); ++i) sum += matrix.data()[i];
  } else {
    for (int64_t row = 0; row < matrix.rows(); ++row) {
      int32_t before = -1;
      for (int64_t k = matrix.row_offsets()[row]; k < matrix.row_offsets()[row + 1]; ++k) {
        const int32_t column = matrix.column_indexes()[k];
        if (column <= before || column >= matrix.columns())
          return Internal("column {} follows column {} in a matrix of {}", column, before, matrix.shape());
        before = column;
        sum += matrix.values()[k];
      }
    }
  }
  return sum == 0.12345 ? Internal("no cells have this sum") : OkStatus();
}

Status Use(const Frame& frame) {
  size_t bytes = 0;
  std::string text;
  for (int64_t column = 0; column < frame.columns(); ++column) {
    for (int64_t row = 0; row < frame.rows(); ++row) {
      text.clear();
      if (!frame.IsMissing(row, column)) frame.AppendText(row, column, &text);
      bytes += text.size();
    }
  }
  return bytes == ~size_t{0} ? Internal("no frame has so many texts") : OkStatus();
}

// The files of a folder in which "f" holds these bytes, and "f.mtd" these metadata.
ops::Files& FilesWith(std::string_view bytes, const std::string& metadata) {
  static const testing_support::TemporaryFolder folder;
  static const std::unique_ptr<ops::Files> files = ops::MakeFiles(folder.path());
  testing_support::WriteText(folder.path() + "/f", std::string(bytes));
  std::filesystem::remove(folder.path() + "/f.mtd");
  if (!metadata.empty()) testing_support::WriteText(folder.path() + "/f.mtd", metadata);
  return *files;
}

// The file as the script would read it that has these attributes, whole and its second half alone.
Status ReadFile(std::string_view bytes, const std::string& metadata, const Attributes& attributes) {
  ops::Files& files = FilesWith(bytes, metadata);
  Node node;
  for (const auto& [key, value] : attributes) node.SetAttribute(key, value);
  HEDDLE_ASSIGN_OR_RETURN(const ops::ReadOptions options, ops::ResolveReadOptions(node, "f", files));
  if (options.data_type == DataType::kScalar) return ops::ReadScalar(options, files).status();
  HEDDLE_ASSIGN_OR_RETURN(const ops::FileSummary summary, ops::Summarize(options, files));
  const int64_t rows = summary.shape.rows;
  for (const int64_t first : {int64_t{0}, rows / 2}) {
    if (options.data_type == DataType::kFrame) {
      HEDDLE_ASSIGN_OR_RETURN(const Frame frame, ops::ReadFrameRows(options, summary, first, rows, files));
      HEDDLE_RETURN_IF_ERROR(Use(frame));
    } else {
      HEDDLE_ASSIGN_OR_RETURN(const Matrix matrix, ops::ReadRows(options, summary, first, rows, files));
      HEDDLE_RETURN_IF_ERROR(Use(matrix));
    }
  }
  return OkStatus();
}

// As `heddle inspect` and `heddle convert` do: a table becomes lines of JSON.
Status InspectAndConvert(std::string_view bytes) {
  ops::Files& files = FilesWith(bytes, "");
  HEDDLE_RETURN_IF_ERROR(ops::InspectFile("f", {}, files).status());
  ops::ConvertOptions options;
  options.to = ops::FileFormat::kJsonl;
  return ops::ConvertFile("f", "g", options, files).status();
}

Inlet OfFile(std::string name, Attributes attributes, std::vector<std::string> seeds) {
  return {std::move(name), [attributes](std::string_view bytes) { return ReadFile(bytes, "", attributes); },
          std::move(seeds), nullptr};
}

// A format that writes what it reads makes its own seeds; nothing for one that this build does not have.
void AddFormat(const std::string& format, std::vector<Inlet>* inlets) {
  if (!ops::ParseFileFormat(format).ok()) return;
  for (const bool is_frame : {false, true}) {
    std::vector<std::string> seeds = WrittenSeeds(format, is_frame);
    if (seeds.empty()) continue;
    Attributes attributes = {{"format", Scalar(format)}};
    if (is_frame) attributes.emplace_back("data_type", Scalar("frame"));
    inlets->push_back(OfFile(format + (is_frame ? "_frame" : ""), attributes, std::move(seeds)));
    if (format == "binary") inlets->back().repair = RepairBinary;
    inlets->back().is_slow = format == "hdf5";
  }
}

// A file of another tool, and an array of it; nothing where this build lacks the library.
struct FileOfData {
  std::string name, dataset;
};

void AddArrays(const std::string& name, const std::string& format, const FileOfData& file,
               std::vector<Inlet>* inlets) {
  const bool is_hdf5 = format == "hdf5" || file.name == "matlab73.mat";
  if ((is_hdf5 && !ops::OpenHdf5Module().ok()) || (format == "mat" && !ops::OpenMatModule().ok())) return;
  const std::string bytes =
      testing_support::ReadText(HEDDLE_SOURCE_DIR "/tests/unit/ops/io/formats/data/" + file.name);
  inlets->push_back(OfFile(name,
                           {{"format", Scalar(format)},
                            {"dataset", Scalar(file.dataset)},
                            {"transposed", Scalar(format != "octave")}},
                           {bytes}));
  inlets->back().is_slow = is_hdf5 || format == "mat";
}

// What an operator of one frame and a spec makes of a frame of three rows.
Status RunWithSpec(const std::string& name, std::string_view spec) {
  const ops::Operator& op = *ops::FindOperator(name);
  std::vector<Column> columns;
  columns.push_back(*Column::OfTexts(std::array<std::string_view, 3>{"the cat, the dog", "", "aaaab"}));
  columns.push_back(*Column::OfIntegers(std::array<int64_t, 3>{30, -1, 30}));
  columns.push_back(*Column::OfDoubles(std::array<double, 3>{1.5, 0, -2}));
  const auto schema = std::make_shared<const Schema>(
      Schema{{ColumnType::kString, ColumnType::kInteger64, ColumnType::kFloat64}, {"name", "age", "height"}});
  const Value inputs[] = {Value(Frame(schema, std::move(columns))), Value(Scalar(std::string(spec)))};
  const Value* const pointers[] = {&inputs[0], &inputs[1]};
  const ValueInfo infos[] = {ValueInfo::OfFrame(3, schema), ValueInfo::OfScalar(ValueType::kString)};
  const Scalar* const known[] = {nullptr, &inputs[1].scalar()};
  Node node;
  node.op = name;
  node.inputs = {0, 1};
  const ops::InferContext context{.node = node, .inputs = infos, .scalars = known};
  std::vector<ValueInfo> inferred(1);
  if (op.infer_several != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(inferred, op.infer_several(context));
    node.info = ValueInfo::OfTuple();
    node.results = inferred;
  } else {
    HEDDLE_ASSIGN_OR_RETURN(inferred[0], op.infer(context));
    node.info = inferred[0];
  }
  ops::KernelContext kernel;
  std::vector<Value> results(inferred.size());
  return ops::CatalogKernels().Run({.node = node,
                                    .phase = Phase::kWhole,
                                    .inputs = pointers,
                                    .input_infos = infos,
                                    .context = kernel,
                                    .op = &op},
                                   results);
}

Status ReadTransformSpec(std::string_view text) {
  HEDDLE_RETURN_IF_ERROR(ops::CheckTransformSpec("transformencode", text));
  static_cast<void>(ops::ColumnFunctionOf(text));
  return RunWithSpec("transformencode", text);
}

Status ReadTokenizeSpec(std::string_view text) { return RunWithSpec("tokenize", text); }

// As a function of texts and as one of numbers: it is right when one of them takes it.
Status ReadMap(std::string_view text) {
  static_cast<void>(ops::MovingAverage::Parse(text));
  static_cast<void>(ops::SyntacticPatterns::Parse(text));
  const auto apply = [&](ops::JavaType type, const ops::JavaValue& value) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const ops::JavaLambda lambda, ops::JavaLambda::Parse(text, type));
    HEDDLE_ASSIGN_OR_RETURN(const ops::JavaValue result,
                            lambda.Apply(std::vector<ops::JavaValue>(lambda.parameters(), value)));
    return ops::TextOf(result).size() == SIZE_MAX ? Internal("no text is so long") : OkStatus();
  };
  const Status of_texts = apply(ops::JavaType::kString, ops::JavaValue(u"1.5"));
  const Status of_numbers = apply(ops::JavaType::kDouble, ops::JavaValue(2.5));
  static_cast<void>(apply(ops::JavaType::kStrings, ops::JavaTexts{u"1.5", u"", u"a,b"}));
  return of_numbers.ok() ? of_numbers : of_texts;
}

// An expression, and behind its first line end a text in which it is looked for.
Status ReadRegularExpression(std::string_view bytes) {
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  const std::u16string text = ops::ToUtf16(bytes.substr(std::min(end + 1, bytes.size())));
  HEDDLE_ASSIGN_OR_RETURN(const ops::JavaRegex regex,
                          ops::JavaRegex::Parse(ops::ToUtf16(bytes.substr(0, end))));
  static_cast<void>(regex.MatchesAll(text));
  ops::JavaRegexSearch search(regex, text);
  HEDDLE_RETURN_IF_ERROR(search.status());
  for (size_t at = 0; at <= text.size();) {
    const std::optional<ops::JavaRegex::Match> match = search.Find(at);
    if (!match) break;
    const size_t first = (*match)[0], last = (*match)[1];
    if (first < at || last < first || last > text.size())
      return Internal("a match from {} to {} from {} on, of a text of length {}", first, last, at,
                      text.size());
    at = last > first ? last : last + 1;
  }
  return OkStatus();
}

Status ReadScript(std::string_view text) {
  static_cast<void>(compiler::EndsInsideStatement(text));
  compiler::Diagnostics diagnostics;
  compiler::CompileOptions options;
  options.any_arguments = true;
  options.types_only = true;
  const Status status = compiler::CompileScript(std::string(text), options, &diagnostics).status();
  // Each diagnostic is told by itself; together they may be long.
  for (const compiler::Diagnostic* found : diagnostics.Sorted(compiler::Severity::kError))
    return InvalidArgument("{}", diagnostics.Render(*found));
  return status;
}

// Bytes of a compressed matrix as processes and spill files pass them.
Status ReadColumnGroups(std::string_view bytes) {
  HEDDLE_ASSIGN_OR_RETURN(const Matrix matrix, UnflattenGroups(bytes));
  constexpr int64_t kMostCells = 100'000;
  // A few codes may stand for many rows.
  const int64_t rows = std::min(matrix.rows(), kMostCells / std::max<int64_t>(matrix.columns(), 1));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix first, ToDense(matrix.Rows(0, rows)));
  HEDDLE_RETURN_IF_ERROR(matrix.element_type() == ElementType::kFloat64 ? Use(first) : OkStatus());
  HEDDLE_ASSIGN_OR_RETURN(const Matrix last, ToDense(matrix.Rows(matrix.rows() - rows, matrix.rows())));
  return matrix.element_type() == ElementType::kFloat64 ? Use(last) : OkStatus();
}

std::vector<Inlet> MakeInlets() {
  const Attributes frame = {{"data_type", Scalar("frame")}, {"format", Scalar("csv")}};
  const auto with = [](Attributes attributes, const std::string& key, Scalar value) {
    attributes.emplace_back(key, std::move(value));
    return attributes;
  };
  std::vector<Inlet> inlets = {
      OfFile("guessed", {}, GuessedSeeds()),
      OfFile("csv", {{"format", Scalar("csv")}}, CsvSeeds()),
      OfFile("csv_header", {{"format", Scalar("csv")}, {"header", Scalar(true)}, {"sep", Scalar(";")}},
             CsvSeeds()),
      OfFile("csv_frame", frame, FrameSeeds()),
      OfFile("csv_frame_typed", with(frame, "schema", Scalar("string,int64,fp64,boolean")), FrameSeeds()),
      OfFile("text", {{"format", Scalar("text")}}, CellSeeds()),
      OfFile("text_frame", {{"format", Scalar("text")}, {"data_type", Scalar("frame")}}, CellSeeds()),
      OfFile("mm", {{"format", Scalar("mm")}}, MatrixMarketSeeds()),
      OfFile("libsvm", {{"format", Scalar("libsvm")}}, LibsvmSeeds()),
      OfFile("arff", {{"format", Scalar("arff")}}, ArffSeeds()),
      OfFile("gzip", {}, GzipSeeds()),
      OfFile("rds", {{"format", Scalar("rds")}}, RdsSeeds()),
      OfFile("rds_frame", {{"format", Scalar("rds")}, {"data_type", Scalar("frame")}}, RdsSeeds()),
      OfFile("scalar", {{"data_type", Scalar("scalar")}, {"value_type", Scalar("double")}},
             {"1.5\n", "-3", "NaN\n"}),
      {"metadata", [](std::string_view bytes) { return ReadFile("1,2\n3,4\n", std::string(bytes), {}); },
       MetadataSeeds(), nullptr},
      {"convert", InspectAndConvert, GuessedSeeds(), nullptr, /*is_slow=*/true},
      {"transform_spec", ReadTransformSpec, TransformSeeds(), nullptr},
      {"tokenize_spec", ReadTokenizeSpec, TokenizeSeeds(), nullptr},
      {"map", ReadMap, MapSeeds(), nullptr},
      {"regular_expression", ReadRegularExpression, RegularExpressionSeeds(), nullptr},
      {"column_groups", ReadColumnGroups, ColumnGroupSeeds(), nullptr},
      {"script", ReadScript, ScriptSeeds(), nullptr, /*is_slow=*/true},
  };
  // Those that are read only, and what Heddle itself does not write.
  AddArrays("mat", "mat", {"matlab5.mat", "S"}, &inlets);
  AddArrays("mat_of_octave", "mat", {"octave7.mat", "X"}, &inlets);
  AddArrays("mat_version_4", "mat", {"octave4.mat", "S"}, &inlets);
  AddArrays("mat_version_73", "mat", {"matlab73.mat", "X"}, &inlets);
  AddArrays("octave", "octave", {"octave.txt", "T"}, &inlets);
  AddArrays("hdf5_of_octave", "hdf5", {"octave.h5", "S"}, &inlets);
  AddArrays("hdf5_of_r", "hdf5", {"r.h5", "doubles"}, &inlets);
  AddArrays("hdf5_chunks", "hdf5", {"types.h5", "chunks"}, &inlets);
  for (const char* kind : {"csr", "coo", "dia", "blocks"})
    AddArrays(fmt::format("npz_{}", kind), "npz", {fmt::format("sparse_{}.npz", kind), ""}, &inlets);
  for (const char* format : {"binary", "npy", "npz", "jsonl", "arff", "hdf5"}) AddFormat(format, &inlets);
  return inlets;
}

double ProcessorSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

const std::vector<Inlet>& Inlets() {
  static const auto* const kInlets = new std::vector<Inlet>(MakeInlets());
  return *kInlets;
}

std::string JudgeInlet(const Inlet& inlet, std::string_view bytes) {
  constexpr double kMostSeconds = 1 * testing_support::kPatience;
  constexpr int kMostLines = 12;
  const double begin = ProcessorSeconds();
  const Status status = WithinMemory(inlet.name, [&] { return inlet.read(bytes); });
  const double seconds = ProcessorSeconds() - begin;
  if (seconds > kMostSeconds) return fmt::format("it took {:.1f} s of processor time", seconds);
  if (status.ok()) return "";
  const std::string text = status.ToString();
  if (status.code() == StatusCode::kInternal) return "it found a fault of its own: " + text;
  if (std::count(text.begin(), text.end(), '\n') >= kMostLines) return "the error is too long: " + text;
  return "";
}

}  // namespace heddle::fuzz
