// SPDX-License-Identifier: Apache-2.0
#include "ops/generate/rand.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "core/memory/block_pool.h"
#include "core/values/panels.h"
#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/cells/storage.h"
#include "ops/generate/philox.h"
#include "ops/generate/random_stream.h"
#include "ops/simd/cellwise/precise_math.h"

namespace heddle::ops {
namespace {

constexpr int64_t kBlock = 1000;  // Rows and columns of a block; part of the definition of rand().

using Distribution = RandRequest::Distribution;

// One block of the matrix: `rows` x `columns` cells, each drawn in row-major order from its own seed.
struct Block {
  int64_t rows;
  int64_t columns;
  int64_t seed;
};

// The values of one block in the order in which they are drawn.
class ValueStream {
 public:
  ValueStream(const RandRequest& request, const PoissonTable* poisson, int64_t seed)
      : uniform_(seed),
        normal_(seed),
        well_(seed),
        philox_(seed),
        distribution_(request.distribution),
        poisson_(poisson) {}

  double Next() {
    switch (distribution_) {
      case Distribution::kUniform: return uniform_.NextDouble();
      case Distribution::kNormal: return normal_.Next();
      case Distribution::kPoisson: return poisson_->Sample(well_);
      case Distribution::kCounterUniform: return philox_.NextUniform();
      case Distribution::kCounterNormal: return philox_.NextNormal();
    }
    return 0;
  }
  void Skip(int64_t count) {
    switch (distribution_) {
      case Distribution::kUniform: uniform_.SkipDoubles(count); break;
      case Distribution::kNormal: normal_.Skip(count); break;
      case Distribution::kPoisson:
        for (int64_t i = 0; i < count; ++i) poisson_->Sample(well_);
        break;
      case Distribution::kCounterUniform:
      case Distribution::kCounterNormal: philox_.Skip(count); break;
    }
  }

 private:
  JavaRandom uniform_;
  NormalStream normal_;
  Well1024a well_;
  PhiloxStream philox_;
  Distribution distribution_;
  const PoissonTable* poisson_;
};

bool IsUniform(Distribution distribution) {
  return distribution == Distribution::kUniform || distribution == Distribution::kCounterUniform;
}

bool IsCounterBased(Distribution distribution) {
  return distribution == Distribution::kCounterUniform || distribution == Distribution::kCounterNormal;
}

// Java's (long) of a double: saturates, NaN gives 0.
int64_t SaturatedLong(double x) {
  if (std::isnan(x)) return 0;
  if (x >= 0x1.0p63) return INT64_MAX;
  if (x <= -0x1.0p63) return INT64_MIN;
  return static_cast<int64_t>(x);
}

// The columns that are wanted.
struct ColumnRange {
  int64_t begin, end;
  int64_t count() const { return end - begin; }
};

// Everything that does not depend on the rows asked for.
struct Generator {
  Generator(const RandRequest& r, ColumnRange range_of_columns)
      : request(r),
        columns(range_of_columns),
        block_rows(CeilDivide(r.rows, kBlock)),
        block_columns(CeilDivide(r.columns, kBlock)),
        first_block(columns.begin / kBlock),
        wanted_blocks(CeilDivide(columns.end, kBlock) - first_block),
        low(IsUniform(r.distribution) ? r.min : 0),
        range(IsUniform(r.distribution) ? r.max - r.min : 1) {
    if (r.distribution == Distribution::kPoisson) poisson.emplace(r.lambda);
  }

  Block BlockAt(int64_t i, int64_t j) const {
    return {std::min(kBlock, request.rows - i * kBlock), std::min(kBlock, request.columns - j * kBlock),
            seeds[static_cast<size_t>(i * block_columns + j)]};
  }

