// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ops/base/kernel.h"
#include "ops/device/device.h"
#include "ops/device/print/print_tiles.h"
#include "ops/device/run/queued_call.h"
#include "ops/fused/program/tile_program.h"

namespace heddle::ops {

class DeviceCommands;
class DeviceSteps;
class StepQueue;

/// What a call of a tile program takes of the memory of a device beside what it reads and makes, as far as
/// the program tells: not the values at entries of a CSR driver, whose number it does not know.
struct DeviceScratch {
  struct Payloads {
    int64_t height;  ///< Rows of a leaf.
    int64_t width;   ///< Doubles of its payloads.
  };
  std::vector<Payloads> payloads;  ///< By reduction.
  int64_t group_doubles = 0;       ///< Buffers of a work-group that may not fit in local memory.
  int64_t row_doubles = 0;         ///< Values of a row that phases save.

  static DeviceScratch Of(const TileProgram& program, const PrintedTiles& printed);
  /// Of a call of so many rows, at most.
  int64_t Bytes(int64_t rows, const DeviceDescription& device) const;
};

/// A tile program as a device runs it.
class DeviceTiles : public std::enable_shared_from_this<DeviceTiles> {
 public:
  /// Prints it, for work-groups of so many work-items (0: as many as suit the device) and inputs of which
  /// those scalars are in the memory of the device. kUnimplemented for a program of which no kernel is
  /// printed.
  static Result<PrintedTiles> Print(const TileProgram& program, const DeviceDescription& device,
                                    int64_t group_size, std::vector<bool> scalars_in_memory = {});
  /// Compiles what is printed of it, unless the process has those kernels (KernelOf).
  static Result<std::shared_ptr<const DeviceTiles>> Make(std::shared_ptr<const TileProgram> program,
                                                         ComputeDevice& device, PrintedTiles printed);

  /// Queues what computes the operator of the call as RunTiles does, to the bit, or the first of it: passes
  /// over many rows are launches of about 50 ms each (TaskLaunches), of which a few are queued at a time, as
  /// those of a product (DeviceSteps). Only the first launches read `scalars`, and inputs and infos of the
  /// call; `results` outlives the last. Matrices among the inputs are in the memory of the device or are
  /// copied there; matrices among the results of a whole call are there afterwards. Of other reductions the
  /// host finishes what the nodes of their trees come to. QueuedCall::Finish is kUnimplemented where a sum
  /// has come out infinite or NaN, or nearly so: the host adds those again in a wider range, with the rows at
  /// hand.
  ///
  /// `scalars` has those that are printed().scalars_in_memory, as matrices of one cell. With
  /// `keeps_scalars` scalar results of a whole call are such matrices, too.
  Result<std::unique_ptr<QueuedCall>> Queue(const KernelCall& call, DeviceQueue& queue,
                                            std::span<Value> results,
                                            const std::map<NodeId, Value>& scalars,
                                            bool keeps_scalars) const;
  const Graph& body() const { return program_->fused.body; }
  const TileProgram& program() const { return *program_; }
  ComputeDevice& device() const { return device_; }

  const PrintedTiles& printed() const { return printed_; }

 private:
  class QueuedTiles;

  DeviceTiles(std::shared_ptr<const TileProgram> program, ComputeDevice& device, PrintedTiles printed,
              std::vector<std::shared_ptr<DeviceKernel>> kernels)
      : program_(std::move(program)),
        device_(device),
        printed_(std::move(printed)),
        kernels_(std::move(kernels)) {}

  /// What the host reads when the commands are done: flags and nodes.
  struct Readings;
  // Whether the result of a reduction is in the memory of the device afterwards.
  bool Stays(const KernelCall& call, const TileRoot& root, const Readings& readings) const;
  Status QueueReadings(const KernelCall& call, StepQueue& queue, std::span<Value> results,
                       const std::map<NodeId, Value>& scalars,
                       const std::shared_ptr<Readings>& readings) const;
  /// The arguments of the kernels, in their order. `driver`: where it is a CSR matrix, it on the device.
  /// `infinite` gets a flag for each input whose cells have to be finite.
  Status AddInputs(const KernelCall& call, DeviceQueue& queue, Matrix* driver,
                   std::vector<std::shared_ptr<DeviceMemory>>* infinite,
                   std::vector<DeviceArgument>* arguments) const;
  Status AddScalars(const KernelCall& call, const std::map<NodeId, Value>& scalars,
                    std::vector<DeviceArgument>* arguments) const;
  /// With the memory of the results that the kernels write.
  Status AddResults(int64_t rows, const Matrix& driver, std::span<Value> results,
                    std::vector<DeviceArgument>* arguments) const;
  /// What work-groups and phases keep meanwhile.
  Status AddBuffers(int64_t groups, int64_t rows, const Matrix& driver,
                    std::vector<DeviceArgument>* arguments) const;
  /// All launches, of passes with so many tasks each.
  void AddLaunches(const KernelCall& call, const std::vector<int64_t>& tasks,
                   const std::vector<DeviceArgument>& arguments, DeviceSteps* steps) const;
  /// `rows`: of the driver.
  Status QueueRoot(const KernelCall& call, DeviceCommands& commands, int64_t rows, size_t r,
                   const std::shared_ptr<DeviceMemory>& payloads, const std::shared_ptr<DeviceMemory>& flags,
                   std::span<Value> results, Readings* readings) const;
  Status FinishRoots(const KernelCall& call, std::vector<std::optional<Matrix>>* nodes,
                     std::span<Value> results) const;
  Result<Matrix> NodesTogether(const std::vector<std::optional<Matrix>>& nodes) const;

  const std::shared_ptr<const TileProgram> program_;
  ComputeDevice& device_;
  const PrintedTiles printed_;
  const std::vector<std::shared_ptr<DeviceKernel>> kernels_;  // Of each pass.
};

}  // namespace heddle::ops
