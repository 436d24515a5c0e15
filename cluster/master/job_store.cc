// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/job_store.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "cluster/executor/executor_messages.h"
#include "cluster/master/job_store_schema.h"
#include "cluster/store/list_texts.h"
#include "cluster/store/sqlite_query.h"
#include "core/environment/log.h"
#include "engine/wire/value_wire.h"

namespace heddle::cluster {
namespace {

constexpr int64_t kSchemaVersion = std::size(kJobStoreSchema);

constexpr int kStoreExitCode = 5;
constexpr int64_t kLeastFreeBytes = 256 << 10;  // what a small job writes until it has ended
constexpr int kBusyTimeoutMs = 5'000;           // somebody may look at the file with another program

// The column request_id is unique among all rows: another owner's id is another one.
constexpr char kOwnerEnds = '\n';
std::string KeyOf(const JobSpecification& specification) {
  return specification.owner.empty() ? specification.request_id
                                     : specification.owner + kOwnerEnds + specification.request_id;
}

std::string IdOf(int64_t number) { return fmt::format("j{}", number); }

class SqliteJobStore : public JobStore {
 public:
  SqliteJobStore(const JobStoreOptions& options, Clock& clock) : options_(options), clock_(clock) {}
  ~SqliteJobStore() override {
    sqlite3_close(database_);
    if (log_ >= 0) close(log_);
  }

