// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/run_files.h"

#include <filesystem>
#include <memory>
#include <system_error>

#include "cluster/cli/script_input.h"
#include "engine/report/report.h"
#include "ops/io/files/files.h"

namespace heddle::cluster::cli {
namespace {

// Whether a file could be put there, and why not. Nothing is left of the try.
Status CheckPlace(ops::Files& files, const std::string& path) {
  const Status tried = files.Replace(
      path, ops::ByteSource([](const ops::ByteSink&) { return Status(StatusCode::kCancelled, ""); }));
  return tried.code() == StatusCode::kCancelled ? OkStatus() : tried;
}

bool AreSame(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code error;
  return fs::weakly_canonical(fs::absolute(a, error), error) ==
         fs::weakly_canonical(fs::absolute(b, error), error);
}

}  // namespace

std::vector<Option> RunFiles::Options() {
  return {{"report", Option::Kind::kValue, "FILE.html",
           "write what took the time there, as a page for a browser"},
          {"trace", Option::Kind::kValue, "FILE.json",
           "write every operator on every thread there, for Perfetto"}};
}

Status RunFiles::CheckNames(const Arguments& arguments) {
  for (const Option& option : Options()) {
    const std::optional<std::string> path = arguments.Value(option.name);
    if (path && path->ends_with(".dml"))
      return Usage("--{}: '{}' is the name of a script, not of the file to write", option.name, *path)
          .WithNote(fmt::format("the file comes first: --{} run.{} {}", option.name,
                                option.name == "report" ? "html" : "json", *path));
  }
  return OkStatus();
}

Result<RunFiles> RunFiles::Read(const Arguments& arguments, const engine::Script& script) {
  return Of("--report", arguments.Value("report"), arguments.Value("trace"), script.name);
}

Result<RunFiles> RunFiles::Of(const char* report_name, std::optional<std::string> report,
                              std::optional<std::string> trace, const std::string& script) {
  RunFiles read;
  read.directory_ = WorkingDirectory();
  read.report_ = std::move(report);
  read.trace_ = std::move(trace);
  if (read.report_ && read.trace_ && AreSame(*read.report_, *read.trace_))
    return Usage("--report and --trace name the same file, '{}'", *read.report_);
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(read.directory_);
  for (const auto& [option, path] :
       {std::pair(report_name, read.report_), std::pair("--trace", read.trace_)}) {
    if (!path) continue;
    if (path->empty()) return Usage("{}: the name of the file is empty", option);
    if (!script.empty() && AreSame(*path, script))
      return Usage("{}: '{}' is the script itself", option, *path);
    if (Status status = CheckPlace(*files, *path); !status.ok()) {
      const Status refused = Usage("{}: {}", option, status.message());
      return script.empty() ? refused : refused.WithNote("nothing was run");
    }
  }
  return read;
}

Status RunFiles::Write(const engine::RunRecord& record) const {
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(directory_);
  if (report_) HEDDLE_RETURN_IF_ERROR(files->Replace(*report_, engine::ToHtml(record)));
  if (trace_) HEDDLE_RETURN_IF_ERROR(files->Replace(*trace_, engine::ToTrace(record)));
  return OkStatus();
}

}  // namespace heddle::cluster::cli
