// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simulated_device.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "tests/support/simulated_device_parts.h"

namespace heddle::testing_support {

SimulatedDevice::SimulatedDevice(ops::ComputeDevice& real, const SimulatedDeviceOptions& options)
    : real_(real), options_(options), description_(real.description()), random_(options.seed) {
  description_.device = {DeviceType::kOpenCl, 0};
  description_.name = "a simulated device";
  description_.memory_bytes = std::min(description_.memory_bytes, options.memory_bytes);
  if (options.compute_units > 0) description_.compute_units = options.compute_units;
  Result<std::unique_ptr<ops::DeviceQueue>> queue = real.MakeQueue();
  HEDDLE_CHECK(queue.ok(), "the device of tests has queues");
  real_queue_ = *std::move(queue);
}

SimulatedDevice::~SimulatedDevice() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status SimulatedDevice::Lost() const { return Unavailable("{} does not answer", description_.name); }

Result<std::shared_ptr<DeviceMemory>> SimulatedDevice::Allocate(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (IsLost()) return Lost();
  if (bytes > options_.memory_bytes - bytes_in_use_)
    return ResourceExhausted("{} bytes: {} has {} left", bytes, description_.name,
                             options_.memory_bytes - bytes_in_use_);
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<DeviceMemory> real, real_.Allocate(bytes + kBytesBehind));
  bytes_in_use_ += bytes;
  most_bytes_ = std::max(most_bytes_, bytes_in_use_);
  if (bytes_in_use_ > options_.planned_bytes)
    Fault(fmt::format("there are more bytes in use than the {} that are planned", options_.planned_bytes));
  return std::shared_ptr<DeviceMemory>(
      std::make_shared<Memory>(*this, ++next_memory_, bytes, std::move(real)));
}

Result<std::unique_ptr<ops::DeviceQueue>> SimulatedDevice::MakeQueue() {
  const std::lock_guard lock(mutex_);
  if (IsLost()) return Lost();
  auto queue = std::make_unique<Queue>(*this, ++next_queue_);
  queues_.push_back(queue.get());
  return std::unique_ptr<ops::DeviceQueue>(std::move(queue));
}

Result<std::shared_ptr<ops::DeviceKernel>> SimulatedDevice::Compile(const std::string& source,
                                                                    const std::string& name) {
  auto kernel = std::make_shared<Kernel>();
  HEDDLE_ASSIGN_OR_RETURN(kernel->real, real_.Compile(source, name));
  kernel->name = name;
  kernel->read_only = ReadOnlyParameters(source, name);
  return std::shared_ptr<ops::DeviceKernel>(std::move(kernel));
}

std::vector<std::string> SimulatedDevice::faults() const {
  const std::lock_guard lock(mutex_);
  return faults_;
}

int64_t SimulatedDevice::bytes_in_use() const {
  const std::lock_guard lock(mutex_);
  return bytes_in_use_;
}

int64_t SimulatedDevice::most_bytes() const {
  const std::lock_guard lock(mutex_);
  return most_bytes_;
}

int64_t SimulatedDevice::DurationOf(const Command& command) {
  if (!options_.times)
    return static_cast<int64_t>(random_.Below(static_cast<uint64_t>(options_.most_delay_ns) + 1));
  switch (command.kind) {
    case Command::Kind::kWrite: return options_.times->write_ns;
    case Command::Kind::kRead: return options_.times->read_ns;
    case Command::Kind::kLaunch: return options_.times->launch_ns;
    case Command::Kind::kTell: break;
  }
  return 0;
}

void SimulatedDevice::Fault(std::string what) {
  if (std::find(faults_.begin(), faults_.end(), what) == faults_.end()) faults_.push_back(std::move(what));
}

