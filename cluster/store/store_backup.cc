// SPDX-License-Identifier: Apache-2.0
#include "cluster/store/store_backup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>

#include "cluster/store/durable_file.h"
#include "cluster/store/sqlite_query.h"
#include "core/environment/clock.h"
#include "ops/io/files/own_folders.h"

namespace heddle::cluster {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kApplicationId = 0x48444c42;  // "HDLB"
constexpr int64_t kBackupVersion = 1;
constexpr uintmax_t kMostFileBytes = uintmax_t{16} << 20;
constexpr int kBusyTimeoutMs = 5'000;

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

Result<Database> Open(const std::string& path, int flags) {
  sqlite3* opened = nullptr;
  const int result = sqlite3_open_v2(path.c_str(), &opened, flags, nullptr);
  Database database(opened);
  if (result != SQLITE_OK) return ResourceExhausted("cannot open '{}': {}", path, sqlite3_errmsg(opened));
  sqlite3_busy_timeout(opened, kBusyTimeoutMs);
  return database;
}

int64_t NumberOf(sqlite3* database, const char* question) {
  Query query(database, question);
  return query.Step() ? query.Integer(0) : -1;
}

// A file that only this user may read, and that is new.
Status MakePrivate(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return ResourceExhausted("cannot make '{}': {}", path, strerror(errno));
  close(fd);
  return OkStatus();
}

// What is not made anew by the next master, but for the store. The audit log says what happened at the master
// that is copied, not at the one to come, and may be long.
bool IsWorthKeeping(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  std::error_code error;
  return entry.is_regular_file(error) && !entry.is_symlink(error) && name != "lock" && name != "address" &&
         !name.starts_with("jobs.sqlite") && !name.starts_with("audit.log") && !name.starts_with("backup-") &&
         !name.starts_with(".") && !name.ends_with(".new");
}

Status AddFiles(sqlite3* database, const std::string& folder) {
  Transaction transaction(database);
  HEDDLE_RETURN_IF_ERROR(transaction.status());
  HEDDLE_RETURN_IF_ERROR(
      Query(database, "CREATE TABLE folder_files (name BLOB PRIMARY KEY, bytes BLOB NOT NULL) WITHOUT ROWID")
          .Run());
  HEDDLE_RETURN_IF_ERROR(
      Query(database, "CREATE TABLE backup (version INTEGER NOT NULL, made_ms INTEGER NOT NULL)").Run());
  HEDDLE_RETURN_IF_ERROR(Query(database, "INSERT INTO backup VALUES (?, ?)")
                             .Bind(kBackupVersion)
                             .Bind(SystemClock().WallMs())
                             .Run());
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (!IsWorthKeeping(*entry)) continue;
    const std::string path = entry->path().string();
    std::error_code gone;
    const uintmax_t bytes_there = entry->file_size(gone);
    if (!gone && bytes_there > kMostFileBytes)
      return ResourceExhausted("'{}' has more than {} bytes: a backup keeps small files only", path,
                               kMostFileBytes);
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (!file.is_open() || file.bad()) return ResourceExhausted("cannot read '{}'", path);
    HEDDLE_RETURN_IF_ERROR(Query(database, "INSERT INTO folder_files VALUES (?, ?)")
                               .BindBytes(entry->path().filename().string())
                               .BindBytes(bytes)
                               .Run());
  }
  if (error) return ResourceExhausted("cannot read the folder '{}': {}", folder, error.message());
  HEDDLE_RETURN_IF_ERROR(
      Query(database, fmt::format("PRAGMA application_id = {}", kApplicationId).c_str()).Run());
  return transaction.Commit();
}

Status Write(const std::string& folder, const std::string& backup) {
  {
    HEDDLE_ASSIGN_OR_RETURN(const Database store, Open(JobStoreFile(folder), SQLITE_OPEN_READWRITE));
    HEDDLE_RETURN_IF_ERROR(Query(store.get(), "VACUUM INTO ?").Bind(backup).Run());
  }
  HEDDLE_ASSIGN_OR_RETURN(const Database copy, Open(backup, SQLITE_OPEN_READWRITE));
  return AddFiles(copy.get(), folder);
}

