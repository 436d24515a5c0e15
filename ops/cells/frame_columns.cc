// SPDX-License-Identifier: Apache-2.0
#include "ops/cells/frame_columns.h"

#include <memory>
#include <utility>
#include <vector>

namespace heddle::ops {

Schema ColumnsOf(const Schema& schema, int64_t begin, int64_t end) {
  Schema part;
  part.types.assign(schema.types.begin() + begin, schema.types.begin() + end);
  if (!schema.names.empty()) part.names.assign(schema.names.begin() + begin, schema.names.begin() + end);
  return part;
}

Frame ColumnsOf(const Frame& frame, int64_t begin, int64_t end) {
  std::vector<Column> columns;
  for (int64_t j = begin; j < end; ++j) columns.push_back(frame.column(j));
  return Frame(std::make_shared<const Schema>(ColumnsOf(*frame.schema(), begin, end)), std::move(columns));
}

}  // namespace heddle::ops
