// SPDX-License-Identifier: Apache-2.0
// The one file that knows the libraries of Arrow and Parquet. They see files through the two classes below,
// run no threads of their own, and what they throw is caught here.
#include <arrow/api.h>
#include <arrow/io/interfaces.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <arrow/util/float16.h>
#include <arrow/util/key_value_metadata.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "ops/formats/json_line.h"
#include "ops/formats/libraries/format_module.h"

namespace heddle::ops {
namespace {

constexpr char kTypeKey[] = "heddle.type";  // of a column, for types that Arrow has not

class Input : public arrow::io::RandomAccessFile {
 public:
  explicit Input(const ModuleInput& input) : input_(input) {}
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return place_; }
  arrow::Status Seek(int64_t place) override {
    place_ = place;
    return arrow::Status::OK();
  }
  arrow::Result<int64_t> GetSize() override { return input_.size; }
  arrow::Result<int64_t> Read(int64_t count, void* out) override {
    if (place_ < 0 || count < 0) return arrow::Status::IOError("a place outside of the file");
    count = std::min(count, std::max<int64_t>(0, input_.size - place_));
    if (const Status status = input_.read(place_, count, static_cast<char*>(out)); !status.ok())
      return arrow::Status::IOError(status.message());
    place_ += count;
    return count;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t count) override {
    // A length in a damaged file may be anything.
    count = std::min(count, std::max<int64_t>(0, input_.size - place_));
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::ResizableBuffer> buffer,
                          arrow::AllocateResizableBuffer(count));
    ARROW_ASSIGN_OR_RAISE(const int64_t got, Read(count, buffer->mutable_data()));
    ARROW_RETURN_NOT_OK(buffer->Resize(got));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }

 private:
  const ModuleInput& input_;
  int64_t place_ = 0;
  bool closed_ = false;
};

class Output : public arrow::io::OutputStream {
 public:
  explicit Output(const std::function<Status(std::string_view)>& sink) : sink_(sink) {}
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return place_; }
  arrow::Status Write(const void* bytes, int64_t count) override {
    failure_ = sink_({static_cast<const char*>(bytes), static_cast<size_t>(count)});
    place_ += count;
    return failure_.ok() ? arrow::Status::OK() : arrow::Status::IOError(failure_.message());
  }
  const Status& failure() const { return failure_; }

 private:
  const std::function<Status(std::string_view)>& sink_;
  Status failure_;
  int64_t place_ = 0;
  bool closed_ = false;
};

ColumnType TypeOf(const arrow::Field& field) {
  if (field.metadata() != nullptr)
    if (const auto said = field.metadata()->Get(kTypeKey); said.ok() && *said == "CHARACTER")
      return ColumnType::kCharacter;
  switch (field.type()->id()) {
    case arrow::Type::BOOL: return ColumnType::kBoolean;
    case arrow::Type::INT8:
    case arrow::Type::INT16:
    case arrow::Type::INT32:
    case arrow::Type::UINT8:
    case arrow::Type::UINT16: return ColumnType::kInteger32;
    case arrow::Type::UINT32:
    case arrow::Type::UINT64:
    case arrow::Type::INT64: return ColumnType::kInteger64;
    case arrow::Type::HALF_FLOAT:
    case arrow::Type::FLOAT: return ColumnType::kFloat32;
    case arrow::Type::DOUBLE: return ColumnType::kFloat64;
    default: return ColumnType::kString;  // Whatever else there is has a text.
  }
}

template <typename ArrowType, typename Out>
void AppendNumbers(const arrow::Array& array, std::vector<Out>* out) {
  const auto& cells = static_cast<const arrow::NumericArray<ArrowType>&>(array);
  for (int64_t i = 0; i < cells.length(); ++i)
    out->push_back(cells.IsNull(i) ? Out{0} : static_cast<Out>(cells.Value(i)));
}

template <typename Texts>
void AppendTexts(const arrow::Array& array, ModuleColumn* out) {
  const auto& cells = static_cast<const Texts&>(array);
  for (int64_t i = 0; i < cells.length(); ++i) {
    if (!cells.IsNull(i)) out->texts.append(cells.GetView(i));
    out->integers.push_back(static_cast<int64_t>(out->texts.size()));
  }
}

