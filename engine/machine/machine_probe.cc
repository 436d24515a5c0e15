// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/machine_probe.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/environment/clock.h"
#include "core/memory/block_pool.h"
#include "ops/base/parallel.h"
#include "ops/simd/aggregate.h"
#include "ops/simd/cellwise/elementwise.h"

namespace heddle::engine {
namespace {

constexpr int64_t kBytes = int64_t{128} << 20;  // More than last-level caches of these years keep.
constexpr int64_t kCells = kBytes / static_cast<int64_t>(sizeof(double));
constexpr int64_t kGrain = int64_t{1} << 15;  // cells of a range of one thread
constexpr int64_t kTileCells = 512;           // three tiles fill a third of the first-level cache
constexpr int64_t kTiles = 4096;              // of a range; four ranges a thread
constexpr int64_t kSourceCells = 2048;
constexpr int kMostRounds = 5;
constexpr int64_t kMostNs = 30'000'000;
constexpr double kLeastShare = 0.7;  // of the processors, for a round that counts
constexpr double kKeptDigits = 100;  // two digits: enough for a model, and runs on a quiet machine agree

class KernelsAsWork : public ProbeWork {
 public:
  KernelsAsWork(double* cells, int threads) : cells_(cells), arena_(threads) {}
  ~KernelsAsWork() override { BlockPool::Process().Free(cells_, kBytes); }

  double Write() override {
    const ops::BinaryKernel multiply = Multiply(ops::Operands::kCellsScalar);
    alignas(64) static constexpr std::array<double, kSourceCells> kSource{};
    InRanges([&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i += kSourceCells)
        multiply(kSource.data(), kSource.data(), cells_ + i, kSourceCells, /*stream=*/true);
    });
    return static_cast<double>(kBytes);
  }

  double Read() override {
    InRanges([&](int64_t begin, int64_t end) {
      double lanes[8] = {};
      ops::simd::FoldFlat(ops::simd::Fold::kAdd, cells_ + begin, end - begin, lanes);
    });
    return static_cast<double>(kBytes);
  }

  double Compute() override {
    const ops::BinaryKernel multiply = Multiply(ops::Operands::kCellsCells);
    const int64_t ranges = int64_t{4} * arena_.threads();
    arena_.Execute([&] {
      ops::ParallelFor(ranges, 1, [&](int64_t begin, int64_t end) {
        alignas(64) std::array<double, kTileCells> a{}, b{}, out{};
        for (int64_t i = begin * kTiles; i < end * kTiles; ++i)
          multiply(a.data(), b.data(), out.data(), kTileCells, /*stream=*/false);
      });
    });
    return static_cast<double>(ranges * kTiles * kTileCells);
  }

  int64_t ProcessorNs() override {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  }

 private:
  static ops::BinaryKernel Multiply(ops::Operands operands) {
    return ops::SelectedElementwiseKernels().Of(ops::BinaryCode::kMultiply, operands);
  }
  template <typename Body>
  void InRanges(const Body& body) {
    arena_.Execute([&] { ops::ParallelFor(kCells, kGrain, body); });
  }

  double* const cells_;
  ops::Arena arena_;
};

// Amount by nanoseconds of one call; 0 where the clock has not moved.
template <typename Work>
double RateOf(Clock& clock, const Work& work) {
  const int64_t begin_ns = clock.MonotonicNs();
  const double amount = work();
  const int64_t elapsed_ns = clock.MonotonicNs() - begin_ns;
  return elapsed_ns > 0 ? amount / static_cast<double>(elapsed_ns) : 0;
}

double Rounded(double rate) {
  if (!(rate > 0)) return 0;
  const double unit = std::pow(10, std::floor(std::log10(rate))) * 10 / kKeptDigits;
  return std::round(rate / unit) * unit;
}

}  // namespace

std::unique_ptr<ProbeWork> MakeProbeWork(int threads) {
  Result<void*> cells = BlockPool::Process().Allocate(kBytes);
  if (!cells.ok()) return nullptr;
  return std::make_unique<KernelsAsWork>(static_cast<double*>(*cells), threads);
}

std::optional<ops::MachineConstants> MeasureMachine(ProbeWork& work, int threads, Clock& clock) {
  double write = 0, read = 0, compute = 0;
  work.Write();
  const int64_t end_ns = clock.MonotonicNs() + kMostNs;
  for (int round = 0; round < kMostRounds && clock.MonotonicNs() < end_ns; ++round) {
    const int64_t begin_ns = clock.MonotonicNs(), begin_processor_ns = work.ProcessorNs();
    const double rates[] = {RateOf(clock, [&] { return work.Write(); }),
                            RateOf(clock, [&] { return work.Read(); }),
                            RateOf(clock, [&] { return work.Compute(); })};
    const auto wanted_ns = static_cast<double>((clock.MonotonicNs() - begin_ns) * threads);
    if (static_cast<double>(work.ProcessorNs() - begin_processor_ns) < kLeastShare * wanted_ns) continue;
    write = std::max(write, rates[0]);
    read = std::max(read, rates[1]);
    compute = std::max(compute, rates[2]);
  }
  ops::MachineConstants constants = ops::BuiltInConstants(threads);
  constants.write_bytes_per_ns = Rounded(write);
  constants.read_bytes_per_ns = Rounded(read);
  constants.work_per_ns = Rounded(compute);
  constants.measured = true;
  if (!ArePlausible(constants)) return std::nullopt;
  return constants;
}

}  // namespace heddle::engine
