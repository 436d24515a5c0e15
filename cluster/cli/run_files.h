// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "cluster/cli/arguments.h"
#include "core/status.h"
#include "engine/engine.h"
#include "engine/report/run_record.h"

namespace heddle::cluster::cli {

/// --report and --trace: the files that a run leaves besides those of its script.
class RunFiles {
 public:
  static std::vector<Option> Options();
  /// kUsage where the file's name is that of a script: its own was left out, and the script took its place.
  static Status CheckNames(const Arguments& arguments);
  /// kUsage for a file that cannot be written, before anything has run.
  static Result<RunFiles> Read(const Arguments& arguments, const engine::Script& script);
  /// The same for files that are named: a report, a trace, or both. `report_name`: of the option that names
  /// the report, for messages. `script`: the one that would run; "": none would.
  static Result<RunFiles> Of(const char* report_name, std::optional<std::string> report,
                             std::optional<std::string> trace, const std::string& script);

  bool IsAskedFor() const { return report_.has_value() || trace_.has_value(); }
  /// Writes them, each whole or not at all.
  Status Write(const engine::RunRecord& record) const;

 private:
  std::string directory_;
  std::optional<std::string> report_, trace_;
};

}  // namespace heddle::cluster::cli
