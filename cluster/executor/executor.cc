// SPDX-License-Identifier: Apache-2.0
#include "cluster/executor/executor.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "cluster/checkpoints/checkpoint_stores.h"
#include "cluster/checkpoints/kept_files.h"
#include "cluster/executor/commit_gate.h"
#include "cluster/executor/executor_messages.h"
#include "cluster/executor/isolation.h"
#include "cluster/executor/lease_clock.h"
#include "cluster/executor/line_channel.h"
#include "cluster/executor/start_limits.h"
#include "cluster/link/grpc_link.h"
#include "cluster/link/link_agreement.h"
#include "cluster/process/process_end.h"
#include "cluster/process/process_limits.h"
#include "cluster/process/repeated_work.h"
#include "cluster/progress/progress_line.h"
#include "core/environment/clock.h"
#include "core/environment/progress_board.h"
#include "core/environment/recorder.h"
#include "core/memory/counted_heap.h"
#include "core/memory/memory_bounds.h"
#include "core/memory/memory_budget.h"
#include "engine/control/background_measurement.h"
#include "engine/machine/machine_constants.h"
#include "engine/report/rank_record_json.h"
#include "engine/session/session.h"
#include "engine/session/state_taker.h"
#include "engine/variables/control_state.h"
#include "ops/base/cpu.h"
#include "ops/device/opencl/usable_devices.h"
#include "ops/io/files/files.h"
#include "ops/io/files/hidden_names.h"

namespace heddle::cluster {
namespace {

constexpr int kSignsInSilence = 10;
constexpr auto kProgressPause = std::chrono::milliseconds(200);

// The first thing that the launcher says; a process without one ends.
ExecutorStart ReadStart(LineChannel& channel) {
  std::string line;
  if (channel.ReadLine(&line) != LineChannel::Outcome::kLine) _exit(kBugExitCode);
  Result<LauncherMessage> message = ParseLauncherMessage(line);
  if (!message.ok() || !message->start) _exit(kBugExitCode);
  return *std::move(message->start);
}

// What the launcher said since. One thread reads, the main thread waits for the parts it needs.
class LauncherInbox {
 public:
  explicit LauncherInbox(LineChannel& channel) : channel_(channel), thread_([this] { Read(); }) {}
  ~LauncherInbox() {
    {
      const std::lock_guard lock(mutex_);
      finished_ = true;
    }
    channel_.Shutdown();
    thread_.join();
  }

  // nullopt when the job was cancelled first.
  std::optional<std::vector<ExecutorPeer>> WaitForPeers() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return peers_.has_value() || !cancelled_.ok(); });
    return peers_;
  }
  void OnGrant(std::function<void(const ExecutorGrant&)> listener) {
    const std::lock_guard lock(mutex_);
    grant_listener_ = std::move(listener);
  }
  void OnCheckpoint(std::function<void(const CheckpointOrder&)> listener) {
    const std::lock_guard lock(mutex_);
    checkpoint_listener_ = std::move(listener);
  }
  void OnCancel(std::function<void(const Status&)> listener) {
    const std::lock_guard lock(mutex_);
    listener_ = std::move(listener);
    if (listener_ && !cancelled_.ok()) listener_(cancelled_);
  }

 private:
  void Read() {
    std::string line;
    while (channel_.ReadLine(&line) == LineChannel::Outcome::kLine) {
      Result<LauncherMessage> message = ParseLauncherMessage(line);
      if (!message.ok()) break;
      const std::lock_guard lock(mutex_);
      if (message->peers) peers_ = std::move(message->peers);
      if (message->checkpoint && checkpoint_listener_) checkpoint_listener_(*message->checkpoint);
      if (message->grant && grant_listener_) grant_listener_(*message->grant);
      if (message->cancel && cancelled_.ok()) {
        cancelled_ = *message->cancel;
        if (listener_) listener_(cancelled_);
      }
      changed_.notify_all();
    }
    const std::lock_guard lock(mutex_);
    // Nobody is left to report to: no orphans.
    if (!finished_) _exit(kBugExitCode);
  }

  LineChannel& channel_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::vector<ExecutorPeer>> peers_;
  Status cancelled_;
  std::function<void(const Status&)> listener_;
  std::function<void(const ExecutorGrant&)> grant_listener_;
  std::function<void(const CheckpointOrder&)> checkpoint_listener_;
  bool finished_ = false;
  std::thread thread_;
};

std::vector<LinkPeer> ToLinkPeers(const std::vector<ExecutorPeer>& peers) {
  std::vector<LinkPeer> result;
  for (const ExecutorPeer& peer : peers) result.push_back({peer.endpoint, peer.certificate, peer.name});
  return result;
}

