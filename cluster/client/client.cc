// SPDX-License-Identifier: Apache-2.0
#include "cluster/client/client.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "cluster/master/job.h"
#include "cluster/master/message_limits.h"
#include "cluster/network/newcomers.h"
#include "cluster/process/repeated_work.h"
#include "cluster/security/rpc_security.h"
#include "compiler/build/build.h"
#include "compiler/library/library_files.h"
#include "compiler/parse/load_scripts.h"
#include "core/environment/clock.h"
#include "core/memory/counted_heap.h"
#include "core/text/utf8.h"
#include "engine/machine/machine_constants.h"
#include "engine/wire/value_wire.h"
#include "ops/io/formats/file_format.h"
#include "proto/master.grpc.pb.h"

namespace heddle::cluster {
namespace {

constexpr auto kCallDeadline = std::chrono::seconds(120);
// A script that is submitted may wait for many others. Pings tell whether the master is still there.
constexpr auto kSubmitDeadline = std::chrono::hours(24);
constexpr auto kBackupDeadline = std::chrono::hours(1);
constexpr auto kProgressDeadline = std::chrono::seconds(5);
constexpr auto kFirstReminder = std::chrono::milliseconds(2'000);
constexpr auto kNextReminders = std::chrono::milliseconds(30'000);
constexpr int64_t kFirstPauseMs = 50;
constexpr int64_t kLongestPauseMs = 1'000;

// What a script sources goes to the master: nothing that Heddle keeps.
ops::FileRoots RootsOfSources(const std::vector<std::string>& closed) {
  ops::FileRoots roots;
  roots.own_folders = ops::FileRoots::OwnFolders::kClosed;
  roots.closed = closed;
  return roots;
}

class RecordingLoader : public compiler::SourceLoader {
 public:
  RecordingLoader(const std::string& directory, const std::vector<std::string>& closed,
                  std::map<std::string, std::string>* files)
      : loader_(directory, RootsOfSources(closed)), files_(files) {}
  Result<std::string> Load(const std::string& path) override {
    Result<std::string> text = loader_.Load(path);
    if (text.ok()) (*files_)[path] = *text;
    return text;
  }
  std::string LoadMetadata(const std::string& path) override {
    std::string text = loader_.LoadMetadata(path);
    if (ops::FileTypeInMetadata(text).data_type != DataType::kMatrix)
      (*files_)[path] = text;  // the master is to see what was seen here
    return text;
  }
  std::string LoadNames(const std::string& path) override {
    std::string names = loader_.LoadNames(path);
    if (!names.empty()) (*files_)[compiler::MemorySourceLoader::PathOfNames(path)] = names;
    return names;
  }

 private:
  compiler::FileSourceLoader loader_;
  std::map<std::string, std::string>* files_;
};

// Ends the waiting and the call in progress when somebody cancels.
class CallControl {
 public:
  explicit CallControl(engine::Cancellation* cancellation) : cancellation_(cancellation) {
    if (cancellation_ == nullptr) return;
    cancellation_->Listen([this](const Status& why) {
      const std::lock_guard lock(mutex_);
      why_ = why;
      if (context_ != nullptr) context_->TryCancel();
      changed_.notify_all();
    });
  }
  ~CallControl() {
    if (cancellation_ != nullptr) cancellation_->Listen(nullptr);
  }
  void Enter(grpc::ClientContext* context) {
    const std::lock_guard lock(mutex_);
    context_ = context;
    if (context_ != nullptr && !why_.ok()) context_->TryCancel();
  }
  Status why() {
    const std::lock_guard lock(mutex_);
    return why_;
  }
  void Pause(int64_t ms) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(ms), [&] { return !why_.ok(); });
  }

 private:
  engine::Cancellation* cancellation_;
  std::mutex mutex_;
  std::condition_variable changed_;
  grpc::ClientContext* context_ = nullptr;
  Status why_;
};

// Where a submission that is known is on its way, for people.
std::string Describe(const ProgressReply& progress) {
  const double seconds = static_cast<double>(progress.since_ms() / 100) / 10;
  if (!progress.waits()) return fmt::format("the master has been compiling this script for {} s", seconds);
  const int ahead = progress.ahead();
  return fmt::format(
      "the master compiles {} other scripts{}: this one has waited for {} s", progress.compiled_now(),
      ahead > 0 ? fmt::format(" and {} {} before this one", ahead, ahead > 1 ? "are" : "is") : "", seconds);
}

class GrpcClient : public Client {
 public:
  GrpcClient(const MasterAddress& address, TlsFiles tls, std::shared_ptr<grpc::Channel> channel)
      : address_(address),
        tls_(std::move(tls)),
        channel_(std::move(channel)),
        jobs_(Jobs::NewStub(channel_)),
        admin_(Admin::NewStub(channel_)),
        tokens_(Tokens::NewStub(channel_)) {}

