// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/master_wire.h"

#include "cluster/executor/executor_messages.h"
#include "core/text/utf8.h"
#include "engine/machine/machine_constants.h"
#include "engine/wire/value_wire.h"

namespace heddle::cluster {
namespace {

// For fields that are UTF-8 by their type: a message with anything else in one cannot be read.
std::string ForPeople(const std::string& text) { return EscapeInvalidUtf8(text); }

}  // namespace

void ToProto(const Job& job, JobDescription* proto) {
  proto->set_job(job.id);
  proto->set_state(std::string(Name(job.state)));
  proto->set_script(ForPeople(job.specification.script));
  proto->set_owner(ForPeople(job.specification.owner));
  proto->set_reason(ForPeople(job.reason));
  proto->set_attempt(job.attempt);
  proto->set_workers_wanted(job.specification.workers_wanted);
  proto->set_priority(job.specification.priority);
  if (job.specification.deadline_ms > 0) proto->set_deadline_ms(job.EndsByMs());
  for (const Share& share : job.shares) proto->add_threads(share.threads);
  if (!job.shares.empty()) proto->set_memory_bytes(job.shares[0].memory_bytes);
  for (const std::string& name : job.worker_names) proto->add_workers(ForPeople(name));
  proto->set_submitted_ms(job.submitted_ms);
  proto->set_finished_ms(job.finished_ms);
  proto->set_output_bytes(job.output_bytes);
  proto->set_checkpoint_ms(job.checkpoints.empty() ? 0 : job.checkpoints.back().taken_ms);
  proto->set_resumed(job.resumed);
  proto->set_waits(job.Waits());
  proto->set_note(job.note);
  if (!IsFinal(job.state)) return;
  proto->set_status(engine::EncodeStatus(job.outcome));
  for (const std::string& statistics : job.statistics) proto->add_statistics(statistics);
}

void ToProto(const JobTransition& transition, Transition* proto) {
  proto->set_state(std::string(Name(transition.state)));
  proto->set_attempt(transition.attempt);
  proto->set_reason(ForPeople(transition.reason));
  proto->set_time_ms(transition.time_ms);
}

void ToProto(const Worker& worker, int64_t now_ns, NodeDescription* proto) {
  const WorkerDescription& description = worker.description;
  proto->set_name(ForPeople(description.name));
  proto->set_uuid(ForPeople(description.uuid));
  proto->set_state(std::string(Name(worker.state)));
  proto->set_host(ForPeople(description.host));
  proto->set_pid(description.pid);
  proto->set_threads(description.threads);
  proto->set_memory_bytes(description.memory_bytes);
  proto->set_version(ForPeople(description.version));
  for (const auto& [job, share] : worker.shares) proto->add_jobs(job);
  const Share reserved = worker.Reserved();
  proto->set_slots(description.slots);
  proto->set_reserved_threads(reserved.threads);
  proto->set_reserved_bytes(reserved.memory_bytes);
  proto->set_confinement(ForPeople(description.confinement));
  proto->set_drained(worker.drained);
  proto->set_isolation(ForPeople(description.isolation));
  proto->set_device(ForPeople(description.device));
  proto->set_device_name(ForPeople(description.device_name));
  proto->set_silent_ms((now_ns - worker.heard_ns) / 1'000'000);
}

void ToProto(const WorkerOrder& order, ExecutorOrder* proto) {
  proto->set_job(order.job);
  proto->set_attempt(order.attempt);
  switch (order.kind) {
    case WorkerOrder::Kind::kStart: proto->set_start(ToLine(order.message)); break;
    case WorkerOrder::Kind::kPeers: proto->set_peers(ToLine(order.message)); break;
    case WorkerOrder::Kind::kCancel: proto->set_cancel(ToLine(order.message)); break;
    case WorkerOrder::Kind::kKill: proto->set_kill(true); break;
    case WorkerOrder::Kind::kForget:
      proto->set_forget(true);
      proto->set_checkpoints(order.checkpoints);
      proto->set_checkpoints_place(order.checkpoints_place);
      break;
    case WorkerOrder::Kind::kCheckpoint: proto->set_checkpoint(ToLine(order.message)); break;
    case WorkerOrder::Kind::kSweep: break;  // a message of its own
    case WorkerOrder::Kind::kOutputUntil: proto->set_output_until(order.output_until); break;
    case WorkerOrder::Kind::kCommit:
      proto->mutable_commit()->set_id(order.commit.id);
      proto->mutable_commit()->set_sent_ns(order.commit.sent_ns);
      proto->mutable_commit()->set_valid_ns(order.valid_ns);
      break;
  }
}

void ToProto(const SweepOrder& order, Sweep* proto) {
  proto->set_id(order.id);
  proto->set_dry_run(order.dry_run);
  proto->mutable_known()->Add(order.known.begin(), order.known.end());
  proto->mutable_unfinished()->Add(order.unfinished.begin(), order.unfinished.end());
  proto->set_last(order.last);
  proto->set_checkpoints_place(order.checkpoints_place);
  proto->set_master(order.master);
}

void ToProto(const WorkerDescription& worker, WorkerIntroduction* proto) {
  proto->set_secret(worker.secret);
  proto->set_place(worker.place);
  proto->set_connection(worker.connection);
  proto->set_instance(worker.instance);
  proto->set_name(worker.name);
  proto->set_host(ForPeople(worker.host));
  proto->set_pid(worker.pid);
  proto->set_threads(worker.threads);
  proto->set_memory_bytes(worker.memory_bytes);
  proto->set_slots(worker.slots);
  proto->set_confinement(ForPeople(worker.confinement));
  proto->set_isolation(worker.isolation);
  proto->set_device(worker.device);
  proto->set_device_name(ForPeople(worker.device_name));
}

void ToProto(const ExecutorNews& news, ExecutorReport* proto) {
  proto->set_job(news.job);
  proto->set_attempt(news.attempt);
  proto->set_epoch(news.epoch);
  proto->set_rank(news.rank);
  proto->set_pid(news.pid);
  if (news.endpoint) {
    proto->set_ready(true);
    proto->set_endpoint(*news.endpoint);
    proto->set_certificate(news.certificate);
  }
  if (news.commit) {
    proto->mutable_commit()->set_id(news.commit->id);
    proto->mutable_commit()->set_path(news.commit->path);
    proto->mutable_commit()->set_sent_ns(news.commit->sent_ns);
  }
  for (const engine::WrittenCheckpoint& written : news.checkpoints) {
    WrittenCheckpoint* checkpoint = proto->add_checkpoints();
    checkpoint->set_number(written.number);
    if (!written.status.ok()) checkpoint->set_failure(engine::EncodeStatus(written.status));
    checkpoint->set_size(written.bytes);
    checkpoint->set_printed(written.printed);
    checkpoint->set_stood_ns(written.stood_ns);
    checkpoint->set_took_ns(written.took_ns);
  }
  proto->set_output(news.output);
  proto->set_output_offset(news.output_offset);
  proto->set_log(news.log);
  proto->set_log_offset(news.log_offset);
  proto->set_progress(news.progress);
  proto->set_record(news.record);
  if (news.done) {
    ExecutorMessage message;
    message.done = news.done;
    proto->set_done(ToLine(message));
  }
  if (!news.failure.ok()) proto->set_failure(engine::EncodeStatus(news.failure));
  if (news.exit) {
    proto->mutable_exit()->set_signalled(news.exit->signalled);
    proto->mutable_exit()->set_value(news.exit->value);
    proto->mutable_exit()->set_silent_ms(news.exit->silent_ms);
    proto->mutable_exit()->set_log(news.exit->log);
    proto->mutable_exit()->set_last_words(news.exit->last_words);
    proto->mutable_exit()->set_out_of_memory(news.exit->out_of_memory);
    proto->mutable_exit()->set_peak_bytes(news.exit->peak_bytes);
    proto->mutable_exit()->set_limit_bytes(news.exit->limit_bytes);
  }
}

WorkerDescription FromProto(const WorkerIntroduction& proto) {
  WorkerDescription worker;
  worker.secret = proto.secret();
  worker.place = proto.place();
  worker.connection = proto.connection();
  worker.instance = proto.instance();
  worker.name = proto.name();
  worker.host = proto.host();
  worker.pid = proto.pid();
  worker.threads = proto.threads();
  worker.memory_bytes = proto.memory_bytes();
  worker.slots = std::max(1, proto.slots());
  worker.confinement = proto.confinement();
  worker.isolation = proto.isolation();
  worker.device = proto.device();
  worker.device_name = proto.device_name();
  return worker;
}

Result<ExecutorNews> FromProto(const ExecutorReport& proto) {
  ExecutorNews news;
  news.job = proto.job();
  news.attempt = proto.attempt();
  news.epoch = proto.epoch();
  news.rank = proto.rank();
  news.pid = proto.pid();
  if (proto.ready()) {
    news.endpoint = proto.endpoint();
    news.certificate = proto.certificate();
  }
  if (proto.has_commit())
    news.commit = CommitQuestion{proto.commit().id(), proto.commit().path(), proto.commit().sent_ns()};
  for (const WrittenCheckpoint& checkpoint : proto.checkpoints()) {
    engine::WrittenCheckpoint& written = news.checkpoints.emplace_back();
    written.number = checkpoint.number();
    if (!checkpoint.failure().empty())
      HEDDLE_RETURN_IF_ERROR(engine::DecodeStatus(checkpoint.failure(), &written.status));
    written.bytes = checkpoint.size();
    written.printed = checkpoint.printed();
    written.stood_ns = checkpoint.stood_ns();
    written.took_ns = checkpoint.took_ns();
  }
  news.output = proto.output();
  news.output_offset = proto.output_offset();
  news.log = proto.log();
  news.log_offset = proto.log_offset();
  news.progress = proto.progress();
  news.record = proto.record();
  if (!proto.done().empty()) {
    HEDDLE_ASSIGN_OR_RETURN(ExecutorMessage message, ParseExecutorMessage(proto.done()));
    news.done = std::move(message.done);
  }
  if (!proto.failure().empty()) HEDDLE_RETURN_IF_ERROR(engine::DecodeStatus(proto.failure(), &news.failure));
  if (proto.has_exit()) {
    news.exit.emplace();
    news.exit->pid = static_cast<pid_t>(proto.pid());
    news.exit->signalled = proto.exit().signalled();
    news.exit->value = proto.exit().value();
    news.exit->silent_ms = proto.exit().silent_ms();
    news.exit->log = proto.exit().log();
    news.exit->last_words = proto.exit().last_words();
    news.exit->out_of_memory = proto.exit().out_of_memory();
    news.exit->peak_bytes = proto.exit().peak_bytes();
    news.exit->limit_bytes = proto.exit().limit_bytes();
  }
  return news;
}

engine::SessionOptions FromProto(const SubmitOptions& proto) {
  engine::SessionOptions options;
  options.threads = proto.threads();
  options.min_distributed_bytes = proto.min_distributed_bytes();
  options.memory_bytes = proto.memory_bytes();
  options.seed = proto.seed();
  options.cpu = proto.cpu();
  if (!proto.devices().empty()) options.devices = proto.devices();
  options.fusion = proto.fusion();
  options.fusion_strict = proto.fusion_strict();
  options.recorded_events = proto.recorded_events();
  options.panel_bytes = proto.panel_bytes();
  options.require_streaming = proto.require_streaming();
  options.times_operators = true;  // The master keeps what a job did; who asks for it may come later.
  options.element_type = proto.single_precision() ? ElementType::kFloat32 : ElementType::kFloat64;
  options.constants = engine::DecodeConstants(proto.constants()).value_or(ops::MachineConstants());
  options.disabled_passes.assign(proto.disabled_passes().begin(), proto.disabled_passes().end());
  return options;
}

}  // namespace heddle::cluster
