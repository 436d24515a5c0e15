// SPDX-License-Identifier: Apache-2.0
#include "cluster/compiling/compile_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "cluster/process/process_end.h"
#include "cluster/process/verb_process.h"
#include "core/environment/clock.h"
#include "core/environment/log.h"
#include "core/text/utf8.h"

namespace heddle::cluster {
namespace {

constexpr std::string_view kName = "a process that compiles";
constexpr int kAskAgainMs = 50;  // whether somebody still waits
constexpr int kMostLastMs = 2000;
constexpr size_t kMostReplyBytes = size_t{512} << 20;
constexpr size_t kMostWordsBytes = 2000;  // of what it says of its end
constexpr int64_t kNsPerSecond = 1'000'000'000;

// The child, started by Start(), ended and reaped by the destructor at the latest.
class Child {
 public:
  Child() = default;
  ~Child() { End(); }
  Child(const Child&) = delete;

  Status Start(const std::string& binary) {
    HEDDLE_ASSIGN_OR_RETURN(ControlSockets sockets, MakeControlSockets(kName));
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) != 0) return CannotStart(errno);
    control_ = std::move(sockets.own);
    words_ = Descriptor(pipes[0]);
    const Descriptor their_words = AboveThoseOfChild(Descriptor(pipes[1]));
    if (!their_words.ok()) return CannotStart(errno);
    // The child waits for what it reads and writes, the master does not.
    fcntl(control_.get(), F_SETFL, O_NONBLOCK);
    fcntl(words_.get(), F_SETFL, O_NONBLOCK);
    HEDDLE_ASSIGN_OR_RETURN(pid_, StartVerb("compiler", {.child = kName,
                                                         .program = binary,
                                                         .control = sockets.child.get(),
                                                         .log = their_words.get(),
                                                         .closes_all = true}));
    return OkStatus();
  }

  int control() const { return control_.get(); }
  int words() const { return words_.get(); }
  // Whatever it does at that moment. The status of waitpid.
  int End() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    Reap(0);
    return status_;
  }
  // A child that has closed its end is about to end by itself; one that does not is ended.
  int AwaitEnd() {
    for (int waited_ms = 0; waited_ms < kMostLastMs && !Reap(WNOHANG); ++waited_ms) poll(nullptr, 0, 1);
    return End();
  }

 private:
  static Status CannotStart(int error) { return Unavailable("cannot start {}: {}", kName, strerror(error)); }

  // True when there is no child any more.
  bool Reap(int options) {
    while (pid_ > 0) {
      const pid_t reaped = waitpid(pid_, &status_, options);
      if (reaped == 0) return false;
      if (reaped > 0 || errno != EINTR) pid_ = -1;
    }
    return true;
  }

  pid_t pid_ = -1;
  int status_ = 0;
  Descriptor control_;
  Descriptor words_;  // standard output and error of the child
};

enum class Outcome : uint8_t { kClosed, kGivenUp, kTooLong, kTooLarge };

