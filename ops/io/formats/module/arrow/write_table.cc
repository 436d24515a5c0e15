// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/module/arrow/write_table.h"

#include <arrow/api.h>
#include <arrow/ipc/writer.h>
#include <arrow/util/key_value_metadata.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include <algorithm>
#include <utility>

#include "ops/io/formats/module/arrow/columns.h"
#include "ops/io/formats/module/arrow/streams.h"

namespace heddle::ops::tables {
namespace {

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
  Builder builder(Pool());
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
  arrow::StringBuilder builder(Pool());
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
            *schema, Pool(), output,
            parquet::WriterProperties::Builder().created_by("heddle")->memory_pool(Pool())->build(),
            parquet::ArrowWriterProperties::Builder().store_schema()->set_use_threads(false)->build()));
  } else {
    arrow::ipc::IpcWriteOptions options = arrow::ipc::IpcWriteOptions::Defaults();
    options.use_threads = false;
    options.memory_pool = Pool();
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

}  // namespace

Status WriteTable(ArrowKind kind, const ArrowSource& source,
                  const std::function<Status(std::string_view bytes)>& sink) {
  const auto output = std::make_shared<Output>(sink);
  const arrow::Status status = Guarded([&] { return WriteGroups(kind, source, output); });
  if (status.ok()) return OkStatus();
  if (status.IsOutOfMemory()) return ResourceExhausted("out of memory: write");
  return output->failure().ok() ? FailedPrecondition("write: Arrow says: {}", status.message())
                                : output->failure();
}

}  // namespace heddle::ops::tables
