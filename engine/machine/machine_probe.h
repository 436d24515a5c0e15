// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "ops/base/machine_constants.h"

namespace heddle {
class Clock;
}

namespace heddle::engine {

/// Work that shows how fast a machine is. Each call does a fixed amount with all threads and tells how much
/// it was.
class ProbeWork {
 public:
  virtual ~ProbeWork() = default;
  virtual double Write() = 0;         ///< Bytes of a large result, past the caches into reused memory.
  virtual double Read() = 0;          ///< Bytes that Write() has left in memory and in no cache.
  virtual double Compute() = 0;       ///< Cells of a cell-wise operator on tiles in the first-level cache.
  virtual int64_t ProcessorNs() = 0;  ///< Processor time of all threads of this process so far.
};

/// The kernels of operators, in an arena of `threads`, on 128 MiB of the pool of matrix memory. nullptr when
/// these do not fit into the budget.
std::unique_ptr<ProbeWork> MakeProbeWork(int threads);

/// Times `work`: once unmeasured, which touches its memory and wakes its threads, then a few rounds, of which
/// the fastest counts. About 40 ms; after 30 ms no round begins. Constants that are no rates of memory and
/// arithmetic are the built-in ones. nullopt when what was measured cannot be true, or when the machine had
/// time for all threads in no round: what others leave of a machine is no constant.
std::optional<ops::MachineConstants> MeasureMachine(ProbeWork& work, int threads, Clock& clock);

}  // namespace heddle::engine
