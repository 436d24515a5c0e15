// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/programs/fused_operator.h"
#include "core/values/value.h"
#include "ops/base/cpu.h"
#include "ops/fused/by_text.h"
#include "ops/region/region.h"

// The operators "fused", of one root, and "fusedSeveral" (docs/fusion.md): any number of inputs, attribute
// "operator" = FusedOperator::ToText().
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

  /// Programs kept; one more forgets them all. Sizes that change from round to round give new texts for ever.
  static constexpr size_t kMostPrograms = 1024;

  /// What calls compute by interpreting a region, whichever operators have it, before it is compiled:
  /// additions at a cell, where a function counts for several. About as long as compiling takes, so that
  /// small data do not wait for it and large data lose little.
  static constexpr double kInterpretedWork = 1 << 25;
  /// Regions whose work is counted; one more forgets the counts.
  static constexpr size_t kMostCounted = 1 << 16;

  /// The lowered program with the code that `call` is to run, from a cache by text. What the call will
  /// compute is counted towards kInterpretedWork; without a call, or where strict, everything is compiled.
  Result<std::shared_ptr<const TileProgram>> Get(const std::string& text, const KernelCall* call = nullptr);
  /// Runs the fused operator of the call's node, and counts what it did.
  Status Run(const KernelCall& call, std::span<Value> results);
  /// Counts a call of what is no fused operator, but is listed beside them.
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
  std::shared_ptr<Entry> EntryOf(const std::string& text);
  Result<std::shared_ptr<const TileProgram>> ProgramOf(Entry* entry, const std::string& text,
                                                       const KernelCall* call);
  void Lower(Entry* entry, const std::string& text);
  Status Compile(Entry* entry, const KernelCall* call);
  bool IsWorthCompiling(size_t region, double work);

  std::shared_ptr<RegionSource> source_;
  bool strict_;
  Processor processor_;
  std::function<void(const Status&)> warn_;
  mutable std::mutex mutex_;
  ByText<Entry> entries_;
  std::unordered_map<size_t, double> work_;  ///< By the hash of a region's text: done by interpreting it.
  std::map<std::string, FusedCounts> forgotten_;  ///< By label: of programs that went, and of what is none.
  int64_t fallbacks_ = 0;
};

/// The place as in errors, without the folders of the script.
std::string ShortPlace(SourcePosition position);

/// The runtime of calls whose KernelContext has none: interpreted regions.
FusedRuntime& InterpretedRuntime();

}  // namespace heddle::ops
