// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/module/arrow/table.h"

#include <arrow/api.h>
#include <arrow/ipc/reader.h>
#include <fmt/format.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>
#include <parquet/schema.h>
#include <parquet/types.h>

#include <mutex>
#include <utility>

#include "ops/io/formats/module/arrow/cells.h"
#include "ops/io/formats/module/arrow/columns.h"
#include "ops/io/formats/module/arrow/streams.h"

namespace heddle::ops::tables {
namespace {

// Readers of a file that nobody uses now: one serves one thread, and making one costs as much as the file has
// groups and columns.
template <typename Reader>
class IdleReaders {
 public:
  std::shared_ptr<Reader> Take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return nullptr;
    std::shared_ptr<Reader> reader = std::move(idle_.back());
    idle_.pop_back();
    return reader;
  }
  void Give(std::shared_ptr<Reader> reader) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(reader));
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Reader>> idle_;
};

/// What tables of Parquet and of Arrow have in common.
class Table : public ArrowTable {
 public:
  Table(std::string format, const ModuleInput& input) : format_(std::move(format)), input_(input) {}

  const Schema& schema() const override { return columns_.schema; }
  const std::vector<std::string>& types() const override { return columns_.types; }
  const std::vector<std::string>& left_out() const override { return columns_.left_out; }
  const std::vector<int64_t>& begins() const override { return begins_; }

  Status Open(const std::vector<int64_t>& begins) {
    begins_ = begins;
    const arrow::Status status = Guarded([&] { return OpenFile(); });
    return status.ok() ? OkStatus() : Fault(status, "");
  }

  Status Read(size_t group, bool as_doubles,
              const std::function<Status(size_t column, const ModuleColumn& cells)>& take) const override {
    std::string column;  // which an error is about
    Status taken;
    const arrow::Status status = Guarded([&] {
      return VisitGroup(static_cast<int>(group), [&](size_t j, const arrow::ChunkedArray& array) {
        column = columns_.schema.names[j];
        if (array.length() != RowsOf(group)) return OtherRows();
        ModuleColumn cells;
        const ColumnType type = as_doubles ? ColumnType::kFloat64 : columns_.schema.types[j];
        for (const std::shared_ptr<arrow::Array>& chunk : array.chunks())
          ARROW_RETURN_NOT_OK(AppendCells(*chunk, type, columns_.bytes_are[j], &cells));
        taken = take(j, cells);
        return taken.ok() ? arrow::Status::OK() : arrow::Status::Cancelled("");
      });
    });
    if (!taken.ok()) return taken;
    return status.ok() ? OkStatus() : Fault(status, column);
  }

 protected:
  using TakeArray = std::function<arrow::Status(size_t column, const arrow::ChunkedArray& array)>;

  /// Fills columns_ and, where they are not known, begins_.
  virtual arrow::Status OpenFile() = 0;
  /// Gives each column of a group.
  virtual arrow::Status VisitGroup(int group, const TakeArray& take) const = 0;

  static arrow::Status OtherRows() {
    return arrow::Status::Invalid("a group has other rows than the file says");
  }
  arrow::Status AddGroup(int64_t rows) {
    constexpr int64_t kMostRows = int64_t{1} << 53;
    if (rows < 0 || begins_.back() > kMostRows - rows)
      return arrow::Status::Invalid("a group has ", rows, " rows");
    begins_.push_back(begins_.back() + rows);
    return arrow::Status::OK();
  }
  int64_t RowsOf(size_t group) const { return begins_[group + 1] - begins_[group]; }
  const ModuleInput& input() const { return input_; }

  TableColumns columns_;
  std::vector<int64_t> begins_;

 private:
  Status Fault(const arrow::Status& status, const std::string& column) const {
    if (status.IsOutOfMemory()) return ResourceExhausted("out of memory: cannot read '{}'", input_.path);
    if (status.IsCapacityError())
      return DataLoss("cannot read '{}': column '{}' {}", input_.path, column, status.message());
    const std::string note = "Arrow says: " + status.message().substr(0, 300);
    if (status.message().find("more than 64 bits") != std::string::npos)
      return DataLoss("cannot read '{}': it has integers of more than 64 bits, which Arrow does not read",
                      input_.path)
          .WithNote("cast them where the file is written, to 64 bits or to decimals");
    // Of exceptions the text is all that there is.
    const bool is_unknown = status.IsNotImplemented() || status.IsTypeError() ||
                            status.message().find("not implemented") != std::string::npos ||
                            status.message().find("Not yet implemented") != std::string::npos;
    if (is_unknown)
      return DataLoss("cannot read '{}': it has what the Arrow library does not read", input_.path)
          .WithNote(note)
          .WithNote("cast such columns where the file is written, or leave them out");
    return DataLoss("cannot read '{}': it is no {} file, or it is damaged", input_.path, format_)
        .WithNote(note);
  }

  const std::string format_;
  const ModuleInput input_;
};

class ParquetTable : public Table {
 public:
  explicit ParquetTable(const ModuleInput& input) : Table("parquet", input) {}

 private:
  using Reader = parquet::arrow::FileReader;

  arrow::Result<std::shared_ptr<Reader>> TakeReader() const {
    if (std::shared_ptr<Reader> idle = readers_.Take()) return idle;
    parquet::arrow::FileReaderBuilder builder;
    ARROW_RETURN_NOT_OK(
        builder.Open(std::make_shared<Input>(input()), parquet::ReaderProperties(Pool()), metadata_));
    std::unique_ptr<Reader> reader;
    ARROW_RETURN_NOT_OK(builder.memory_pool(Pool())->Build(&reader));
    reader->set_use_threads(false);
    return std::shared_ptr<Reader>(std::move(reader));
  }

