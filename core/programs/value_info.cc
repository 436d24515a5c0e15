// SPDX-License-Identifier: Apache-2.0
#include "core/programs/graph.h"
#include "core/values/sizes.h"

namespace heddle {

bool ValueInfo::IsTabular() const {
  switch (data_type) {
    case DataType::kMatrix:
    case DataType::kFrame: return true;
    case DataType::kUnknown:
    case DataType::kScalar:
    case DataType::kList:
    case DataType::kTuple: return false;
  }
  HEDDLE_CHECK(false, "values of every type have rows or have none");
}

bool ValueInfo::IsSized() const {
  switch (data_type) {
    case DataType::kUnknown: return false;
    case DataType::kMatrix: return shape.IsKnown();
    case DataType::kFrame: return shape.IsKnown() && schema != nullptr;
    case DataType::kScalar:
    case DataType::kList:
    case DataType::kTuple: return true;
  }
  HEDDLE_CHECK(false, "values of every type have a size or need none");
}

ValueInfo ValueInfo::WithoutSize() const {
  ValueInfo info = *this;
  if (IsTabular()) info.shape = Shape();
  info.schema = nullptr;
  return info;
}

ValueInfo ValueInfo::OfDeclared(DataType data_type, ValueType value_type) {
  switch (data_type) {
    case DataType::kMatrix: return OfMatrix(Shape());
    case DataType::kFrame: return OfFrame(kUnknown, nullptr);
    case DataType::kUnknown:
    case DataType::kScalar:
    case DataType::kList:
    case DataType::kTuple: return {.data_type = data_type, .value_type = value_type, .shape = {0, 0}};
  }
  HEDDLE_CHECK(false, "every type can be declared");
}

bool ValueInfo::operator==(const ValueInfo& other) const {
  const bool same_schema =
      schema == other.schema || (schema != nullptr && other.schema != nullptr && *schema == *other.schema);
  return data_type == other.data_type && value_type == other.value_type && shape == other.shape &&
         format == other.format && element_type == other.element_type && same_schema;
}

int64_t KnownBytes(const ValueInfo& info) {
  if (!info.IsSized()) return 0;
  switch (info.data_type) {
    case DataType::kMatrix:
      if (info.format == Format::kSparse) return SaturatingProduct(SaturatingSum(info.shape.rows, 1), 8);
      return SaturatingProduct(info.shape.Cells(), BytesOf(info.element_type));
    case DataType::kFrame: return FixedBytes(*info.schema, info.shape.rows);
    case DataType::kUnknown:
    case DataType::kScalar:
    case DataType::kList:
    case DataType::kTuple: return 0;
  }
  HEDDLE_CHECK(false, "values of every type have cells or have none");
}

}  // namespace heddle
