// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <atomic>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cluster/cli/file_options.h"
#include "cluster/cli/report.h"
#include "cluster/cli/script_input.h"
#include "cluster/cli/verb.h"
#include "cluster/process/interrupt.h"
#include "ops/base/parallel.h"
#include "ops/io/exchange/convert_file.h"
#include "ops/io/formats/options.h"

namespace heddle::cluster::cli {
namespace {

using Kind = Option::Kind;

constexpr Option kOptions[] = {
    {"from", Kind::kValue, "NAME", "format of IN, where that cannot be seen"},
    {"to", Kind::kValue, "NAME", "format of OUT (default: by the end of its name)"},
    {"data-type", Kind::kValue, "NAME", "matrix or frame (default: a frame where a column has texts)"},
    {"schema", Kind::kValue, "TYPES", "types of the columns of a frame: \"string,double,int,boolean\""},
    {"header", Kind::kValue, "BOOL", "whether line 1 of IN holds names: TRUE or FALSE"},
    {"sep", Kind::kValue, "TEXT", "what separates the fields of IN"},
    {"dataset", Kind::kValue, "NAME", "which of the arrays of IN"},
    {"transposed", Kind::kFlag, "", "with rows and columns of an array of IN exchanged"},
    {"rows", Kind::kValue, "N", "size of a matrix in format text"},
    {"cols", Kind::kValue, "N", "size of a matrix in format text"},
    {"nan", Kind::kFlag, "", "empty cells of IN are NaN in a matrix (default: 0)"},
    {"to-header", Kind::kValue, "BOOL", "whether OUT begins with names (default: where there are some)"},
    {"to-sep", Kind::kValue, "TEXT", "what separates the fields of OUT"},
    {"sparse", Kind::kFlag, "",
     "OUT has the cells alone that are not 0: npz as SciPy has it, empty fields in csv"},
    {"compression", Kind::kValue, "NAME",
     "none, gzip, zstd, or groups (of columns, in binary matrices) (default: by the end of OUT's name)"},
    {"threads", Kind::kValue, "N", "threads (default: all cores)"},
    {"memory", Kind::kValue, "SIZE", "most memory of the process; larger files go through piece by piece"},
    {"json", Kind::kFlag, "", "print the outcome as one JSON object"}};

// "\t" for a tab, as a script writes it.
std::optional<std::string> Separator(const Arguments& arguments, std::string_view option) {
  std::optional<std::string> text = arguments.Value(option);
  if (text == "\\t") text = "\t";
  return text;
}

Result<std::optional<int64_t>> ReadSize(const Arguments& arguments, std::string_view option) {
  if (!arguments.Has(option)) return std::optional<int64_t>();
  HEDDLE_ASSIGN_OR_RETURN(const int64_t size, arguments.Integer(option, 0, 0, INT64_MAX));
  return std::optional(size);
}

Result<ops::ConvertOptions> ReadOptions(const Arguments& arguments) {
  ops::ConvertOptions options;
  if (arguments.positional().size() != 2) return Usage("convert takes two files: heddle convert IN OUT");
  if (const auto name = arguments.Value("from")) {
    HEDDLE_ASSIGN_OR_RETURN(options.from, ReadFormat("from", *name));
  }
  if (const auto name = arguments.Value("to")) {
    HEDDLE_ASSIGN_OR_RETURN(options.to, ReadFormat("to", *name));
  }
  if (const auto name = arguments.Value("data-type")) {
    options.data_type = ops::FindDataTypeOfFile(*name);
    if (options.data_type != DataType::kMatrix && options.data_type != DataType::kFrame)
      return Usage("--data-type takes matrix or frame, not '{}'", *name);
  }
  HEDDLE_ASSIGN_OR_RETURN(options.header, ReadHeader(arguments));
  HEDDLE_ASSIGN_OR_RETURN(options.to_header, ReadHeader(arguments, "to-header"));
  HEDDLE_ASSIGN_OR_RETURN(options.rows, ReadSize(arguments, "rows"));
  HEDDLE_ASSIGN_OR_RETURN(options.columns, ReadSize(arguments, "cols"));
  options.empty_as_nan = arguments.Has("nan");
  options.dataset = arguments.Value("dataset");
  options.transposed = arguments.Has("transposed");
  options.sparse = arguments.Has("sparse");
  options.compression = arguments.Value("compression");
  ops::WriteOptions write;
  if (options.compression && !ops::SetCompression(*options.compression, &write).ok())
    return Usage("--compression takes none, gzip, zstd or groups, not '{}'", *options.compression);
  options.schema = arguments.Value("schema");
  if (options.schema)
    if (Status status = ops::ParseSchema(*options.schema).status(); !status.ok())
      return status.WithCode(StatusCode::kUsage);
  options.separator = Separator(arguments, "sep");
  options.to_separator = Separator(arguments, "to-sep");
  return options;
}

Result<ops::Converted> Convert(const Arguments& arguments) {
  HEDDLE_RETURN_IF_ERROR(LimitMemoryOfFiles(arguments));
  HEDDLE_ASSIGN_OR_RETURN(ops::ConvertOptions options, ReadOptions(arguments));
  HEDDLE_ASSIGN_OR_RETURN(const int threads, ReadThreads(arguments));
  engine::Cancellation cancellation;
  std::atomic<bool> cancelled = false;
  InterruptGuard guard(cancellation, /*survives=*/false, [&] { EndProcess(arguments, cancellation.why()); });
  cancellation.Listen([&](const Status&) { cancelled = true; });
  options.cancelled = &cancelled;
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(WorkingDirectory());
  ops::Arena arena(threads);
  Result<ops::Converted> converted = ops::Converted();
  arena.Execute([&] {
    converted = ops::ConvertFile(arguments.positional()[0], arguments.positional()[1], options, *files);
  });
  cancellation.Listen(nullptr);
  if (!converted.ok() && !cancellation.why().ok()) return cancellation.why();
  return converted;
}

int Run(const Arguments& arguments) {
  const Result<ops::Converted> converted = Convert(arguments);
  if (!converted.ok()) return ReportOutcome(arguments, converted.status());
  for (const std::string& warning : converted->warnings) Warn(warning);
  const std::string_view type = Name(converted->data_type);
  if (arguments.Has("json"))
    PrintOutput(nlohmann::ordered_json{{"data_type", type},
                                       {"rows", converted->shape.rows},
                                       {"columns", converted->shape.columns},
                                       {"from", Name(converted->from)},
                                       {"to", Name(converted->to)},
                                       {"warnings", converted->warnings}}
                    .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
                "\n");
  else
    PrintOutput(
        fmt::format("{} {}: {} to {}\n", type, converted->shape, Name(converted->from), Name(converted->to)));
  return 0;
}

}  // namespace

const Verb kConvertVerb = {"convert",
                           "write what is in a file of data into one of another format",
                           "convert [OPTIONS] IN OUT",
                           std::vector<Option>(std::begin(kOptions), std::end(kOptions)),
                           "heddle convert data.csv data.bin",
                           Run,
                           /*takes_words=*/true};

}  // namespace heddle::cluster::cli