  Result<SubmittedJob> Submit(const JobSubmission& submission, engine::Cancellation* cancellation) override {
    SubmitRequest request;
    request.set_request_id(EscapeInvalidUtf8(submission.request_id));
    request.set_script_name(submission.script_name);
    request.set_script_text(submission.script_text);
    for (const auto& [path, text] : submission.files) {
      SourceFile* file = request.add_files();
      file->set_path(path);
      file->set_text(text);
    }
    for (const auto& [name, value] : submission.parameters) (*request.mutable_arguments())[name] = value;
    for (const std::string& library : submission.libraries) request.add_libraries(library);
    request.set_library_fingerprint(compiler::LibraryFingerprint());
    request.set_directory(submission.directory);
    for (const std::string& root : submission.data_roots) request.add_data_roots(root);
    for (const std::string& path : submission.named_paths) request.add_named_paths(path);
    request.set_workers(submission.workers);
    request.set_retry_for_ms(submission.retry_for_ms);
    request.set_checkpoint_ms(submission.checkpoint_ms);
    request.set_priority(submission.priority);
    request.set_deadline_ms(submission.deadline_ms);
    request.set_explain(submission.explain);
    SubmitOptions* options = request.mutable_options();
    options->set_threads(submission.options.threads);
    options->set_min_distributed_bytes(submission.options.min_distributed_bytes);
    options->set_memory_bytes(submission.options.memory_bytes);
    options->set_seed(submission.options.seed);
    options->set_recorded_events(submission.options.recorded_events);
    for (const std::string& pass : submission.options.disabled_passes) options->add_disabled_passes(pass);
    options->set_cpu(submission.options.cpu);
    options->set_devices(submission.options.devices);
    options->set_fusion(submission.options.fusion);
    options->set_fusion_strict(submission.options.fusion_strict);
    options->set_panel_bytes(submission.options.panel_bytes);
    options->set_require_streaming(submission.options.require_streaming);
    options->set_single_precision(submission.options.element_type == ElementType::kFloat32);
    if (ArePlausible(submission.options.constants))
      options->set_constants(engine::EncodeConstants(submission.options.constants));
    HEDDLE_RETURN_IF_ERROR(CheckMessage(request));  // as the master does, before all of it travels
    // The master takes in a large message of those only whom it knows.
    if (static_cast<int64_t>(request.ByteSizeLong()) > kMostBytesOfNewcomers / 2)
      HEDDLE_RETURN_IF_ERROR(Introduce(request.request_id()));
    SubmitReply reply;
    CallControl control(cancellation);
    std::optional<RepeatedWork> reminder;
    if (submission.tell)
      reminder.emplace(kFirstReminder, kNextReminders, [&, id = request.request_id(), since_ms = NowMs()] {
        submission.tell(Progress(id, NowMs() - since_ms));
      });
    HEDDLE_RETURN_IF_ERROR(Call([&](grpc::ClientContext* context) {
      context->set_deadline(std::chrono::system_clock::now() + kSubmitDeadline);
      control.Enter(context);
      const grpc::Status status = jobs_->Submit(context, request, &reply);
      control.Enter(nullptr);
      return status;
    }));
    reminder.reset();
    if (!reply.status().empty()) {
      Status refused;
      HEDDLE_RETURN_IF_ERROR(engine::DecodeStatus(reply.status(), &refused));
      return refused.ok() ? Internal("the master refused the job and did not say why") : refused;
    }
    return SubmittedJob{reply.job().job(), reply.warnings(), reply.explanation()};
  }

  Status List(const ListRequest& request, ListReply* jobs) override {
    return Call([&](grpc::ClientContext* context) { return jobs_->List(context, request, jobs); });
  }

  Result<SubmittedJob> Retry(const std::string& job, const std::string& request_id) override {
    RetryRequest request;
    request.set_job(EscapeInvalidUtf8(job));
    request.set_request_id(EscapeInvalidUtf8(request_id));
    SubmitReply reply;
    HEDDLE_RETURN_IF_ERROR(
        Call([&](grpc::ClientContext* context) { return jobs_->Retry(context, request, &reply); }));
    return SubmittedJob{reply.job().job(), "", ""};
  }

  Status Delete(const std::string& job, JobDescription* description) override {
    JobRequest request;
    request.set_job(EscapeInvalidUtf8(job));
    return Call([&](grpc::ClientContext* context) { return jobs_->Delete(context, request, description); });
  }

