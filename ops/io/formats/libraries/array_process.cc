// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/libraries/array_process.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "core/environment/child_process.h"
#include "core/environment/modules.h"
#include "core/memory/block_pool.h"
#include "core/values/sizes.h"
#include "ops/io/files/input_files.h"
#include "ops/io/formats/libraries/array_messages.h"

namespace heddle::ops {
namespace {

constexpr char kProgram[] = "heddle-array-process";
constexpr int64_t kMostIndexes = 64;
// Cells of one answer: what a process holds of an array at a time.
constexpr int64_t kMostCells = 1 << 17;
// What a library may take to find an array, beside its share of the memory that is left: more of that makes
// files readable whose tables are large.
constexpr int64_t kLeastRoom = int64_t{16} << 20, kMostRoom = int64_t{256} << 20;
constexpr int64_t kShareOfRoom = 8;

// Memory of the budget that the process is charged for.
class Charge {
 public:
  ~Charge() { MemoryBudget::Process().Release(bytes_); }
  int64_t bytes() const { return bytes_; }
  // False, and nothing is charged, where it does not fit.
  bool Raise(int64_t more) {
    MemoryBudget& budget = MemoryBudget::Process();
    while (!budget.TryCharge(more))
      if (more > budget.limit() || BlockPool::Process().Trim(more) == 0) return false;
    bytes_ += more;
    return true;
  }

 private:
  int64_t bytes_ = 0;
};

class ArrayProcess : public StoredArray {
 public:
  ArrayProcess(ArrayInFile what, std::unique_ptr<Charge> charge, Descriptor socket, pid_t process)
      : what_(std::move(what)),
        library_(NameOf(what_.library)),
        charge_(std::move(charge)),
        opening_bytes_(charge_->bytes()),
        socket_(std::move(socket)),
        process_(process) {}
  ~ArrayProcess() override { End(); }

  Status Open(bool has_descriptor) {
    const Opening opening = {.library = what_.library,
                             .transposed = what_.choice.transposed,
                             .has_descriptor = has_descriptor,
                             .file_bytes = what_.file->size(),
                             .heap_bytes = opening_bytes_};
    if (!SendValue(socket(), opening) || !SendText(socket(), what_.path) ||
        !SendText(socket(), what_.choice.dataset))
      return Lost();
    HEDDLE_RETURN_IF_ERROR(AwaitAnswer());
    if (!ReceiveValue(socket(), &head_) || head_.indexes < 0 || head_.indexes > kMostIndexes) return Lost();
    sizes_.resize(static_cast<size_t>(head_.indexes));
    head_.rows_of_chunk = std::max<int64_t>(1, head_.rows_of_chunk);
    if (!ReceiveAll(socket(), sizes_.data(), sizes_.size() * sizeof(int64_t)) ||
        !ReceiveText(socket(), &writer_))
      return Lost();
    return OkStatus();
  }

  const std::vector<int64_t>& sizes() const override { return sizes_; }
  int64_t rows_of_chunk() const override { return head_.rows_of_chunk; }
  int64_t bytes_of_read() const override { return head_.bytes_of_read; }
  int64_t stored() const override { return head_.stored; }
  const std::string& column_major_writer() const override { return writer_; }

  Status Read(int64_t begin, int64_t end, double* out) override {
    const std::lock_guard lock(mutex_);
    const int64_t width = WidthOf(sizes_);
    const int64_t few = std::max<int64_t>(1, kMostCells / std::max<int64_t>(width, 1));
    // Whole chunks, so that none is decoded twice, where there is memory for so many cells.
    int64_t rows = std::max(head_.rows_of_chunk, few / head_.rows_of_chunk * head_.rows_of_chunk);
    const auto bytes_of = [&](int64_t count) {
      return SaturatingProduct(std::min(count, end - begin), SaturatingProduct(width, 8));
    };
    if (rows > few && !Prepare(bytes_of(rows))) rows = few;
    if (!Prepare(bytes_of(rows))) return NoRoom(bytes_of(rows));
    for (int64_t row = begin, next; row < end; row = next) {
      next = std::min(end, (row / rows + 1) * rows);
      HEDDLE_RETURN_IF_ERROR(Ask({.begin = row, .end = next}, out, (next - row) * width * 8));
      out += (next - row) * width;
    }
    return OkStatus();
  }

  Status ReadStored(int64_t begin, int64_t end, StoredCell* out) override {
    constexpr int64_t kCellBytes = sizeof(StoredCell);
    const std::lock_guard lock(mutex_);
    if (!Prepare(kMostCells * kCellBytes)) return NoRoom(kMostCells * kCellBytes);
    for (int64_t at = begin, next; at < end; at = next) {
      next = std::min(end, at + kMostCells);
      HEDDLE_RETURN_IF_ERROR(
          Ask({.begin = at, .end = next, .of_stored = true}, out, (next - at) * kCellBytes));
      out += next - at;
    }
    return OkStatus();
  }

 private:
  // Whether the process has memory to read `bytes` of cells.
  bool Prepare(int64_t bytes) {
    const int64_t wanted = SaturatingSum(opening_bytes_, SaturatingSum(head_.bytes_of_read, bytes));
    const int64_t more = wanted - charge_->bytes();
    if (more <= 0) return true;
    if (!charge_->Raise(more)) return false;
    unsaid_bytes_ += more;
    return true;
  }
  Status NoRoom(int64_t bytes) const {
    return DoesNotFit(fmt::format("what {} takes to read '{}', {} bytes,", library_, what_.path,
                                  SaturatingSum(head_.bytes_of_read, bytes)),
                      MemoryBudget::Process());
  }

