// SPDX-License-Identifier: Apache-2.0
#include "cluster/executor/executor_messages.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/status_numbers.h"
#include "engine/machine/machine_constants.h"

namespace heddle::cluster {
namespace {

using Json = nlohmann::json;

std::string ToText(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text.push_back(c);
    } else {  // UTF-8 of the code point with the byte's number
      text.push_back(static_cast<char>(0xc0 | byte >> 6));
      text.push_back(static_cast<char>(0x80 | (byte & 0x3f)));
    }
  }
  return text;
}

std::string ToBytes(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80 || i + 1 == text.size()) {
      bytes.push_back(text[i]);
    } else {
      bytes.push_back(
          static_cast<char>((first & 0x03) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3f)));
    }
  }
  return bytes;
}

// Fields that are missing or of another type keep what they are.
void Read(const Json& json, const char* name, std::string* out) {
  auto found = json.find(name);
  if (found != json.end() && found->is_string()) *out = ToBytes(found->get_ref<const std::string&>());
}
template <typename Integer>
void Read(const Json& json, const char* name, Integer* out) {
  auto found = json.find(name);
  if (found == json.end() || !found->is_number_integer()) return;
  // A number that does not fit is as far out of its limits (cluster/executor/start_limits.h) as it can be.
  using Limits = std::numeric_limits<Integer>;
  const bool huge = found->is_number_unsigned() && found->get<uint64_t>() > uint64_t{INT64_MAX};
  const int64_t value = huge ? INT64_MAX : found->get<int64_t>();
  *out = static_cast<Integer>(std::clamp<int64_t>(value, Limits::min(), Limits::max()));
}
void Read(const Json& json, const char* name, bool* out) {
  auto found = json.find(name);
  if (found != json.end() && found->is_boolean()) *out = found->get<bool>();
}
void Read(const Json& json, const char* name, std::vector<std::string>* out) {
  auto found = json.find(name);
  if (found == json.end() || !found->is_array()) return;
  for (const Json& entry : *found)
    if (entry.is_string()) out->push_back(ToBytes(entry.get_ref<const std::string&>()));
}

Json ToJson(const std::vector<std::string>& texts) {
  Json json = Json::array();
  for (const std::string& text : texts) json.push_back(ToText(text));
  return json;
}

Json ToJson(const Status& status) {
  return {{"code", static_cast<int>(status.code())}, {"message", ToText(status.message())},
          {"file", ToText(status.position().file)},  {"line", status.position().line},
          {"column", status.position().column},      {"notes", ToJson(status.notes())}};
}

Status ReadStatus(const Json& json) {
  auto code = static_cast<int64_t>(StatusCode::kInternal);
  std::string message;
  SourcePosition position;
  std::vector<std::string> notes;
  Read(json, "code", &code);
  Read(json, "message", &message);
  Read(json, "file", &position.file);
  Read(json, "line", &position.line);
  Read(json, "column", &position.column);
  Read(json, "notes", &notes);
  const StatusCode known = FindStatusCode(code).value_or(StatusCode::kInternal);
  if (known == StatusCode::kOk) return OkStatus();
  Status status(known, message);
  if (position.IsKnown()) status = status.At(position);
  for (const std::string& note : notes) status = status.WithNote(note);
  return status;
}

Json ToJson(const engine::SessionOptions& options) {
  return {{"rank", options.rank},
          {"ranks", options.ranks},
          {"threads", options.threads},
          {"min_distributed_bytes", options.min_distributed_bytes},
          {"memory_bytes", options.memory_bytes},
          {"available_bytes", options.available_bytes},
          {"panel_bytes", options.panel_bytes},
          {"spill_folder", ToText(options.spill_folder)},
          {"require_streaming", options.require_streaming},
          {"seed", options.seed},
          {"disabled_passes", ToJson(options.disabled_passes)},
          {"plans", ToJson(options.plans)},
          {"fusion", ToText(options.fusion)},
          {"fusion_strict", options.fusion_strict},
          {"single_precision", options.element_type == ElementType::kFloat32},
          {"constants", engine::EncodeConstants(options.constants)},
          {"times_operators", options.times_operators},
          {"recorded_events", options.recorded_events},
          {"cpu", ToText(options.cpu)},
          {"devices", ToText(options.devices)},
          {"max_call_depth", options.max_call_depth}};
}