// The text of a cell that is none: of lists and records their JSON, of all else Arrow's own.
arrow::Status AppendText(std::shared_ptr<arrow::Scalar> cell, bool inside, std::string* out) {
  if (cell->type->id() == arrow::Type::DICTIONARY) {
    ARROW_ASSIGN_OR_RAISE(cell, static_cast<const arrow::DictionaryScalar&>(*cell).GetEncodedValue());
  }
  if (!cell->is_valid) {
    out->append("null");
  } else if (const auto* const list = dynamic_cast<const arrow::BaseListScalar*>(cell.get())) {
    out->push_back('[');
    for (int64_t i = 0; i < list->value->length(); ++i) {
      if (i > 0) out->append(", ");
      ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Scalar> element, list->value->GetScalar(i));
      ARROW_RETURN_NOT_OK(AppendText(std::move(element), true, out));
    }
    out->push_back(']');
  } else if (const auto* const record = dynamic_cast<const arrow::StructScalar*>(cell.get())) {
    out->push_back('{');
    for (size_t i = 0; i < record->value.size(); ++i) {
      out->append(i > 0 ? ", " : "");
      AppendJsonText(record->type->field(static_cast<int>(i))->name(), out);
      out->append(": ");
      ARROW_RETURN_NOT_OK(AppendText(record->value[i], true, out));
    }
    out->push_back('}');
  } else if (inside && !arrow::is_numeric(cell->type->id()) && cell->type->id() != arrow::Type::BOOL) {
    if (!AppendJsonText(cell->ToString(), out)) return arrow::Status::Invalid("a text in a list is no UTF-8");
  } else {
    out->append(cell->ToString());
  }
  return arrow::Status::OK();
}

arrow::Status AppendAnything(const arrow::Array& array, ModuleColumn* out) {
  for (int64_t i = 0; i < array.length(); ++i) {
    if (!array.IsNull(i)) {
      ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Scalar> cell, array.GetScalar(i));
      ARROW_RETURN_NOT_OK(AppendText(std::move(cell), false, &out->texts));
    }
    out->integers.push_back(static_cast<int64_t>(out->texts.size()));
  }
  return arrow::Status::OK();
}

arrow::Status Append(const arrow::Array& array, ModuleColumn* out) {
  for (int64_t i = 0; array.null_count() > 0 && i < array.length(); ++i) {
    const size_t rows = out->doubles.size() + out->integers.size() + out->booleans.size();
    if (!array.IsNull(i)) continue;
    out->missing.resize(rows + static_cast<size_t>(array.length()), 0);
    out->missing[rows + static_cast<size_t>(i)] = 1;
  }
  switch (array.type_id()) {
    case arrow::Type::BOOL: {
      const auto& cells = static_cast<const arrow::BooleanArray&>(array);
      for (int64_t i = 0; i < cells.length(); ++i)
        out->booleans.push_back(!cells.IsNull(i) && cells.Value(i));
      break;
    }
    case arrow::Type::INT8: AppendNumbers<arrow::Int8Type>(array, &out->integers); break;
    case arrow::Type::INT16: AppendNumbers<arrow::Int16Type>(array, &out->integers); break;
    case arrow::Type::INT32: AppendNumbers<arrow::Int32Type>(array, &out->integers); break;
    case arrow::Type::INT64: AppendNumbers<arrow::Int64Type>(array, &out->integers); break;
    case arrow::Type::UINT8: AppendNumbers<arrow::UInt8Type>(array, &out->integers); break;
    case arrow::Type::UINT16: AppendNumbers<arrow::UInt16Type>(array, &out->integers); break;
    case arrow::Type::UINT32: AppendNumbers<arrow::UInt32Type>(array, &out->integers); break;
    case arrow::Type::UINT64: {
      const auto& cells = static_cast<const arrow::UInt64Array&>(array);
      for (int64_t i = 0; i < cells.length(); ++i)
        if (!cells.IsNull(i) && cells.Value(i) > static_cast<uint64_t>(INT64_MAX))
          return arrow::Status::Invalid("a number is larger than an INT64 can be");
      AppendNumbers<arrow::UInt64Type>(array, &out->integers);
      break;
    }
    case arrow::Type::HALF_FLOAT: {
      const auto& cells = static_cast<const arrow::HalfFloatArray&>(array);
      for (int64_t i = 0; i < cells.length(); ++i)
        out->doubles.push_back(
            cells.IsNull(i) ? 0 : double{arrow::util::Float16::FromBits(cells.Value(i)).ToFloat()});
      break;
    }
    case arrow::Type::FLOAT: AppendNumbers<arrow::FloatType>(array, &out->doubles); break;
    case arrow::Type::DOUBLE: AppendNumbers<arrow::DoubleType>(array, &out->doubles); break;
    case arrow::Type::STRING: AppendTexts<arrow::StringArray>(array, out); break;
    case arrow::Type::LARGE_STRING: AppendTexts<arrow::LargeStringArray>(array, out); break;
    case arrow::Type::BINARY: AppendTexts<arrow::BinaryArray>(array, out); break;
    case arrow::Type::LARGE_BINARY: AppendTexts<arrow::LargeBinaryArray>(array, out); break;
    default: ARROW_RETURN_NOT_OK(AppendAnything(array, out));
  }
  const size_t rows = out->doubles.size() + out->integers.size() + out->booleans.size();
  if (!out->missing.empty()) out->missing.resize(rows, 0);
  return arrow::Status::OK();
}

