// SPDX-License-Identifier: Apache-2.0
#include "bench/attempts.h"

#include <algorithm>

#include "bench/base/probe.h"
#include "bench/matrices/random_matrices.h"

namespace heddle::bench {

ReadProbe::ReadProbe(int64_t cells, int threads, ops::Arena* arena)
    : threads_(threads), data_(RandomDense(1, cells, 1, arena)) {}

double ReadProbe::Best() const {
  double best = 0;
  for (int i = 0; i < 4; ++i) best = std::max(best, ReadBandwidth(data_.data(), data_.cells(), threads_));
  return best;
}

double Difference(const double* a, const double* b, int64_t cells) {
  double largest = 0, difference = 0;
  for (int64_t i = 0; i < cells; ++i) {
    largest = std::max(largest, std::abs(b[i]));
    const double d = std::abs(a[i] - b[i]);
    difference = std::isnan(d) ? INFINITY : std::max(difference, d);
  }
  return difference == 0 ? 0 : difference / largest;
}

int RoundsOf(double first_ms, int least) {
  constexpr double kMillisecondsOfRow = 1500;
  return std::clamp(static_cast<int>(kMillisecondsOfRow / first_ms), least, 200);
}

}  // namespace heddle::bench
