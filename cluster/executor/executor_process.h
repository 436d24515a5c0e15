// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/executor/commit_gate.h"
#include "core/status.h"
#include "engine/checkpoints/checkpoints.h"
#include "engine/session/session.h"
#include "ops/io/files/file_roots.h"

// The launching side of an executor process (runtime reference 5.4): used by `heddle sim` and by worker
// daemons.
namespace heddle::cluster {

/// What the executors of a job leave for its next attempts (docs/recovery.md).
struct ExecutorCheckpoints {
  std::string location;  ///< Where that is (OpenCheckpoints); "": nowhere, and nothing is left.
  std::string folder;    ///< Of the objects of this attempt, without the number of a checkpoint.
  /// Files that the script reads and replaces are kept as they were (KeptFiles; `folder` is `JOB/EPOCH`),
  /// also where no checkpoints are taken.
  bool keeps_files = false;
  int64_t interval_ms = 0;  ///< From one checkpoint to the next; 0: by cost; kNever: none are taken.
  std::string resume;       ///< The checkpoint to go on from; "": from the beginning.
  int resume_ranks = 0;     ///< Of that checkpoint,
  int64_t printed = 0;      ///< and how much the script had printed before it.
  static constexpr int64_t kNever = -1;

  bool are_taken() const { return !location.empty() && interval_ms != kNever; }
};

/// Everything an executor must know; sent over an inherited socket, never on a command line.
struct ExecutorStart {
  std::string job;  ///< Id of the job, for messages.
  int attempt = 1;
  /// Of the attempt, among all of its cluster. Not 0: somebody else may take over the job, so that the
  /// launcher is asked before a file is changed.
  int64_t epoch = 0;
  std::string token;                   ///< Secret of this attempt: executors only talk to peers that know it.
  std::string program;                 ///< Program::ToText().
  std::string directory;               ///< Where relative paths of the script start; absolute.
  std::string owner;                   ///< Of the job: of the token that it was submitted with.
  bool is_isolated = false;            ///< The kernel keeps it in (cluster/executor/isolation.h).
  bool runs_as_owner = false;          ///< As the user of this machine who is called as the owner.
  ops::FileRoots roots;                ///< Which files the script may use.
  std::string listen = "127.0.0.1:0";  ///< Address to bind (GrpcLinkOptions).
  int64_t silence_ms =
      10'000;               ///< It gives a sign of life ten times as often; silent for so long, it is stuck.
  bool show_plans = false;  ///< Tell the plans that it makes or receives.
  bool shows_progress = false;    ///< Tell what it is at, some times a second.
  int64_t most_record_bytes = 0;  ///< Of its record of the run as JSON; 0: any.
  int sharers = 1;  ///< Executors of this attempt that share the memory of the machine, itself included.
  bool shares_memory = true;  ///< With executors of the same host (GrpcLinkOptions).
  /// Why it may not use the device of its options; "": it may.
  std::string no_device;
  bool core_dumps = true;  ///< As the launcher has them; false: none, whatever it has.
  ExecutorCheckpoints checkpoints;
  /// Most private memory that the kernel gives it (RLIMIT_DATA), for where its group has no limit; 0: any.
  int64_t data_bytes = 0;
  engine::SessionOptions options;  ///< rank and ranks included.
};

/// One entry of the rank table.
struct ExecutorPeer {
  std::string endpoint;     ///< What the executor reported.
  std::string certificate;  ///< That it shows; "" without TLS.
  std::string name;         ///< For messages: "worker 2 (pid 1234)".
};

/// How an executor process ended.
struct ExecutorExit {
  pid_t pid = 0;
  bool signalled = false;
  int value = 0;               ///< Exit code, or number of the signal.
  int64_t silent_ms = 0;       ///< It was killed because it gave no sign of life for so long.
  bool out_of_memory = false;  ///< The kernel killed it, because memory ran out.
  int64_t peak_bytes = 0;      ///< The most memory that it held.
  int64_t limit_bytes = 0;     ///< What its surroundings allow it (core/memory/memory_bounds.h).
  std::string log;             ///< File with its standard error; "" when there is none.
  std::string last_words;      ///< Last line of its log.
  /// "was killed by signal 9", "ended with code 70", "gave no sign of life for 10 s and was killed",
  /// "was killed by the kernel because memory ran out: it held 3 bytes, of 2 that ..."
  std::string Describe() const;
  /// In a word or two, for counting: "done", "code 70", "signal 9", "silent", "out of memory".
  std::string Kind() const;
  /// kInternal: our bug; kResourceExhausted: it ran out of memory where nothing could be told; else
  /// kUnavailable.
  StatusCode CodeOf() const;
};

/// What the launcher says of checkpoints.
struct CheckpointOrder {
  bool now = false;                   ///< One is wanted soon.
  std::vector<std::string> unneeded;  ///< Those to remove.
};

/// How the run of an executor ended.
struct ExecutorDone {
  Status status;
  bool own_cause = false;         ///< The failure began there.
  bool could_not_resume = false;  ///< Because of the checkpoint, which is of no use.
  std::optional<engine::SessionStatistics> statistics;
};

/// What an executor reports. Called on a thread of the ExecutorProcess, in order; `exited` is the last call.
/// None of them may destroy the ExecutorProcess.
struct ExecutorEvents {
  /// Bound; waits for SendPeers.
  std::function<void(const std::string& endpoint, const std::string& certificate)> ready;
  std::function<void(std::string_view text)> output;      ///< Standard output of the script (rank 0).
  std::function<void(std::string_view text)> plan;        ///< Of every plan, when `show_plans` was set.
  std::function<void(const std::string& json)> progress;  ///< With `shows_progress` (progress_line.h).
  std::function<void(const std::string& json)> record;    ///< Of a run that is recorded, before `done`.
  std::function<void(const ExecutorDone& done)> done;
  std::function<void(const engine::WrittenCheckpoint& written)> checkpoint;  ///< Written, or not.
  std::function<void(const ExecutorCommit& commit)> commit;  ///< Waits for Grant (ExecutorStart::epoch).
  std::function<void(const ExecutorExit& exit)> exited;
};

/// A running executor. However it ends, files that it was about to write are removed then. The process dies
/// with its launcher: it ends itself when the control socket closes. One that is stuck (stopped, or without a
/// thread that runs) is killed.
class ExecutorProcess {
 public:
  /// Starts `binary executor --control-fd 3` and hands it `start`. `binary` empty: this program
  /// (/proc/self/exe). `log` is a file descriptor for its standard error (-1: inherited). `group` is the
  /// folder of a control group (cluster/process/control_group.h) that it goes to and that is removed with it;
  /// "": it stays in that of this process.
  static Result<std::unique_ptr<ExecutorProcess>> Start(const ExecutorStart& start, ExecutorEvents events,
                                                        const std::string& binary = "", int log = -1,
                                                        const std::string& group = "");
  virtual ~ExecutorProcess() = default;  ///< Kills it if it still runs, and waits.

  virtual pid_t pid() const = 0;
  /// The rank table, when all executors of the attempt are ready.
  virtual void SendPeers(const std::vector<ExecutorPeer>& peers) = 0;
  /// Lets it change the file that it asked for.
  virtual void Grant(const ExecutorGrant& grant) = 0;
  /// Asks for a checkpoint soon, of rank 0; and to remove checkpoints that nobody needs any more.
  virtual void Send(const CheckpointOrder& order) = 0;
  /// Asks it to stop; it answers with `done`. Returns at once.
  virtual void Cancel(const Status& why) = 0;
  /// kill -9. Returns at once; `exited` follows.
  virtual void Kill() = 0;
  /// Sends it another signal, SIGSTOP say; false when it has ended. Returns at once.
  virtual bool Signal(int number) = 0;
};

}  // namespace heddle::cluster
