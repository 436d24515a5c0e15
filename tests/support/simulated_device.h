// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/environment/clock.h"
#include "core/environment/random.h"
#include "ops/device/device.h"

// A device on which everything that may go wrong with memory and order goes wrong, or is named.
namespace heddle::testing_support {

/// How long commands take, in the place of random times.
struct CommandTimes {
  int64_t write_ns = 0, launch_ns = 0, read_ns = 0;
};

struct SimulatedDeviceOptions {
  uint64_t seed = 0;
  int64_t most_delay_ns = 1000;          ///< Of a command behind the one before it in its queue.
  int64_t memory_bytes = INT64_MAX / 4;  ///< More at once is kResourceExhausted.
  int64_t lost_at_command = -1;          ///< This command and all behind it fail with kUnavailable.
  std::optional<CommandTimes> times = std::nullopt;
  int64_t compute_units = 0;          ///< 0: as many as the real one has.
  int64_t planned_bytes = INT64_MAX;  ///< More at once is a fault.
  int64_t unheard_wait = -1;          ///< The WaitFor, of those with a mark, that is left out: a mutation.
};

/// Kernels run on `real`, on copies; all else is here. Commands of a queue are done in order, and late: when
/// somebody waits for them (Finish), or asks for the next one (Happen), or by a thread (Drive). Of several
/// queues a seed says whose turn it is. Meanwhile
///
///   memory of the device   can neither be read nor written by the host (PROT_NONE), is full of NaN until
///                          something is written to it, and has bytes behind its end that kernels leave alone
///   the target of a Read   is full of other NaN until the Read is done
///   the source of a Write  is read when the Write is done
///
/// Faults are: memory that is freed while a command needs it that does not keep it; a command that reads or
/// writes what one of another queue writes, or writes what one of another queue reads, and does not wait for
/// it (by DeviceQueue::WaitFor, or because the host knew it done), however the seed orders them; bytes
/// outside of a memory; bytes that are read and nothing has written; memory of the host that changes while a
/// command reads or writes it; a kernel that writes to a const argument or behind its memory; more memory in
/// use than is planned. Each is kept as a sentence. Thread-safe.
class SimulatedDevice : public ops::ComputeDevice, public ops::DeviceSet {
 public:
  explicit SimulatedDevice(ops::ComputeDevice& real, const SimulatedDeviceOptions& options = {});
  /// When all its memory and queues are gone.
  ~SimulatedDevice() override;

  const ops::DeviceDescription& description() const override { return description_; }
  Result<std::shared_ptr<ops::DeviceMemory>> Allocate(int64_t bytes) override;
  Result<std::unique_ptr<ops::DeviceQueue>> MakeQueue() override;
  Result<std::shared_ptr<ops::DeviceKernel>> Compile(const std::string& source,
                                                     const std::string& name) override;
  /// Itself alone, as the first device.
  std::vector<ComputeDevice*> devices() override { return {this}; }

  /// Commands are due from the time of `clock` on; nullptr: from that of the last one that was done.
  void Follow(Clock* clock) { clock_ = clock; }
  /// When the next command is done; INT64_MAX: nothing is queued.
  int64_t NextNs();
  /// Does it.
  void Happen();
  /// Has a thread do commands from now on, one after the other without a pause.
  void Drive();

  std::vector<std::string> faults() const;
  int64_t writes() const { return writes_; }                ///< Commands of that kind that were done.
  int64_t reads() const { return reads_; }                  ///< The same.
  int64_t launches() const { return launches_; }            ///< The same.
  /// How many times the host was told (WhenDone) that reads of a queue are done: round trips.
  int64_t answers() const { return answers_; }
  int64_t bytes_written() const { return bytes_written_; }  ///< By writes.
  int64_t waits() const { return waits_; }                  ///< WaitFor with a mark, all queues together.
  /// Whether a command did not know what the wait that was left out would have told it.
  bool has_missed_wait() const { return has_missed_wait_; }
  /// How many times somebody has blocked in Finish.
  int64_t blocked() const { return blocked_; }
  int64_t bytes_in_use() const;
  /// The most that were in use at one time.
  int64_t most_bytes() const;

 private:
  class Memory;
  class Queue;
  class Kernel;
  class Mark;
  struct Access;
  struct Command;
  /// Of each queue, how many of its commands are done.
  using Knowledge = std::map<int, int64_t>;

  void Fault(std::string what);
  bool IsLost() const { return options_.lost_at_command >= 0 && commands_ >= options_.lost_at_command; }
  Status Lost() const;
  int64_t DurationOf(const Command& command);
  /// Names what the command's accesses meet, and puts it behind the others of its queue.
  Status Enqueue(Queue& queue, Command command);
  bool IsEligible(const Queue& queue) const;
  /// The queue whose first command is due first; nullptr: none can go on.
  Queue* Next();
  /// Does the first command of the queue; gives what is to be called without the lock.
  std::function<void()> Do(Queue& queue);
  Status Run(Command& command);
  Status RunKernel(const Command& command);
  Status Finish(Queue& queue);
  void Forget(Memory& memory);

  ops::ComputeDevice& real_;
  const SimulatedDeviceOptions options_;
  ops::DeviceDescription description_;
  std::unique_ptr<ops::DeviceQueue> real_queue_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  ///< There are commands, or they are done.
  bool stops_ = false;
  std::thread thread_;
  SeededRandom random_;
  Clock* clock_ = nullptr;
  int64_t now_ns_ = 0;
  int64_t commands_ = 0;
  int next_queue_ = 0, next_memory_ = 0;
  int64_t bytes_in_use_ = 0, most_bytes_ = 0;
  std::vector<Queue*> queues_;
  std::map<int, int64_t> executed_;              ///< Of each queue, how many of its commands are done.
  Knowledge known_;                              ///< The same, as far as the host knows.
  std::map<int, std::vector<Access>> accesses_;  ///< By memory: those that the host does not know done.
  std::vector<std::string> faults_;
  std::atomic<int64_t> writes_ = 0, bytes_written_ = 0, reads_ = 0, launches_ = 0, waits_ = 0, blocked_ = 0;
  std::atomic<int64_t> answers_ = 0;
  std::atomic<bool> has_missed_wait_ = false;
};

}  // namespace heddle::testing_support
