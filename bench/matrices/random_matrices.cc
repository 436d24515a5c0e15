// SPDX-License-Identifier: Apache-2.0
#include "bench/matrices/random_matrices.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace heddle::bench {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014).
class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u) {}
  double Uniform() {  // (0, 1]
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<double>(((z ^ (z >> 31)) >> 11) + 1) * 0x1p-53;
  }

 private:
  uint64_t state_;
};

Matrix Checked(Result<Matrix> matrix) {
  if (!matrix.ok()) {
    std::fprintf(stderr, "heddle-bench: %s\n", matrix.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(matrix);
}

constexpr int64_t kRowsOfSeed = 1024;

// Calls visit(row, column, generator) for the entries of some rows: the gaps between them are geometric.
template <typename Visit>
void VisitEntries(int64_t block, int64_t rows, int64_t columns, double density, uint64_t seed, Visit visit) {
  Generator generator(seed * 1'000'003 + static_cast<uint64_t>(block));
  const double scale = 1.0 / std::log1p(-density);
  const int64_t begin = block * kRowsOfSeed, end = std::min(rows, begin + kRowsOfSeed);
  for (double cell = 0;; cell += 1) {
    cell += std::floor(std::log(generator.Uniform()) * scale);
    const auto place = static_cast<int64_t>(cell);
    if (place >= (end - begin) * columns) return;
    visit(begin + place / columns, place % columns, generator);
  }
}

}  // namespace

Matrix RandomDense(int64_t rows, int64_t columns, uint64_t seed, ops::Arena* arena) {
  Matrix matrix = Checked(Matrix::Dense(rows, columns));
  constexpr int64_t kCells = 1 << 16;
  const int64_t cells = rows * columns;
  arena->Execute([&] {
    ops::ParallelFor((cells + kCells - 1) / kCells, 1, [&](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block) {
        Generator generator(seed * 1'000'003 + static_cast<uint64_t>(block));
        for (int64_t i = block * kCells; i < std::min(cells, (block + 1) * kCells); ++i)
          matrix.mutable_data()[i] = 0.1 + generator.Uniform();
      }
    });
  });
  return matrix;
}

Matrix RandomSparse(int64_t rows, int64_t columns, double density, uint64_t seed, ops::Arena* arena) {
  const int64_t blocks = (rows + kRowsOfSeed - 1) / kRowsOfSeed;
  std::vector<int64_t> counts(static_cast<size_t>(rows) + 1, 0);
  arena->Execute([&] {
    ops::ParallelFor(blocks, 1, [&](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block)
        VisitEntries(block, rows, columns, density, seed,
                     [&](int64_t row, int64_t, Generator&) { ++counts[static_cast<size_t>(row) + 1]; });
    });
  });
  for (size_t i = 1; i < counts.size(); ++i) counts[i] += counts[i - 1];
  Matrix matrix = Checked(Matrix::Sparse(rows, columns, counts.back()));
  std::copy(counts.begin(), counts.end(), matrix.mutable_row_offsets());
  arena->Execute([&] {
    ops::ParallelFor(blocks, 1, [&](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block) {
        int64_t place = counts[static_cast<size_t>(block * kRowsOfSeed)];
        Generator values(~seed * 1'000'003 + static_cast<uint64_t>(block));
        VisitEntries(block, rows, columns, density, seed, [&](int64_t, int64_t column, Generator&) {
          matrix.mutable_column_indexes()[place] = static_cast<int32_t>(column);
          matrix.mutable_values()[place++] = 0.1 + values.Uniform();
        });
      }
    });
  });
  return matrix;
}

Matrix TouchedDense(int64_t rows, int64_t columns, ops::Arena* arena) {
  Matrix matrix = Checked(Matrix::Dense(rows, columns));
  arena->Execute([&] {
    ops::ParallelFor(matrix.cells(), 1 << 18, [&](int64_t begin, int64_t end) {
      std::fill(matrix.mutable_data() + begin, matrix.mutable_data() + end, 0.0);
    });
  });
  return matrix;
}

}  // namespace heddle::bench