// Errors of a checkpoint that another attempt would meet as well (Session::Resume). Want of memory, and a
// store that fails for a moment, are none.
bool IsOfNoUse(const Status& resumed) {
  switch (resumed.code()) {
    case StatusCode::kDataLoss:
    case StatusCode::kNotFound:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kInternal: return true;
    default: return false;
  }
}
// WaitForWrite() of checkpoints for several threads: those of actors wait for what is being written, too.
class AwaitedCheckpoints : public engine::StateTaker {
 public:
  explicit AwaitedCheckpoints(engine::Checkpoints& checkpoints) : checkpoints_(checkpoints) {}
  Result<bool> Wants(const Moment& moment, const Share& share) override {
    return checkpoints_.Wants(moment, share);
  }
  Status Take(engine::ControlState state) override {
    ++taken_;
    return checkpoints_.Take(std::move(state));
  }
  void WaitForWrite() override {
    const std::lock_guard lock(mutex_);
    checkpoints_.WaitForWrite();
  }
  int64_t taken() const { return taken_; }  // The number of the last one.

 private:
  engine::Checkpoints& checkpoints_;
  std::mutex mutex_;
  std::atomic<int64_t> taken_{0};
};

// Keeps what a file was, when it may be changed, before it is.
class KeepingGate : public ops::ChangeGate {
 public:
  explicit KeepingGate(ops::ChangeGate& gate) : gate_(gate) {}
  // From now on; both outlive this. nullptr: no checkpoints are taken.
  void Begin(KeptFiles& files, const AwaitedCheckpoints* checkpoints) {
    files_ = &files;
    checkpoints_ = checkpoints;
  }
  Result<int64_t> Open(const std::string& path) override {
    for (;;) {
      HEDDLE_ASSIGN_OR_RETURN(const int64_t permission, gate_.Open(path));
      if (files_ == nullptr) return permission;
      const int64_t checkpoint = checkpoints_ != nullptr ? checkpoints_->taken() : 0;
      HEDDLE_ASSIGN_OR_RETURN(const bool is_kept,
                              files_->Keep(path, checkpoint, [&] { return gate_.IsOpen(permission); }));
      if (is_kept) return permission;
    }
  }
  bool IsOpen(int64_t permission) override { return gate_.IsOpen(permission); }

 private:
  ops::ChangeGate& gate_;
  KeptFiles* files_ = nullptr;
  const AwaitedCheckpoints* checkpoints_ = nullptr;
};

// The job itself, from the start message to its outcome.
class ExecutorRun {
 public:
  ExecutorRun(const ExecutorStart& start, LineChannel& channel, LauncherInbox& inbox)
      : start_(start),
        channel_(channel),
        inbox_(inbox),
        gate_([this](const ExecutorCommit& commit) { Ask(commit); }, LeaseClock()),
        keeping_gate_(gate_),
        files_(ops::MakeFiles(start.directory, start.epoch != 0 ? &keeping_gate_ : nullptr, start.roots)) {}

  ExecutorDone Run() {
    ExecutorDone done;
    done.status = Prepare();
    if (done.status.ok()) {
      inbox_.OnGrant([this](const ExecutorGrant& grant) { gate_.Answer(grant); });
      inbox_.OnCheckpoint([this](const CheckpointOrder& order) { Obey(order); });
      inbox_.OnCancel([this](const Status& why) { Stop(why); });
      done.status = JoinAndRun(&done);
      inbox_.OnCancel(nullptr);
      inbox_.OnCheckpoint(nullptr);
      inbox_.OnGrant(nullptr);
    } else {
      done.own_cause = true;
    }
    if (session_ != nullptr) {
      done.statistics = Statistics();
      if (recorder_) SendRecord();
    }
    checkpoints_.reset();  // what is being written is given up
    link_.reset();         // before the session, which answers its calls
    return done;
  }

 private:
  void SendRecord() {
    ExecutorMessage message;
    const int64_t most_bytes = start_.most_record_bytes;
    message.record = engine::ToJson(session_->record(), most_bytes > 0 ? most_bytes : INT64_MAX);
    channel_.WriteLine(ToLine(message));
  }

  void SendProgress() {
    ExecutorMessage message;
    const MemoryBudget& memory = MemoryBudget::Process();
    message.progress = ToJson(
        Progress{.state = progress_.Read(), .used_bytes = memory.used(), .limit_bytes = memory.limit()});
    channel_.WriteLine(ToLine(message));
  }

  // Whoever notes what a file was before it changes is to know between which checkpoints that was.
  void Ask(const ExecutorCommit& commit) {
    if (states_ && kept_ == nullptr) states_->WaitForWrite();
    ExecutorMessage message;
    message.commit = commit;
    channel_.WriteLine(ToLine(message));
  }

