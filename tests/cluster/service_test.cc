// SPDX-License-Identifier: Apache-2.0
// What daemons say to systemd, with a socket of this test in its place; what systemd says of the units; and
// the other descriptions of deployments, each read by the tool that owns its format.
#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>
#include <regex>

#include "tests/cluster/cluster_of_processes.h"

namespace heddle::testing_support {
namespace {

namespace fs = std::filesystem;

const std::string kDeploy = HEDDLE_SOURCE_DIR "/deploy";

// A service manager: everything that it was told.
class NotifySocket {
 public:
  explicit NotifySocket(const std::string& path) : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  ~NotifySocket() { close(fd_); }
  NotifySocket(const NotifySocket&) = delete;

  // The next message; "" after `timeout_ms` (times kPatience) without one.
  std::string Next(int timeout_ms = 20'000) const {
    pollfd poller = {fd_, POLLIN, 0};
    char message[4096];
    if (poll(&poller, 1, timeout_ms * kPatience) <= 0) return "";
    const ssize_t got = recv(fd_, message, sizeof(message), 0);
    return {message, static_cast<size_t>(std::max<ssize_t>(got, 0))};
  }
  // Reads until a message has the text; that message, "" when none comes.
  std::string WaitFor(const std::string& text) const {
    for (;;) {
      std::string message = Next();
      if (message.empty() || message.find(text) != std::string::npos) return message;
    }
  }

