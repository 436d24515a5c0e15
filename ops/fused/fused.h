// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/programs/fused_operator.h"
#include "core/recently_used.h"
#include "core/values/value.h"
#include "ops/base/cpu.h"
#include "ops/fused/by_operators.h"
#include "ops/region/region.h"

// The operators "fused", of one root, and "fusedSeveral" (docs/fusion.md): any number of inputs. What they
// compute is in Node::fused.
namespace heddle::ops {

struct KernelCall;   // ops/base/kernel.h
struct TileProgram;  // ops/fused/program/tile_program.h

/// Whether the skeletons of this folder can run it; OK, or kUnimplemented with the reason. The planner asks
/// before it forms an operator, so that a fused node always runs.
Status CanRunFused(const FusedOperator& fused);

/// Template and roots: "stitch sum colSums".
std::string NameOf(const FusedOperator& fused);

/// What one fused operator did in a job.
struct FusedCounts {
  std::string label;  ///< Template, roots and their places: "cell sum train.dml:12:9".
  int64_t calls = 0;
  int64_t nanoseconds = 0;
  int64_t bytes = 0;         ///< Read from inputs and written to the result.
  bool interpreted = false;  ///< Some region had no machine code in the last call.
};

/// Machine code and records of the fused operators of one executor. Thread-safe.
class FusedRuntime {
 public:
  /// `source` makes machine code; nullptr: all regions are interpreted, and that counts as no fallback.
  /// `strict`: a region that cannot be compiled is an error. `warn` hears of the first fallback.
  /// Tiles and loops are those of `processor`.
  FusedRuntime(std::shared_ptr<RegionSource> source, bool strict, std::function<void(const Status&)> warn,
               const Processor& processor = {});
  ~FusedRuntime();

  /// Lowered programs that are held; sizes that change from round to round need new ones for ever.
  static constexpr size_t kMostPrograms = 1024;

  /// How much the calls of a region, of whichever operators, compute by the interpreter before the region is
  /// compiled: in additions, where a function counts for several. That takes about as long as compiling, so
  /// small data do not wait for the compiler and large data lose little.
  static constexpr double kInterpretedWork = 1 << 25;
  /// Regions whose work is counted.
  static constexpr size_t kMostCounted = 1 << 16;

  /// The program of these operators, lowered by the first who asks, with the code that `call` is to run. What
  /// the call will compute counts towards kInterpretedWork; without a call, or where strict, everything is
  /// compiled at once.
  Result<std::shared_ptr<const TileProgram>> Get(const std::shared_ptr<const FusedOperator>& fused,
                                                 const KernelCall* call = nullptr);
  /// Runs the fused operator of the call's node, and counts what it did.
  Status Run(const KernelCall& call, std::span<Value> results);
  /// Counts a call of an operator that is not fused, but stands in the same list of statistics.
  void Record(const std::string& label, int64_t nanoseconds, int64_t bytes);
  /// Code for a region that is part of no fused operator, of which so much is about to be computed; nullptr
  /// while that is not worth compiling, or there is no source.
  Result<std::shared_ptr<const RegionCode>> CodeOf(const Region& region, double work);
  /// By descending time.
  std::vector<FusedCounts> Counts() const;
  int64_t fallbacks() const;
  size_t programs() const;

 private:
  struct Entry;
  std::shared_ptr<Entry> EntryOf(const std::shared_ptr<const FusedOperator>& fused);
  Result<std::shared_ptr<const TileProgram>> ProgramOf(Entry* entry, const FusedOperator& fused,
                                                       const KernelCall* call);
  void Lower(Entry* entry, const FusedOperator& fused);
  Status Compile(Entry* entry, const KernelCall* call);
  bool IsWorthCompiling(size_t region, double work);

  std::shared_ptr<RegionSource> source_;
  bool strict_;
  Processor processor_;
  std::function<void(const Status&)> warn_;
  mutable std::mutex mutex_;
  ByOperators<FusedOperator, Entry> entries_{kMostPrograms};
  /// By the hash of a region's text: work done by the interpreter.
  RecentlyUsedMap<size_t, double> work_{kMostCounted};
  /// By label: what programs did that are forgotten, and what was counted by Record.
  std::map<std::string, FusedCounts> other_counts_;
  int64_t fallbacks_ = 0;
};

/// The place as in errors, without the folders of the script.
std::string ShortPlace(SourcePosition position);

/// The runtime of calls whose KernelContext has none: interpreted regions.
FusedRuntime& InterpretedRuntime();

}  // namespace heddle::ops
