// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ops/base/kernel.h"
#include "ops/base/stages.h"
#include "ops/io/formats/file_format.h"

// write() of a matrix or frame that is split: what its ranks do one after the other.
namespace heddle::ops {

/// The options of a call. A format that only the run tells is its third input, nullptr where the script says
/// it.
Result<WriteOptions> WriteOptionsOf(const Node& node, const Scalar* format);
/// The same while it runs.
Result<WriteOptions> WriteOptionsOf(const Node& node, std::span<const Value* const> inputs,
                                    const KernelContext& context);

extern const StagedForm kStagedWrite;
/// The end of it, on rank 0.
Status FinishStagedWrite(const KernelCall& call, const std::string& path, const WriteOptions& options);

/// write() of panels (core/values/row_panels.h) by one process, in memory for a few pieces.
Status WritePanels(const KernelCall& call, const std::string& path, const WriteOptions& options);

/// write() of a compressed matrix by one process, which decodes a few rows at a time.
Status WriteCompressed(const KernelCall& call, const std::string& path, const WriteOptions& options);

/// How write() takes a value whose rows pass in panels (Operator::panel_use): kNone where it needs all rows
/// at once, of a format without rows of their own; kReads where something of all rows has to be known first,
/// it makes several files, or only the run tells the format, and on several ranks always (WritePanels); else
/// kAppends (AppendedWrite).
PanelUse PanelUseOfWrite(const Graph& graph, const Node& node);

class RowWriter;  // ops/io/formats/write/row_writer.h

/// write() of rows that come panel by panel: whole or not at all, as of a value that is there at once.
class AppendedWrite {
 public:
  /// `inputs`: those of the node, of which the first is a panel.
  static Result<std::unique_ptr<AppendedWrite>> Begin(const Node& node, std::span<const ValueInfo> infos,
                                                      std::span<const Value* const> inputs,
                                                      const KernelContext& context);
  ~AppendedWrite();

  /// The next rows. Fails as RowWriter does.
  Status Add(const Value& rows);
  /// The file appears, with its metadata.
  Status Finish();

 private:
  AppendedWrite(std::string path, std::unique_ptr<RowWriter> writer, const KernelContext& context);

  const std::string path_;
  std::unique_ptr<RowWriter> writer_;
  const KernelContext& context_;
};

/// What rows that are made when they are read come from (PanelStore::Lazy): the version of the file that is
/// there. How often the script has written it, which rank 0 alone counts, is not in it. Fails as
/// Files::Fingerprint does.
Result<std::string> OriginOfRows(const std::string& path, Files& files);

/// What a write does before the file that is there is replaced: makes those of its rows of which variables
/// are handles; and behind: tells that it has another version. The second also when the write failed.
Status KeepRowsOf(const std::string& path, const KernelContext& context);
/// The same on a rank that waits for the write of another one: of rows of all files where only the run tells
/// the path.
Status KeepRowsOf(const Graph& graph, const Node& write, const KernelContext& context);
void CountWriteOf(const std::string& path, const KernelContext& context);

}  // namespace heddle::ops
