// SPDX-License-Identifier: Apache-2.0
#include "ops/formats/libraries/array_process.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

namespace heddle::ops {
namespace {

// Cells of one answer: what a process holds of an array at a time.
constexpr int64_t kMostCells = 1 << 17;
// Processor seconds of a process for one answer; far more than decoding so many cells takes.
constexpr rlim_t kMostSeconds = 30;

bool Send(int socket, const void* bytes, size_t size) {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t sent = send(socket, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
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

bool SendStatus(int socket, const Status& status) {
  const auto code = static_cast<uint64_t>(status.code());
  if (!Send(socket, &code, sizeof(code))) return false;
  if (status.ok()) return true;
  const uint64_t notes = status.notes().size();
  bool good = SendText(socket, status.message()) && Send(socket, &notes, sizeof(notes));
  for (const std::string& note : status.notes()) good = good && SendText(socket, note);
  return good;
}

bool ReceiveStatus(int socket, Status* status) {
  uint64_t code = 0, notes = 0;
  if (!Receive(socket, &code, sizeof(code))) return false;
  if (static_cast<StatusCode>(code) == StatusCode::kOk) return true;
  std::string text;
  if (!ReceiveText(socket, &text) || !Receive(socket, &notes, sizeof(notes)) || notes > 100) return false;
  *status = Status(static_cast<StatusCode>(code), text);
  for (uint64_t i = 0; i < notes; ++i) {
    if (!ReceiveText(socket, &text)) return false;
    *status = status->WithNote(text);
  }
  return true;
}

// Of the process that is about to answer.
void LimitTime() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const rlim_t most = static_cast<rlim_t>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + kMostSeconds;
  const rlimit limit{most, RLIM_INFINITY};
  setrlimit(RLIMIT_CPU, &limit);
}

// Answers until the other end is closed.
void Serve(int socket, const std::function<Result<std::unique_ptr<Hdf5Array>>()>& open) {
  LimitTime();
  Result<std::unique_ptr<Hdf5Array>> opened = open();
  if (!SendStatus(socket, opened.status()) || !opened.ok()) return;
  Hdf5Array& array = **opened;
  const int64_t head[] = {static_cast<int64_t>(array.sizes().size()), array.rows_of_chunk()};
  if (!Send(socket, head, sizeof(head)) ||
      !Send(socket, array.sizes().data(), array.sizes().size() * sizeof(int64_t)))
    return;
  for (int64_t range[2]; Receive(socket, range, sizeof(range));) {
    LimitTime();
    int64_t width = 1;  // Cells of one value of the first index; who asks for rows has looked at the sizes.
    for (size_t i = 1; i < array.sizes().size(); ++i) width *= array.sizes()[i];
    std::vector<double> cells(static_cast<size_t>((range[1] - range[0]) * width));
    const Status status = array.Read(range[0], range[1], cells.data());
    if (!SendStatus(socket, status)) return;
    if (status.ok() && !Send(socket, cells.data(), cells.size() * sizeof(double))) return;
  }
}

class ArrayProcess : public Hdf5Array {
 public:
  ArrayProcess(std::string path, int socket, pid_t process)
      : path_(std::move(path)), socket_(socket), process_(process) {}
  ~ArrayProcess() override { End(); }

  Status Open() {
    Status status;
    if (!ReceiveStatus(socket_, &status)) return Lost();
    HEDDLE_RETURN_IF_ERROR(status);
    int64_t head[2] = {};
    if (!Receive(socket_, head, sizeof(head)) || head[0] < 0 || head[0] > 64) return Lost();
    sizes_.resize(static_cast<size_t>(head[0]));
    rows_of_chunk_ = std::max<int64_t>(1, head[1]);
    if (!Receive(socket_, sizes_.data(), sizes_.size() * sizeof(int64_t))) return Lost();
    return OkStatus();
  }

  const std::vector<int64_t>& sizes() const override { return sizes_; }
  int64_t rows_of_chunk() const override { return rows_of_chunk_; }

  Status Read(int64_t begin, int64_t end, double* out) override {
    const std::lock_guard lock(mutex_);
    int64_t width = 1;
    for (size_t i = 1; i < sizes_.size(); ++i) width *= sizes_[i];
    // Whole chunks, so that none is decoded twice.
    const int64_t rows =
        std::max(rows_of_chunk_, kMostCells / std::max<int64_t>(width, 1) / rows_of_chunk_ * rows_of_chunk_);
    for (int64_t row = begin, next; row < end; row = next) {
      next = std::min(end, (row / rows + 1) * rows);
      const int64_t range[] = {row, next};
      const int64_t cells = (next - row) * width;
      Status status;
      if (socket_ < 0 || !Send(socket_, range, sizeof(range)) || !ReceiveStatus(socket_, &status))
        return Lost();
      HEDDLE_RETURN_IF_ERROR(status);
      if (!Receive(socket_, out, static_cast<size_t>(cells) * sizeof(double))) return Lost();
      out += cells;
    }
    return OkStatus();
  }

 private:
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
    const Status lost = DataLoss("cannot read '{}': it is damaged, or HDF5 cannot handle it", path_);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
      return lost.WithNote(fmt::format("its library did not end within {} s", kMostSeconds));
    if (WIFSIGNALED(status))
      return lost.WithNote(fmt::format("its library ended with signal {}", WTERMSIG(status)));
    return lost;
  }

  const std::string path_;
  std::mutex mutex_;
  int socket_;
  pid_t process_;
  std::vector<int64_t> sizes_;
  int64_t rows_of_chunk_ = 1;
};

}  // namespace

Result<std::unique_ptr<Hdf5Array>> OpenInProcess(
    const std::string& path, const std::function<Result<std::unique_ptr<Hdf5Array>>()>& open) {
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
    close(ends[0]);
    // Faults are told by the signal: whoever handles it elsewhere has nothing to say here. An interrupt at
    // the terminal is for the parent, which then closes the socket.
    for (const int fault : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU, SIGTERM})
      signal(fault, SIG_DFL);
    signal(SIGINT, SIG_IGN);
    Serve(ends[1], open);
    _exit(0);
  }
  close(ends[1]);
  auto array = std::make_unique<ArrayProcess>(path, ends[0], process);
  HEDDLE_RETURN_IF_ERROR(array->Open());
  return std::unique_ptr<Hdf5Array>(std::move(array));
}

}  // namespace heddle::ops
