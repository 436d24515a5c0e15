// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/libraries/arrow_open.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "core/memory/counted_heap.h"
#include "core/text/file_kind.h"
#include "core/text/utf8.h"
#include "ops/io/formats/format_table.h"

namespace heddle::ops {
namespace {

// A file, or one of the files of a folder.
struct TableFile {
  std::shared_ptr<const InputFile> file;
  std::string path;
  int64_t begin = 0;
  int64_t size = 0;
};

std::vector<TableFile> FilesOf(const std::string& path, const std::shared_ptr<const InputFile>& file) {
  const std::vector<InputFile::Part> parts = file->parts();
  if (parts.empty()) return {{.file = file, .path = path, .size = file->size()}};
  std::vector<TableFile> all;
  for (const InputFile::Part& part : parts)
    all.push_back({.file = file, .path = part.path, .begin = part.begin, .size = part.bytes});
  return all;
}

// What this is that does not begin as a file of its format does.
Status CheckMark(const TableFile& part, FileFormat format) {
  constexpr int64_t kBytesOfMarks = 512;
  CountedBytes buffer;
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view beginning,
                          part.file->Read(part.begin, std::min(part.size, kBytesOfMarks), &buffer));
  if (beginning.starts_with(EntryOf(format).mark)) return OkStatus();
  if (const FormatEntry* const other = FindFormatByMark(beginning))
    return DataLoss("cannot read '{}': it is no {} file", part.path, Name(format))
        .WithNote(fmt::format("it begins as files of format {} do", other->name));
  if (const auto kind = FindFileKind(beginning))
    return DataLoss("cannot read '{}': it is {}", part.path, kind->name).WithNote(std::string(kind->remedy));
  return DataLoss("cannot read '{}': it is no {} file, or it is damaged", part.path, Name(format))
      .WithNote("it does not begin with the mark of such files");
}

// Tables one below the other, which have the same columns.
class StackedTables : public ArrowTable {
 public:
  Status Add(const std::string& path, std::unique_ptr<ArrowTable> table) {
    if (tables_.empty()) {
      path_ = path;
    } else if (table->schema() != schema() || table->left_out() != left_out()) {
      return DataLoss("cannot read '{}': it has other columns than '{}'", path, path_)
          .WithNote(fmt::format("they are {}, and there {}", ShownInLine(table->schema().ToText(), 200),
                                ShownInLine(schema().ToText(), 200)));
    }
    first_groups_.push_back(begins_.size() - 1);
    const int64_t rows = begins_.back();
    for (size_t g = 1; g < table->begins().size(); ++g) begins_.push_back(rows + table->begins()[g]);
    tables_.push_back(std::move(table));
    return OkStatus();
  }

  const Schema& schema() const override { return tables_[0]->schema(); }
  const std::vector<std::string>& types() const override { return tables_[0]->types(); }
  const std::vector<std::string>& left_out() const override { return tables_[0]->left_out(); }
  const std::vector<int64_t>& begins() const override { return begins_; }
  Status Read(size_t group, bool as_doubles,
              const std::function<Status(size_t column, const ModuleColumn& cells)>& take) const override {
    const auto behind = std::upper_bound(first_groups_.begin(), first_groups_.end(), group);
    const auto table = static_cast<size_t>(behind - first_groups_.begin()) - 1;
    return tables_[table]->Read(group - first_groups_[table], as_doubles, take);
  }

 private:
  std::string path_;  // of the first
  std::vector<std::unique_ptr<ArrowTable>> tables_;
  std::vector<size_t> first_groups_;
  std::vector<int64_t> begins_ = {0};
};

Result<std::unique_ptr<ArrowTable>> OpenPart(const ArrowModule& module, const TableFile& part,
                                             FileFormat format, const std::vector<int64_t>& begins) {
  const ModuleInput input{
      .path = part.path,
      .size = part.size,
      .read = [file = part.file, first = part.begin](int64_t begin, int64_t count, char* out) {
        return file->ReadInto(first + begin, count, out);
      }};
  std::unique_ptr<ArrowTable> table;
  HEDDLE_RETURN_IF_ERROR(WithArrow(part.path, [&]() -> Status {
    HEDDLE_ASSIGN_OR_RETURN(table, module.open(ArrowKindOf(format), input, begins));
    return OkStatus();
  }));
  return table;
}

}  // namespace

