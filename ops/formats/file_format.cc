// SPDX-License-Identifier: Apache-2.0
#include "ops/formats/file_format.h"

#include <map>
#include <mutex>

#include "core/double_text.h"
#include "ops/formats/lines.h"
#include "ops/formats/readers.h"

namespace heddle::ops {
namespace {

struct Reader {
  Result<FileSummary> (*summarize)(const ReadOptions&, std::string_view);
  Result<Matrix> (*read)(const ReadOptions&, const FileSummary&, std::string_view, int64_t, int64_t);
};

// By FileFormat.
constexpr Reader kReaders[] = {{SummarizeCells, ReadCells},
                               {SummarizeCells, ReadCells},
                               {SummarizeCsv, ReadCsv},
                               {SummarizeLibsvm, ReadLibsvm}};

const Reader& ReaderOf(const ReadOptions& options) { return kReaders[static_cast<size_t>(*options.format)]; }

// What summaries depend on besides the file's bytes.
std::string SummaryKey(const ReadOptions& options, const std::string& fingerprint) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}", options.path, fingerprint, Name(*options.format),
                     options.rows, options.columns, options.nonzeros, options.header.value_or(false),
                     options.separator, options.index_separator);
}

}  // namespace

Result<FileSummary> Summarize(const ReadOptions& options, Files& files) {
  static std::mutex mutex;
  static std::map<std::string, FileSummary> known;
  constexpr size_t kMostKnown = 256;
  HEDDLE_ASSIGN_OR_RETURN(const std::string fingerprint, files.Fingerprint(options.path));
  const std::string key = SummaryKey(options, fingerprint);
  {
    const std::lock_guard lock(mutex);
    if (auto found = known.find(key); found != known.end()) return found->second;
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file, files.Open(options.path));
  HEDDLE_ASSIGN_OR_RETURN(FileSummary summary, ReaderOf(options).summarize(options, file->bytes()));
  const std::lock_guard lock(mutex);
  if (known.size() >= kMostKnown) known.clear();
  known.emplace(key, summary);
  return summary;
}

Result<Matrix> ReadRows(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                        int64_t row_end, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file, files.Open(options.path));
  if (!summary.chunk_offsets.empty() &&
      summary.chunk_offsets.back() > static_cast<int64_t>(file->bytes().size()))
    return DataLoss("cannot read '{}': it changed while it was read", options.path);
  return ReaderOf(options).read(options, summary, file->bytes(), row_begin, row_end);
}

Result<Scalar> ReadScalar(const ReadOptions& options, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file, files.Open(options.path));
  std::string_view rest = file->bytes();
  std::string_view line = TakeLine(&rest);
  if (options.value_type == ValueType::kString) {
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return Scalar(std::string(line));
  }
  line = Trim(line);
  if (options.value_type == ValueType::kBoolean) return Scalar(line == "TRUE" || line == "true");
  const std::optional<double> number = ParseDouble(line);
  if (!number) return DataLoss("cannot read '{}': '{}' is not a number", options.path, line.substr(0, 40));
  if (options.value_type == ValueType::kInteger) return Scalar(TruncateToInteger(*number));
  return Scalar(*number);
}

}  // namespace heddle::ops
