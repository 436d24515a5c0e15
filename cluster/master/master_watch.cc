// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/master_watch.h"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "cluster/master/master_wire.h"
#include "cluster/master/own_jobs.h"
#include "cluster/security/rpc_security.h"
#include "core/text/utf8.h"

namespace heddle::cluster {
namespace {

constexpr int64_t kEventBytes = 256 << 10;

class WatchStream : public grpc::ServerWriteReactor<WatchEvent> {
 public:
  WatchStream(MasterHub* hub, const AccessControl* access, std::string authorization,
              const WatchRequest& request)
      : hub_(hub),
        access_(access),
        authorization_(std::move(authorization)),
        job_(request.job()),
        offset_(request.output_offset()),
        follow_(request.follow()) {
    if (request.has_log_rank()) log_rank_ = request.log_rank();
    log_attempt_ = request.log_attempt();
    shown_attempt_ = request.shown_attempt();
  }

  void Start(std::shared_ptr<WatchStream> self) {
    watcher_ = hub_->AddWatcher(job_, [self] { self->Wake(); });
    self_ = std::move(self);
    Wake();
  }

 private:
  void Wake() {
    const std::lock_guard lock(mutex_);
    Pump();
  }

  void Pump() {
    if (writing_ || finished_) return;
    if (cancelled_) return End(grpc::Status::CANCELLED);
    if (last_sent_) return End(grpc::Status::OK);
    event_.Clear();
    const Result<bool> more = Next();
    if (!more.ok()) return End(ToGrpc(more.status()));
    if (!*more) return;  // until the next change
    writing_ = true;
    StartWrite(&event_);
  }

  // Fills event_ if there is something to tell.
  Result<bool> Next() {
    HEDDLE_ASSIGN_OR_RETURN(const Caller caller, access_->tokens().Find(authorization_));
    return hub_->Call([&](MasterCore& core) -> Result<bool> {
      HEDDLE_ASSIGN_OR_RETURN(const Job* job, FindToUse(core, caller, job_));
      HEDDLE_ASSIGN_OR_RETURN(const bool has_text, log_rank_ ? NextLog(core) : NextOutput(*job));
      if (has_text) return true;
      MasterCore::MissingWorkers missing;
      const std::string reason = core.ReasonOf(*job, &missing);
      const std::string shown = fmt::format("{} {} {}", Name(job->state), job->attempt, reason);
      last_sent_ = IsFinal(job->state) || !follow_;
      if (shown == shown_ && !last_sent_) return NextProgress(core);
      shown_ = shown;
      ToProto(*job, event_.mutable_job());
      event_.mutable_job()->set_reason(EscapeInvalidUtf8(reason));
      return true;
    });
  }

  Result<bool> NextOutput(const Job& job) {
    if (offset_ >= job.output_bytes) return false;
    HEDDLE_ASSIGN_OR_RETURN(*event_.mutable_output(), hub_->store().Output(job_, offset_, kEventBytes));
    if (event_.output().empty()) return Internal("the output of job {} is not in the store", job_);
    offset_ += static_cast<int64_t>(event_.output().size());
    event_.set_output_end(offset_);
    return true;
  }

  Result<bool> NextLog(MasterCore& core) {
    const auto read = [&] { return core.Log(job_, log_attempt_, *log_rank_, offset_); };
    HEDDLE_ASSIGN_OR_RETURN(MasterCore::LogPart part, read());
    if (shown_attempt_ != 0 && part.attempt != shown_attempt_) {  // the job was started again
      offset_ = 0;
      HEDDLE_ASSIGN_OR_RETURN(part, read());
    }
    shown_attempt_ = part.attempt;
    if (part.text.empty()) return false;
    offset_ = part.end;
    event_.set_output(std::move(part.text));
    event_.set_output_end(offset_);
    event_.set_log_attempt(part.attempt);
    return true;
  }

  bool NextProgress(const MasterCore& core) {
    const std::string& progress = core.ProgressOf(job_);
    if (log_rank_ || progress.empty() || progress == progress_) return false;
    progress_ = progress;
    event_.set_progress(progress);
    return true;
  }

  void End(const grpc::Status& status) {
    finished_ = true;
    Finish(status);
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok) cancelled_ = true;
    Pump();
  }
  void OnCancel() override {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    Pump();
  }
  void OnDone() override {
    hub_->RemoveWatcher(job_, watcher_);
    const std::shared_ptr<WatchStream> last = std::move(self_);
  }

  MasterHub* hub_;
  const AccessControl* access_;
  const std::string authorization_;
  const std::string job_;
  int64_t offset_;
  const bool follow_;
  std::shared_ptr<WatchStream> self_;
  int64_t watcher_ = 0;
  std::mutex mutex_;
  WatchEvent event_;
  std::string shown_;
  std::string progress_;
  std::optional<int> log_rank_;  // its log is told, not the output
  int log_attempt_ = 0;          // 0: the last one
  int shown_attempt_ = 0;        // of which offset_ is an offset; 0: of none yet
  bool writing_ = false;
  bool cancelled_ = false;
  bool last_sent_ = false;
  bool finished_ = false;
};

}  // namespace

grpc::ServerWriteReactor<WatchEvent>* ServeWatch(MasterHub* hub, const AccessControl* access,
                                                 std::string authorization, const WatchRequest& request) {
  auto stream = std::make_shared<WatchStream>(hub, access, std::move(authorization), request);
  stream->Start(stream);
  return stream.get();
}

}  // namespace heddle::cluster
