// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/body/batch_time.h"

#include <algorithm>

#include "core/values/panels.h"
#include "ops/recursion/body/body_program.h"
#include "ops/recursion/body/recursive_body.h"

namespace heddle::ops {
namespace {

using StepKind = BodyStep::Kind;

// What one core does in a microsecond, about: multiply-adds of doubles, half as many as of floats, where many
// rows share a cell of B; bytes of B that come from the second-level cache, where few do; additions of fused
// operators, and bytes of rows that are moved.
constexpr double kMultiplyAdds = 3e4, kBytesRead = 6e4, kAdditions = 4e3, kBytesMoved = 8e3;
// What a step takes besides, and a kernel that is called for each node.
constexpr double kStep = 0.2, kKernel = 1;

// Rows at once: at least so many, at most so many, so many bytes; and what is worth a thread's start.
constexpr int64_t kLeastRows = 8, kMostRows = 128, kMostBytes = 4 << 20, kRowsOfThread = 32;

}  // namespace

double ProductMicroseconds(int64_t rows, Shape b, int64_t cell_bytes) {
  const double bytes = static_cast<double>(b.Cells()) * static_cast<double>(cell_bytes);
  return std::max(static_cast<double>(rows) * bytes / 8 / kMultiplyAdds, bytes / kBytesRead);
}

int64_t RowsAtOnce(int64_t rows, int64_t row_bytes, int threads) {
  const int64_t most = std::clamp(kMostBytes / std::max<int64_t>(row_bytes, 1), kLeastRows, kMostRows);
  if (threads == 1) return most;
  return std::min(most, std::max(kRowsOfThread, CeilDivide(rows, int64_t{2} * threads)));
}

BodyTime::BodyTime(const BodyProgram& program) : row_bytes_(program.row_bytes()) {
  const RecursiveBody& body = program.body();
  const auto value_at = [&](int32_t id) -> const BodyValue& { return body.values[static_cast<size_t>(id)]; };
  const auto bytes_of = [&](int32_t id) {
    return static_cast<double>(CellsOf(value_at(id)) * CellBytes(value_at(id)));
  };
  const auto multiplies = [&](int32_t id) {
    const Shape a = value_at(value_at(id).inputs[0].id).node.info.shape;
    const Shape b = value_at(value_at(id).inputs[1].id).node.info.shape;
    return Product{a.rows, b, CellBytes(value_at(id))};
  };
  for (const int32_t id : program.with_child()) products_.push_back(multiplies(id));
  for (const BodyStep& step : program.batch_steps()) {
    of_batch_ += kStep;
    switch (step.kind) {
      case StepKind::kMultiply:
        products_.push_back(multiplies(step.value));
        products_.back().rows_of_node *= static_cast<int64_t>(std::max<size_t>(step.stacked.size(), 1));
        break;
      case StepKind::kRegion: {
        const BodyRegion& region = program.region(step.value);
        of_row_ += static_cast<double>(region.columns) * region.work / kAdditions;
        break;
      }
      case StepKind::kNodeProduct: {
        const Product product = multiplies(step.value);
        of_row_ += ProductMicroseconds(product.rows_of_node, product.b, product.cell_bytes);
        break;
      }
      case StepKind::kKernel: of_row_ += kKernel + 2 * bytes_of(step.value) / kBytesMoved; break;
      case StepKind::kCopy: of_row_ += bytes_of(step.from) / kBytesMoved; break;
      case StepKind::kChildren:
      case StepKind::kLookup:
      case StepKind::kNumbers:
      case StepKind::kPick:
      case StepKind::kPut:
      case StepKind::kConvert:
      case StepKind::kTranspose: of_row_ += bytes_of(step.value) / kBytesMoved; break;
      case StepKind::kView: break;
    }
  }
}

double BodyTime::Of(int64_t rows, int threads) const {
  const int64_t height = std::min(rows, RowsAtOnce(rows, row_bytes_, threads));
  const int64_t chunks = CeilDivide(rows, height);
  if (chunks == 1) return OfRows(rows, threads);
  if (threads == 1)
    return static_cast<double>(chunks - 1) * OfRows(height, 1) + OfRows(rows - (chunks - 1) * height, 1);
  return static_cast<double>(CeilDivide(chunks, threads)) * OfRows(height, 1) + kHandOverMicroseconds;
}

// Threads share out products, and nothing else.
double BodyTime::OfRows(int64_t rows, int threads) const {
  double time = of_batch_ + of_row_ * static_cast<double>(rows);
  for (const Product& product : products_) {
    const double alone = ProductMicroseconds(rows * product.rows_of_node, product.b, product.cell_bytes);
    time +=
        threads == 1 || alone < kMicrosecondsWorthThreads ? alone : alone / threads + kHandOverMicroseconds;
  }
  return time;
}

}  // namespace heddle::ops