  // Cells [begin, end) of the block's rows, all of them present: out[(row - begin) * stride + column].
  void FillFull(const Block& block, int64_t begin, int64_t end, double* out, int64_t stride) const {
    // The first number of a block seeds what says which cells are present; a counter-based stream begins
    // anew.
    const int64_t skip = (IsCounterBased(request.distribution) ? 0 : 1) + begin * block.columns;
    if (request.distribution == Distribution::kUniform) {
      JavaRandom random(block.seed);
      random.SkipDoubles(skip);
      for (int64_t i = begin; i < end; ++i, out += stride)
        for (int64_t j = 0; j < block.columns; ++j) out[j] = low + range * random.NextDouble();
      return;
    }
    ValueStream values(request, Poisson(), block.seed);
    values.Skip(skip);
    for (int64_t i = begin; i < end; ++i, out += stride)
      for (int64_t j = 0; j < block.columns; ++j) out[j] = low + range * values.Next();
  }

  // Calls put(row, column, value) for the present cells of rows [begin, end) of the block, in row-major
  // order.
  template <typename Put>
  void VisitPresent(const Block& block, int64_t begin, int64_t end, const Put& put) const {
    ValueStream values(request, Poisson(), block.seed);
    JavaRandom presence(SaturatedLong(values.Next() * 0x1.0p63));
    if (DrawsGaps(block.rows, block.columns, request.sparsity)) {
      const double log_absent = PreciseLog(1 - request.sparsity);
      const int64_t cells = block.rows * block.columns;
      int64_t skipped = 0;
      for (int64_t at = 0; at < end * block.columns;) {
        const int64_t gap = SaturatedLong(std::ceil(PreciseLog(presence.NextDouble()) / log_absent));
        if (gap > cells - at) return;
        at += gap;
        const int64_t cell = std::max<int64_t>(at - 1, 0);
        const int64_t row = cell / block.columns;
        if (row >= end) return;
        if (row < begin) {
          ++skipped;
          continue;
        }
        values.Skip(std::exchange(skipped, 0));
        put(row, cell % block.columns, low + range * values.Next());
      }
      return;
    }
    int64_t skipped = 0;
    for (int64_t k = 0; k < begin * block.columns; ++k) skipped += presence.NextDouble() <= request.sparsity;
    values.Skip(skipped);
    for (int64_t i = begin; i < end; ++i)
      for (int64_t j = 0; j < block.columns; ++j)
        if (presence.NextDouble() <= request.sparsity) put(i, j, low + range * values.Next());
  }

  const PoissonTable* Poisson() const { return poisson ? &*poisson : nullptr; }