namespace {

// The module is there, and links with the libraries of one version of pyarrow: 26 of "libarrow.so.2600:
// cannot open shared object file". 0: it cannot be loaded for another reason.
int VersionWanted(std::string_view why) {
  constexpr std::string_view kName = ".so.";
  const size_t at = why.find(kName);
  if (at == std::string_view::npos || !why.starts_with("lib")) return 0;
  return std::atoi(std::string(why.substr(at + kName.size())).c_str()) / 100;
}

}  // namespace

Status ArrowIsMissing(std::string_view verb, std::string_view what, std::string_view format,
                      const Status& why) {
  if (const int version = VersionWanted(why.message()); version > 0)
    return Unimplemented("cannot {} {}: the Arrow library, which format {} needs, is not there", verb, what,
                         format)
        .WithNote(fmt::format("install pyarrow {0} beside Heddle: pip install 'pyarrow=={0}.*'", version))
        .WithNote(why.message());
  const Status fault =
      Unimplemented("cannot {} {}: this Heddle was built without the Arrow library, which format {} needs",
                    verb, what, format)
          .WithNote(
              "build it with the libraries of pyarrow (cmake -DHEDDLE_PYARROW=FOLDER) or where find_package(Arrow) "
              "succeeds, or export the data: "
              "pandas.read_parquet(FILE).to_csv(FILE, index=False) makes a csv file");
  return why.code() == StatusCode::kNotFound ? fault : fault.WithNote(why.message());
}

ArrowKind ArrowKindOf(FileFormat format) {
  return format == FileFormat::kParquet ? ArrowKind::kParquet : ArrowKind::kArrow;
}

bool MemoryWasRefused(const Status& status) {
  return status.code() == StatusCode::kResourceExhausted && status.notes().empty();
}

Status WithArrow(const std::string& path, const std::function<Status()>& work) {
  const Status status = WithinMemory(path, work);
  if (!MemoryWasRefused(status)) return status;
  return HeapRefused(path, false).WithNote("the file is damaged, or its groups of rows are very large");
}

Result<OpenedArrow> OpenArrowTable(const ReadOptions& options, Files& files,
                                   const std::vector<int64_t>& begins) {
  OpenedArrow opened;
  HEDDLE_ASSIGN_OR_RETURN(opened.file, files.Open(options.path));
  if (opened.file->size() == 0 && files.IsDirectory(options.path))
    return DataLoss("cannot read '{}': it holds no data", options.path)
        .WithNote("files of folders inside of it are not looked for");
  const std::vector<TableFile> parts = FilesOf(options.path, opened.file);
  for (const TableFile& part : parts) HEDDLE_RETURN_IF_ERROR(CheckMark(part, *options.format));
  const Result<const ArrowModule*> module = OpenArrowModule();
  if (!module.ok())
    return ArrowIsMissing("read", fmt::format("'{}'", options.path), Name(*options.format), module.status());
  if (parts.size() == 1) {
    HEDDLE_ASSIGN_OR_RETURN(opened.table, OpenPart(**module, parts[0], *options.format, begins));
    return opened;
  }
  auto stacked = std::make_unique<StackedTables>();
  for (const TableFile& part : parts) {
    // Which of the groups are in this file is not known.
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<ArrowTable> table, OpenPart(**module, part, *options.format, {}));
    HEDDLE_RETURN_IF_ERROR(stacked->Add(part.path, std::move(table)));
  }
  opened.table = std::move(stacked);
  return opened;
}

}  // namespace heddle::ops
