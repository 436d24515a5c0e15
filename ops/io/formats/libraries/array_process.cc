// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/libraries/array_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/environment/socket_bytes.h"
#include "core/memory/block_pool.h"
#include "core/memory/counted_heap.h"
#include "core/memory/heap_of_process.h"
#include "core/status_numbers.h"
#include "core/values/sizes.h"

namespace heddle::ops {
namespace {

// Cells of one answer: what a process holds of an array at a time.
constexpr int64_t kMostCells = 1 << 17;
// Processor seconds of a process for one answer; far more than decoding so many cells takes. Where a library
// decodes more than it answers, it has a second more for so many bytes.
constexpr rlim_t kMostSeconds = 30;
constexpr int64_t kBytesOfSecond = int64_t{16} << 20;
// What a library may take to find an array, beside its share of the memory that is left: more of that makes
// files readable whose tables are large.
constexpr int64_t kLeastRoom = int64_t{16} << 20, kMostRoom = int64_t{256} << 20;
constexpr int64_t kShareOfRoom = 8;

bool Send(int socket, const void* bytes, size_t size) {
  return SendAll(socket, {static_cast<const char*>(bytes), size});
}

bool Receive(int socket, void* bytes, size_t size) {
  char* at = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t received = recv(socket, at, size, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    at += received;
    size -= static_cast<size_t>(received);
  }
  return true;
}

bool SendText(int socket, const std::string& text) {
  const uint64_t size = text.size();
  return Send(socket, &size, sizeof(size)) && Send(socket, text.data(), text.size());
}

bool ReceiveText(int socket, std::string* text) {
  uint64_t size = 0;
  if (!Receive(socket, &size, sizeof(size)) || size > (1 << 20)) return false;
  text->resize(size);
  return Receive(socket, text->data(), text->size());
}

constexpr size_t kMostTexts = 1000;  // Of notes or choices of a status.

bool SendTexts(int socket, const std::vector<std::string>& texts) {
  const uint64_t count = std::min(texts.size(), kMostTexts);
  bool good = Send(socket, &count, sizeof(count));
  for (uint64_t i = 0; i < count; ++i) good = good && SendText(socket, texts[i]);
  return good;
}

bool ReceiveTexts(int socket, std::vector<std::string>* texts) {
  uint64_t count = 0;
  if (!Receive(socket, &count, sizeof(count)) || count > kMostTexts) return false;
  texts->resize(count);
  return std::all_of(texts->begin(), texts->end(),
                     [&](std::string& text) { return ReceiveText(socket, &text); });
}

bool SendStatus(int socket, const Status& status) {
  const auto code = static_cast<uint64_t>(status.code());
  if (!Send(socket, &code, sizeof(code))) return false;
  return status.ok() || (SendText(socket, status.message()) && SendTexts(socket, status.notes()) &&
                         SendTexts(socket, status.choices()));
}

bool ReceiveStatus(int socket, Status* status) {
  uint64_t code = 0;
  if (!Receive(socket, &code, sizeof(code))) return false;
  const std::optional<StatusCode> known = FindStatusCode(static_cast<int64_t>(code));
  if (!known) return false;
  if (*known == StatusCode::kOk) return true;
  std::string message;
  std::vector<std::string> notes, choices;
  if (!ReceiveText(socket, &message) || !ReceiveTexts(socket, &notes) || !ReceiveTexts(socket, &choices))
    return false;
  *status = Status(*known, message);
  for (std::string& note : notes) *status = status->WithNote(std::move(note));
  if (!choices.empty()) *status = status->WithChoices(std::move(choices));
  return true;
}

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

// Of the process that is about to answer.
void LimitTime(int64_t bytes_of_read) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const rlim_t most = static_cast<rlim_t>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + kMostSeconds +
                      static_cast<rlim_t>(bytes_of_read / kBytesOfSecond);
  const rlimit limit{most, RLIM_INFINITY};
  setrlimit(RLIMIT_CPU, &limit);
}

// work(), whose allocations fail beyond the bound of the process. Whatever it makes of that, it is told.
template <typename Work>
Status WithinBound(const std::string& path, const Work& work) {
  Status status;
  try {
    const HeapModeScope refuses(HeapMode::kRefuses);
    status = work();
  } catch (const std::bad_alloc&) {
    status = ResourceExhausted("out of memory: cannot read '{}'", path);
  } catch (const std::length_error&) {
    return DataLoss("cannot read '{}': it is damaged", path);
  }
  if (status.ok() || RefusedToProcess() == 0) return status;
  return ResourceExhausted("out of memory: cannot read '{}': {} bytes are asked for at once, {} are left",
                           path, RefusedToProcess(), std::max<int64_t>(0, RoomInBoundOfProcess()))
      .WithNote(
          "it is damaged, or its pieces are very large: write it in smaller ones, or allow more memory with "
          "--memory BYTES");
}

// What the process tells of an array that is open.
struct Head {
  int64_t indexes = 0;
  int64_t rows_of_chunk = 1;
  int64_t bytes_of_read = 0;
  int64_t stored = kUnknown;
};

struct Request {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t more_bytes = 0;  // Charged since the last request.
  bool of_stored = false;
};

int64_t WidthOf(const std::vector<int64_t>& sizes) {
  int64_t width = 1;  // Cells of one value of the first index.
  for (size_t i = 1; i < sizes.size(); ++i) width = SaturatingProduct(width, sizes[i]);
  return width;
}

// Answers a request for items [begin, end) of `width` values.
template <typename T, typename Read>
bool Answer(int socket, const std::string& path, int64_t count, const Read& read) {
  std::vector<T> values;
  const Status status = WithinBound(path, [&] {
    values.resize(static_cast<size_t>(count));
    return read(values.data());
  });
  return SendStatus(socket, status) &&
         (!status.ok() || Send(socket, values.data(), values.size() * sizeof(T)));
}

// Answers until the other end is closed.
void Serve(int socket, const std::string& path, int64_t room,
           const std::function<Result<std::unique_ptr<StoredArray>>()>& open) {
  BoundHeapOfProcess(room);
  LimitTime(room);
  std::unique_ptr<StoredArray> array;
  const Status opened = WithinBound(path, [&]() -> Status {
    HEDDLE_ASSIGN_OR_RETURN(array, open());
    return OkStatus();
  });
  if (!SendStatus(socket, opened) || !opened.ok()) return;
  const std::vector<int64_t>& sizes = array->sizes();
  const Head head = {.indexes = static_cast<int64_t>(sizes.size()),
                     .rows_of_chunk = array->rows_of_chunk(),
                     .bytes_of_read = array->bytes_of_read(),
                     .stored = array->stored()};
  if (!Send(socket, &head, sizeof(head)) || !Send(socket, sizes.data(), sizes.size() * sizeof(int64_t)) ||
      !SendText(socket, array->column_major_writer()))
    return;
  for (Request request; Receive(socket, &request, sizeof(request));) {
    MoveBoundOfProcess(request.more_bytes);
    LimitTime(head.bytes_of_read);
    const auto [begin, end] = std::pair(request.begin, request.end);
    const bool goes_on =
        request.of_stored
            ? Answer<StoredCell>(socket, path, end - begin,
                                 [&](StoredCell* out) { return array->ReadStored(begin, end, out); })
            : Answer<double>(socket, path, SaturatingProduct(end - begin, WidthOf(sizes)),
                             [&](double* out) { return array->Read(begin, end, out); });
    if (!goes_on) return;
  }
}

class ArrayProcess : public StoredArray {
 public:
  ArrayProcess(std::string path, std::string library, std::unique_ptr<Charge> charge, int socket,
               pid_t process)
      : path_(std::move(path)),
        library_(std::move(library)),
        charge_(std::move(charge)),
        opening_bytes_(charge_->bytes()),
        socket_(socket),
        process_(process) {}
  ~ArrayProcess() override { End(); }

