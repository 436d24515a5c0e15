// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/module/arrow/cell_texts.h"

#include <fmt/format.h>

#include <cstring>

#include "ops/io/formats/json_line.h"

namespace heddle::ops::tables {
namespace {

constexpr size_t kBytesOfUuid = 16, kBytesOfInterval = 12;

// 8-4-4-4-12 digits.
void AppendUuid(std::string_view bytes, std::string* out) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out->push_back('-');
    fmt::format_to(std::back_inserter(*out), "{:02x}", static_cast<unsigned char>(bytes[i]));
  }
}

// Parquet's months, days and milliseconds, as Arrow prints its own intervals.
void AppendInterval(std::string_view bytes, std::string* out) {
  uint32_t parts[3];
  std::memcpy(parts, bytes.data(), sizeof(parts));
  fmt::format_to(std::back_inserter(*out), "{}M{}d{}ns", parts[0], parts[1], uint64_t{parts[2]} * 1'000'000);
}

void AppendBytes(std::string_view bytes, BytesAre bytes_are, std::string* out) {
  if (bytes_are == BytesAre::kUuid && bytes.size() == kBytesOfUuid)
    AppendUuid(bytes, out);
  else if (bytes_are == BytesAre::kInterval && bytes.size() == kBytesOfInterval)
    AppendInterval(bytes, out);
  else
    out->append(bytes);
}

template <typename Texts>
arrow::Status AppendViews(const arrow::Array& array, BytesAre bytes_are, ModuleColumn* out) {
  const auto& cells = static_cast<const Texts&>(array);
  for (int64_t i = 0; i < cells.length(); ++i) {
    if (!cells.IsNull(i)) AppendBytes(cells.GetView(i), bytes_are, &out->texts);
    out->integers.push_back(static_cast<int64_t>(out->texts.size()));
  }
  return arrow::Status::OK();
}

// The value that a scalar stands for: of a dictionary, of runs, of an extension.
arrow::Result<std::shared_ptr<arrow::Scalar>> Plain(std::shared_ptr<arrow::Scalar> cell) {
  while (cell->is_valid) {
    if (cell->type->id() == arrow::Type::DICTIONARY) {
      ARROW_ASSIGN_OR_RAISE(cell, static_cast<const arrow::DictionaryScalar&>(*cell).GetEncodedValue());
    } else if (cell->type->id() == arrow::Type::RUN_END_ENCODED) {
      cell = static_cast<const arrow::RunEndEncodedScalar&>(*cell).value;
    } else if (cell->type->id() == arrow::Type::EXTENSION) {
      cell = static_cast<const arrow::ExtensionScalar&>(*cell).value;
    } else {
      break;
    }
  }
  return cell;
}

// `inside`: of a list or record, where texts have quotes.
arrow::Status AppendText(const std::shared_ptr<arrow::Scalar>& given, bool inside, std::string* out) {
  ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<arrow::Scalar> cell, Plain(given));
  if (!cell->is_valid) {
    out->append("null");
  } else if (const auto* const list = dynamic_cast<const arrow::BaseListScalar*>(cell.get())) {
    out->push_back('[');
    for (int64_t i = 0; i < list->value->length(); ++i) {
      if (i > 0) out->append(", ");
      ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<arrow::Scalar> element, list->value->GetScalar(i));
      ARROW_RETURN_NOT_OK(AppendText(element, true, out));
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
  } else if (inside && !arrow::is_numeric(cell->type->id()) && !arrow::is_decimal(cell->type->id()) &&
             cell->type->id() != arrow::Type::BOOL) {
    if (!AppendJsonText(cell->ToString(), out))
      return arrow::Status::CapacityError("holds a list or record with a text that is no UTF-8");
  } else {
    out->append(cell->ToString());
  }
  return arrow::Status::OK();
}

arrow::Status AppendAnything(const arrow::Array& array, ModuleColumn* out) {
  for (int64_t i = 0; i < array.length(); ++i) {
    if (!array.IsNull(i)) {
      ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<arrow::Scalar> cell, array.GetScalar(i));
      ARROW_RETURN_NOT_OK(AppendText(cell, false, &out->texts));
    }
    out->integers.push_back(static_cast<int64_t>(out->texts.size()));
  }
  return arrow::Status::OK();
}

}  // namespace

arrow::Status AppendTexts(const arrow::Array& array, BytesAre bytes_are, ModuleColumn* out) {
  switch (array.type_id()) {
    case arrow::Type::STRING: return AppendViews<arrow::StringArray>(array, bytes_are, out);
    case arrow::Type::LARGE_STRING: return AppendViews<arrow::LargeStringArray>(array, bytes_are, out);
    case arrow::Type::BINARY: return AppendViews<arrow::BinaryArray>(array, bytes_are, out);
    case arrow::Type::LARGE_BINARY: return AppendViews<arrow::LargeBinaryArray>(array, bytes_are, out);
    case arrow::Type::FIXED_SIZE_BINARY:
      return AppendViews<arrow::FixedSizeBinaryArray>(array, bytes_are, out);
#if ARROW_VERSION_MAJOR >= 15
    case arrow::Type::STRING_VIEW: return AppendViews<arrow::StringViewArray>(array, bytes_are, out);
    case arrow::Type::BINARY_VIEW: return AppendViews<arrow::BinaryViewArray>(array, bytes_are, out);
#endif
    default: return AppendAnything(array, out);
  }
}

}  // namespace heddle::ops::tables
