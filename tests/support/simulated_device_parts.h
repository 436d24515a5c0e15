// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/simulated_device.h"
#include "tests/support/watched_cells.h"

// Memory, commands and queues of the simulated device; its own file includes them alone.
namespace heddle::testing_support {

using ops::DeviceMemory;

// Pages that nobody may touch but while a command runs.
class SimulatedDevice::Memory : public DeviceMemory {
 public:
  Memory(SimulatedDevice& device, int id, int64_t bytes, std::shared_ptr<DeviceMemory> real)
      : device_(device), id_(id), bytes_(bytes), real_(std::move(real)) {
    cells_ = mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HEDDLE_CHECK(cells_ != MAP_FAILED, "the machine has memory for a test");
    Fill(cells_, bytes_ + kBytesBehind, kNothing);
    Protect(PROT_NONE);
  }
  ~Memory() override {
    device_.Forget(*this);
    munmap(cells_, size());
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  int64_t bytes() const override { return bytes_; }
  int id() const { return id_; }
  const std::shared_ptr<DeviceMemory>& real() const { return real_; }

  // While a command runs.
  char* Open() {
    Protect(PROT_READ | PROT_WRITE);
    return static_cast<char*>(cells_);
  }
  void Close() { Protect(PROT_NONE); }

  void Wrote(int64_t begin, int64_t end) {
    if (begin == end) return;
    written_.emplace_back(begin, end);
    std::sort(written_.begin(), written_.end());
    std::vector<std::pair<int64_t, int64_t>> joined;
    for (const auto& [b, e] : written_)
      if (!joined.empty() && b <= joined.back().second)
        joined.back().second = std::max(joined.back().second, e);
      else
        joined.emplace_back(b, e);
    written_ = std::move(joined);
  }
  bool IsWritten(int64_t begin, int64_t end) const {
    return begin == end || std::any_of(written_.begin(), written_.end(), [&](const auto& range) {
             return range.first <= begin && end <= range.second;
           });
  }

 private:
  size_t size() const { return static_cast<size_t>(bytes_ + kBytesBehind); }
  void Protect(int protection) {
    HEDDLE_CHECK(mprotect(cells_, size(), protection) == 0, "these are whole pages of ours");
  }

  SimulatedDevice& device_;
  const int id_;
  const int64_t bytes_;
  const std::shared_ptr<DeviceMemory> real_;
  void* cells_ = nullptr;
  std::vector<std::pair<int64_t, int64_t>> written_;  // Ascending, apart.
};

class SimulatedDevice::Kernel : public ops::DeviceKernel {
 public:
  std::shared_ptr<ops::DeviceKernel> real;
  std::string name;
  std::vector<bool> read_only;
};

// Who reads or writes which bytes of a memory.
struct SimulatedDevice::Access {
  Memory* memory = nullptr;
  int64_t begin = 0, end = 0;
  bool writes = false;
  bool keeps = false;  // The memory cannot be freed meanwhile.
  int queue = 0;
  int64_t command = 0;
  std::map<int, int64_t> knows;  // Of the command.
  std::string what;              // "the kernel f"
};

struct SimulatedDevice::Command {
  enum class Kind { kWrite, kRead, kLaunch, kTell };
  Kind kind = Kind::kTell;
  std::string what;
  std::vector<Access> accesses;
  // Of the host's memory.
  const void* from = nullptr;
  void* to = nullptr;
  size_t hash = 0;
  std::shared_ptr<Kernel> kernel;
  std::vector<ops::DeviceArgument> arguments;
  ops::LaunchShape shape;
  std::function<void(const Status&)> done;
  int64_t number = 0;  // Of its queue, from 1 on.
  int64_t due_ns = 0;
  Knowledge knows;  // What is done when it begins.
};

class SimulatedDevice::Mark : public ops::DeviceMark {
 public:
  Mark(Knowledge knows, int64_t due_ns) : knows_(std::move(knows)), due_ns_(due_ns) {}
  const Knowledge& knows() const { return knows_; }
  int64_t due_ns() const { return due_ns_; }  // Of the last command before it.