void ReadOptions(const Json& json, engine::SessionOptions* options) {
  Read(json, "rank", &options->rank);
  Read(json, "ranks", &options->ranks);
  Read(json, "threads", &options->threads);
  Read(json, "min_distributed_bytes", &options->min_distributed_bytes);
  Read(json, "memory_bytes", &options->memory_bytes);
  Read(json, "available_bytes", &options->available_bytes);
  Read(json, "panel_bytes", &options->panel_bytes);
  Read(json, "spill_folder", &options->spill_folder);
  Read(json, "require_streaming", &options->require_streaming);
  Read(json, "seed", &options->seed);
  Read(json, "disabled_passes", &options->disabled_passes);
  Read(json, "plans", &options->plans);
  Read(json, "fusion", &options->fusion);
  Read(json, "fusion_strict", &options->fusion_strict);
  bool single = false;
  Read(json, "single_precision", &single);
  options->element_type = single ? ElementType::kFloat32 : ElementType::kFloat64;
  std::string constants;
  Read(json, "constants", &constants);
  options->constants = engine::DecodeConstants(constants).value_or(ops::MachineConstants());
  Read(json, "times_operators", &options->times_operators);
  Read(json, "recorded_events", &options->recorded_events);
  Read(json, "devices", &options->devices);
  Read(json, "cpu", &options->cpu);
  Read(json, "max_call_depth", &options->max_call_depth);
}

Json ToJson(const ops::FileRoots& roots) {
  return {{"own_folders", static_cast<int>(roots.own_folders)},
          {"is_job", roots.is_job},
          {"named", ToJson(roots.named)},
          {"arguments", ToJson(roots.arguments)},
          {"of_master", ToJson(roots.of_master)},
          {"of_worker", ToJson(roots.of_worker)},
          {"closed", ToJson(roots.closed)}};
}

void ReadRoots(const Json& json, ops::FileRoots* roots) {
  using OwnFolders = ops::FileRoots::OwnFolders;
  int own_folders = static_cast<int>(OwnFolders::kClosed);
  Read(json, "own_folders", &own_folders);
  constexpr int kMost = static_cast<int>(OwnFolders::kClosed);
  roots->own_folders = static_cast<OwnFolders>(std::clamp(own_folders, 0, kMost));
  Read(json, "is_job", &roots->is_job);
  Read(json, "named", &roots->named);
  Read(json, "arguments", &roots->arguments);
  Read(json, "of_master", &roots->of_master);
  Read(json, "of_worker", &roots->of_worker);
  Read(json, "closed", &roots->closed);
}

Json ToJson(const ExecutorCheckpoints& checkpoints) {
  return {{"location", ToText(checkpoints.location)},
          {"folder", ToText(checkpoints.folder)},
          {"keeps_files", checkpoints.keeps_files},
          {"interval_ms", checkpoints.interval_ms},
          {"resume", ToText(checkpoints.resume)},
          {"resume_ranks", checkpoints.resume_ranks},
          {"printed", checkpoints.printed}};
}

void ReadCheckpoints(const Json& json, ExecutorCheckpoints* checkpoints) {
  Read(json, "location", &checkpoints->location);
  Read(json, "folder", &checkpoints->folder);
  Read(json, "keeps_files", &checkpoints->keeps_files);
  Read(json, "interval_ms", &checkpoints->interval_ms);
  Read(json, "resume", &checkpoints->resume);
  Read(json, "resume_ranks", &checkpoints->resume_ranks);
  Read(json, "printed", &checkpoints->printed);
}

Json ToJson(const engine::WrittenCheckpoint& written) {
  return {{"number", written.number},   {"status", ToJson(written.status)}, {"bytes", written.bytes},
          {"printed", written.printed}, {"stood_ns", written.stood_ns},     {"took_ns", written.took_ns}};
}