class Table : public ArrowTable {
 public:
  Table(ArrowKind kind, const ModuleInput& input) : kind_(kind), input_(input) {}

  arrow::Status Open() {
    std::shared_ptr<arrow::Schema> schema;
    if (kind_ == ArrowKind::kParquet) {
      ARROW_ASSIGN_OR_RAISE(const std::unique_ptr<parquet::arrow::FileReader> reader, Parquet());
      metadata_ = reader->parquet_reader()->metadata();
      ARROW_RETURN_NOT_OK(reader->GetSchema(&schema));
      for (int g = 0; g < metadata_->num_row_groups(); ++g)
        begins_.push_back(begins_.back() + metadata_->RowGroup(g)->num_rows());
    } else {
      ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::ipc::RecordBatchFileReader> reader, Ipc());
      schema = reader->schema();
      // Rows of a batch are told with its cells: those of one column will do.
      if (schema->num_fields() > 0) {
        ARROW_ASSIGN_OR_RAISE(reader, Ipc({0}));
      }
      for (int g = 0; g < reader->num_record_batches(); ++g) {
        ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<arrow::RecordBatch> batch, reader->ReadRecordBatch(g));
        begins_.push_back(begins_.back() + batch->num_rows());
      }
    }
    for (const std::shared_ptr<arrow::Field>& field : schema->fields()) {
      schema_.types.push_back(TypeOf(*field));
      schema_.names.push_back(field->name());
    }
    return arrow::Status::OK();
  }

  const Schema& schema() const override { return schema_; }
  const std::vector<int64_t>& begins() const override { return begins_; }

  Result<std::vector<ModuleColumn>> Read(size_t group) const override {
    std::vector<ModuleColumn> columns(schema_.types.size());
    const arrow::Status status = Guarded([&] { return ReadGroup(static_cast<int>(group), &columns); });
    if (!status.ok()) return Fault(status);
    return columns;
  }

  Status Fault(const arrow::Status& status) const {
    return DataLoss("cannot read '{}': it is no {} file, or it is damaged", input_.path,
                    kind_ == ArrowKind::kParquet ? "parquet" : "arrow")
        .WithNote("Arrow says: " + status.message().substr(0, 300));
  }

  /// Exceptions of Parquet as a status.
  template <typename Work>
  static arrow::Status Guarded(const Work& work) {
    try {
      return work();
    } catch (const std::exception& error) {
      return arrow::Status::IOError(error.what());
    }
  }

 private:
  arrow::Result<std::unique_ptr<parquet::arrow::FileReader>> Parquet() const {
    parquet::arrow::FileReaderBuilder builder;
    ARROW_RETURN_NOT_OK(
        builder.Open(std::make_shared<Input>(input_), parquet::default_reader_properties(), metadata_));
    std::unique_ptr<parquet::arrow::FileReader> reader;
    ARROW_RETURN_NOT_OK(builder.Build(&reader));
    reader->set_use_threads(false);
    return reader;
  }

  arrow::Result<std::shared_ptr<arrow::ipc::RecordBatchFileReader>> Ipc(std::vector<int> fields = {}) const {
    arrow::ipc::IpcReadOptions options = arrow::ipc::IpcReadOptions::Defaults();
    options.use_threads = false;
    options.included_fields = std::move(fields);  // none: all
    return arrow::ipc::RecordBatchFileReader::Open(std::make_shared<Input>(input_), options);
  }

  arrow::Status ReadGroup(int group, std::vector<ModuleColumn>* columns) const {
    if (kind_ == ArrowKind::kArrow) {
      ARROW_ASSIGN_OR_RAISE(const auto reader, Ipc());
      ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<arrow::RecordBatch> batch, reader->ReadRecordBatch(group));
      ARROW_RETURN_NOT_OK(batch->ValidateFull());
      for (int j = 0; j < batch->num_columns(); ++j)
        ARROW_RETURN_NOT_OK(Append(*batch->column(j), &(*columns)[static_cast<size_t>(j)]));
      return arrow::Status::OK();
    }
    ARROW_ASSIGN_OR_RAISE(const auto reader, Parquet());
    std::shared_ptr<arrow::Table> table;
    ARROW_RETURN_NOT_OK(reader->ReadRowGroup(group, &table));
    for (int j = 0; j < table->num_columns(); ++j)
      for (const std::shared_ptr<arrow::Array>& chunk : table->column(j)->chunks())
        ARROW_RETURN_NOT_OK(Append(*chunk, &(*columns)[static_cast<size_t>(j)]));
    if (table->num_rows() != begins_[static_cast<size_t>(group) + 1] - begins_[static_cast<size_t>(group)])
      return arrow::Status::Invalid("a group has other rows than the file says");
    return arrow::Status::OK();
  }

  const ArrowKind kind_;
  const ModuleInput input_;
  std::shared_ptr<parquet::FileMetaData> metadata_;
  Schema schema_;
  std::vector<int64_t> begins_ = {0};
};

