// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "ops/base/kernel.h"
#include "ops/device/device.h"
#include "ops/device/print/print_tiles.h"
#include "ops/device/run/queued_call.h"
#include "ops/fused/program/tile_program.h"

namespace heddle::ops {

/// What a call of a tile program takes of the memory of a device beside what it reads and makes, as far as
/// the program tells: not the values at entries of a CSR driver, whose number it does not know.
struct TileScratch {
  struct Payloads {
    int64_t height;  ///< Rows of a leaf.
    int64_t width;   ///< Doubles of its payload.
  };
  std::vector<Payloads> payloads;  ///< By reduction.
  int64_t group_doubles = 0;       ///< Buffers of a work-group that may not fit in local memory.

  static TileScratch Of(const TileProgram& program, const PrintedTiles& printed);
  /// Of a call of so many rows, at most.
  int64_t Bytes(int64_t rows, const DeviceDescription& device) const;
};

/// A tile program as a device runs it.
class DeviceTiles : public std::enable_shared_from_this<DeviceTiles> {
 public:
  /// Prints it, for work-groups of so many work-items (0: as many as suit the device). kUnimplemented for a
  /// program of which no kernel is printed.
  static Result<PrintedTiles> Print(const TileProgram& program, const DeviceDescription& device,
                                    int64_t group_size);
  /// Compiles what is printed of it, unless the process has that kernel (KernelOf).
  static Result<std::shared_ptr<const DeviceTiles>> Make(std::shared_ptr<const TileProgram> program,
                                                         ComputeDevice& device, PrintedTiles printed);

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
              std::shared_ptr<DeviceKernel> kernel)
      : program_(std::move(program)),
        device_(device),
        printed_(std::move(printed)),
        kernel_(std::move(kernel)) {}

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
  const std::shared_ptr<DeviceKernel> kernel_;
};

}  // namespace heddle::ops
