// SPDX-License-Identifier: Apache-2.0
// What operators do with a master that runs: backups, garbage, settings, certificates.
#include <sys/stat.h>

#include "tests/cluster/certificates.h"
#include "tests/cluster/cluster_of_processes.h"

namespace heddle::testing_support {
namespace {

std::string OutputOf(ClusterOfProcesses& cluster, const std::vector<std::string>& words) {
  const Finished finished = cluster.Run(words);
  EXPECT_EQ(finished.code, 0) << words[0] << " " << words[1] << ": " << finished.errors;
  return finished.output;
}

TEST(UpkeepTest, ABackupOfARunningMasterIsAMaster) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  OutputOf(cluster, {"job", "submit", "-e", "print(\"kept\")"});
  OutputOf(cluster, {"job", "submit", "--detach", "--workers", "2", "-e", "print(2)"});
  // The audit log says what happened here, is no part of a backup, and may be longer than its files.
  std::filesystem::resize_file(cluster.master_folder() + "/audit.log", 32 << 20);
  WriteText(cluster.folder() + "/one.backup.part", "somebody's");
  OutputOf(cluster, {"admin", "backup", "one.backup"});
  EXPECT_EQ(ReadText(cluster.folder() + "/one.backup.part"), "somebody's");
  struct stat status {};
  EXPECT_EQ(stat((cluster.folder() + "/one.backup").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u) << "tokens are in it";
  const Finished again = cluster.Run({"admin", "backup", "one.backup"});
  EXPECT_EQ(again.code, 2);
  EXPECT_EQ(again.errors,
            "heddle: error: 'one.backup' is there already\na backup takes the place of no file\n");
  EXPECT_NE(
      cluster
          .Run({"admin", "backup", "two.backup", "--token-file", cluster.master_folder() + "/client.token"})
          .code,
      0);
  EXPECT_FALSE(std::filesystem::exists(cluster.folder() + "/two.backup"));
  for (const auto& entry : std::filesystem::directory_iterator(cluster.folder()))
    EXPECT_FALSE(entry.path().filename().string().ends_with(".part.heddle")) << entry.path();
  for (const auto& entry : std::filesystem::directory_iterator(cluster.master_folder()))
    EXPECT_FALSE(entry.path().filename().string().starts_with("backup-")) << entry.path();

  const Finished full = cluster.Run({"admin", "restore", "one.backup", "--state", cluster.master_folder()});
  EXPECT_EQ(full.code, 1);
  EXPECT_NE(full.errors.find("the folder '" + cluster.master_folder() + "' is not empty"), std::string::npos);
  EXPECT_NE(full.errors.find("a backup is restored into a new folder; move the old one away first"),
            std::string::npos);
  ASSERT_EQ(chmod((cluster.folder() + "/one.backup").c_str(), 0644), 0);
  const std::string restored = OutputOf(cluster, {"admin", "restore", "one.backup", "--state", "new"});
  for (const char* file : {"jobs.sqlite", "tokens.json", "client.token", "admin.token", "worker.token"}) {
    EXPECT_EQ(stat((cluster.folder() + "/new/" + file).c_str(), &status), 0) << file;
    EXPECT_EQ(status.st_mode & 0777, 0600u) << file;
  }
  EXPECT_TRUE(restored.starts_with("new: 2 jobs and 4 files")) << restored;
  EXPECT_EQ(ReadText(cluster.folder() + "/new/admin.token"),
            ReadText(cluster.master_folder() + "/admin.token"));

  // The old master goes on; the new one knows the jobs of then, and the same tokens.
  OutputOf(cluster, {"job", "submit", "-e", "print(3)"});
  const auto master = cluster.Start({"master", "--listen", "127.0.0.1:0", "--state", "new"});
  ASSERT_TRUE(master->WaitFor("listens on ")) << master->output();
  const std::string line = ReadText(cluster.folder() + "/new/address");
  const std::string address = line.substr(0, line.find('\n'));
  EXPECT_EQ(OutputOf(cluster, {"job", "logs", "j1", "--master", address}), "kept\n");
  const std::string jobs = OutputOf(cluster, {"job", "list", "--master", address});
  EXPECT_NE(jobs.find("j2      QUEUED"), std::string::npos) << jobs;
  EXPECT_EQ(jobs.find("j3"), std::string::npos) << jobs;
  master->Signal(SIGTERM);
  EXPECT_EQ(master->Wait(), 0);

  WriteText(cluster.folder() + "/none.backup", "no backup");
  const Finished none = cluster.Run({"admin", "restore", "none.backup", "--state", "x"});
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(none.errors,
            "heddle: error: 'none.backup' is no backup of a master\n'heddle admin backup FILE' makes one\n");
  EXPECT_EQ(cluster.Run({"admin", "restore", "missing.backup", "--state", "x"}).code, 4);
  std::string bytes = ReadText(cluster.folder() + "/one.backup");
  WriteText(cluster.folder() + "/half.backup", bytes.substr(0, bytes.size() / 2));
  const Finished half = cluster.Run({"admin", "restore", "half.backup", "--state", "x"});
  EXPECT_NE(half.code, 0);
  // As far as SQLite can read what is left.
  EXPECT_TRUE(half.errors.find("the backup 'half.backup' is damaged") != std::string::npos ||
              half.errors.find("'half.backup' is no backup of a master") != std::string::npos)
      << half.errors;
  EXPECT_FALSE(std::filesystem::exists(cluster.folder() + "/x/jobs.sqlite"));
  OutputOf(cluster, {"job", "cancel", "j2"});
  cluster.EndAndExpectNothingLeft();
}

TEST(UpkeepTest, GarbageGoesByAgeAndBySize) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  for (int i = 0; i < 3; ++i)
    OutputOf(cluster, {"job", "submit", "-e", "print(toString(rand(rows=100, cols=3, seed=1)))"});
  OutputOf(cluster, {"job", "submit", "--detach", "--workers", "2", "-e", "print(1)"});
  const std::string orphan = cluster.master_folder() + "/backup-orphan.sqlite";
  WriteText(orphan, "left");
  WriteText(cluster.master_folder() + "/backup-fresh.sqlite", "is written");
  std::filesystem::last_write_time(orphan,
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(5));
  EXPECT_EQ(OutputOf(cluster, {"admin", "gc", "--dry-run"}),
            "file " + orphan + ": 4 bytes\n1 would go, 4 bytes\n");
  EXPECT_EQ(OutputOf(cluster, {"admin", "gc", "--older-than", "1h", "--dry-run"}).find("job"),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(orphan));
  // The one that ended last stays.
  const std::string sized = OutputOf(cluster, {"admin", "gc", "--keep", "5k"});
  EXPECT_NE(sized.find("job j1: "), std::string::npos) << sized;
  EXPECT_EQ(sized.find("job j3: "), std::string::npos) << sized;
  EXPECT_FALSE(std::filesystem::exists(orphan));
  EXPECT_TRUE(std::filesystem::remove(cluster.master_folder() + "/backup-fresh.sqlite"));
  const std::string all = OutputOf(cluster, {"admin", "gc", "--older-than", "0", "--json"});
  EXPECT_NE(all.find("{\"kind\":\"job\",\"name\":\"j3\""), std::string::npos) << all;
  const std::string jobs = OutputOf(cluster, {"job", "list"});
  EXPECT_EQ(jobs.find("j3"), std::string::npos) << jobs;
  EXPECT_NE(jobs.find("j4"), std::string::npos) << "it is not finished" << jobs;
  EXPECT_NE(cluster.Run({"admin", "gc", "--token-file", cluster.master_folder() + "/client.token"}).code, 0);
  OutputOf(cluster, {"job", "cancel", "j4"});
  cluster.EndAndExpectNothingLeft();
}

// Logs of jobs that are forgotten, names of spill files, checkpoints of jobs that have ended: of this master
// alone, and nothing of a job that is not finished.
TEST(UpkeepTest, GarbageOfWorkersGoes) {
  namespace fs = std::filesystem;
  const TemporaryFolder place;
  ClusterOfProcesses cluster(10'000, "", {"--checkpoints", place.path()});
  BackgroundProcess& worker = cluster.StartWorker("alpha");
  const std::string loop =
      "X = rand(rows=100, cols=10, seed=1)\nfor (i in 1:1000000) { X = X + i\n  print(i) }";
  const auto submit = [&] {
    return OutputOf(cluster, {"job", "submit", "--detach", "--checkpoint", "100ms", "-e", loop});
  };
  // An executor that was killed leaves a log.
  submit();
  for (int look = 0; look < 600 && ClusterOfProcesses::ChildrenOf(worker.pid()).empty(); ++look)
    usleep(50'000);
  for (const pid_t executor : ClusterOfProcesses::ChildrenOf(worker.pid())) kill(executor, SIGKILL);
  const std::string log = cluster.folder() + "/state/heddle/workers/alpha/logs/j1-1-0.log";
  for (int look = 0; look < 600 && !fs::exists(log); ++look) usleep(50'000);
  OutputOf(cluster, {"job", "cancel", "j1"});
  EXPECT_EQ(cluster.Run({"job", "wait", "j1"}).code, 8);
  for (int look = 0; look < 600 && !fs::is_empty(place.path()); ++look) usleep(50'000);
  submit();
  for (int look = 0; look < 600 && fs::is_empty(place.path()); ++look) usleep(50'000);
  ASSERT_FALSE(fs::is_empty(place.path()));
  // That of the job which runs: "j2-MASTER-REQUEST".
  const std::string running = fs::directory_iterator(place.path())->path().filename().string();
  ASSERT_TRUE(running.starts_with("j2-")) << running;
  const std::string dead = "j1" + running.substr(2), others = "j1-0123456789abcdef" + running.substr(19);
  for (const std::string& folder : {dead, others}) {
    fs::create_directories(place.path() + "/" + folder + "/7-1");
    WriteText(place.path() + "/" + folder + "/7-1/rank-0", "12345");
  }
  const std::string spill = cluster.folder() + "/tmp/.0123456789abcdef.part.heddle";
  WriteText(spill, "abc");
  fs::last_write_time(spill, fs::file_time_type::clock::now() - std::chrono::hours(2));

  const std::string first = OutputOf(cluster, {"admin", "gc", "--dry-run"});
  EXPECT_EQ(first, "spill " + spill + " on alpha: 3 bytes\ncheckpoints " + place.path() + "/" + dead +
                       " on alpha: 5 bytes\non alpha: 2 would go, 8 bytes\n2 would go, 8 bytes\n")
      << "the log is that of a job that is remembered";
  EXPECT_TRUE(fs::exists(spill) && fs::exists(place.path() + "/" + dead));
  OutputOf(cluster, {"job", "delete", "j1"});
  const std::string gone = OutputOf(cluster, {"admin", "gc"});
  EXPECT_NE(gone.find("log " + log + " on alpha: "), std::string::npos) << gone;
  EXPECT_NE(gone.find("\non alpha: 3 are gone, "), std::string::npos) << gone;
  EXPECT_FALSE(fs::exists(log) || fs::exists(spill) || fs::exists(place.path() + "/" + dead));
  EXPECT_TRUE(fs::exists(place.path() + "/" + others)) << "it is another master's";
  EXPECT_TRUE(fs::exists(place.path() + "/" + running));
  EXPECT_EQ(OutputOf(cluster, {"admin", "gc"}), "0 are gone, 0 bytes\n");

  OutputOf(cluster, {"job", "cancel", "j2"});
  EXPECT_EQ(cluster.Run({"job", "wait", "j2"}).code, 8);
  // Also where no job is remembered any more.
  WriteText(cluster.folder() + "/state/heddle/workers/alpha/logs/j2-1-0.log", "killed");
  OutputOf(cluster, {"job", "delete", "j2"});
  const std::string last = OutputOf(cluster, {"admin", "gc"});
  EXPECT_NE(last.find("logs/j2-1-0.log on alpha: "), std::string::npos) << last;
  worker.Signal(SIGSTOP);
  const Finished silent = cluster.Run({"admin", "gc"});
  EXPECT_EQ(silent.code, 0);
  EXPECT_EQ(silent.errors, "heddle: warning: worker alpha has not answered within 10 s\n");
  worker.Signal(SIGCONT);
  cluster.EndAndExpectNothingLeft();
}

TEST(UpkeepTest, SettingsSayWhereTheyComeFrom) {
  ClusterOfProcesses cluster(10'000, "", {"--keep-jobs", "7"});
  const std::string text = OutputOf(cluster, {"admin", "config"});
  EXPECT_NE(text.find("keep-jobs        command line  7\n"), std::string::npos) << text;
  EXPECT_NE(text.find("compile-seconds  default       60\n"), std::string::npos) << text;
  EXPECT_NE(text.find("dev              command line  on\n"), std::string::npos) << text;
  const std::string checkpoints =
      "checkpoints      default       " + cluster.master_folder() + "/checkpoints\n";
  EXPECT_NE(text.find(checkpoints), std::string::npos) << text;
  EXPECT_NE(OutputOf(cluster, {"admin", "config", "--json"}).find("{\"name\":\"keep-jobs\",\"value\":\"7\""),
            std::string::npos);
  cluster.EndAndExpectNothingLeft();
}

TEST(UpkeepTest, TheDoctorOfAClusterSaysWhatIsWrong) {
  ClusterOfProcesses cluster;
  const Finished none = cluster.Run({"admin", "doctor"});
  EXPECT_EQ(none.code, 1);
  EXPECT_NE(none.output.find("!!  workers            none is alive: jobs wait"), std::string::npos)
      << none.output;
  cluster.StartWorker("alpha");
  const Finished well = cluster.Run({"admin", "doctor"});
  EXPECT_EQ(well.code, 0) << well.output;
  for (const char* line : {"ok  version", "ok  clocks", "ok  its certificate    none",
                           "ok  workers            1 alive", ", role admin: it may administrate"})
    EXPECT_NE(well.output.find(line), std::string::npos) << line << well.output;
  const Finished client =
      cluster.Run({"admin", "doctor", "--token-file", cluster.master_folder() + "/client.token"});
  EXPECT_NE(client.output.find("role submitter: it may submit jobs and use those of the same owner"),
            std::string::npos)
      << client.output;
  const Finished nobody = cluster.Run({"admin", "doctor", "--master", "127.0.0.1:1"});
  EXPECT_EQ(nobody.code, 1);
  EXPECT_NE(nobody.output.find("!!  master"), std::string::npos) << nobody.output;
  cluster.EndAndExpectNothingLeft();
}

// The certificates of an authority of one's own, replaced under a master that runs.
TEST(UpkeepTest, CertificatesAreMadeShownAndReplacedWithoutARestart) {
  ClusterOfProcesses cluster;
  const auto cert = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"admin", "cert"});
    return cluster.Run(words);
  };
  EXPECT_NE(
      cert({"authority", "--folder", "tls"}).output.find("tls/ca.pem: authority heddle authority, until"),
      std::string::npos);
  const Finished twice = cert({"authority", "--folder", "tls"});
  EXPECT_EQ(twice.code, 1);
  EXPECT_EQ(
      twice.errors,
      "heddle: error: there is an authority in 'tls' already\ncertificates that it has signed would be worth "
      "nothing: take another folder, or move it away\n");
  const Finished made =
      cert({"server", "--folder", "tls", "--host", "localhost", "--host", "127.0.0.1", "--days", "20"});
  EXPECT_EQ(made.code, 0) << made.errors;
  EXPECT_NE(made.output.find("signed by heddle authority, for localhost, 127.0.0.1"), std::string::npos)
      << made.output;
  const Finished shown = cert({"show", "tls/server.pem"});
  EXPECT_EQ(shown.code, 0);
  EXPECT_NE(shown.errors.find("a certificate expires in 19 days"), std::string::npos) << shown.errors;
  struct stat status {};
  EXPECT_EQ(stat((cluster.folder() + "/tls/ca.key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_NE(cert({"server", "--folder", "tls", "--host", "a b"})
                .errors.find("'a b' is no name or address of a host"),
            std::string::npos);
  EXPECT_NE(cert({"server", "--folder", "tls"})
                .errors.find("give the names and addresses by which clients reach the server"),
            std::string::npos);
  // What a server has signs nothing, and neither does an authority whose time is over.
  std::filesystem::create_directory(cluster.folder() + "/fake");
  for (const char* end : {".pem", ".key"})
    std::filesystem::copy_file(cluster.folder() + "/tls/server" + end, cluster.folder() + "/fake/ca" + end);
  EXPECT_EQ(cert({"server", "--folder", "fake", "--host", "localhost"}).errors,
            "heddle: error: the certificate in 'fake/ca.pem' is that of no authority: it cannot sign others\n"
            "'heddle admin cert authority' makes one\n");
  std::filesystem::create_directory(cluster.folder() + "/old");
  const TestCertificate old(cluster.folder() + "/old/ca",
                            {.name = "old", .begins_s = -7'200, .ends_s = -3'600, .authority = true});
  EXPECT_EQ(cert({"server", "--folder", "old", "--host", "localhost"}).errors,
            "heddle: error: the authority in 'old/ca.pem' has expired, or will within a day\n"
            "make a new one with 'heddle admin cert authority' in another folder\n");
  const Finished expired = cert({"show", "old/ca.pem"});
  EXPECT_EQ(expired.code, 1);
  EXPECT_NE(expired.errors.find(
                "a certificate has expired\n'heddle admin cert server' makes a new one in its place"),
            std::string::npos)
      << expired.errors;
  const auto master = cluster.Start({"master", "--listen", "127.0.0.1:0", "--state", "secure",
                                     "--tls-certificate", "tls/server.pem", "--tls-key", "tls/server.key"});
  ASSERT_TRUE(master->WaitFor("listens on ")) << master->output();
  const std::string line = ReadText(cluster.folder() + "/secure/address");
  const std::string address = line.substr(0, line.find('\n'));
  const auto doctor = [&] {
    return cluster.Run({"admin", "doctor", "--json", "--master", address, "--tls-ca", "tls/ca.pem",
                        "--token-file", "secure/admin.token"});
  };
  const Finished before = doctor();
  EXPECT_NE(before.output.find("it expires in 19 days"), std::string::npos) << before.output;

  // Another authority signs the next certificate: who trusts that one alone gets in when it is in use.
  cert({"authority", "--folder", "next"});
  cert({"server", "--folder", "next", "--host", "localhost", "--host", "127.0.0.1"});
  for (const char* file : {"server.key", "server.pem"})
    std::filesystem::rename(cluster.folder() + "/next/" + file, cluster.folder() + "/tls/" + file);
  Finished after;
  for (int i = 0; i < 100; ++i) {
    after = cluster.Run({"job", "list", "--master", address, "--tls-ca", "next/ca.pem", "--token-file",
                         "secure/admin.token"});
    if (after.code == 0) break;
    usleep(200'000);
  }
  EXPECT_EQ(after.code, 0) << after.errors;
  EXPECT_NE(doctor().output.find("\"grade\":\"fault\""), std::string::npos)
      << "the old authority's time is over";

  // A key of another certificate: nobody connects until its own is there, and then without a restart.
  const auto connects = [&](bool wanted) {
    for (int i = 0; i < 100; ++i) {
      after = cluster.Run({"job", "list", "--master", address, "--tls-ca", "next/ca.pem", "--token-file",
                           "secure/admin.token"});
      if ((after.code == 0) == wanted) return true;
      usleep(200'000);
    }
    return false;
  };
  cert({"server", "--folder", "next", "--host", "localhost", "--host", "127.0.0.1"});
  std::filesystem::rename(cluster.folder() + "/next/server.key", cluster.folder() + "/tls/server.key");
  EXPECT_TRUE(connects(false));
  std::filesystem::rename(cluster.folder() + "/next/server.pem", cluster.folder() + "/tls/server.pem");
  EXPECT_TRUE(connects(true)) << after.errors;
  // A file that is gone for a while leaves what there was.
  std::filesystem::rename(cluster.folder() + "/tls/server.pem", cluster.folder() + "/away");
  const Finished gone = cluster.Run({"admin", "doctor", "--master", address, "--tls-ca", "next/ca.pem",
                                     "--token-file", "secure/admin.token"});
  EXPECT_NE(gone.output.find("the master cannot read the file that it was started with"), std::string::npos)
      << gone.output << gone.errors;
  master->Signal(SIGTERM);
  EXPECT_EQ(master->Wait(), 0);
  cluster.EndAndExpectNothingLeft();
}

}  // namespace
}  // namespace heddle::testing_support