  arrow::Status OpenFile() override {
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<Reader> reader, TakeReader());
    metadata_ = reader->parquet_reader()->metadata();
    std::shared_ptr<arrow::Schema> schema;
    ARROW_RETURN_NOT_OK(reader->GetSchema(&schema));
    columns_ = ColumnsOf(*schema);
    FindBytes(*reader);
    begins_ = {0};
    for (int g = 0; g < metadata_->num_row_groups(); ++g)
      ARROW_RETURN_NOT_OK(AddGroup(metadata_->RowGroup(g)->num_rows()));
    readers_.Give(std::move(reader));
    return arrow::Status::OK();
  }

  // Notes of Parquet that its types in Arrow do not have in all versions.
  void FindBytes(const Reader& reader) {
    const auto& fields = reader.manifest().schema_fields;
    for (size_t j = 0; j < columns_.fields.size(); ++j) {
      const int leaf = fields[static_cast<size_t>(columns_.fields[j])].column_index;
      if (leaf < 0) continue;
      const std::shared_ptr<const parquet::LogicalType>& note =
          metadata_->schema()->Column(leaf)->logical_type();
      if (note == nullptr) continue;
      if (note->is_UUID()) columns_.bytes_are[j] = BytesAre::kUuid;
      if (note->is_interval()) columns_.bytes_are[j] = BytesAre::kInterval;
    }
  }

  arrow::Status VisitGroup(int group, const TakeArray& take) const override {
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<Reader> reader, TakeReader());
    for (size_t j = 0; j < columns_.fields.size(); ++j) {
      // One column at a time is in memory.
      std::shared_ptr<arrow::ChunkedArray> column;
      ARROW_RETURN_NOT_OK(reader->RowGroup(group)->Column(columns_.fields[j])->Read(&column));
      ARROW_RETURN_NOT_OK(column->Validate());
      ARROW_RETURN_NOT_OK(take(j, *column));
    }
    readers_.Give(std::move(reader));
    return arrow::Status::OK();
  }

  std::shared_ptr<parquet::FileMetaData> metadata_;
  mutable IdleReaders<Reader> readers_;
};

/// A file of Arrow with its table of contents at the end.
class IpcTable : public Table {
 public:
  explicit IpcTable(const ModuleInput& input) : Table("arrow", input) {}

 private:
  using Reader = arrow::ipc::RecordBatchFileReader;

  // fields: none for all.
  arrow::Result<std::shared_ptr<Reader>> Make(std::vector<int> fields) const {
    arrow::ipc::IpcReadOptions options = arrow::ipc::IpcReadOptions::Defaults();
    options.use_threads = false;
    options.memory_pool = Pool();
    options.included_fields = std::move(fields);
    return Reader::Open(std::make_shared<Input>(input()), options);
  }

  arrow::Status OpenFile() override {
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<Reader> reader, Make({}));
    columns_ = ColumnsOf(*reader->schema());
    const auto batches = static_cast<size_t>(reader->num_record_batches());
    if (!begins_.empty() && begins_.size() != batches + 1) return OtherRows();
    if (begins_.empty()) ARROW_RETURN_NOT_OK(CountRows(*reader));
    readers_.Give(std::move(reader));
    return arrow::Status::OK();
  }

  // Rows of a batch are told with its cells: those of one column will do.
  arrow::Status CountRows(const Reader& reader) {
    begins_ = {0};
    std::vector<int> one;
    if (reader.schema()->num_fields() > 0) one.push_back(0);
    ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<Reader> counts, Make(one));
    for (int g = 0; g < counts->num_record_batches(); ++g) {
      ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<arrow::RecordBatch> batch, counts->ReadRecordBatch(g));
      ARROW_RETURN_NOT_OK(AddGroup(batch->num_rows()));
    }
    return arrow::Status::OK();
  }

  arrow::Status VisitGroup(int group, const TakeArray& take) const override {
    std::shared_ptr<Reader> reader = readers_.Take();
    if (reader == nullptr) {
      ARROW_ASSIGN_OR_RAISE(reader, Make({}));
    }
    ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<arrow::RecordBatch> batch, reader->ReadRecordBatch(group));
    ARROW_RETURN_NOT_OK(batch->ValidateFull());
    for (size_t j = 0; j < columns_.fields.size(); ++j)
      ARROW_RETURN_NOT_OK(take(j, arrow::ChunkedArray(batch->column(columns_.fields[j]))));
    readers_.Give(std::move(reader));
    return arrow::Status::OK();
  }

  mutable IdleReaders<Reader> readers_;
};

}  // namespace

Result<std::unique_ptr<ArrowTable>> OpenTable(ArrowKind kind, const ModuleInput& input,
                                              const std::vector<int64_t>& begins) {
  std::unique_ptr<Table> table;
  if (kind == ArrowKind::kParquet)
    table = std::make_unique<ParquetTable>(input);
  else
    table = std::make_unique<IpcTable>(input);
  HEDDLE_RETURN_IF_ERROR(table->Open(begins));
  return std::unique_ptr<ArrowTable>(std::move(table));
}

}  // namespace heddle::ops::tables
