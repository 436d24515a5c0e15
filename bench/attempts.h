// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "core/values/matrix.h"
#include "ops/base/parallel.h"

// What rows of the benchmarks share: timing between two probes of one machine's moment, and comparing.
namespace heddle::bench {

/// Read bandwidth of this moment, GB/s, over data that no cache holds.
class ReadProbe {
 public:
  ReadProbe(int64_t cells, int threads, ops::Arena* arena);
  double Best() const;  ///< Of several.
  const Matrix& data() const { return data_; }

 private:
  int threads_;
  Matrix data_;
};

/// The largest difference of a cell, relative to the largest cell of b; infinite for a NaN.
double Difference(const double* a, const double* b, int64_t cells);

/// Rounds of a row whose first one took so long: about a second and a half for each attempt.
int RoundsOf(double first_ms, int least);

/// Times between two probes: `probe` is the better one, `drift` how much they differed.
struct Attempt {
  double probe = 0, drift = 0;
};

/// Calls round(figures) `rounds` times between two probes; again, at most five times in all, where the probes
/// differ by more than 10 %, since the machine changed its speed meanwhile. The figures (an Attempt with
/// times) of the attempt that drifted least. `bound_by_memory`: otherwise the probes do not matter.
template <typename Figures, typename Round>
Figures BestAttempt(const ReadProbe& probe, int rounds, bool bound_by_memory, Round round) {
  constexpr int kAttempts = 5;
  constexpr double kDrift = 0.10;
  Figures best;
  best.drift = 1e300;
  for (int attempt = 0; attempt < kAttempts && best.drift > kDrift; ++attempt) {
    Figures now;
    const double before = probe.Best();
    for (int i = 0; i < rounds; ++i) round(now);
    const double after = probe.Best();
    now.probe = before > after ? before : after;
    now.drift = bound_by_memory ? std::abs(before - after) / now.probe : 0;
    if (now.drift < best.drift) best = now;
  }
  return best;
}

}  // namespace heddle::bench
