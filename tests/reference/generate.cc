// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/generate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "ops/generate/random_stream.h"
#include "ops/simd/cellwise/precise_math.h"

namespace heddle::ops::reference {
namespace {

// java.util.Random as its specification states it, one masked step at a time.
struct PlainJavaRandom {
  uint64_t state;
  explicit PlainJavaRandom(int64_t seed)
      : state((static_cast<uint64_t>(seed) ^ 0x5DEECE66DULL) & 0xFFFFFFFFFFFFULL) {}
  uint64_t Next(int bits) {
    state = (state * 0x5DEECE66DULL + 0xBULL) & 0xFFFFFFFFFFFFULL;
    return state >> (48 - bits);
  }
  double NextDouble() {
    const uint64_t high = Next(26);
    return static_cast<double>((high << 27) + Next(27)) / 9007199254740992.0;
  }
};

std::function<double()> Values(const RandRequest& request, int64_t seed) {
  auto random = std::make_shared<PlainJavaRandom>(seed);
  if (request.distribution == RandRequest::Distribution::kUniform)
    return [random] { return random->NextDouble(); };
  if (request.distribution == RandRequest::Distribution::kNormal) {
    auto second = std::make_shared<std::pair<bool, double>>(false, 0.0);
    return [random, second] {
      if (second->first) {
        second->first = false;
        return second->second;
      }
      const double u1 = random->NextDouble();
      const double u2 = random->NextDouble();
      double sine, cosine;
      PreciseSineCosine(6.283185307179586 * u2, &sine, &cosine);
      const double radius = std::sqrt(-2 * PreciseLog(u1));
      *second = {true, radius * sine};
      return radius * cosine;
    };
  }
  auto table = std::make_shared<PoissonTable>(request.lambda);
  auto well = std::make_shared<Well1024a>(seed);
  return [table, well] { return table->Sample(*well); };
}

}  // namespace

Matrix Random(const RandRequest& request) {
  Result<Matrix> result = FilledMatrix(request.rows, request.columns, 0);
  HEDDLE_CHECK(result.ok(), "reference matrices are small");
  const bool uniform = request.distribution == RandRequest::Distribution::kUniform;
  const double min = uniform ? request.min : 0;
  const double range = uniform ? request.max - request.min : 1;
  const int64_t block_columns = (request.columns + 999) / 1000;
  const std::vector<int64_t> seeds = BlockSeeds(request.seed, (request.rows + 999) / 1000 * block_columns);
  for (int64_t i0 = 0; i0 < request.rows; i0 += 1000) {
    for (int64_t j0 = 0; j0 < request.columns; j0 += 1000) {
      const int64_t rows = std::min<int64_t>(1000, request.rows - i0);
      const int64_t columns = std::min<int64_t>(1000, request.columns - j0);
      const auto value = Values(request, seeds[static_cast<size_t>(i0 / 1000 * block_columns + j0 / 1000)]);
      const double presence_seed = value() * 9223372036854775807.0;
      PlainJavaRandom presence(presence_seed >= 0x1.0p63    ? INT64_MAX
                               : presence_seed <= -0x1.0p63 ? INT64_MIN
                                                            : static_cast<int64_t>(presence_seed));
      double* corner = result->mutable_data() + i0 * request.columns + j0;
      if (DrawsGaps(rows, columns, request.sparsity)) {
        const double log_absent = PreciseLog(1 - request.sparsity);
        for (double at = 0; at < static_cast<double>(rows * columns);) {
          at += std::ceil(PreciseLog(presence.NextDouble()) / log_absent);
          if (at > static_cast<double>(rows * columns)) break;
          const auto cell = static_cast<int64_t>(at) - 1;
          corner[cell / columns * request.columns + cell % columns] = min + range * value();
        }
        continue;
      }
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          if (request.sparsity == 1 || presence.NextDouble() <= request.sparsity)
            corner[i * request.columns + j] = min + range * value();
    }
  }
  return *std::move(result);
}

Matrix Sample(int64_t range, int64_t size, bool replace, int64_t seed) {
  Result<Matrix> result = Matrix::Dense(size, 1);
  HEDDLE_CHECK(result.ok(), "reference matrices are small");
  double* out = result->mutable_data();
  PlainJavaRandom random(seed);
  // nextInt(bound) of java.util.Random: an int that overflows is a number to be drawn again.
  const auto next_int = [&](int64_t bound) {
    int64_t bits = static_cast<int64_t>(random.Next(31));
    if ((bound & -bound) == bound) return bound * bits >> 31;
    while (bits - bits % bound + bound - 1 >= int64_t{1} << 31) bits = static_cast<int64_t>(random.Next(31));
    return bits % bound;
  };
  if (replace) {
    for (int64_t i = 0; i < size; ++i) {
      uint64_t bits = 0;
      do {
        const auto high = static_cast<int32_t>(random.Next(32)), low = static_cast<int32_t>(random.Next(32));
        bits = (static_cast<uint64_t>(int64_t{high}) << 32) + static_cast<uint64_t>(int64_t{low});
        bits &= ~uint64_t{0} >> 1;
      } while (bits - bits % static_cast<uint64_t>(range) + static_cast<uint64_t>(range - 1) > INT64_MAX);
      out[i] = static_cast<double>(1 + bits % static_cast<uint64_t>(range));
    }
    return *std::move(result);
  }
  for (int64_t i = 0; i < size; ++i) out[i] = static_cast<double>(i + 1);
  for (int64_t i = size + 1; i <= range; ++i)
    if (next_int(i) < size) out[next_int(size)] = static_cast<double>(i);
  for (int64_t i = 0; i + 1 < size; ++i) std::swap(out[i], out[i + next_int(size - i)]);
  return *std::move(result);
}

}  // namespace heddle::ops::reference