  Status Ask(Request request, void* out, int64_t bytes) {
    request.more_heap_bytes = std::exchange(unsaid_bytes_, 0);
    if (!socket_.ok() || !SendValue(socket(), request)) return Lost();
    HEDDLE_RETURN_IF_ERROR(AwaitAnswer());
    return ReceiveAll(socket(), out, static_cast<size_t>(bytes)) ? OkStatus() : Lost();
  }

  // Gives the process the bytes of the file that it asks for until it answers.
  Status AwaitAnswer() {
    for (MessageKind kind{}; ReceiveValue(socket(), &kind);) {
      if (kind == MessageKind::kAnswer) {
        Status status;
        return ReceiveStatus(socket(), &status) ? status : Lost();
      }
      BytesWanted wanted;
      if (kind != MessageKind::kWantsBytes || !ReceiveValue(socket(), &wanted) || !GiveBytes(wanted)) break;
    }
    return Lost();
  }

  // False where the process is gone, or wants what the file does not have.
  bool GiveBytes(BytesWanted wanted) {
    if (wanted.count < 0 || wanted.count > kMostBytesWanted || wanted.begin < 0 ||
        wanted.begin > what_.file->size() - wanted.count)
      return false;
    CountedBytes buffer;
    const Result<std::string_view> bytes = what_.file->Read(wanted.begin, wanted.count, &buffer);
    return SendStatus(socket(), bytes.status()) && (!bytes.ok() || SendAll(socket(), *bytes));
  }

  int socket() const { return socket_.get(); }

  // The process ends when it finds the socket shut down.
  int End() {
    if (socket_.ok()) shutdown(socket(), SHUT_RDWR);
    socket_ = Descriptor();
    int status = 0;
    if (process_ > 0)
      while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
      }
    process_ = -1;
    return status;
  }

  Status Lost() {
    const int status = End();
    const Status lost =
        DataLoss("cannot read '{}': it is damaged, or {} cannot handle it", what_.path, library_);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
      return lost.WithNote(fmt::format("its library did not end within {} s", kArrayProcessSeconds));
    if (WIFSIGNALED(status))
      return lost.WithNote(fmt::format("its library ended with signal {}", WTERMSIG(status)));
    return lost;
  }

  const ArrayInFile what_;
  const std::string_view library_;
  std::mutex mutex_;
  const std::unique_ptr<Charge> charge_;
  const int64_t opening_bytes_;
  int64_t unsaid_bytes_ = 0;  // Charged, but the process does not know it yet.
  Descriptor socket_;
  pid_t process_;
  Head head_;
  std::vector<int64_t> sizes_;
  std::string writer_;
};

// What a library may take to open a file whose bytes are not in memory.
int64_t RoomToOpen() {
  const MemoryBudget& budget = MemoryBudget::Process();
  const int64_t left = std::max<int64_t>(0, budget.limit() - budget.used());
  return std::clamp(left / kShareOfRoom, kLeastRoom, kMostRoom);
}

Status ProgramIsMissing(const ArrayInFile& what, const std::string& why) {
  return Unimplemented("cannot read '{}': the program that reads files with {} is not there", what.path,
                       NameOf(what.library))
      .WithNote(fmt::format("{}: {} belongs beside Heddle and its modules", why, kProgram));
}

Result<std::string> FindProgram(const ArrayInFile& what) {
  const Result<std::string> module = FindInstalled(ModuleOf(what.library));
  if (!module.ok())
    return WithoutLibrary(what.library, "read", fmt::format("'{}'", what.path), module.status());
  Result<std::string> program = FindInstalled(kProgram);
  if (!program.ok()) return ProgramIsMissing(what, program.status().message());
  return program;
}

}  // namespace

Result<std::unique_ptr<StoredArray>> OpenInProcess(const ArrayInFile& what, const std::string& program) {
  ChildProcess process = {.child = "the process that reads the file",
                          .program = program,
                          .arguments = {kProgram},
                          .closes_all = true,
                          .hears_interrupts = false};
  if (program.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(process.program, FindProgram(what));
  }
  // Only libmatio has all bytes of a file in memory.
  const int64_t room =
      SaturatingSum(RoomToOpen(), what.library == ArrayLibrary::kHdf5 ? 0 : what.file->size());
  auto charge = std::make_unique<Charge>();
  if (!charge->Raise(room))
    return DoesNotFit(
        fmt::format("what {} takes to open '{}', {} bytes,", NameOf(what.library), what.path, room),
        MemoryBudget::Process());
  const auto no_process = [&](const std::string& why) {
    return ResourceExhausted("cannot read '{}': no process: {}", what.path, why);
  };
  Result<ControlSockets> sockets = MakeControlSockets(process.child);
  if (!sockets.ok()) return no_process(sockets.status().message());
  const int descriptor = DescriptorOf(*what.file);
  const Descriptor file = descriptor < 0 ? Descriptor() : AboveThoseOfChild(Descriptor(dup(descriptor)));
  // A library that ends with a fault may say so; the error here says it in its place.
  const Descriptor silence = AboveThoseOfChild(Descriptor(open("/dev/null", O_WRONLY | O_CLOEXEC)));
  if ((descriptor >= 0 && !file.ok()) || !silence.ok()) return no_process(std::strerror(errno));
  process.control = sockets->child.get();
  process.file = file.get();
  process.log = silence.get();
  const Result<pid_t> started = StartChild(process);
  if (!started.ok())
    return access(process.program.c_str(), X_OK) == 0 ? no_process(started.status().message())
                                                      : ProgramIsMissing(what, started.status().message());
  sockets->child = Descriptor();
  auto array = std::make_unique<ArrayProcess>(what, std::move(charge), std::move(sockets->own), *started);
  HEDDLE_RETURN_IF_ERROR(array->Open(file.ok()));
  return std::unique_ptr<StoredArray>(std::move(array));
}

}  // namespace heddle::ops
