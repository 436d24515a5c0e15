// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "ops/cells/storage.h"
#include "ops/io/files/file_versions.h"
#include "ops/io/formats/write/row_writer.h"
#include "ops/io/formats/write_stages.h"
#include "ops/panels/panel_store.h"

namespace heddle::ops {

namespace {

// The input that the script says as it stands; nullptr where only the run tells it, or there is none.
const Scalar* LiteralInput(const Graph& graph, const Node& node, size_t input) {
  if (input >= node.inputs.size() || node.inputs[input] == kNoNode) return nullptr;
  const Node& value = graph[node.inputs[input]];
  return value.Is("literal") ? value.FindAttribute("value") : nullptr;
}

}  // namespace

PanelUse PanelUseOfWrite(const Graph& graph, const Node& node) {
  const Scalar* const format = LiteralInput(graph, node, 2);
  const bool is_known = node.inputs.size() < 3 || node.inputs[2] == kNoNode || format != nullptr;
  const Result<WriteOptions> options = WriteOptionsOf(node, format);
  if (!options.ok() || !is_known) return PanelUse::kReads;
  const ValueInfo& info = graph[node.inputs[0]].info;
  if (!HasSections(info, options->format)) return PanelUse::kNone;
  const Scalar* const path = LiteralInput(graph, node, 1);
  const std::string text = path == nullptr ? std::string() : path->ToText();
  return CanAppendRows(info, path == nullptr ? nullptr : &text, *options) ? PanelUse::kAppends
                                                                          : PanelUse::kReads;
}

Result<std::string> OriginOfRows(const std::string& path, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(std::string fingerprint, files.Fingerprint(path));
  if (files.versions() == nullptr) return fingerprint;
  FileVersion version = files.versions()->Find(path);
  version.writes = 0;
  return version.ToText();
}

Status KeepRowsOf(const std::string& path, const KernelContext& context) {
  if (context.panels == nullptr || !context.files->Exists(path)) return OkStatus();
  HEDDLE_ASSIGN_OR_RETURN(const std::string origin, OriginOfRows(path, *context.files));
  return context.panels->KeepAll(origin);
}

Status KeepRowsOf(const Graph& graph, const Node& write, const KernelContext& context) {
  if (context.panels == nullptr) return OkStatus();
  const Scalar* const path = LiteralInput(graph, write, 1);
  return path == nullptr ? context.panels->KeepAll("") : KeepRowsOf(path->ToText(), context);
}

void CountWriteOf(const std::string& path, const KernelContext& context) {
  FileVersions* const versions = context.files->versions();
  if (versions == nullptr) return;
  versions->CountWrite(path);
  versions->CountWrite(path + ".mtd");
}

AppendedWrite::AppendedWrite(std::string path, std::unique_ptr<RowWriter> writer,
                             const KernelContext& context)
    : path_(std::move(path)), writer_(std::move(writer)), context_(context) {}

AppendedWrite::~AppendedWrite() = default;

Result<std::unique_ptr<AppendedWrite>> AppendedWrite::Begin(const Node& node,
                                                            std::span<const ValueInfo> infos,
                                                            std::span<const Value* const> inputs,
                                                            const KernelContext& context) {
  HEDDLE_ASSIGN_OR_RETURN(const WriteOptions options, WriteOptionsOf(node, inputs, context));
  std::string path = inputs[1]->scalar().ToText();
  ValueInfo info = infos[0];
  if (inputs[0]->IsFrame()) info.schema = inputs[0]->frame().schema();
  HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<RowWriter> writer,
                          RowWriter::Begin(info, path, options, std::nullopt, *context.files));
  return std::unique_ptr<AppendedWrite>(new AppendedWrite(std::move(path), std::move(writer), context));
}

Status AppendedWrite::Add(const Value& rows) {
  HEDDLE_ASSIGN_OR_RETURN(const Value decoded, Decoded(rows));
  return writer_->Add(decoded);
}

Status AppendedWrite::Finish() {
  HEDDLE_RETURN_IF_ERROR(KeepRowsOf(path_, context_));
  const Status status = writer_->Finish();
  CountWriteOf(path_, context_);
  return status;
}

}  // namespace heddle::ops