  Status Record(const std::string& job, JobRecord* record) override {
    JobRequest request;
    request.set_job(EscapeInvalidUtf8(job));
    return Call([&](grpc::ClientContext* context) { return jobs_->Record(context, request, record); });
  }

  Status About(AboutReply* about) override {
    return Call([&](grpc::ClientContext* context) { return admin_->About(context, AboutRequest(), about); });
  }

  Status Config(ConfigReply* settings) override {
    return Call(
        [&](grpc::ClientContext* context) { return admin_->Config(context, ConfigRequest(), settings); });
  }

  Status Backup(const std::function<Status(std::string_view bytes)>& sink) override {
    Status written;
    HEDDLE_RETURN_IF_ERROR(Call([&](grpc::ClientContext* context) {
      context->set_deadline(std::chrono::system_clock::now() + kBackupDeadline);
      const auto reader = admin_->Backup(context, BackupRequest());
      BackupPart part;
      while (written.ok() && reader->Read(&part)) written = sink(part.bytes());
      if (!written.ok()) context->TryCancel();
      const grpc::Status status = reader->Finish();
      return written.ok() ? status : grpc::Status::OK;
    }));
    return written;
  }

  Status CollectGarbage(const GarbageRequest& request, GarbageReply* reply) override {
    return Call(
        [&](grpc::ClientContext* context) { return admin_->CollectGarbage(context, request, reply); });
  }

  Status Get(const std::string& job, JobDescription* description,
             engine::Cancellation* cancellation) override {
    JobRequest request;
    request.set_job(EscapeInvalidUtf8(job));
    CallControl control(cancellation);
    return Call([&](grpc::ClientContext* context) {
      control.Enter(context);
      const grpc::Status status = jobs_->Get(context, request, description);
      control.Enter(nullptr);
      return status;
    });
  }

  Status Cancel(const std::string& job, JobDescription* description) override {
    JobRequest request;
    request.set_job(EscapeInvalidUtf8(job));
    return Call([&](grpc::ClientContext* context) { return jobs_->Cancel(context, request, description); });
  }

  Status Nodes(NodesReply* nodes) override {
    return Call([&](grpc::ClientContext* context) { return admin_->Nodes(context, NodesRequest(), nodes); });
  }

  Status Drain(const std::string& node, bool drained, NodeDescription* description) override {
    DrainRequest request;
    request.set_node(EscapeInvalidUtf8(node));
    request.set_drained(drained);
    return Call([&](grpc::ClientContext* context) { return admin_->Drain(context, request, description); });
  }

  Status Remove(const std::string& node, RemoveReply* removed) override {
    RemoveRequest request;
    request.set_node(EscapeInvalidUtf8(node));
    return Call([&](grpc::ClientContext* context) { return admin_->Remove(context, request, removed); });
  }

  Status CreateToken(const CreateTokenRequest& request, TokenSecret* secret) override {
    return Call([&](grpc::ClientContext* context) { return tokens_->Create(context, request, secret); });
  }

  Status ListTokens(std::vector<TokenDescription>* tokens) override {
    ListTokensReply reply;
    HEDDLE_RETURN_IF_ERROR(Call(
        [&](grpc::ClientContext* context) { return tokens_->List(context, ListTokensRequest(), &reply); }));
    tokens->assign(reply.tokens().begin(), reply.tokens().end());
    return OkStatus();
  }

  Status RevokeToken(const std::string& name, TokenDescription* revoked) override {
    TokenRequest request;
    request.set_name(EscapeInvalidUtf8(name));
    return Call([&](grpc::ClientContext* context) { return tokens_->Revoke(context, request, revoked); });
  }

  Status RotateToken(const std::string& name, int64_t overlap_ms, TokenSecret* secret) override {
    RotateTokenRequest request;
    request.set_name(EscapeInvalidUtf8(name));
    request.set_overlap_ms(overlap_ms);
    return Call([&](grpc::ClientContext* context) { return tokens_->Rotate(context, request, secret); });
  }