  Status Start(const std::string& path) {
    if (sqlite3_open_v2(path.c_str(), &database_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr) !=
        SQLITE_OK)
      return ResourceExhausted("job store: cannot open '{}': {}", path, sqlite3_errmsg(database_));
    sqlite3_busy_timeout(database_, kBusyTimeoutMs);
    for (const char* setting :
         {"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "PRAGMA foreign_keys=ON"})
      HEDDLE_RETURN_IF_ERROR(Query(database_, setting).Run());
    int64_t version = 0;
    {
      Query query(database_, "PRAGMA user_version");
      if (query.Step()) version = query.Integer(0);
      HEDDLE_RETURN_IF_ERROR(query.status());
    }
    if (version > kSchemaVersion)
      return FailedPrecondition(
          "job store '{}': written by a newer version of Heddle (format {}, this one knows {})", path,
          version, kSchemaVersion);
    files_.emplace(database_, options_.most_file_bytes);
    if (version < kSchemaVersion) HEDDLE_RETURN_IF_ERROR(MakeTables(version));
    return OpenLog(path);
  }

  int64_t LastChange() const override { return sqlite3_total_changes64(database_); }

  void Sync() override {
    if (log_ < 0 || fdatasync(log_) == 0) return;
    HEDDLE_LOG(kError, "the job store does not reach the disk", {"error", strerror(errno)});
    _exit(kStoreExitCode);
  }

  // A job that could be added might not find room for all that follows.
  Result<Job> Add(const JobSpecification& specification, bool* existed) override {
    *existed = false;
    {
      Query query = Select("WHERE request_id = ?");
      query.Bind(KeyOf(specification));
      if (query.Step()) {
        *existed = true;
        HEDDLE_ASSIGN_OR_RETURN(Job job, ReadJob(query));
        if (!job.specification.digest.empty() && job.specification.digest != specification.digest)
          return heddle::
              Usage("the request id '{}' is that of job {}, which has another script, other arguments or options",
                    specification.request_id, job.id)
                  .WithNote("give every job its own: --request-id ID");
        return job;
      }
      HEDDLE_RETURN_IF_ERROR(query.status());
    }
    HEDDLE_RETURN_IF_ERROR(CheckRoom());
    Job job;
    job.specification = specification;
    job.submitted_ms = clock_.WallMs();
    Transaction transaction(database_);
    HEDDLE_RETURN_IF_ERROR(transaction.status());
    HEDDLE_RETURN_IF_ERROR(
        Query(
            database_,
            "INSERT INTO jobs (request_id, script, start, workers_wanted, state, attempt, reason, workers,"
            " worker_names, outcome, statistics, submitted_ms, finished_ms, output_bytes, digest, retry_for_ms,"
            " owner, priority, deadline_ms, plan_bytes)"
            " VALUES (?, ?, ?, ?, 'QUEUED', 0, '', '[]', '[]', '', '[]', ?, 0, 0, ?, ?, ?, ?, ?, ?)")
            .Bind(KeyOf(specification))
            .BindBytes(specification.script)
            .BindBytes(EncodeSpecification(specification))
            .Bind(specification.workers_wanted)
            .Bind(job.submitted_ms)
            .BindBytes(specification.digest)
            .Bind(specification.retry_for_ms)
            .BindBytes(specification.owner)
            .Bind(specification.priority)
            .Bind(specification.deadline_ms)
            .Bind(specification.plan_bytes)
            .Run());
    const int64_t number = sqlite3_last_insert_rowid(database_);
    job.id = IdOf(number);
    HEDDLE_RETURN_IF_ERROR(AddTransition(number, job));
    HEDDLE_RETURN_IF_ERROR(transaction.Commit());
    return job;
  }

  Status Move(Job* job, JobState state, const std::string& reason) override {
    if (!IsLegalTransition(job->state, state))
      return Internal("job {} cannot go from {} to {}", job->id, Name(job->state), Name(state));
    Job moved = *job;
    moved.state = state;
    moved.reason = reason;
    if (IsFinal(state)) moved.finished_ms = clock_.WallMs();
    const int64_t number = NumberOfJob(job->id);
    Transaction transaction(database_);
    HEDDLE_RETURN_IF_ERROR(transaction.status());
    HEDDLE_RETURN_IF_ERROR(
        Query(
            database_,
            "UPDATE jobs SET state = ?, attempt = ?, epoch = ?, reason = ?, workers = ?, worker_names = ?, outcome = ?,"
            " statistics = ?, finished_ms = ?, crashes = ?, losses = ?, first_loss_ms = ?, shares = ?, plan_bytes = ?,"
            // Finished jobs are forgotten in the order in which they ended, whatever the time of day was.
            " finish = CASE WHEN ? THEN (SELECT coalesce(max(finish), 0) + 1 FROM jobs WHERE state IN"
            " ('SUCCEEDED', 'FAILED', 'CANCELLED')) ELSE 0 END"
            " WHERE number = ?")
            .Bind(Name(state))
            .Bind(moved.attempt)
            .Bind(moved.epoch)
            .BindBytes(reason)
            .BindBytes(ToText(moved.workers))
            .BindBytes(ToText(moved.worker_names))
            .BindBytes(IsFinal(state) ? engine::EncodeStatus(moved.outcome) : "")
            .BindBytes(ToText(moved.statistics))
            .Bind(moved.finished_ms)
            .Bind(moved.crashes)
            .Bind(moved.losses)
            .Bind(moved.first_loss_ms)
            .BindBytes(ToText(moved.shares))
            .Bind(moved.specification.plan_bytes)
            .Bind(int64_t{IsFinal(state)})
            .Bind(number)
            .Run());
    HEDDLE_RETURN_IF_ERROR(AddTransition(number, moved));
    HEDDLE_RETURN_IF_ERROR(Query(database_, "UPDATE epochs SET last = max(last, ?)").Bind(moved.epoch).Run());
    HEDDLE_RETURN_IF_ERROR(transaction.Commit());
    *job = std::move(moved);
    return OkStatus();
  }

  Status SetCheckpoints(const Job& job) override {
    return Query(database_, "UPDATE jobs SET checkpoints = ?, resumed = ? WHERE number = ?")
        .BindBytes(TextOfCheckpoints(job.checkpoints))
        .Bind(job.resumed)
        .Bind(NumberOfJob(job.id))
        .Run();
  }

  Status CheckWritable() override {
    HEDDLE_RETURN_IF_ERROR(CheckRoom());
    return Query(database_, "UPDATE epochs SET last = last").Run();
  }

  Status AppendOutput(Job* job, std::string_view bytes) override {
    if (bytes.empty()) return OkStatus();
    const auto size = static_cast<int64_t>(bytes.size());
    if (job->output_bytes + size > options_.most_output_bytes)
      return ResourceExhausted("the script printed more than the {} bytes that the master keeps",
                               options_.most_output_bytes)
          .WithNote("write results to a file with write(), or raise --most-output of heddle master");
    const int64_t number = NumberOfJob(job->id);
    Transaction transaction(database_);
    HEDDLE_RETURN_IF_ERROR(transaction.status());
    HEDDLE_RETURN_IF_ERROR(Query(database_, "INSERT INTO output (job, first, bytes) VALUES (?, ?, ?)")
                               .Bind(number)
                               .Bind(job->output_bytes)
                               .BindBytes(bytes)
                               .Run());
    HEDDLE_RETURN_IF_ERROR(Query(database_, "UPDATE jobs SET output_bytes = ? WHERE number = ?")
                               .Bind(job->output_bytes + size)
                               .Bind(number)
                               .Run());
    HEDDLE_RETURN_IF_ERROR(transaction.Commit());
    job->output_bytes += size;
    return OkStatus();
  }

  Status SetDrained(const KnownWorker& worker, bool drained) override {
    return SetKnown("drained_workers", worker, drained);
  }
  Result<std::vector<KnownWorker>> Drained() override { return Known("drained_workers"); }

  Status SetHere(const KnownWorker& worker, bool here) override {
    return SetKnown("workers_here", worker, here);
  }
  Result<std::vector<KnownWorker>> Here() override { return Known("workers_here"); }

  Status SetUsage(const UserUsage& usage) override {
    return Query(database_, "INSERT OR REPLACE INTO usage (owner, core_ms, time_ms) VALUES (?, ?, ?)")
        .BindBytes(usage.user)
        .Bind(usage.core_ms)
        .Bind(usage.time_ms)
        .Run();
  }
  Result<std::vector<UserUsage>> Usage() override {
    std::vector<UserUsage> usage;
    Query query(database_, "SELECT owner, core_ms, time_ms FROM usage ORDER BY owner");
    while (query.Step()) usage.push_back({query.Bytes(0), query.Integer(1), query.Integer(2)});
    HEDDLE_RETURN_IF_ERROR(query.status());
    return usage;
  }

  Result<std::string> Identity() override {
    Query query(database_, "SELECT id FROM identity");
    std::string id = query.Step() ? query.Bytes(0) : "";
    HEDDLE_RETURN_IF_ERROR(query.status());
    return id;
  }

  Result<int64_t> LastJob() override {
    Query query(database_, "SELECT seq FROM sqlite_sequence WHERE name = 'jobs'");
    const int64_t last = query.Step() ? query.Integer(0) : 0;
    HEDDLE_RETURN_IF_ERROR(query.status());
    return last;
  }

  Result<int64_t> LastEpoch() override {
    Query query(database_, "SELECT max(last) FROM epochs");
    const int64_t last = query.Step() ? query.Integer(0) : 0;
    HEDDLE_RETURN_IF_ERROR(query.status());
    return last;
  }

  Result<std::vector<Job>> Load() override {
    std::vector<Job> jobs;
    Query query = Select("ORDER BY number");
    while (query.Step()) {
      HEDDLE_ASSIGN_OR_RETURN(Job job, ReadJob(query));
      job.specification.DropProgram();
      jobs.push_back(std::move(job));
    }
    HEDDLE_RETURN_IF_ERROR(query.status());
    return jobs;
  }

  Result<std::vector<JobTransition>> Transitions(const std::string& job) override {
    std::vector<JobTransition> transitions;
    Query query(database_,
                "SELECT state, attempt, reason, time_ms FROM transitions WHERE job = ? ORDER BY sequence");
    query.Bind(NumberOfJob(job));
    while (query.Step()) {
      const std::optional<JobState> state = ParseJobState(query.Bytes(0));
      if (!state) return DataLoss("job store: job {} has an unknown state", job);
      transitions.push_back({*state, static_cast<int>(query.Integer(1)), query.Bytes(2), query.Integer(3)});
    }
    HEDDLE_RETURN_IF_ERROR(query.status());
    return transitions;
  }

  Result<std::string> Output(const std::string& job, int64_t offset, int64_t most_bytes) override {
    std::string output;
    Query query(
        database_,
        "SELECT first, bytes FROM output WHERE job = ?1 AND first >= coalesce((SELECT max(first) FROM output"
        " WHERE job = ?1 AND first <= ?2), 0) ORDER BY first");
    query.Bind(NumberOfJob(job)).Bind(offset);
    while (static_cast<int64_t>(output.size()) < most_bytes && query.Step()) {
      const int64_t skip = offset - query.Integer(0);
      const std::string bytes = query.Bytes(1);
      if (skip >= static_cast<int64_t>(bytes.size())) continue;
      output += skip > 0 ? bytes.substr(static_cast<size_t>(skip)) : bytes;
    }
    HEDDLE_RETURN_IF_ERROR(query.status());
    return output;
  }

  Result<JobSpecification> Specification(const std::string& job) override {
    Query query = Select("WHERE number = ?");
    query.Bind(NumberOfJob(job));
    if (!query.Step()) {
      HEDDLE_RETURN_IF_ERROR(query.status());
      return NotFound("there is no job '{}'", job);
    }
    HEDDLE_ASSIGN_OR_RETURN(Job found, ReadJob(query));
    return std::move(found.specification);
  }

  Result<std::vector<std::string>> Prune() override {
    std::vector<std::string> pruned;
    {
      Query query(database_,
                  "SELECT number FROM jobs WHERE state IN ('SUCCEEDED', 'FAILED', 'CANCELLED')"
                  " ORDER BY finish DESC, number DESC LIMIT -1 OFFSET ?");
      query.Bind(options_.most_finished_jobs);
      while (query.Step()) pruned.push_back(IdOf(query.Integer(0)));
      HEDDLE_RETURN_IF_ERROR(query.status());
    }
    if (pruned.empty()) return pruned;
    Transaction transaction(database_);
    HEDDLE_RETURN_IF_ERROR(transaction.status());
    for (const std::string& job : pruned)
      HEDDLE_RETURN_IF_ERROR(
          Query(database_, "DELETE FROM jobs WHERE number = ?").Bind(NumberOfJob(job)).Run());
    HEDDLE_RETURN_IF_ERROR(transaction.Commit());
    return pruned;
  }

  Status Delete(const std::string& job) override {
    return Query(database_, "DELETE FROM jobs WHERE number = ?").Bind(NumberOfJob(job)).Run();
  }

  JobFiles& files() override { return *files_; }

 private:
  Status MakeTables(int64_t version) {
    Transaction transaction(database_);
    HEDDLE_RETURN_IF_ERROR(transaction.status());
    std::string schema;
    for (int64_t i = std::max<int64_t>(version, 0); i < kSchemaVersion; ++i) schema += kJobStoreSchema[i];
    schema += fmt::format("PRAGMA user_version={};", kSchemaVersion);
    if (sqlite3_exec(database_, schema.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
      return ResourceExhausted("job store: {}", sqlite3_errmsg(database_));
    return transaction.Commit();
  }

  // Every change is a transaction of its own in the log of the database (its WAL), in order. SQLite syncs the
  // log only when it moves its content to the database; for all that is newer Sync() does. So a store on disk
  // is always one that there was, and after Sync() the newest.
  Status OpenLog(const std::string& path) {
    if (path == ":memory:") return OkStatus();
    // Makes the log, and syncs it with its folder.
    HEDDLE_RETURN_IF_ERROR(Query(database_, "UPDATE epochs SET last = last").Run());
    HEDDLE_RETURN_IF_ERROR(Query(database_, "PRAGMA synchronous=NORMAL").Run());
    log_ = open((path + "-wal").c_str(), O_RDONLY | O_CLOEXEC);
    if (log_ < 0) return ResourceExhausted("job store: cannot open '{}-wal': {}", path, strerror(errno));
    return OkStatus();
  }

  // The log of changes has some room left on a full disk, which it uses again and again: enough to take a
  // job, not to let it end.
  Status CheckRoom() const {
    struct statvfs disk {};
    if (log_ < 0 || fstatvfs(log_, &disk) != 0 || disk.f_blocks == 0) return OkStatus();
    if (static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize) >= kLeastFreeBytes)
      return OkStatus();
    return ResourceExhausted("job store: the disk is full");
  }

  // One of the tables of workers.
  Status SetKnown(const std::string& table, const KnownWorker& worker, bool known) {
    if (!known) {
      const std::string text = "DELETE FROM " + table + " WHERE uuid = ?";
      return Query(database_, text.c_str()).Bind(worker.uuid).Run();
    }
    const std::string text = "INSERT OR REPLACE INTO " + table + " (uuid, name) VALUES (?, ?)";
    return Query(database_, text.c_str()).Bind(worker.uuid).BindBytes(worker.name).Run();
  }
  Result<std::vector<KnownWorker>> Known(const std::string& table) {
    std::vector<KnownWorker> known;
    Query query(database_, ("SELECT uuid, name FROM " + table + " ORDER BY uuid").c_str());
    while (query.Step()) known.push_back({query.Bytes(0), query.Bytes(1)});
    HEDDLE_RETURN_IF_ERROR(query.status());
    return known;
  }

  // The form in which a job is started, so that there is one encoding of it.
  static std::string EncodeSpecification(const JobSpecification& specification) {
    LauncherMessage message;
    message.start.emplace();
    message.start->program = specification.program;
    message.start->directory = specification.directory;
    message.start->roots.named = specification.data_roots;
    message.start->roots.arguments = specification.named_paths;
    message.start->checkpoints.interval_ms = specification.checkpoint_ms;
    message.start->options = specification.options;
    message.start->options.plans.clear();  // executors make what they miss
    return ToLine(message);
  }

  Query Select(const std::string& rest) {
    return Query(
        database_,
        ("SELECT number, request_id, script, start, workers_wanted, state, attempt, reason, workers,"
         " worker_names, outcome, statistics, submitted_ms, finished_ms, output_bytes, digest, epoch,"
         " retry_for_ms, crashes, losses, first_loss_ms, owner, priority, deadline_ms, shares, plan_bytes,"
         " checkpoints, resumed FROM jobs " +
         rest)
            .c_str());
  }

  static Result<Job> ReadJob(const Query& query) {
    Job job;
    job.id = IdOf(query.Integer(0));
    job.specification.request_id = query.Bytes(1);
    job.specification.script = query.Bytes(2);
    Result<LauncherMessage> parsed = ParseLauncherMessage(query.Bytes(3));
    const std::optional<JobState> state = ParseJobState(query.Bytes(5));
    if (!parsed.ok() || !parsed->start || !state)
      return DataLoss("job store: the record of job {} is malformed", job.id);
    LauncherMessage message = *std::move(parsed);
    job.specification.program = std::move(message.start->program);
    job.specification.directory = std::move(message.start->directory);
    job.specification.data_roots = std::move(message.start->roots.named);
    job.specification.named_paths = std::move(message.start->roots.arguments);
    job.specification.checkpoint_ms = message.start->checkpoints.interval_ms;
    job.specification.options = std::move(message.start->options);
    job.specification.workers_wanted = static_cast<int>(query.Integer(4));
    job.state = *state;
    job.attempt = static_cast<int>(query.Integer(6));
    job.reason = query.Bytes(7);
    job.workers = ToList(query.Bytes(8));
    job.worker_names = ToList(query.Bytes(9));
    if (const std::string outcome = query.Bytes(10); !outcome.empty())
      HEDDLE_RETURN_IF_ERROR(engine::DecodeStatus(outcome, &job.outcome));
    job.statistics = ToList(query.Bytes(11));
    job.submitted_ms = query.Integer(12);
    job.finished_ms = query.Integer(13);
    job.output_bytes = query.Integer(14);
    job.specification.digest = query.Bytes(15);
    job.epoch = query.Integer(16);
    job.specification.retry_for_ms = query.Integer(17);
    job.crashes = static_cast<int>(query.Integer(18));
    job.losses = static_cast<int>(query.Integer(19));
    job.first_loss_ms = query.Integer(20);
    job.specification.owner = query.Bytes(21);
    if (!job.specification.owner.empty())
      job.specification.request_id.erase(0, job.specification.owner.size() + 1);
    job.specification.priority = static_cast<int>(query.Integer(22));
    job.specification.deadline_ms = query.Integer(23);
    job.shares = ToShares(query.Bytes(24));
    job.specification.plan_bytes = query.Integer(25);
    job.checkpoints = ToCheckpoints(query.Bytes(26));
    job.resumed = static_cast<int>(query.Integer(27));
    return job;
  }

  Status AddTransition(int64_t number, const Job& job) {
    return Query(database_,
                 "INSERT INTO transitions (job, sequence, state, attempt, reason, time_ms) VALUES (?1,"
                 " (SELECT count(*) FROM transitions WHERE job = ?1), ?2, ?3, ?4, ?5)")
        .Bind(number)
        .Bind(Name(job.state))
        .Bind(job.attempt)
        .BindBytes(job.reason)
        .Bind(clock_.WallMs())
        .Run();
  }

  const JobStoreOptions options_;
  Clock& clock_;
  sqlite3* database_ = nullptr;
  std::optional<JobFiles> files_;
  int log_ = -1;
};

}  // namespace

Result<std::unique_ptr<JobStore>> JobStore::Open(const std::string& path, const JobStoreOptions& options,
                                                 Clock& clock) {
  auto store = std::make_unique<SqliteJobStore>(options, clock);
  HEDDLE_RETURN_IF_ERROR(store->Start(path));
  return std::unique_ptr<JobStore>(std::move(store));
}

}  // namespace heddle::cluster
