// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/values/data_type.h"
#include "ops/base/machine_constants.h"

namespace heddle::engine {

/// How a job is run; the same on every rank but `rank`. Plain data: travels to executors.
struct SessionOptions {
  int rank = 0;
  int ranks = 1;
  int threads = 1;                                   ///< Of the compute arena of one rank.
  int64_t min_distributed_bytes = int64_t{8} << 20;  ///< Smaller matrices stay whole; 0 splits everything.
  int64_t memory_bytes = 0;                          ///< Budget of matrix memory of a rank; 0: unlimited.
  /// What a rank has where memory_bytes is 0, the same on every rank: plans that need more are in panels
  /// where these fit. 0: no plan is in panels for want of memory.
  int64_t available_bytes = 0;
  /// All plans are in panels that take about so many bytes in a pass, whatever the memory; 0: plans that
  /// would not fit are, with the highest panels that do.
  int64_t panel_bytes = 0;
  bool require_streaming = false;  ///< A plan in panels in which a value is whole that would not fit, is
                                   ///< refused, and tells which.
  int64_t seed = -1;               ///< Of the job, for rand() without a seed. -1: whoever starts
                                   ///< the job draws one.
  std::vector<std::string> disabled_passes;  ///< Of the compiler, by name.
  std::vector<std::string> plans;            ///< Texts of plans made ahead: first entries of the plan cache.
  std::string fusion = "cost";               ///< "off", "all", "no-redundancy", "cost" or "random:SEED".
  bool fusion_strict = false;                ///< A fused operator without machine code is an error.
  ops::MachineConstants constants;           ///< Of the cost model, the same on every rank. All zero: the
                                             ///< built-in ones of the threads of whoever makes a plan.
  ElementType element_type = ElementType::kFloat64;  ///< Of all matrices: the precision of the program.
  bool times_operators = false;  ///< -stats: how long operators take is measured, and told.
  /// Most events that are recorded of each thread, for the report of a run; 0: none, and no record.
  int64_t recorded_events = 0;
  std::string spill_folder;     ///< Of panels that memory has no room for; "": that of temporary files.
  std::string cpu;              ///< Kernels to use, ops::CpuOfRank; "": the widest. Same bits.
  std::string devices = "cpu";  ///< What computes: "cpu", or "opencl:NUMBER" beside it. Same bits.
  int max_call_depth = 10'000;  ///< Calls within calls; more is an error of the script.
};

}  // namespace heddle::engine