 private:
  int fd_;
};

class ServiceTest : public testing::Test {
 protected:
  ~ServiceTest() override {
    for (const char* variable : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(variable);
  }

  // Daemons that are started from now on have this service manager.
  void Manage(const std::string& socket, int watchdog_ms) const {
    setenv("NOTIFY_SOCKET", socket.c_str(), 1);
    setenv("WATCHDOG_USEC", std::to_string(watchdog_ms * 1000).c_str(), 1);
  }

  const std::string& folder() const { return folder_.path(); }
  Finished Shell(const std::string& command) const {
    return RunProcess({"/bin/sh", "-c", command}, folder_.path(), 120);
  }
  bool Has(const std::string& program) const { return Shell("command -v " + program).code == 0; }

 private:
  TemporaryFolder folder_;
};

TEST_F(ServiceTest, AMasterTellsThatItServesThatItLivesAndThatItStops) {
  const NotifySocket manager(folder() + "/notify");
  Manage(folder() + "/notify", 400);
  ClusterOfProcesses cluster;
  for (const char* variable : {"NOTIFY_SOCKET", "WATCHDOG_USEC"}) unsetenv(variable);
  EXPECT_EQ(manager.Next(), "READY=1\nSTATUS=0 workers, 0 jobs run, 0 wait");
  EXPECT_NE(manager.WaitFor("WATCHDOG=1"), "");
  cluster.StartWorker("alpha");
  EXPECT_NE(manager.WaitFor("STATUS=1 worker, 0 jobs run, 0 wait"), "");
  auto job = cluster.Start({"job", "submit", "-e", "while (1 < 2) { x = 1 }"});
  EXPECT_NE(manager.WaitFor("STATUS=1 worker, 1 job runs, 0 wait"), "");
  // What hangs does not say that it lives.
  cluster.master().Signal(SIGSTOP);
  while (manager.Next(1000).find("WATCHDOG=1") != std::string::npos) {
  }
  cluster.master().Signal(SIGCONT);
  EXPECT_NE(manager.WaitFor("WATCHDOG=1"), "");
  cluster.master().Signal(SIGTERM);
  EXPECT_NE(manager.WaitFor("STOPPING=1"), "");
  EXPECT_EQ(cluster.master().Wait(), 0);
}

TEST_F(ServiceTest, AWorkerTellsTheSameAndItsExecutorsTellNothing) {
  const NotifySocket manager(folder() + "/notify");
  ClusterOfProcesses cluster;
  Manage(folder() + "/notify", 400);
  BackgroundProcess& worker = cluster.StartWorker("alpha");
  for (const char* variable : {"NOTIFY_SOCKET", "WATCHDOG_USEC"}) unsetenv(variable);
  EXPECT_NE(manager.WaitFor("READY=1\nSTATUS=alpha works for unix:"), "");
  EXPECT_NE(manager.WaitFor("WATCHDOG=1"), "");
  const Finished job = cluster.Run({"job", "submit", "-e", "print(1)"});
  EXPECT_EQ(job.output, "1\n") << job.errors;
  // Without its master it goes on, and says so.
  cluster.master().Signal(SIGKILL);
  cluster.master().Wait();
  EXPECT_NE(manager.WaitFor("STATUS=lost its master and looks for it"), "");
  EXPECT_NE(manager.WaitFor("WATCHDOG=1"), "");
  cluster.StartMaster();
  EXPECT_NE(manager.WaitFor("STATUS=works for unix:"), "");
  worker.Signal(SIGTERM);
  EXPECT_NE(manager.WaitFor("STOPPING=1"), "");
  EXPECT_EQ(worker.Wait(), 0) << worker.output();
}

// The ExecStart of the units is what starts a cluster: with the values that systemd would put in.
TEST_F(ServiceTest, TheCommandsOfTheUnitsMakeACluster) {
  const NotifySocket manager(folder() + "/notify");
  setenv("XDG_STATE_HOME", (folder() + "/state").c_str(), 1);
  // Nothing but Heddle makes the certificate, and what is made anew is signed by the authority that callers
  // know.
  WriteText(folder() + "/openssl", "#!/bin/sh\nexit 1\n");
  ASSERT_EQ(chmod((folder() + "/openssl").c_str(), 0755), 0);
  const std::string secrets = "PATH=" + folder() + ":$PATH HEDDLE=" + Binary() + " " + kDeploy +
                              "/container/make-secrets " + folder() + "/etc localhost 127.0.0.1";
  ASSERT_EQ(Shell(secrets).code, 0);
  const std::string first = ReadText(folder() + "/etc/tls.crt"),
                    authority = ReadText(folder() + "/etc/ca.crt");
  ASSERT_EQ(Shell(secrets).code, 0);
  EXPECT_EQ(ReadText(folder() + "/etc/tls.crt"), first);
  fs::remove(folder() + "/etc/tls.crt");
  ASSERT_EQ(Shell(secrets).code, 0);
  EXPECT_NE(ReadText(folder() + "/etc/tls.crt"), first);
  EXPECT_EQ(ReadText(folder() + "/etc/ca.crt"), authority);
  const auto words_of = [&](const std::string& unit, const std::string& master) {
    std::smatch match;
    const std::string text = ReadText(kDeploy + "/systemd/" + unit);
    EXPECT_TRUE(std::regex_search(text, match, std::regex("\nExecStart=/usr/bin/heddle ([^\n]*)")));
    std::string line = match[1];
    for (const auto& [from, to] :
         std::vector<std::pair<std::string, std::string>>{{"${HEDDLE_LISTEN}", "localhost:0"},
                                                          {"${HEDDLE_MASTER}", master},
                                                          {"${HEDDLE_DATA_ROOT}", folder()},
                                                          {" $HEDDLE_OPTIONS", ""},
                                                          {"%S", folder() + "/var"},
                                                          {"%H", "localhost"},
                                                          {"%d", folder() + "/etc"}})
      for (size_t at = line.find(from); at != std::string::npos; at = line.find(from))
        line.replace(at, from.size(), to);
    EXPECT_EQ(line.find_first_of("%$"), std::string::npos) << line;
    std::vector<std::string> words = SplitWords(line);
    words.insert(words.begin(), Binary());
    return words;
  };
  fs::create_directories(folder() + "/var");
  Manage(folder() + "/notify", 60'000);
  BackgroundProcess master(words_of("heddle-master.service", ""), folder());
  ASSERT_NE(manager.WaitFor("READY=1"), "") << master.output();
  const std::string address_line = ReadText(folder() + "/var/heddle-master/address");
  const std::string address = address_line.substr(0, address_line.find('\n'));
  BackgroundProcess worker(words_of("heddle-worker.service", address), folder());
  ASSERT_NE(manager.WaitFor("READY=1"), "") << worker.output();
  const Finished job = RunProcess({Binary(), "job", "submit", "--master", address, "--token-file",
                                   "etc/token", "--tls-ca", "etc/ca.crt", "-e", "print(1 + 1)"},
                                  folder());
  EXPECT_EQ(job.output, "2\n") << job.errors;
  worker.Signal(SIGTERM);
  EXPECT_EQ(worker.Wait(), 0) << worker.output();
  master.Signal(SIGTERM);
  EXPECT_EQ(master.Wait(), 0) << master.output();
}

TEST_F(ServiceTest, SystemdFindsNoFaultInTheUnits) {
  if (!Has("systemd-analyze")) GTEST_SKIP() << "no systemd-analyze (package systemd)";
  for (const std::string unit : {"heddle-master.service", "heddle-worker.service"}) {
    SCOPED_TRACE(unit);
    // The user and the folders of a machine that has no Heddle.
    std::string text = std::regex_replace(ReadText(kDeploy + "/systemd/" + unit),
                                          std::regex("/usr/bin/heddle "), Binary() + " ");
    text = std::regex_replace(text, std::regex("(User|Group)=heddle"), "$1=daemon");
    WriteText(folder() + "/" + unit, text);
    const Finished verified =
        Shell("systemd-analyze verify --man=no --recursive-errors=no ./" + unit + " 2>&1");
    EXPECT_EQ(verified.code, 0) << verified.output;
    EXPECT_EQ(verified.output.find(folder() + "/" + unit), std::string::npos) << verified.output;
    const Finished safe =
        Shell("systemd-analyze security --no-pager --offline=yes --threshold=25 ./" + unit + " 2>&1");
    EXPECT_EQ(safe.code, 0) << safe.output;
  }
}

TEST_F(ServiceTest, ComposeReadsItsFile) {
  std::string program;
  for (const std::string candidate : {"docker-compose", "podman-compose"})
    if (program.empty() && Has(candidate)) program = candidate;
  if (program.empty() && Shell("docker compose version").code == 0) program = "docker compose";
  if (program.empty()) GTEST_SKIP() << "no docker-compose, podman-compose or docker compose";
  const Finished read = Shell(program + " -f " + kDeploy + "/container/compose.yaml config");
  EXPECT_EQ(read.code, 0) << read.errors;
  for (const std::string service : {"master:", "worker-1:", "worker-2:"})
    EXPECT_NE(read.output.find(service), std::string::npos) << read.output;
}

TEST_F(ServiceTest, HelmRendersItsChart) {
  if (!Has("helm")) GTEST_SKIP() << "no helm";
  setenv("HELM_CACHE_HOME", (folder() + "/helm").c_str(), 1);
  const std::string chart = kDeploy + "/helm/heddle";
  const Finished lint = Shell("helm lint --strict " + chart + " 2>&1");
  EXPECT_EQ(lint.code, 0) << lint.output;
  for (const std::string options :
       {"", "--set data.existingClaim=c,auth.existingSecret=a,tls.existingSecret=t,worker.replicas=5"}) {
    const Finished made = Shell("helm template train " + chart + " " + options);
    EXPECT_EQ(made.code, 0) << made.errors;
    EXPECT_NE(made.output.find("name: train-heddle-worker"), std::string::npos);
    EXPECT_EQ(made.output.find("kind: Secret") == std::string::npos, !options.empty());
  }
  const Finished wrong = Shell("helm template train " + chart + " --set worker.replica=5 2>&1");
  EXPECT_NE(wrong.code, 0) << "a misspelt value is refused";
}

// From nothing to a job that survives a kill, as docs/deployment.md tells it.
TEST_F(ServiceTest, AClusterFromNothing) {
  const Finished finished = Shell("HEDDLE=" + Binary() + " TMPDIR=" + folder() + " " + kDeploy +
                                  "/cluster-from-nothing report.html 2>&1");
  EXPECT_EQ(finished.code, 0) << finished.output;
  for (const std::string text : {"2 workers", "killed a worker", "SUCCEEDED", "sum 4950", "nothing is left"})
    EXPECT_NE(finished.output.find(text), std::string::npos) << finished.output;
  const std::string report = ReadText(folder() + "/report.html");
  EXPECT_TRUE(report.starts_with("<!doctype html>")) << report.substr(0, 200);
  EXPECT_NE(report.find("was lost"), std::string::npos) << "why there were two attempts";
  fs::remove(folder() + "/report.html");
  EXPECT_TRUE(fs::is_empty(folder()));
}

}  // namespace
}  // namespace heddle::testing_support