  Status Open() {
    Status status;
    if (!ReceiveStatus(socket_, &status)) return Lost();
    HEDDLE_RETURN_IF_ERROR(status);
    if (!Receive(socket_, &head_, sizeof(head_)) || head_.indexes < 0 || head_.indexes > 64) return Lost();
    sizes_.resize(static_cast<size_t>(head_.indexes));
    head_.rows_of_chunk = std::max<int64_t>(1, head_.rows_of_chunk);
    if (!Receive(socket_, sizes_.data(), sizes_.size() * sizeof(int64_t)) || !ReceiveText(socket_, &writer_))
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
    return DoesNotFit(fmt::format("what {} takes to read '{}', {} bytes,", library_, path_,
                                  SaturatingSum(head_.bytes_of_read, bytes)),
                      MemoryBudget::Process());
  }

  Status Ask(Request request, void* out, int64_t bytes) {
    request.more_bytes = std::exchange(unsaid_bytes_, 0);
    Status status;
    if (socket_ < 0 || !Send(socket_, &request, sizeof(request)) || !ReceiveStatus(socket_, &status))
      return Lost();
    HEDDLE_RETURN_IF_ERROR(status);
    return Receive(socket_, out, static_cast<size_t>(bytes)) ? OkStatus() : Lost();
  }

