// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "ops/base/kernel.h"
#include "ops/device/device.h"
#include "ops/device/print/print_tiles.h"
#include "ops/device/run/queued_call.h"
#include "ops/fused/program/tile_program.h"

namespace heddle::ops {

/// A tile program as a device runs it.
class DeviceTiles : public std::enable_shared_from_this<DeviceTiles> {
 public:
  /// Prints and compiles it, for work-groups of so many work-items (0: as many as suit the device).
  /// kUnimplemented for a program of which no kernel is printed.
  static Result<std::shared_ptr<const DeviceTiles>> Make(std::shared_ptr<const TileProgram> program,
                                                         ComputeDevice& device, int64_t group_size);

  /// Queues what computes the operator of the call as RunTiles does, to the bit. Matrices among the inputs
  /// are in the memory of the device or are copied there; results with a row for each row of the driver are
  /// there afterwards, reductions are finished by the host. QueuedCall::Finish is kUnimplemented where a sum
  /// has come out infinite or NaN: the host adds those again in a wider range, with the rows at hand.
  Result<std::unique_ptr<QueuedCall>> Queue(const KernelCall& call, DeviceQueue& queue,
                                            std::span<Value> results) const;

  const PrintedTiles& printed() const { return printed_; }

 private:
  class QueuedTiles;

  DeviceTiles(std::shared_ptr<const TileProgram> program, ComputeDevice& device, PrintedTiles printed,
              std::vector<std::shared_ptr<DeviceKernel>> kernels)
      : program_(std::move(program)),
        device_(device),
        printed_(std::move(printed)),
        kernels_(std::move(kernels)) {}

  /// What the host reads when the commands are done: flags and payloads.
  struct Readings;
  Status QueueReadings(const KernelCall& call, DeviceQueue& queue, std::span<Value> results,
                       const std::shared_ptr<Readings>& readings) const;
  Status FinishRoots(const KernelCall& call, const std::vector<Matrix>& leaves,
                     std::span<Value> results) const;
  Result<Matrix> NodesOf(const Reduction& reduction, int64_t first_leaf, int64_t leaf_count,
                         const std::vector<Matrix>& leaves, std::span<const size_t> roots) const;

  const std::shared_ptr<const TileProgram> program_;
  ComputeDevice& device_;
  const PrintedTiles printed_;
  const std::vector<std::shared_ptr<DeviceKernel>> kernels_;  // Of each pass.
};

}  // namespace heddle::ops