Status SimulatedDevice::Enqueue(Queue& queue, Command command) {
  const std::lock_guard lock(mutex_);
  command.number = ++queue.queued;
  command.knows = queue.last_knows;
  Join(&command.knows, known_);
  command.knows[queue.id()] = command.number - 1;
  for (const auto& [other, commands] : std::exchange(queue.unheard, {}))
    if (command.knows[other] < commands) has_missed_wait_ = true;
  for (Access& access : command.accesses) {
    access.command = command.number;
    access.knows = command.knows;
    access.what = command.what;
    std::vector<Access>& others = accesses_[access.memory->id()];
    std::erase_if(others, [&](const Access& other) { return known_[other.queue] >= other.command; });
    for (const Access& other : others) {
      if (access.end <= other.begin || other.end <= access.begin) continue;
      if (!access.writes && !other.writes) continue;
      if (command.knows[other.queue] >= other.command || other.queue == queue.id()) continue;
      Fault(fmt::format("{} in queue {} {} memory {}, which {} in queue {} {}, and does not wait for it",
                        access.what, queue.id(), access.writes ? "writes" : "reads", access.memory->id(),
                        other.what, other.queue, other.writes ? "writes" : "reads"));
    }
    others.push_back(access);
  }
  const int64_t now_ns = clock_ != nullptr ? std::max(clock_->MonotonicNs(), now_ns_) : now_ns_;
  command.due_ns = std::max(queue.last_due_ns, now_ns) + DurationOf(command);
  queue.last_due_ns = command.due_ns;
  queue.last_knows = command.knows;
  queue.commands.push_back(std::move(command));
  changed_.notify_all();
  return OkStatus();
}

bool SimulatedDevice::IsEligible(const Queue& queue) const {
  if (queue.commands.empty()) return false;
  const Knowledge& knows = queue.commands.front().knows;
  return std::all_of(knows.begin(), knows.end(), [&](const auto& entry) {
    const auto found = executed_.find(entry.first);
    return entry.second == 0 || (found != executed_.end() && found->second >= entry.second);
  });
}

SimulatedDevice::Queue* SimulatedDevice::Next() {
  Queue* next = nullptr;
  for (Queue* const queue : queues_)
    if (IsEligible(*queue) &&
        (next == nullptr || queue->commands.front().due_ns < next->commands.front().due_ns))
      next = queue;
  return next;
}

int64_t SimulatedDevice::NextNs() {
  const std::lock_guard lock(mutex_);
  const Queue* const next = Next();
  return next == nullptr ? INT64_MAX : next->commands.front().due_ns;
}

void SimulatedDevice::Happen() {
  std::function<void()> tell;
  {
    const std::lock_guard lock(mutex_);
    if (Queue* const next = Next(); next != nullptr) tell = Do(*next);
  }
  if (tell) tell();
}

void SimulatedDevice::Drive() {
  thread_ = std::thread([this] {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return stops_ || Next() != nullptr; });
        if (stops_) return;
      }
      Happen();
    }
  });
}

Status SimulatedDevice::Finish(Queue& queue) {
  {
    const std::lock_guard lock(mutex_);
    if (!queue.commands.empty()) ++blocked_;
  }
  for (;;) {
    std::function<void()> tell;
    {
      std::unique_lock lock(mutex_);
      if (queue.commands.empty()) {
        Join(&known_, queue.last_knows);
        known_[queue.id()] = queue.queued;
        return queue.failed;
      }
      Queue* const next = Next();
      if (next == nullptr) {
        Fault(fmt::format("the commands of queue {} wait for ever", queue.id()));
        return Internal("commands wait for ever");
      }
      tell = Do(*next);
    }
    if (tell) tell();
  }
}

std::function<void()> SimulatedDevice::Do(Queue& queue) {
  Command command = std::move(queue.commands.front());
  queue.commands.pop_front();
  now_ns_ = std::max(now_ns_, command.due_ns);
  const bool is_lost = IsLost();
  ++commands_;
  if (queue.failed.ok()) queue.failed = is_lost ? Lost() : Run(command);
  executed_[queue.id()] = command.number;
  changed_.notify_all();
  // Who is told knows all that was before.
  if (command.kind == Command::Kind::kTell) {
    Join(&known_, command.knows);
    if (std::exchange(queue.has_read, false)) ++answers_;
  } else if (command.kind == Command::Kind::kRead) {
    queue.has_read = true;
  }
  // What the command has kept is given back by the caller, too.
  return [command = std::make_shared<Command>(std::move(command)), status = queue.failed] {
    if (command->done) command->done(status);
  };
}

