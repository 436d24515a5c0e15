// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cluster/cli/connection.h"
#include "cluster/cli/jobs/job_report.h"
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "cluster/store/durable_file.h"
#include "cluster/store/store_backup.h"
#include "core/text/utf8.h"

namespace heddle::cluster::cli {
namespace {

using Kind = Option::Kind;

constexpr Option kRestoreOptions[] = {
    {"state", Kind::kValue, "DIR", "folder to make; that of 'heddle master --state' (required)"},
    {"json", Kind::kFlag, "", "print JSON, one object a line"}};

Status IsThereAlready(const std::string& path) {
  return Usage("'{}' is there already", path).WithNote("a backup takes the place of no file");
}

Status WriteOutcome(const std::string& path, int error) {
  const std::string text = fmt::format("cannot write '{}': {}", path, strerror(error));
  switch (error) {
    case 0: return OkStatus();
    case EEXIST: return IsThereAlready(path);
    case EACCES:
    case EPERM:
    case EROFS: return PermissionDenied("{}", text);
    case ENOENT:
    case ENOTDIR: return NotFound("{}", text);
    default: return ResourceExhausted("{}", text);
  }
}

int Backup(const Arguments& arguments) {
  if (arguments.positional().size() != 1)
    return ReportOutcome(arguments, Usage("give the name of the file to write: heddle admin backup FILE"));
  const std::string& path = arguments.positional()[0];
  if (access(path.c_str(), F_OK) == 0) return ReportOutcome(arguments, IsThereAlready(path));
  DurableFile file(path);
  if (Status opened = WriteOutcome(path, file.Open()); !opened.ok()) return ReportOutcome(arguments, opened);
  const Result<std::unique_ptr<Client>> client = ConnectToMaster(arguments, kAdminToken);
  if (!client.ok()) return ReportOutcome(arguments, client.status());
  Status status =
      (*client)->Backup([&](std::string_view bytes) { return WriteOutcome(path, file.Append(bytes)); });
  if (status.ok()) status = WriteOutcome(path, file.Finish(DurableFile::Place::kFree));
  if (!status.ok()) return ReportOutcome(arguments, status);
  WarnOfVersion(**client);
  PrintOutput(arguments.Has("json")
                  ? fmt::format("{{\"bytes\":{}}}\n", file.bytes())
                  : EscapeForTerminal(fmt::format("{}: {} bytes; it holds the tokens of the master\n", path,
                                                  file.bytes())));
  return 0;
}

int RestoreFolder(const Arguments& arguments) {
  if (arguments.positional().size() != 1 || !arguments.Has("state"))
    return ReportOutcome(
        arguments, Usage("give a backup and the folder to make: heddle admin restore FILE --state DIR"));
  const std::string folder = *arguments.Value("state");
  const Result<BackupFacts> restored = Restore(arguments.positional()[0], folder);
  if (!restored.ok()) return ReportOutcome(arguments, restored.status());
  PrintOutput(
      arguments.Has("json")
          ? fmt::format("{{\"jobs\":{},\"files\":{},\"made_ms\":{}}}\n", restored->jobs, restored->files,
                        restored->made_ms)
          : EscapeForTerminal(fmt::format(
                "{}: {} jobs and {} files; start it with 'heddle master --state {} --listen ADDRESS'\n",
                folder, restored->jobs, restored->files, folder)));
  return 0;
}

}  // namespace

const Verb kAdminBackupVerb = {"admin backup",
                               "copy a master's jobs, tokens and identities to a file while it runs",
                               "admin backup [OPTIONS] FILE",
                               MasterVerbOptions(),
                               "heddle admin backup master.backup",
                               Backup,
                               /*takes_words=*/true};
const Verb kAdminRestoreVerb = {"admin restore",
                                "make the folder of a master of a backup",
                                "admin restore FILE --state DIR",
                                JoinOptions({kRestoreOptions}),
                                "heddle admin restore master.backup --state /var/lib/heddle",
                                RestoreFolder,
                                /*takes_words=*/true};

}  // namespace heddle::cluster::cli
