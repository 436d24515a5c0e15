// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>

#include "core/recently_used.h"
#include "ops/base/kernel.h"
#include "ops/device/device.h"
#include "ops/device/run/run_tiles_on_device.h"

namespace heddle::ops {

/// Whether result `i` of an operator that runs on a device is in its memory: a matrix. Scalars, and the nodes
/// of which the parts of a reduction consist (Phase::kPartial), are the host's.
bool StaysOnDevice(const Node& node, std::span<const ValueInfo> inputs, size_t i);

/// Whether the device computes the node by kernels of its operator's own (Operator::run_on_device); else by
/// those of a tile program.
bool HasKernelsOfItsOwn(const Node& node, std::span<const ValueInfo> inputs);

/// Where the scalars are that a call makes: as such in the memory of the host, or in that of the device, as
/// matrices of one cell.
enum class ScalarResults : uint8_t { kOnHost, kOnDevice };

/// The operators of a process on one device: those with kernels of their own, fused ones, and other single
/// ones as bodies of one operator. Keeps what it has compiled. Thread-safe.
class DeviceOperators {
 public:
  /// `group_size`: work-items of a work-group; 0: as many as suit the device.
  explicit DeviceOperators(ComputeDevice& device, int64_t group_size = 0)
      : device_(device), group_size_(group_size) {}

  /// Whether the operator has kernels or one is printed of it, from the node, shapes and formats alone: OK,
  /// or kUnimplemented with the reason. The answers are kept: each planning of a block asks for all of its
  /// operators.
  static Status CanRun(const Node& node, std::span<const ValueInfo> inputs);

  /// Whether calls of an operator that CanRun queue commands which depend on a number that the host reads
  /// when those before are done (QueuedCall::HasMore): how many entries a CSR result has that may have some
  /// where the driver has none.
  static bool CountsFirst(const Node& node, std::span<const ValueInfo> inputs);

  /// What a call of an operator that CanRun takes of the memory of the device at most beside what it reads
  /// and makes, in bytes: payloads of leaves, and buffers. `rows`: of the matrix whose rows it walks; -1:
  /// all.
  static int64_t ScratchBytes(const Node& node, std::span<const ValueInfo> inputs, Phase phase, int64_t rows,
                              const DeviceDescription& device);

  /// What names the kernels of an operator that CanRun: operators with the same name share them. "": the
  /// device takes none.
  std::string KernelOf(const Node& node, std::span<const ValueInfo> inputs);
  /// Whether nothing of that name is left to compile: this process has done it, or an earlier one of the
  /// user, and the device keeps what it has made.
  bool IsCompiled(const std::string& kernel);

  /// Queues what computes the call as its operator does, to the bit, or the first of it
  /// (QueuedCall::HasMore; then `results` outlives the queued call); a program that is new is printed and
  /// compiled before. Waits for nothing. Results that StaysOnDevice names are in the memory of the device
  /// afterwards. kUnimplemented, with the reason, for a call that it leaves to the host; kResourceExhausted
  /// and kUnavailable as of the device; kCancelled between the launches of a product that takes several.
  ///
  /// A scalar among the inputs may be on the device, as a matrix of one cell, where it counts as a cell
  /// (CanRunInPhases).
  Result<std::unique_ptr<QueuedCall>> Queue(const KernelCall& call, DeviceQueue& queue,
                                            std::span<Value> results,
                                            ScalarResults scalars = ScalarResults::kOnHost);
  /// The same, all of it. Waits for the device.
  Status Run(const KernelCall& call, DeviceQueue& queue, std::span<Value> results);

  ComputeDevice& device() { return device_; }

  /// Those of a device, for the rest of the process.
  static DeviceOperators& Of(ComputeDevice& device);

 private:
  // The operator by its own kernels.
  Result<std::unique_ptr<QueuedCall>> QueueKernels(const KernelCall& call, DeviceQueue& queue,
                                                   std::span<Value> results);
  /// A program that is printed and compiled, or why there is none. Whoever asks meanwhile waits.
  struct Program {
    std::once_flag is_printed;
    Status status;
    std::shared_ptr<const TileProgram> lowered;
    PrintedTiles printed;
    std::mutex mutex;  // Of the next two.
    bool is_made = false;
    Result<std::shared_ptr<const DeviceTiles>> tiles = Internal("a program that nobody has made");
  };
  // `scalars_there`: by input, a scalar that is on the device. Empty: none is.
  std::shared_ptr<Program> ProgramOf(const Node& node, std::span<const ValueInfo> inputs,
                                     const std::vector<bool>& scalars_there);
  const Status& Print(Program& program, const Node& node, std::span<const ValueInfo> inputs,
                      const std::vector<bool>& scalars_there);
  Result<std::shared_ptr<const DeviceTiles>> TilesOf(const KernelCall& call);
  Result<std::unique_ptr<QueuedCall>> QueueTiles(const KernelCall& call, DeviceQueue& queue,
                                                 std::span<Value> results, ScalarResults scalars);

  static constexpr size_t kMostPrograms = 1024;

  ComputeDevice& device_;
  const int64_t group_size_;
  std::mutex mutex_;  ///< Of what follows; not held while something is compiled.
  RecentlyUsedMap<std::string, std::shared_ptr<Program>> programs_{kMostPrograms};
  std::set<std::string> used_kernels_;  ///< Names of those of operators of their own.
};

}  // namespace heddle::ops