// Writes the request, reads the reply and what else the child says, until it closes its end.
Outcome Converse(const Child& child, const std::string& request, int64_t end_ns,
                 const std::function<bool()>& given_up, std::string* reply, std::string* words) {
  size_t written = 0;
  bool says_more = true;
  char block[1 << 16];
  for (;;) {
    if (given_up()) return Outcome::kGivenUp;
    if (SystemClock().MonotonicNs() > end_ns) return Outcome::kTooLong;
    const auto wanted = static_cast<short>(written < request.size() ? POLLIN | POLLOUT : POLLIN);
    pollfd polled[] = {{child.control(), wanted, 0}, {says_more ? child.words() : -1, POLLIN, 0}};
    if (poll(polled, 2, kAskAgainMs) < 0) continue;  // a signal
    if (polled[1].revents != 0) {
      const ssize_t got = read(child.words(), block, sizeof(block));
      if (got > 0) words->append(block, static_cast<size_t>(got));
      if (words->size() > kMostWordsBytes) words->erase(0, words->size() - kMostWordsBytes);
      says_more = got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
    }
    if ((polled[0].revents & POLLOUT) != 0) {
      const ssize_t sent =
          send(child.control(), request.data() + written, request.size() - written, MSG_NOSIGNAL);
      if (sent > 0) written += static_cast<size_t>(sent);
      if (written == request.size()) shutdown(child.control(), SHUT_WR);
    }
    if ((polled[0].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
    const ssize_t got = recv(child.control(), block, sizeof(block), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return Outcome::kClosed;
    if (reply->size() > kMostReplyBytes) return Outcome::kTooLarge;
    reply->append(block, static_cast<size_t>(got));
  }
}

// The last line of what the child said.
std::string LastLine(std::string_view words) {
  while (!words.empty() && words.back() == '\n') words.remove_suffix(1);
  const size_t begin = words.rfind('\n');
  return EscapeInvalidUtf8(begin == std::string_view::npos ? words : words.substr(begin + 1));
}

// Why a process ended that did not answer.
Status DescribeEnd(const std::string& script, int status, const std::string& words) {
  const bool signalled = WIFSIGNALED(status);
  const int value = signalled ? WTERMSIG(status) : WEXITSTATUS(status);
  Status failure;
  if (!signalled && value == kMemoryExitCode) {
    failure = ResourceExhausted("out of memory while the script '{}' was compiled", script);
  } else {
    const std::string how = signalled ? fmt::format("was ended by signal {} ({})", value, strsignal(value))
                                      : fmt::format("ended with code {}", value);
    const std::string text = fmt::format("the compiler {} while it compiled the script '{}'", how, script);
    const bool is_bug = signalled ? IsSignalOfBug(value) : value == kBugExitCode || value == 0;
    if (is_bug)
      failure = Internal("{}", text).WithNote("this is a bug of Heddle; nothing else was touched by it");
    else if (signalled && value == SIGKILL)
      failure = ResourceExhausted("{}", text).WithNote("so the kernel ends a process when memory runs out");
    else
      failure = Unavailable("{}", text);
  }
  const std::string line = LastLine(words);
  return line.empty() ? failure : failure.WithNote(line);
}

}  // namespace

Result<CompileReply> CompileInProcess(CompileRequest request, const CompileLimits& limits,
                                      const std::function<bool()>& given_up, const std::string& binary) {
  const std::string script = EscapeInvalidUtf8(request.submit().script_name());
  const int64_t end_ns = SystemClock().MonotonicNs() + limits.most_ns;
  request.set_memory_bytes(limits.memory_bytes);
  request.set_most_seconds(std::max<int64_t>(1, limits.most_ns / kNsPerSecond));
  request.set_core_dumps(limits.core_dumps);
  request.set_is_isolated(limits.isolates);
  Child child;
  HEDDLE_RETURN_IF_ERROR(child.Start(binary));
  std::string bytes;
  std::string words;
  const Outcome outcome = Converse(child, request.SerializeAsString(), end_ns, given_up, &bytes, &words);
  if (outcome == Outcome::kGivenUp) return Cancelled("nobody waits for the script '{}' any more", script);
  if (outcome == Outcome::kTooLong)
    return InvalidArgument(
               "the script '{}' was not compiled within {} s, which is as long as this master compiles one",
               script, static_cast<double>(limits.most_ns) / kNsPerSecond)
        .WithNote("'heddle master --compile-seconds N' gives scripts more time");
  if (outcome == Outcome::kTooLarge)
    return ResourceExhausted("the script '{}' becomes a program of more than {} bytes", script,
                             kMostReplyBytes);
  const int status = child.AwaitEnd();
  CompileReply reply;
  const bool is_whole = status == 0 && reply.ParseFromString(bytes);
  if (is_whole && !(reply.program().empty() && reply.status().empty())) return reply;
  const Status failure = DescribeEnd(script, status, words);
  HEDDLE_LOG(kWarning, "a script was not compiled", {"script", script}, {"why", failure.message()},
             {"words", LastLine(words)});
  return failure;
}

}  // namespace heddle::cluster