Status SimulatedDevice::Run(Command& command) {
  for (const Access& access : command.accesses)
    if (access.memory == nullptr) return Internal("memory that is gone");
  switch (command.kind) {
    case Command::Kind::kTell: return OkStatus();
    case Command::Kind::kLaunch: return RunKernel(command);
    case Command::Kind::kWrite:
    case Command::Kind::kRead: break;
  }
  const Access& first = command.accesses.front();
  Memory& memory = *first.memory;
  const int64_t bytes = first.end - first.begin;
  if (!first.writes && !memory.IsWritten(first.begin, first.end))
    Fault(fmt::format("{} takes bytes [{}, {}) of memory {}, which nothing has written", command.what,
                      first.begin, first.end, memory.id()));
  char* const cells = memory.Open() + first.begin;
  if (command.kind == Command::Kind::kWrite) {
    ++writes_;
    bytes_written_ += bytes;
    if (HashOf(command.from, bytes) != command.hash)
      Fault(fmt::format("the host has changed what a write to memory {} reads", memory.id()));
    std::memcpy(cells, command.from, static_cast<size_t>(bytes));
    memory.Wrote(first.begin, first.end);
  } else {
    ++reads_;
    if (!IsFilled(command.to, bytes, kTooSoon))
      Fault(fmt::format("the host has changed what a read of memory {} writes", memory.id()));
    std::memcpy(command.to, cells, static_cast<size_t>(bytes));
  }
  memory.Close();
  return OkStatus();
}

Status SimulatedDevice::RunKernel(const Command& command) {
  ++launches_;
  std::vector<ops::DeviceArgument> arguments = command.arguments;
  std::map<Memory*, bool> memories;  // Whether the kernel writes to it.
  for (const Access& access : command.accesses) memories[access.memory] |= access.writes;
  for (ops::DeviceArgument& argument : arguments)
    if (auto* const memory = std::get_if<std::shared_ptr<DeviceMemory>>(&argument);
        memory != nullptr && *memory != nullptr)
      *memory = static_cast<const Memory&>(**memory).real();
  for (const auto& [memory, writes] : memories) {
    if (!writes && !memory->IsWritten(0, memory->bytes()))
      Fault(fmt::format("{} reads memory {}, to which nothing is written, or not to all of it", command.what,
                        memory->id()));
    HEDDLE_RETURN_IF_ERROR(
        real_queue_->Write(memory->Open(), memory->bytes() + kBytesBehind, *memory->real(), 0));
  }
  HEDDLE_RETURN_IF_ERROR(real_queue_->Launch(command.kernel->real, arguments, command.shape));
  for (const auto& [memory, writes] : memories) {
    const int64_t bytes = memory->bytes();
    std::vector<char> after(static_cast<size_t>(bytes + kBytesBehind));
    HEDDLE_RETURN_IF_ERROR(real_queue_->Read(*memory->real(), 0, bytes + kBytesBehind, after.data()));
    HEDDLE_RETURN_IF_ERROR(real_queue_->Finish());
    char* const cells = memory->Open();
    if (!writes && std::memcmp(after.data(), cells, static_cast<size_t>(bytes)) != 0)
      Fault(fmt::format("{} writes to memory {}, which is const there", command.what, memory->id()));
    if (std::memcmp(after.data() + bytes, cells + bytes, kBytesBehind) != 0)
      Fault(fmt::format("{} writes behind the end of memory {}", command.what, memory->id()));
    if (writes) {
      std::memcpy(cells, after.data(), static_cast<size_t>(bytes));
      memory->Wrote(0, bytes);
    }
    memory->Close();
  }
  return OkStatus();
}

void SimulatedDevice::Forget(Memory& memory) {
  const std::lock_guard lock(mutex_);
  bytes_in_use_ -= memory.bytes();
  const std::vector<Access>& accesses = accesses_[memory.id()];
  // A command that keeps the memory does so for all that are done before it.
  const auto is_kept = [&](const Access& access) {
    return std::any_of(accesses.begin(), accesses.end(), [&](const Access& other) {
      const auto found = other.knows.find(access.queue);
      return other.keeps && found != other.knows.end() && found->second >= access.command;
    });
  };
  for (const Access& access : accesses)
    if (!access.keeps && known_[access.queue] < access.command && !is_kept(access))
      Fault(fmt::format("memory {} of {} bytes is freed, and nobody has waited for {} in queue {} that {} it",
                        memory.id(), memory.bytes(), access.what, access.queue,
                        access.writes ? "writes" : "reads"));
  accesses_.erase(memory.id());
  for (Queue* const queue : queues_)
    for (Command& command : queue->commands)
      for (Access& access : command.accesses)
        if (access.memory == &memory) access.memory = nullptr;
}

}  // namespace heddle::testing_support