  void Obey(const CheckpointOrder& order) {
    if (!checkpoints_) return;
    if (order.now) checkpoints_->Ask();
    checkpoints_->Drop(order.unneeded);
  }

  // The session may wait at the gate.
  void Stop(const Status& why) {
    gate_.Close(why);
    session_->Cancel(why);
  }

  Status Prepare() {
    if (!start_.options.cpu.empty())
      HEDDLE_RETURN_IF_ERROR(ops::ForceCpu(ops::CpuOfRank(start_.options.cpu, start_.options.rank)));
    if (!start_.no_device.empty()) ops::RefuseDevices(start_.no_device);
    HEDDLE_ASSIGN_OR_RETURN(Program program, Program::Parse(start_.program));
    const engine::SessionOptions& options = start_.options;
    MemoryBudget::Process().SetLimit(options.memory_bytes > 0
                                         ? options.memory_bytes
                                         : ReadMemoryBounds().DefaultLimit(std::max(start_.sharers, 1)));
    if (options.ranks > 1) {
      GrpcLinkOptions link;
      link.job = start_.job;
      link.attempt = start_.attempt;
      link.rank = options.rank;
      link.ranks = options.ranks;
      link.token = start_.token;
      link.listen = start_.listen;
      link.shares_memory = start_.shares_memory;
      HEDDLE_ASSIGN_OR_RETURN(link_, GrpcLink::Listen(link));
    }
    engine::SessionEnvironment environment;
    environment.files = files_.get();
    environment.clock = &SystemClock();
    environment.print = [this](std::string_view text) {
      printed_ += static_cast<int64_t>(text.size());
      ExecutorMessage message;
      message.output = std::string(text);
      channel_.WriteLine(ToLine(message));
    };
    if (start_.show_plans)
      environment.observe_plan = [this](const Plan& plan) {
        ExecutorMessage message;
        message.plan = plan.ToText();
        channel_.WriteLine(ToLine(message));
      };
    if (options.recorded_events > 0) {
      recorder_.emplace(*environment.clock, options.recorded_events);
      environment.recorder = &*recorder_;
    }
    if (start_.shows_progress) environment.progress = &progress_;
    environment.link = link_.get();
    environment.control = link_.get();
    HEDDLE_RETURN_IF_ERROR(PrepareCheckpoints(program, &environment));
    session_ = engine::Session::Create(options, std::move(program), environment);
    if (link_ != nullptr) link_->Serve(session_->handler(), [this](const Status& why) { Stop(why); });
    return OkStatus();
  }

  Status PrepareCheckpoints(const Program& program, engine::SessionEnvironment* environment) {
    const ExecutorCheckpoints& wanted = start_.checkpoints;
    printed_ = wanted.printed;
    if (wanted.location.empty()) return OkStatus();
    HEDDLE_ASSIGN_OR_RETURN(store_, OpenCheckpoints(wanted.location));
    if (wanted.keeps_files)
      kept_ = std::make_unique<KeptFiles>(program, start_.directory, start_.roots, *files_, wanted.location,
                                          wanted.folder, *store_);
    if (!wanted.are_taken()) return OkStatus();
    const engine::CheckpointOptions options = {.folder = wanted.folder,
                                               .interval_ns = wanted.interval_ms * 1'000'000};
    const auto written = [this](const engine::WrittenCheckpoint& about) {
      ExecutorMessage message;
      message.checkpoint = about;
      channel_.WriteLine(ToLine(message));
    };
    checkpoints_.emplace(
        options, start_.options.rank, *store_, *environment->clock, [this] { return printed_; }, written);
    states_.emplace(*checkpoints_);
    environment->states = &*states_;
    return OkStatus();
  }

  Status JoinAndRun(ExecutorDone* done) {
    ExecutorMessage ready;
    ready.ready.emplace();
    if (link_ != nullptr) ready.ready = ExecutorReady{link_->endpoint(), link_->certificate()};
    channel_.WriteLine(ToLine(ready));
    const std::optional<std::vector<ExecutorPeer>> peers = inbox_.WaitForPeers();
    if (link_ != nullptr && peers.has_value()) {
      if (Status status = Connect(ToLinkPeers(*peers)); !status.ok()) {
        link_->Fail(status);
        return status;
      }
    }
    const Status begun = PutFilesBack();
    Status status = begun.ok() ? RunSession() : begun;
    done->own_cause = !begun.ok() || session_->own_cause();
    // An input that has changed ends the job: one that begins anew would mix results of both as well.
    done->could_not_resume = IsOfNoUse(status) && !start_.checkpoints.resume.empty() &&
                             !session_->has_resumed() && done->own_cause;
    if (link_ == nullptr || !peers.has_value()) return status;
    if (status.ok()) return link_->Finish();
    link_->Fail(status);
    return status;
  }