  // The process ends when it finds the socket shut down; others that began meanwhile may hold it open.
  int End() {
    if (socket_ >= 0) {
      shutdown(socket_, SHUT_RDWR);
      close(socket_);
    }
    socket_ = -1;
    int status = 0;
    if (process_ > 0)
      while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
      }
    process_ = -1;
    return status;
  }

  Status Lost() {
    const int status = End();
    const Status lost = DataLoss("cannot read '{}': it is damaged, or {} cannot handle it", path_, library_);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
      return lost.WithNote(fmt::format("its library did not end within {} s", kMostSeconds));
    if (WIFSIGNALED(status))
      return lost.WithNote(fmt::format("its library ended with signal {}", WTERMSIG(status)));
    return lost;
  }

  const std::string path_, library_;
  std::mutex mutex_;
  const std::unique_ptr<Charge> charge_;
  const int64_t opening_bytes_;
  int64_t unsaid_bytes_ = 0;  // Charged, but the process does not know it yet.
  int socket_;
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

// In the process that reads: files stay open, and whatever others wait for the end of is closed, such as the
// socket of an executor. They would take this process for its parent when that one has ended.
void CloseConversations(int own_socket) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int standard = 0; standard <= 2; ++standard) dup2(null, standard);
  std::vector<int> open_now;
  if (DIR* const all = opendir("/proc/self/fd")) {
    while (const dirent* const entry = readdir(all))
      if (entry->d_name[0] != '.') open_now.push_back(std::atoi(entry->d_name));
    closedir(all);
  }
  for (const int fd : open_now) {
    struct stat status{};
    const bool is_file = fstat(fd, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
    if (fd > 2 && fd != own_socket && !is_file) close(fd);
  }
}

}  // namespace

Result<std::unique_ptr<StoredArray>> OpenInProcess(
    const std::string& path, const std::string& library, int64_t bytes_of_open,
    const std::function<Result<std::unique_ptr<StoredArray>>()>& open) {
  const int64_t room = SaturatingSum(RoomToOpen(), bytes_of_open);
  auto charge = std::make_unique<Charge>();
  if (!charge->Raise(room))
    return DoesNotFit(fmt::format("what {} takes to open '{}', {} bytes,", library, path, room),
                      MemoryBudget::Process());
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
    return ResourceExhausted("cannot read '{}': no socket: {}", path, std::strerror(errno));
  const pid_t process = fork();
  if (process < 0) {
    const int why = errno;
    for (const int end : ends) close(end);
    return ResourceExhausted("cannot read '{}': no process: {}", path, std::strerror(why));
  }
  if (process == 0) {
    CloseConversations(ends[1]);
    // Faults are told by the signal: whoever handles it elsewhere has nothing to say here. An interrupt at
    // the terminal is for the parent, which then closes the socket.
    for (const int fault : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU, SIGTERM})
      signal(fault, SIG_DFL);
    signal(SIGINT, SIG_IGN);
    Serve(ends[1], path, room, open);
    _exit(0);
  }
  close(ends[1]);
  auto array = std::make_unique<ArrayProcess>(path, library, std::move(charge), ends[0], process);
  HEDDLE_RETURN_IF_ERROR(array->Open());
  return std::unique_ptr<StoredArray>(std::move(array));
}

}  // namespace heddle::ops