  Status Watch(const std::string& job, bool follow, const WatchEvents& events,
               engine::Cancellation* cancellation, JobDescription* last, int64_t patience_ms) override {
    CallControl control(cancellation);
    WatchRequest request;
    request.set_job(EscapeInvalidUtf8(job));
    request.set_follow(follow);
    if (events.log_rank) request.set_log_rank(*events.log_rank);
    request.set_log_attempt(events.log_attempt);
    int64_t heard_ms = NowMs();
    int64_t pause_ms = kFirstPauseMs;
    for (;;) {
      grpc::ClientContext context;
      AddCaller(address_.token, &context);
      control.Enter(&context);
      const std::unique_ptr<grpc::ClientReader<WatchEvent>> reader = jobs_->Watch(&context, request);
      WatchEvent event;
      while (reader->Read(&event)) {
        heard_ms = NowMs();
        pause_ms = kFirstPauseMs;
        if (!event.output().empty()) {
          request.set_output_offset(event.output_end());
          request.set_shown_attempt(event.log_attempt());
          events.output(event.output());
        }
        if (!event.progress().empty() && events.progress) events.progress(event.progress());
        if (!event.has_job()) continue;
        *last = event.job();
        if (events.state) events.state(*last);
      }
      const grpc::Status status = reader->Finish();
      control.Enter(nullptr);
      if (Status why = control.why(); !why.ok()) return why;
      if (status.ok()) return OkStatus();
      const Status failure = FromGrpc(status, address_.address);
      if (failure.code() != StatusCode::kUnavailable) return failure;
      if (NowMs() - heard_ms > patience_ms) return FromGrpc(status, address_.address, tls_);
      control.Pause(pause_ms);
      pause_ms = std::min(2 * pause_ms, kLongestPauseMs);
    }
  }

  std::string version_warning() const override {
    const std::lock_guard lock(mutex_);
    return version_warning_;
  }

 private:
  // A small call before a large one.
  Status Introduce(const std::string& request_id) {
    ProgressRequest request;
    request.set_request_id(request_id);
    ProgressReply reply;
    return Call([&](grpc::ClientContext* context) { return jobs_->Progress(context, request, &reply); });
  }

  // Where a submission is on its way, for people; it was sent `waited_ms` ago.
  std::string Progress(const std::string& request_id, int64_t waited_ms) {
    ProgressRequest request;
    request.set_request_id(request_id);
    ProgressReply reply;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kProgressDeadline);
    AddCaller(address_.token, &context);
    if (jobs_->Progress(&context, request, &reply).ok() && reply.known()) return Describe(reply);
    return fmt::format("the master at {} has not answered for {} s", address_.address, waited_ms / 1000);
  }

  template <typename Function>
  Status Call(const Function& function) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCallDeadline);
    AddCaller(address_.token, &context);
    const grpc::Status status = function(&context);
    const std::string warning = VersionWarning(context);
    {
      const std::lock_guard lock(mutex_);
      version_warning_ = warning;
    }
    return FromGrpc(status, address_.address, tls_);
  }

  static int64_t NowMs() { return SystemClock().MonotonicNs() / 1'000'000; }

  const MasterAddress address_;
  const TlsFiles tls_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Jobs::Stub> jobs_;
  std::unique_ptr<Admin::Stub> admin_;
  std::unique_ptr<Tokens::Stub> tokens_;
  mutable std::mutex mutex_;
  std::string version_warning_;
};

}  // namespace

std::map<std::string, std::string> CollectSources(const std::string& name, const std::string& text,
                                                  const std::map<std::string, std::string>& arguments,
                                                  const std::string& directory,
                                                  const std::vector<std::string>& libraries,
                                                  const std::vector<std::string>& closed) {
  std::map<std::string, std::string> files;
  RecordingLoader loader(directory, closed, &files);
  // The master finds the same errors and reports them.
  (void)WithinMemory("the script", [&] {
    compiler::Diagnostics diagnostics;
    compiler::ScriptLoader scripts({libraries}, &loader, &diagnostics);
    scripts.LoadMain(name, text);
    if (!diagnostics.HasErrors())
      compiler::BuildProgram(&scripts, {.arguments = arguments, .loader = &loader}, &diagnostics);
    return OkStatus();
  });
  return files;
}

Result<std::unique_ptr<Client>> Client::Connect(const MasterAddress& address) {
  const TlsFiles tls = {address.tls_certificate, address.tls_key, address.tls_authority};
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel, MakeMasterChannel(address.address, tls));
  return std::unique_ptr<Client>(std::make_unique<GrpcClient>(address, tls, std::move(channel)));
}

Status OutcomeOf(const JobDescription& job) {
  const std::optional<JobState> state = ParseJobState(job.state());
  if (!state || !IsFinal(*state)) return Unavailable("job {} is not finished: {}", job.job(), job.state());
  Status outcome;
  if (!job.status().empty()) HEDDLE_RETURN_IF_ERROR(engine::DecodeStatus(job.status(), &outcome));
  return outcome;
}

}  // namespace heddle::cluster