engine::WrittenCheckpoint ReadWritten(const Json& json) {
  engine::WrittenCheckpoint written;
  Read(json, "number", &written.number);
  if (json.contains("status")) written.status = ReadStatus(json["status"]);
  Read(json, "bytes", &written.bytes);
  Read(json, "printed", &written.printed);
  Read(json, "stood_ns", &written.stood_ns);
  Read(json, "took_ns", &written.took_ns);
  return written;
}

Json ToJson(const ExecutorStart& start) {
  return {{"job", ToText(start.job)},
          {"attempt", start.attempt},
          {"epoch", start.epoch},
          {"token", ToText(start.token)},
          {"program", ToText(start.program)},
          {"directory", ToText(start.directory)},
          {"owner", ToText(start.owner)},
          {"is_isolated", start.is_isolated},
          {"runs_as_owner", start.runs_as_owner},
          {"roots", ToJson(start.roots)},
          {"listen", ToText(start.listen)},
          {"silence_ms", start.silence_ms},
          {"show_plans", start.show_plans},
          {"shows_progress", start.shows_progress},
          {"most_record_bytes", start.most_record_bytes},
          {"sharers", start.sharers},
          {"data_bytes", start.data_bytes},
          {"shares_memory", start.shares_memory},
          {"no_device", ToText(start.no_device)},
          {"core_dumps", start.core_dumps},
          {"checkpoints", ToJson(start.checkpoints)},
          {"options", ToJson(start.options)}};
}

ExecutorStart ReadStart(const Json& json) {
  ExecutorStart start;
  Read(json, "job", &start.job);
  Read(json, "attempt", &start.attempt);
  Read(json, "epoch", &start.epoch);
  Read(json, "token", &start.token);
  Read(json, "program", &start.program);
  Read(json, "directory", &start.directory);
  Read(json, "owner", &start.owner);
  Read(json, "is_isolated", &start.is_isolated);
  Read(json, "runs_as_owner", &start.runs_as_owner);
  if (json.contains("roots")) ReadRoots(json["roots"], &start.roots);
  Read(json, "sharers", &start.sharers);
  Read(json, "data_bytes", &start.data_bytes);
  Read(json, "listen", &start.listen);
  Read(json, "silence_ms", &start.silence_ms);
  Read(json, "show_plans", &start.show_plans);
  Read(json, "shows_progress", &start.shows_progress);
  Read(json, "most_record_bytes", &start.most_record_bytes);
  Read(json, "shares_memory", &start.shares_memory);
  Read(json, "no_device", &start.no_device);
  Read(json, "core_dumps", &start.core_dumps);
  if (json.contains("checkpoints")) ReadCheckpoints(json["checkpoints"], &start.checkpoints);
  if (json.contains("options")) ReadOptions(json["options"], &start.options);
  return start;
}

Result<Json> ParseObject(const std::string& line) {
  Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return DataLoss("a line between launcher and executor is not a JSON object");
  return json;
}

}  // namespace

std::string ToLine(const LauncherMessage& message) {
  Json json = Json::object();
  if (message.start) json["start"] = ToJson(*message.start);
  if (message.cancel) json["cancel"] = ToJson(*message.cancel);
  if (message.grant) json["grant"] = {{"id", message.grant->id}, {"until_ns", message.grant->until_ns}};
  if (message.checkpoint)
    json["checkpoint"] = {{"now", message.checkpoint->now},
                          {"unneeded", ToJson(message.checkpoint->unneeded)}};
  if (message.peers) {
    json["peers"] = Json::array();
    for (const ExecutorPeer& peer : *message.peers)
      json["peers"].push_back({{"endpoint", ToText(peer.endpoint)},
                               {"certificate", ToText(peer.certificate)},
                               {"name", ToText(peer.name)}});
  }
  return json.dump();
}