  const RandRequest& request;
  const ColumnRange columns;
  int64_t block_rows;
  int64_t block_columns;
  int64_t first_block, wanted_blocks;  // Of those in a row, that have wanted columns.
  double low;
  double range;
  std::optional<PoissonTable> poisson;
  std::vector<int64_t> seeds;  // Of the blocks up to the last one needed.
};

// The rows of block row i that lie in [row_begin, row_end), relative to the block.
struct RowsOfBlock {
  RowsOfBlock(int64_t i, int64_t row_begin, int64_t row_end)
      : begin(std::max<int64_t>(0, row_begin - i * kBlock)), end(std::min(kBlock, row_end - i * kBlock)) {}
  int64_t begin;
  int64_t end;
};

// Fills `out`, rows [row_begin, row_end) of the wanted columns.
void DenseRows(const Generator& generator, int64_t row_begin, int64_t row_end, double* out) {
  const RandRequest& request = generator.request;
  const int64_t first = row_begin / kBlock;
  const int64_t last = CeilDivide(row_end, kBlock);
  const ColumnRange& wanted = generator.columns;
  ParallelFor((last - first) * generator.wanted_blocks, 1, [&](int64_t begin, int64_t end) {
    std::vector<double> whole_block;  // Of one at an edge.
    for (int64_t task = begin; task < end && !IsCancelled(request.cancelled); ++task) {
      const int64_t i = first + task / generator.wanted_blocks;
      const int64_t j = generator.first_block + task % generator.wanted_blocks;
      const Block block = generator.BlockAt(i, j);
      const RowsOfBlock rows(i, row_begin, row_end);
      const int64_t count = rows.end - rows.begin;
      const int64_t from = std::max<int64_t>(wanted.begin - j * kBlock, 0);
      const int64_t to = std::min(block.columns, wanted.end - j * kBlock);
      const bool is_whole = to - from == block.columns;
      double* const own =
          out + (i * kBlock + rows.begin - row_begin) * wanted.count() + j * kBlock + from - wanted.begin;
      if (!is_whole) whole_block.resize(static_cast<size_t>(count * block.columns));
      double* const corner = is_whole ? own : whole_block.data();
      const int64_t stride = is_whole ? wanted.count() : block.columns;
      if (request.sparsity == 1) {
        generator.FillFull(block, rows.begin, rows.end, corner, stride);
      } else {
        for (int64_t row = 0; row < count; ++row) std::fill_n(corner + row * stride, block.columns, 0.0);
        generator.VisitPresent(block, rows.begin, rows.end, [&](int64_t row, int64_t column, double value) {
          corner[(row - rows.begin) * stride + column] = value;
        });
      }
      for (int64_t row = 0; !is_whole && row < count; ++row)
        std::copy_n(corner + row * stride + from, to - from, own + row * wanted.count());
    }
  });
}

struct Entry {
  int32_t row;
  int32_t column;
  double value;
};

// Says at once what would only be seen after minutes of drawing. Of a Poisson distribution some of the cells
// that are present are zeros and not kept.
Status CheckNonzeros(const RandRequest& request, int64_t rows, int64_t columns) {
  if (request.distribution == Distribution::kPoisson) return OkStatus();
  constexpr double kSurely = 0.9;  // Of the expected number; the numbers that do not fit are large.
  const double expected = request.sparsity * static_cast<double>(rows) * static_cast<double>(columns);
  const MemoryBudget& budget = MemoryBudget::Process();
  if (kSurely * expected * (sizeof(int32_t) + sizeof(double)) < static_cast<double>(budget.limit()))
    return OkStatus();
  return DoesNotFit(fmt::format("a matrix of about {:.0f} cells that are not zero", expected), budget);
}

Result<Matrix> SparseRows(const Generator& generator, int64_t row_begin, int64_t row_end) {
  const RandRequest& request = generator.request;
  const int64_t first = row_begin / kBlock;
  const int64_t strips = CeilDivide(row_end, kBlock) - first;
  // Entries of each block row, ordered by block column, then row-major within the block.
  std::vector<std::vector<Entry>> entries(static_cast<size_t>(strips));
  std::vector<int64_t> counts(static_cast<size_t>(row_end - row_begin) + 1, 0);
  ParallelFor(strips, 1, [&](int64_t begin, int64_t end) {
    for (int64_t strip = begin; strip < end && !IsCancelled(request.cancelled); ++strip) {
      const int64_t i = first + strip;
      const RowsOfBlock rows(i, row_begin, row_end);
      std::vector<Entry>& list = entries[static_cast<size_t>(strip)];
      int64_t* count = counts.data() + (i * kBlock - row_begin) + 1;
      for (int64_t j = generator.first_block; j < generator.first_block + generator.wanted_blocks; ++j) {
        generator.VisitPresent(generator.BlockAt(i, j), rows.begin, rows.end,
                               [&](int64_t row, int64_t column, double value) {
                                 const int64_t at = j * kBlock + column - generator.columns.begin;
                                 if (value == 0 || at < 0 || at >= generator.columns.count()) return;
                                 list.push_back({static_cast<int32_t>(row), static_cast<int32_t>(at), value});
                                 ++count[row];
                               });
      }
    }
  });
  if (IsCancelled(request.cancelled)) return Cancelled("cancelled");
  for (size_t row = 1; row < counts.size(); ++row) counts[row] += counts[row - 1];
  HEDDLE_ASSIGN_OR_RETURN(Matrix result,
                          Matrix::Sparse(row_end - row_begin, generator.columns.count(), counts.back()));
  std::copy(counts.begin(), counts.end(), result.mutable_row_offsets());
  int32_t* indexes = result.mutable_column_indexes();
  double* values = result.mutable_values();
  ParallelFor(strips, 1, [&](int64_t begin, int64_t end) {
    for (int64_t strip = begin; strip < end; ++strip) {
      int64_t* next =
          counts.data() + ((first + strip) * kBlock - row_begin);  // Each strip moves its own rows only.
      for (const Entry& entry : entries[static_cast<size_t>(strip)]) {
        const int64_t at = next[entry.row]++;
        indexes[at] = entry.column;
        values[at] = entry.value;
      }
      entries[static_cast<size_t>(strip)] = {};
    }
  });
  return result;
}

Result<Matrix> RandomPart(const RandRequest& request, int64_t row_begin, int64_t row_end, ColumnRange columns,
                          Format format) {
  const int64_t rows = row_end - row_begin;
  const bool uniform = IsUniform(request.distribution);
  const bool all_zero = request.sparsity == 0 || (uniform && request.min == 0 && request.max == 0);
  if (rows == 0 || columns.count() == 0 || all_zero) {
    if (format == Format::kSparse) return Matrix::Sparse(rows, columns.count(), 0);
    return FilledMatrix(rows, columns.count(), 0);
  }
  Matrix result;
  if (uniform && request.sparsity == 1 && request.min == request.max) {
    HEDDLE_ASSIGN_OR_RETURN(result, FilledMatrix(rows, columns.count(), request.min));
  } else {
    // First what the budget may refuse, then the seeds, which grow with the blocks.
    const bool sparse = format == Format::kSparse && request.sparsity < 1;
    if (sparse) HEDDLE_RETURN_IF_ERROR(CheckNonzeros(request, rows, columns.count()));
    HEDDLE_ASSIGN_OR_RETURN(
        result, sparse ? Matrix::Sparse(rows, columns.count(), 0) : Matrix::Dense(rows, columns.count()));
    Generator generator(request, columns);
    generator.seeds = BlockSeeds(request.seed, CeilDivide(row_end, kBlock) * generator.block_columns);
    if (sparse) return SparseRows(generator, row_begin, row_end);
    DenseRows(generator, row_begin, row_end, result.mutable_data());
  }
  if (IsCancelled(request.cancelled)) return Cancelled("cancelled");
  return format == Format::kSparse ? AsSparse(result) : result;
}

}  // namespace

bool DrawsGaps(int64_t rows, int64_t columns, double sparsity) {
  if (!(sparsity < 1) || columns <= 1) return false;
  const auto m = static_cast<double>(rows);
  const auto n = static_cast<double>(columns);
  const double estimate = static_cast<double>(SaturatedLong(sparsity * m * n));
  const double density = estimate / m / n;
  if (!(density < 0.4)) return false;
  // Bytes: a header of 56; dense another 96 and 8 a cell; sparse rows 48, 8 a row, and 88 + 12 a cell for
  // each row used.
  const double dense_bytes = 56 + 96 + 8 * m * n;
  if (density == 0) return 56 < dense_bytes;
  const double nonzeros = std::ceil(density * m * n);
  const double rows_used = std::min(m, nonzeros);
  const double row_bytes = std::floor(88 + 12 * std::max(1.0, std::max(4.0, nonzeros / rows_used)));
  const double sparse_bytes = 56 + std::floor(16 + 32 + 8 * m + rows_used * row_bytes);
  return sparse_bytes < dense_bytes;
}

Result<Matrix> RandomRows(const RandRequest& request, int64_t row_begin, int64_t row_end, Format format) {
  return RandomPart(request, row_begin, row_end, {0, request.columns}, format);
}

Result<Matrix> RandomColumns(const RandRequest& request, int64_t column_begin, int64_t column_end,
                             Format format) {
  return RandomPart(request, 0, request.rows, {column_begin, column_end}, format);
}

}  // namespace heddle::ops