Result<std::unique_ptr<ArrowTable>> OpenTable(ArrowKind kind, const ModuleInput& input) {
  auto table = std::make_unique<Table>(kind, input);
  if (const arrow::Status status = Table::Guarded([&] { return table->Open(); }); !status.ok())
    return table->Fault(status);
  return std::unique_ptr<ArrowTable>(std::move(table));
}

std::shared_ptr<arrow::DataType> TypeInArrow(ColumnType type) {
  switch (type) {
    case ColumnType::kFloat64: return arrow::float64();
    case ColumnType::kFloat32: return arrow::float32();
    case ColumnType::kInteger64: return arrow::int64();
    case ColumnType::kInteger32: return arrow::int32();
    case ColumnType::kBoolean: return arrow::boolean();
    case ColumnType::kString:
    case ColumnType::kCharacter: break;
  }
  return arrow::utf8();
}

template <typename Builder, typename Cells>
arrow::Result<std::shared_ptr<arrow::Array>> BuildNumbers(const Cells& cells, const ModuleColumn& column) {
  Builder builder;
  ARROW_RETURN_NOT_OK(builder.Reserve(static_cast<int64_t>(cells.size())));
  for (size_t i = 0; i < cells.size(); ++i) {
    if (!column.missing.empty() && column.missing[i] != 0)
      builder.UnsafeAppendNull();
    else
      builder.UnsafeAppend(static_cast<typename Builder::value_type>(cells[i]));
  }
  return builder.Finish();
}