Result<LauncherMessage> ParseLauncherMessage(const std::string& line) {
  HEDDLE_ASSIGN_OR_RETURN(const Json json, ParseObject(line));
  LauncherMessage message;
  if (json.contains("start")) message.start = ReadStart(json["start"]);
  if (json.contains("cancel")) message.cancel = ReadStatus(json["cancel"]);
  if (json.contains("grant")) {
    message.grant.emplace();
    Read(json["grant"], "id", &message.grant->id);
    Read(json["grant"], "until_ns", &message.grant->until_ns);
  }
  if (json.contains("checkpoint")) {
    message.checkpoint.emplace();
    Read(json["checkpoint"], "now", &message.checkpoint->now);
    Read(json["checkpoint"], "unneeded", &message.checkpoint->unneeded);
  }
  if (json.contains("peers") && json["peers"].is_array()) {
    message.peers.emplace();
    for (const Json& entry : json["peers"]) {
      ExecutorPeer& peer = message.peers->emplace_back();
      Read(entry, "endpoint", &peer.endpoint);
      Read(entry, "certificate", &peer.certificate);
      Read(entry, "name", &peer.name);
    }
  }
  return message;
}

std::string ToLine(const ExecutorMessage& message) {
  Json json = Json::object();
  if (message.ready)
    json["ready"] = {{"endpoint", ToText(message.ready->endpoint)},
                     {"certificate", ToText(message.ready->certificate)}};
  if (message.output) json["output"] = ToText(*message.output);
  if (message.plan) json["plan"] = ToText(*message.plan);
  if (message.progress) json["progress"] = ToText(*message.progress);
  if (message.record) json["record"] = ToText(*message.record);
  if (message.hidden) json["hidden"] = ToText(*message.hidden);
  if (message.gone) json["gone"] = ToText(*message.gone);
  if (message.commit) json["commit"] = {{"id", message.commit->id}, {"path", ToText(message.commit->path)}};
  if (message.checkpoint) json["checkpoint"] = ToJson(*message.checkpoint);
  if (message.done) {
    json["done"] = ToJson(message.done->status);
    json["own_cause"] = message.done->own_cause;
    json["could_not_resume"] = message.done->could_not_resume;
    if (message.done->statistics)
      json["statistics"] =
          Json::parse(ToJson(*message.done->statistics), nullptr, /*allow_exceptions=*/false);
  }
  return json.dump();
}

Result<ExecutorMessage> ParseExecutorMessage(const std::string& line) {
  HEDDLE_ASSIGN_OR_RETURN(const Json json, ParseObject(line));
  ExecutorMessage message;
  if (json.contains("ready")) {
    message.ready.emplace();
    Read(json["ready"], "endpoint", &message.ready->endpoint);
    Read(json["ready"], "certificate", &message.ready->certificate);
  }
  if (json.contains("output")) Read(json, "output", &message.output.emplace());
  if (json.contains("plan")) Read(json, "plan", &message.plan.emplace());
  if (json.contains("progress")) Read(json, "progress", &message.progress.emplace());
  if (json.contains("record")) Read(json, "record", &message.record.emplace());
  if (json.contains("hidden")) Read(json, "hidden", &message.hidden.emplace());
  if (json.contains("gone")) Read(json, "gone", &message.gone.emplace());
  if (json.contains("commit")) {
    message.commit.emplace();
    Read(json["commit"], "id", &message.commit->id);
    Read(json["commit"], "path", &message.commit->path);
  }
  if (json.contains("checkpoint")) message.checkpoint = ReadWritten(json["checkpoint"]);
  if (json.contains("done")) {
    message.done.emplace();
    message.done->status = ReadStatus(json["done"]);
    Read(json, "own_cause", &message.done->own_cause);
    Read(json, "could_not_resume", &message.done->could_not_resume);
    if (json.contains("statistics")) {
      Result<engine::SessionStatistics> statistics = engine::ParseStatistics(json["statistics"].dump());
      if (statistics.ok()) message.done->statistics = *std::move(statistics);
    }
  }
  return message;
}

}  // namespace heddle::cluster