  Status Connect(const std::vector<LinkPeer>& peers) {
    HEDDLE_RETURN_IF_ERROR(link_->Connect(peers));
    HEDDLE_ASSIGN_OR_RETURN(const ops::LinkRates links,
                            AgreeOnLinks(*link_, start_.options.rank, LinksKey(peers, start_.shares_memory),
                                         engine::ConstantsCache()));
    session_->SetLinks(links);
    return OkStatus();
  }

  // Before any rank reads one: the others wait for the first plan of rank 0.
  Status PutFilesBack() {
    if (kept_ == nullptr) return OkStatus();
    if (start_.options.rank == 0) HEDDLE_RETURN_IF_ERROR(kept_->PutBack(start_.checkpoints.resume));
    keeping_gate_.Begin(*kept_, states_ ? &*states_ : nullptr);
    return OkStatus();
  }

  Status StartSession() {
    const ExecutorCheckpoints& checkpoints = start_.checkpoints;
    return checkpoints.resume.empty() || store_ == nullptr
               ? session_->Run()
               : session_->Resume(checkpoints.resume, checkpoints.resume_ranks, *store_);
  }

  Status RunSession() {
    if (!start_.shows_progress) return StartSession();
    Status status;
    {
      const RepeatedWork told(kProgressPause, kProgressPause, [this] { SendProgress(); });
      status = StartSession();
    }
    SendProgress();  // Nothing runs any more.
    return status;
  }

  engine::SessionStatistics Statistics() const {
    engine::SessionStatistics statistics = session_->statistics();
    if (link_ == nullptr) return statistics;
    const LinkStatistics link = link_->statistics();
    statistics.bytes_sent = link.bytes_sent;
    statistics.bytes_received = link.bytes_received;
    statistics.bytes_shared = link.bytes_shared;
    statistics.messages_sent = link.messages_sent;
    return statistics;
  }

  const ExecutorStart& start_;
  LineChannel& channel_;
  LauncherInbox& inbox_;
  CommitGate gate_;
  KeepingGate keeping_gate_;
  std::unique_ptr<ops::Files> files_;
  std::unique_ptr<GrpcLink> link_;
  std::optional<Recorder> recorder_;
  ProgressBoard progress_;
  int64_t printed_ = 0;  // Of the thread of the session.
  std::unique_ptr<engine::CheckpointStore> store_;
  std::optional<engine::Checkpoints> checkpoints_;
  std::optional<AwaitedCheckpoints> states_;
  std::unique_ptr<KeptFiles> kept_;  // nullptr: nothing is kept.
  std::unique_ptr<engine::Session> session_;
};

// The launcher removes what this process leaves there.
void TellHidden(LineChannel& channel, const std::string& path, bool is_gone) {
  ExecutorMessage message;
  (is_gone ? message.gone : message.hidden) = path;
  channel.WriteLine(ToLine(message));
}

}  // namespace

int RunExecutor(int control_fd) {
  // Ctrl-C reaches the whole group of processes; the launcher alone decides what it means.
  signal(SIGINT, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);

  LineChannel channel(control_fd);
  const ExecutorStart start = ReadStart(channel);
  RaiseDescriptorLimit();
  // While this is the only thread: what is started later is kept in as well.
  Status status = CheckStart(start);
  if (status.ok()) status = BecomeOwner(start);
  if (status.ok()) status = Isolate(start);
  if (!start.core_dumps) ForbidCoreDumps();
  if (start.data_bytes > 0 && HeapIsCounted()) LimitData(start.data_bytes);  // A sanitizer maps far more.
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // whoever becomes another user has none any more
  LauncherInbox inbox(channel);
  ExecutorMessage message;
  if (!status.ok()) {
    message.done = ExecutorDone{.status = status, .own_cause = true};
  } else {
    // Tells the launcher again and again that this process runs.
    const std::chrono::milliseconds pause(start.silence_ms / kSignsInSilence);
    const RepeatedWork signs(pause, pause, [&] { channel.WriteLine(ToLine(ExecutorMessage())); });
    ops::HiddenNames& hidden = ops::HiddenNames::OfProcess();
    hidden.Tell([&](const std::string& path, bool is_gone) { TellHidden(channel, path, is_gone); });
    message.done = ExecutorRun(start, channel, inbox).Run();
    hidden.Tell(nullptr);
  }
  if (!channel.WriteLine(ToLine(message))) return kBugExitCode;
  // Nobody waits for this process any more. One measures, as several may share a machine.
  if (start.options.rank == 0 && message.done->status.ok() && message.done->statistics)
    engine::BackgroundMeasurement().StartBehind(*message.done->statistics, start.options.threads);
  return 0;
}

}  // namespace heddle::cluster