 private:
  const Knowledge knows_;
  const int64_t due_ns_;
};

class SimulatedDevice::Queue : public ops::DeviceQueue {
 public:
  Queue(SimulatedDevice& device, int id) : device_(device), id_(id) {}
  ~Queue() override {
    static_cast<void>(device_.Finish(*this));
    const std::lock_guard lock(device_.mutex_);
    std::erase(device_.queues_, this);
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  Status Write(const void* from, int64_t bytes, DeviceMemory& to, int64_t offset) override {
    if (bytes == 0) return OkStatus();
    Command command{.kind = Command::Kind::kWrite, .what = "a write", .from = from};
    HEDDLE_RETURN_IF_ERROR(Add(&command, to, offset, bytes, /*writes=*/true));
    command.hash = HashOf(from, bytes);
    return device_.Enqueue(*this, std::move(command));
  }
  Status Read(const DeviceMemory& from, int64_t offset, int64_t bytes, void* to) override {
    if (bytes == 0) return OkStatus();
    Command command{.kind = Command::Kind::kRead, .what = "a read", .to = to};
    HEDDLE_RETURN_IF_ERROR(Add(&command, from, offset, bytes, /*writes=*/false));
    Fill(to, bytes, kTooSoon);
    return device_.Enqueue(*this, std::move(command));
  }
  Status Launch(const std::shared_ptr<ops::DeviceKernel>& kernel,
                std::span<const ops::DeviceArgument> arguments, const ops::LaunchShape& shape) override {
    Command command{.kind = Command::Kind::kLaunch, .shape = shape};
    command.kernel = std::static_pointer_cast<Kernel>(kernel);
    command.what = "the kernel " + command.kernel->name;
    command.arguments.assign(arguments.begin(), arguments.end());
    for (size_t i = 0; i < arguments.size(); ++i) {
      const auto* memory = std::get_if<std::shared_ptr<DeviceMemory>>(&arguments[i]);
      if (memory == nullptr || *memory == nullptr) continue;
      const std::vector<bool>& read_only = command.kernel->read_only;
      HEDDLE_RETURN_IF_ERROR(
          Add(&command, **memory, 0, (*memory)->bytes(), !(i < read_only.size() && read_only[i])));
      command.accesses.back().keeps = true;
    }
    return device_.Enqueue(*this, std::move(command));
  }
  Status WhenDone(std::function<void(const Status&)> done) override {
    return device_.Enqueue(*this, {.kind = Command::Kind::kTell, .what = "a call", .done = std::move(done)});
  }
  Status Finish() override { return device_.Finish(*this); }
  Result<std::shared_ptr<ops::DeviceMark>> Mark() override {
    const std::lock_guard lock(device_.mutex_);
    Knowledge knows = last_knows;
    knows[id_] = queued;
    return std::shared_ptr<ops::DeviceMark>(
        std::make_shared<SimulatedDevice::Mark>(std::move(knows), last_due_ns));
  }
  Status WaitFor(const std::shared_ptr<ops::DeviceMark>& mark) override {
    const std::lock_guard lock(device_.mutex_);
    if (mark == nullptr) return OkStatus();
    const auto& of = static_cast<const SimulatedDevice::Mark&>(*mark);
    if (device_.waits_++ == device_.options_.unheard_wait) {
      unheard = of.knows();
      return OkStatus();
    }
    Join(&last_knows, of.knows());
    last_due_ns = std::max(last_due_ns, of.due_ns());
    return OkStatus();
  }

  int id() const { return id_; }

  // Under the lock of the device.
  std::deque<Command> commands;
  int64_t queued = 0;
  bool has_read = false;  // Since the host was told last.
  int64_t last_due_ns = 0;
  Knowledge last_knows;
  Knowledge unheard;  // What the next command does not wait for (SimulatedDeviceOptions::unheard_wait).
  Status failed;  // Of the first command that has, and of all that follow.

 private:
  Status Add(Command* command, const DeviceMemory& memory, int64_t offset, int64_t bytes, bool writes) {
    auto& of = const_cast<Memory&>(static_cast<const Memory&>(memory));
    if (offset < 0 || bytes < 0 || offset + bytes > of.bytes()) {
      const std::lock_guard lock(device_.mutex_);
      device_.Fault(fmt::format("{} takes bytes [{}, {}) of memory {}, which has {}", command->what, offset,
                                offset + bytes, of.id(), of.bytes()));
      return Internal("bytes outside of the memory of a device");
    }
    command->accesses.push_back(
        {.memory = &of, .begin = offset, .end = offset + bytes, .writes = writes, .queue = id_});
    return OkStatus();
  }

  SimulatedDevice& device_;
  const int id_;
};

}  // namespace heddle::testing_support
