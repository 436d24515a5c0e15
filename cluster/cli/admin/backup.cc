// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cluster/cli/connection.h"
#include "cluster/cli/jobs/job_report.h"
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "cluster/store/store_backup.h"
#include "core/text/utf8.h"

namespace heddle::cluster::cli {
namespace {

using Kind = Option::Kind;

constexpr Option kRestoreOptions[] = {
    {"state", Kind::kValue, "DIR", "folder to make; that of 'heddle master --state' (required)"},
    {"json", Kind::kFlag, "", "print JSON, one object a line"}};

// A file that appears whole or not at all, and that only this user may read: tokens are in it.
class NewFile {
 public:
  explicit NewFile(std::string path) : path_(std::move(path)), part_(path_ + ".part") {}
  ~NewFile() {
    if (fd_ < 0) return;
    close(fd_);
    unlink(part_.c_str());
  }
  Status Open() {
    if (access(path_.c_str(), F_OK) == 0)
      return Usage("'{}' is there already", path_).WithNote("a backup takes the place of no file");
    fd_ = open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd_ >= 0 ? OkStatus() : Failure();
  }
  Status Write(std::string_view bytes) {
    bytes_ += static_cast<int64_t>(bytes.size());
    while (!bytes.empty()) {
      const ssize_t written = write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return Failure();
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return OkStatus();
  }
  Status Finish() {
    if (fsync(fd_) != 0 || link(part_.c_str(), path_.c_str()) != 0) return Failure();
    return OkStatus();  // the other name goes with this object
  }
  int64_t bytes() const { return bytes_; }

 private:
  Status Failure() const { return ResourceExhausted("cannot write '{}': {}", path_, strerror(errno)); }
  const std::string path_, part_;
  int fd_ = -1;
  int64_t bytes_ = 0;
};

int Backup(const Arguments& arguments) {
  if (arguments.positional().size() != 1)
    return ReportOutcome(arguments, Usage("give the name of the file to write: heddle admin backup FILE"));
  const std::string& path = arguments.positional()[0];
  NewFile file(path);
  if (Status opened = file.Open(); !opened.ok()) return ReportOutcome(arguments, opened);
  const Result<std::unique_ptr<Client>> client = ConnectToMaster(arguments, kAdminToken);
  if (!client.ok()) return ReportOutcome(arguments, client.status());
  Status status = (*client)->Backup([&](std::string_view bytes) { return file.Write(bytes); });
  if (status.ok()) status = file.Finish();
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