// Whether the backup is one, whole, and of a version that is known.
Result<BackupFacts> Check(const std::string& backup) {
  struct stat status {};
  if (stat(backup.c_str(), &status) != 0) return NotFound("cannot read '{}': {}", backup, strerror(errno));
  HEDDLE_ASSIGN_OR_RETURN(const Database copy, Open(backup, SQLITE_OPEN_READONLY));
  if (NumberOf(copy.get(), "PRAGMA application_id") != kApplicationId)
    return Usage("'{}' is no backup of a master", backup).WithNote("'heddle admin backup FILE' makes one");
  if (NumberOf(copy.get(), "SELECT version FROM backup") > kBackupVersion)
    return FailedPrecondition("'{}' was made by a newer version of Heddle", backup);
  Query check(copy.get(), "PRAGMA quick_check");
  if (!check.Step() || check.Bytes(0) != "ok") return DataLoss("the backup '{}' is damaged", backup);
  BackupFacts facts;
  facts.made_ms = NumberOf(copy.get(), "SELECT made_ms FROM backup");
  facts.jobs = NumberOf(copy.get(), "SELECT count(*) FROM jobs");
  facts.files = NumberOf(copy.get(), "SELECT count(*) FROM folder_files");
  if (facts.jobs < 0 || facts.files < 0) return DataLoss("the backup '{}' is damaged", backup);
  return facts;
}

Status WriteWhole(const std::string& path, const std::string& bytes) {
  DurableFile file(path);
  int error = file.Open();
  if (error == 0) error = file.Append(bytes);
  if (error == 0) error = file.Finish(DurableFile::Place::kFree);
  return error == 0 ? OkStatus() : ResourceExhausted("cannot write '{}': {}", path, strerror(error));
}

Status Fill(const std::string& backup, const std::string& folder) {
  // Under another name until it is whole: a master does not take a half of a store for its own.
  const std::string next = folder + "/jobs.sqlite.new";
  HEDDLE_RETURN_IF_ERROR(MakePrivate(next));
  std::error_code error;
  fs::copy_file(backup, next, fs::copy_options::overwrite_existing, error);
  if (!error)
    fs::permissions(next, fs::perms::owner_read | fs::perms::owner_write, error);  // not the backup's
  if (error) return ResourceExhausted("cannot copy '{}' to '{}': {}", backup, next, error.message());
  {
    HEDDLE_ASSIGN_OR_RETURN(const Database store, Open(next, SQLITE_OPEN_READWRITE));
    {
      Query files(store.get(), "SELECT name, bytes FROM folder_files");
      while (files.Step()) {
        const std::string name = files.Bytes(0);
        if (name.empty() || name.find('/') != std::string::npos || name.starts_with("."))
          return DataLoss("the backup '{}' names a file '{}'", backup, name);
        HEDDLE_RETURN_IF_ERROR(WriteWhole(folder + "/" + name, files.Bytes(1)));
      }
      HEDDLE_RETURN_IF_ERROR(files.status());
    }
    // VACUUM: nothing of the tokens stays in pages that are free.
    for (const char* step :
         {"DROP TABLE folder_files", "DROP TABLE backup", "PRAGMA application_id = 0", "VACUUM"})
      HEDDLE_RETURN_IF_ERROR(Query(store.get(), step).Run());
  }
  fs::rename(next, JobStoreFile(folder), error);
  if (error) return ResourceExhausted("cannot rename '{}': {}", next, error.message());
  for (const fs::path& path : {fs::path(folder), fs::absolute(folder, error).parent_path()})
    if (const int failed = SyncFolder(path.string()); failed != 0)
      return ResourceExhausted("cannot write '{}': {}", path.string(), strerror(failed));
  return OkStatus();
}

}  // namespace

std::string JobStoreFile(const std::string& folder) { return folder + "/jobs.sqlite"; }

Status BackUp(const std::string& folder, const std::string& backup) {
  HEDDLE_RETURN_IF_ERROR(MakePrivate(backup));  // SQLite takes an empty file
  Status written = Write(folder, backup);
  if (!written.ok()) unlink(backup.c_str());
  return written;
}

Result<BackupFacts> Restore(const std::string& backup, const std::string& folder) {
  HEDDLE_ASSIGN_OR_RETURN(const BackupFacts facts, Check(backup));
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_empty(folder, error))
    return FailedPrecondition("the folder '{}' is not empty", folder)
        .WithNote("a backup is restored into a new folder; move the old one away first");
  HEDDLE_RETURN_IF_ERROR(ops::OpenFolderForUser(folder).status());
  const Status filled = Fill(backup, folder);
  if (!filled.ok()) {  // it was empty before
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      std::error_code kept;
      fs::remove(entry->path(), kept);
    }
    return filled;
  }
  ops::MarkOwnFolder(folder);
  return facts;
}

}  // namespace heddle::cluster
