// SPDX-License-Identifier: Apache-2.0
#include "tests/support/simulated_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <utility>

#include "tests/support/watched_cells.h"

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
  enum class Kind { kWrite, kRead, kCopy, kLaunch, kTell };
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
  explicit Mark(Knowledge knows) : knows_(std::move(knows)) {}
  const Knowledge& knows() const { return knows_; }

 private:
  const Knowledge knows_;
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
  Status Copy(const DeviceMemory& from, int64_t from_offset, int64_t bytes, DeviceMemory& to,
              int64_t to_offset) override {
    if (bytes == 0) return OkStatus();
    Command command{.kind = Command::Kind::kCopy, .what = "a copy"};
    HEDDLE_RETURN_IF_ERROR(Add(&command, from, from_offset, bytes, /*writes=*/false));
    HEDDLE_RETURN_IF_ERROR(Add(&command, to, to_offset, bytes, /*writes=*/true));
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
    return std::shared_ptr<ops::DeviceMark>(std::make_shared<SimulatedDevice::Mark>(std::move(knows)));
  }
  Status WaitFor(const std::shared_ptr<ops::DeviceMark>& mark) override {
    const std::lock_guard lock(device_.mutex_);
    if (mark != nullptr)
      Join(&last_knows, static_cast<const SimulatedDevice::Mark&>(*mark).knows());
    return OkStatus();
  }

  int id() const { return id_; }

  // Under the lock of the device.
  std::deque<Command> commands;
  int64_t queued = 0;
  int64_t last_due_ns = 0;
  Knowledge last_knows;
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

SimulatedDevice::SimulatedDevice(ops::ComputeDevice& real, const SimulatedDeviceOptions& options)
    : real_(real), options_(options), description_(real.description()), random_(options.seed) {
  description_.device = {DeviceType::kOpenCl, 0};
  description_.name = "a simulated device";
  description_.memory_bytes = std::min(description_.memory_bytes, options.memory_bytes);
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

void SimulatedDevice::Fault(std::string what) {
  if (std::find(faults_.begin(), faults_.end(), what) == faults_.end()) faults_.push_back(std::move(what));
}

Status SimulatedDevice::Enqueue(Queue& queue, Command command) {
  const std::lock_guard lock(mutex_);
  command.number = ++queue.queued;
  command.knows = queue.last_knows;
  Join(&command.knows, known_);
  command.knows[queue.id()] = command.number - 1;
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
  command.due_ns = std::max(queue.last_due_ns, now_ns) +
                   static_cast<int64_t>(random_.Below(static_cast<uint64_t>(options_.most_delay_ns) + 1));
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
  if (command.kind == Command::Kind::kTell) Join(&known_, command.knows);
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
    case Command::Kind::kRead:
    case Command::Kind::kCopy: break;
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
  } else if (command.kind == Command::Kind::kRead) {
    ++reads_;
    if (!IsFilled(command.to, bytes, kTooSoon))
      Fault(fmt::format("the host has changed what a read of memory {} writes", memory.id()));
    std::memcpy(command.to, cells, static_cast<size_t>(bytes));
  } else {
    const Access& second = command.accesses[1];
    std::memmove(second.memory->Open() + second.begin, cells, static_cast<size_t>(bytes));
    second.memory->Wrote(second.begin, second.end);
    second.memory->Close();
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