arrow::Result<std::shared_ptr<arrow::Array>> Build(const ModuleColumn& column, ColumnType type) {
  switch (type) {
    case ColumnType::kFloat64: return BuildNumbers<arrow::DoubleBuilder>(column.doubles, column);
    case ColumnType::kFloat32: return BuildNumbers<arrow::FloatBuilder>(column.doubles, column);
    case ColumnType::kInteger64: return BuildNumbers<arrow::Int64Builder>(column.integers, column);
    case ColumnType::kInteger32: return BuildNumbers<arrow::Int32Builder>(column.integers, column);
    case ColumnType::kBoolean: return BuildNumbers<arrow::BooleanBuilder>(column.booleans, column);
    case ColumnType::kString:
    case ColumnType::kCharacter: break;
  }
  arrow::StringBuilder builder;
  int64_t begin = 0;
  for (size_t i = 0; i < column.integers.size(); ++i) {
    const std::string_view text =
        std::string_view(column.texts)
            .substr(static_cast<size_t>(begin), static_cast<size_t>(column.integers[i] - begin));
    begin = column.integers[i];
    ARROW_RETURN_NOT_OK(!column.missing.empty() && column.missing[i] != 0 ? builder.AppendNull()
                                                                          : builder.Append(text));
  }
  return builder.Finish();
}

arrow::Status WriteGroups(ArrowKind kind, const ArrowSource& source, const std::shared_ptr<Output>& output) {
  arrow::FieldVector fields;
  for (int64_t j = 0; j < source.schema.columns(); ++j) {
    const ColumnType type = source.schema.types[static_cast<size_t>(j)];
    std::shared_ptr<arrow::Field> field =
        arrow::field(source.schema.names[static_cast<size_t>(j)], TypeInArrow(type));
    if (type == ColumnType::kCharacter)
      field = field->WithMetadata(arrow::key_value_metadata({kTypeKey}, {"CHARACTER"}));
    fields.push_back(std::move(field));
  }
  const std::shared_ptr<arrow::Schema> schema = arrow::schema(std::move(fields));
  std::unique_ptr<parquet::arrow::FileWriter> parquet_writer;
  std::shared_ptr<arrow::ipc::RecordBatchWriter> ipc_writer;
  if (kind == ArrowKind::kParquet) {
    ARROW_ASSIGN_OR_RAISE(
        parquet_writer,
        parquet::arrow::FileWriter::Open(
            *schema, arrow::default_memory_pool(), output,
            parquet::WriterProperties::Builder().created_by("heddle")->build(),
            parquet::ArrowWriterProperties::Builder().store_schema()->set_use_threads(false)->build()));
  } else {
    arrow::ipc::IpcWriteOptions options = arrow::ipc::IpcWriteOptions::Defaults();
    options.use_threads = false;
    ARROW_ASSIGN_OR_RAISE(ipc_writer, arrow::ipc::MakeFileWriter(output, schema, options));
  }
  for (int64_t begin = 0; begin < source.rows; begin += source.rows_of_group) {
    const int64_t end = std::min(begin + source.rows_of_group, source.rows);
    arrow::ArrayVector arrays;
    for (int64_t j = 0; j < source.schema.columns(); ++j) {
      ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Array> array,
                            Build(source.cells(j, begin, end), source.schema.types[static_cast<size_t>(j)]));
      arrays.push_back(std::move(array));
    }
    if (ipc_writer != nullptr)
      ARROW_RETURN_NOT_OK(
          ipc_writer->WriteRecordBatch(*arrow::RecordBatch::Make(schema, end - begin, arrays)));
    else
      ARROW_RETURN_NOT_OK(
          parquet_writer->WriteTable(*arrow::Table::Make(schema, arrays, end - begin), end - begin));
  }
  return ipc_writer != nullptr ? ipc_writer->Close() : parquet_writer->Close();
}

Status WriteTable(ArrowKind kind, const ArrowSource& source,
                  const std::function<Status(std::string_view bytes)>& sink) {
  const auto output = std::make_shared<Output>(sink);
  const arrow::Status status = Table::Guarded([&] { return WriteGroups(kind, source, output); });
  if (status.ok()) return OkStatus();
  return output->failure().ok() ? FailedPrecondition("write: Arrow says: {}", status.message())
                                : output->failure();
}

constexpr ArrowModule kModule = {.open = OpenTable, .write = WriteTable};

}  // namespace
}  // namespace heddle::ops

extern "C" __attribute__((visibility("default"))) const void* HeddleOpenArrow(int32_t abi) {
  return abi == heddle::ops::kFormatModuleAbi ? &heddle::ops::kModule : nullptr;
}
