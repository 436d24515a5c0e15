// SPDX-License-Identifier: Apache-2.0
// Metrics and health of masters and workers, over HTTP.
#include <sys/stat.h>

#include "tests/cluster/certificates.h"
#include "tests/cluster/cluster_of_processes.h"
#include "tests/support/http_request.h"

namespace heddle::testing_support {
namespace {

std::string OutputOf(ClusterOfProcesses& cluster, const std::vector<std::string>& words) {
  const Finished finished = cluster.Run(words);
  EXPECT_EQ(finished.code, 0) << words[0] << " " << words[1] << ": " << finished.errors;
  return finished.output;
}

// The port behind "http://127.0.0.1:" in what a process has printed.
int PortOf(const std::string& output) {
  const std::string before = "http://127.0.0.1:";
  const size_t at = output.find(before);
  return at == std::string::npos ? -1 : std::atoi(output.c_str() + at + before.size());
}

// What the client library of Prometheus for Python makes of it; "" where that is not installed.
std::string Parse(const std::string& metrics, const std::string& folder) {
  WriteText(folder + "/metrics.txt", metrics);
  WriteText(
      folder + "/parse.py",
      "import sys\ntry:\n  from prometheus_client.parser import text_string_to_metric_families as parse\n"
      "except ImportError:\n  sys.exit(77)\n"
      "for family in parse(open('metrics.txt').read()):\n"
      "  print(family.type, family.name, len(family.samples), 'help' if family.documentation else '')\n");
  const Finished parsed = RunProcess({"/usr/bin/python3", "parse.py"}, folder);
  EXPECT_TRUE(parsed.code == 0 || parsed.code == 77) << parsed.errors;
  return parsed.output;
}

TEST(MetricsTest, MetricsAndHealthOfMasterAndWorker) {
  ClusterOfProcesses cluster(10'000, "", {"--metrics-listen", "127.0.0.1:0"});
  const int port = PortOf(cluster.master().output());
  ASSERT_GT(port, 0) << cluster.master().output();
  const auto worker =
      cluster.Start({"worker", "--name", "alpha", "--threads", "3", "--metrics-listen", "127.0.0.1:0"});
  ASSERT_TRUE(worker->WaitFor("works for the master")) << worker->output();
  const int worker_port = PortOf(worker->output());
  ASSERT_GT(worker_port, 0) << worker->output();
  OutputOf(cluster, {"job", "submit", "-e", "print(\"four\")"});
  cluster.Run({"job", "submit", "-e", "stop(\"enough\")"});
  OutputOf(cluster, {"job", "submit", "--detach", "--workers", "2", "-e", "print(1)"});
  // A call without a token is refused, and counted as such.
  EXPECT_NE(cluster.Run({"job", "list", "--token-file", "/dev/null"}).code, 0);
  WriteText(cluster.folder() + "/wrong.token", "0123456789abcdef0123456789abcdef\n");
  EXPECT_NE(cluster.Run({"job", "list", "--token-file", "wrong.token"}).code, 0);
  EXPECT_NE(cluster.Run({"admin", "config", "--token-file", cluster.master_folder() + "/client.token"}).code,
            0);

  const std::string answer = GetHttp(port, "/metrics");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_NE(answer.find("\r\nContent-Type: text/plain; version=0.0.4"), std::string::npos) << answer;
  for (const char* line :
       {"heddle_jobs{state=\"SUCCEEDED\"} 1\n", "heddle_jobs{state=\"FAILED\"} 1\n",
        "heddle_jobs{state=\"QUEUED\"} 1\n", "heddle_queue_length 1\n", "heddle_job_attempts_total 2\n",
        "heddle_jobs_submitted_total 3\n", "heddle_jobs_finished_total{state=\"FAILED\"} 1\n",
        "heddle_workers{state=\"ALIVE\"} 1\n", "heddle_worker_threads{kind=\"offered\"} 3\n",
        "heddle_worker_threads{kind=\"reserved\"} 0\n", "heddle_output_bytes_total 5\n",
        "heddle_queue_wait_seconds_count 2\n",
        "heddle_rpc_total{code=\"OK\",method=\"/heddle.Jobs/Submit\"} 3\n",
        "code=\"PERMISSION_DENIED\",method=\"/heddle.Admin/Config\"} 1\n",
        "code=\"UNAUTHENTICATED\",method=\"/heddle.Jobs/List\"} 1\n",
        "heddle_executor_exits_total{how=\"done\"} 2\n", "heddle_store_ready 1\n",
        "heddle_rpc_seconds_count{method=\"/heddle.Jobs/Submit\"} 3\n"})
    EXPECT_NE(answer.find(line), std::string::npos) << line << answer;
  const std::string body = answer.substr(answer.find("\r\n\r\n") + 4);
  if (const std::string parsed = Parse(body, cluster.folder()); !parsed.empty()) {
    EXPECT_NE(parsed.find("histogram heddle_queue_wait_seconds 10 help\n"), std::string::npos) << parsed;
    EXPECT_NE(parsed.find("gauge process_resident_memory_bytes 1 help\n"), std::string::npos) << parsed;
  }
  EXPECT_NE(GetHttp(port, "/healthz").find("200 OK"), std::string::npos);
  EXPECT_NE(GetHttp(port, "/readyz").find("200 OK"), std::string::npos);
  EXPECT_NE(GetHttp(port, "/other").find("404 Not Found"), std::string::npos);
  EXPECT_EQ(
      AskHttp(port, "GET /healthz HTTP/1.1\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n").find("200 OK"),
      std::string::npos)
      << "a request has its limits";
  EXPECT_NE(AskHttp(port, "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").find("405"),
            std::string::npos);

  const std::string of_worker = GetHttp(worker_port, "/metrics");
  for (const char* line :
       {"heddle_worker_connected 1\n", "heddle_worker_offered_threads 3\n", "heddle_executors_running 0\n",
        "heddle_executors_started_total 2\n", "heddle_executor_exits_total{how=\"done\"} 2\n"})
    EXPECT_NE(of_worker.find(line), std::string::npos) << line << of_worker;
  EXPECT_NE(GetHttp(worker_port, "/readyz").find("200 OK"), std::string::npos);
  // A worker without a master is healthy and not ready.
  cluster.master().Signal(SIGKILL);
  cluster.master().Wait();
  std::string ready = GetHttp(worker_port, "/readyz");
  for (int i = 0; i < 600 && ready.find("no connection to the") == std::string::npos; ++i)
    ready = GetHttp(worker_port, "/readyz");
  EXPECT_NE(ready.find("503 Service Unavailable"), std::string::npos) << ready;
  EXPECT_NE(ready.find("there is no connection to the master"), std::string::npos) << ready;
  EXPECT_NE(GetHttp(worker_port, "/healthz").find("200 OK"), std::string::npos);
  cluster.StartMaster();
  OutputOf(cluster, {"job", "cancel", "j3"});
  worker->Signal(SIGTERM);
  EXPECT_EQ(worker->Wait(), 0);

  // A port that is taken is an error of the start.
  const Finished taken =
      cluster.Run({"master", "--listen", "127.0.0.1:0", "--state", "other", "--metrics-listen",
                   "127.0.0.1:" + std::to_string(PortOf(cluster.master().output()))});
  EXPECT_EQ(taken.code, 6) << taken.errors;
  EXPECT_NE(taken.errors.find("for metrics"), std::string::npos) << taken.errors;
  const Finished socket = cluster.Run({"master", "--dev", "--metrics-listen", "unix:/tmp/x"});
  EXPECT_EQ(socket.code, 2);
  EXPECT_NE(socket.errors.find("--metrics-listen takes HOST:PORT, not 'unix:/tmp/x'"), std::string::npos)
      << socket.errors;
  cluster.EndAndExpectNothingLeft();
}

// Where other machines reach them, the numbers are for those with a token of the master's; whether it is well
// is for all. The master tells the workers what tokens are for.
TEST(MetricsTest, MetricsThatOthersReachTakeAToken) {
  ClusterOfProcesses cluster(10'000, "", {"--metrics-listen", "0.0.0.0:0"});
  WriteText(cluster.folder() + "/scrape", "0123456789abcdef0123456789abcdef\n");
  ASSERT_EQ(chmod((cluster.folder() + "/scrape").c_str(), 0600), 0);
  const auto worker = cluster.Start({"worker", "--name", "alpha", "--threads", "1", "--metrics-listen",
                                     "0.0.0.0:0", "--metrics-token-file", "scrape"});
  ASSERT_TRUE(worker->WaitFor("works for the master")) << worker->output();
  const auto token = [&](const std::string& role) {
    OutputOf(cluster, {"admin", "token", "create", "of-" + role, "--role", role, "--out", role});
    const std::string text = ReadText(cluster.folder() + "/" + role);
    return text.substr(0, text.find('\n'));
  };
  const std::string viewer = token("viewer"), submitter = token("submitter"), joiner = token("worker");
  const std::string scrape = "0123456789abcdef0123456789abcdef", strange = "fedcba9876543210fedcba9876543210";
  const auto bearer = [](const std::string& shown) { return "Authorization: Bearer " + shown + "\r\n"; };
  const std::string before = "http://0.0.0.0:";
  const auto port_of = [&](const std::string& output) {
    EXPECT_NE(output.find(before), std::string::npos) << output;
    return std::atoi(output.c_str() + output.find(before) + before.size());
  };
  const int of_master = port_of(cluster.master().output()), of_worker = port_of(worker->output());
  for (const int port : {of_master, of_worker}) {
    SCOPED_TRACE(port == of_worker ? "worker" : "master");
    EXPECT_TRUE(GetHttp(port, "/metrics", bearer(viewer)).starts_with("HTTP/1.1 200 OK"));
    for (const std::string& headers :
         {std::string(), bearer(strange), "Authorization: " + viewer + "\r\n", bearer(""),
          bearer("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4")}) {
      const std::string refused = GetHttp(port, "/metrics", headers);
      EXPECT_TRUE(refused.starts_with("HTTP/1.1 401 Unauthorized")) << refused;
      EXPECT_NE(refused.find("WWW-Authenticate: Bearer\r\n"), std::string::npos) << refused;
      EXPECT_EQ(refused.find("heddle_"), std::string::npos) << refused;
    }
    for (const std::string& other : {submitter, joiner})
      EXPECT_TRUE(GetHttp(port, "/metrics", bearer(other)).starts_with("HTTP/1.1 403 Forbidden"));
    EXPECT_NE(GetHttp(port, "/healthz").find("200 OK"), std::string::npos);
    EXPECT_NE(GetHttp(port, "/readyz").find("200 OK"), std::string::npos);
  }
  EXPECT_TRUE(GetHttp(of_worker, "/metrics", bearer(scrape)).starts_with("HTTP/1.1 200 OK"));
  EXPECT_TRUE(GetHttp(of_master, "/metrics", bearer(scrape)).starts_with("HTTP/1.1 401 "))
      << "the worker's own token is no token of the master's";
  // From the next scrape on.
  OutputOf(cluster, {"admin", "token", "revoke", "of-viewer"});
  for (const int port : {of_master, of_worker})
    EXPECT_TRUE(GetHttp(port, "/metrics", bearer(viewer)).starts_with("HTTP/1.1 401 "));

  // Why it is not ready is for those with a token.
  cluster.master().Signal(SIGKILL);
  cluster.master().Wait();
  std::string ready = GetHttp(of_worker, "/readyz");
  for (int i = 0; i < 600 && ready.find("503") == std::string::npos; ++i)
    ready = GetHttp(of_worker, "/readyz");
  EXPECT_NE(ready.find("\r\n\r\nnot ready\n"), std::string::npos) << ready;
  EXPECT_EQ(GetHttp(of_worker, "/readyz", bearer(scrape)).find("not ready"), std::string::npos);
  EXPECT_TRUE(GetHttp(of_worker, "/metrics", bearer(scrape)).starts_with("HTTP/1.1 200 OK"));
  const std::string unclear = GetHttp(of_worker, "/metrics", bearer("abcdefabcdefabcdef0123456789"));
  EXPECT_TRUE(unclear.starts_with("HTTP/1.1 503 ")) << unclear;
  EXPECT_NE(unclear.find("no master is there to tell what this token is for\n"), std::string::npos)
      << unclear;
  cluster.StartMaster();
  worker->Signal(SIGTERM);
  EXPECT_EQ(worker->Wait(), 0);
  cluster.EndAndExpectNothingLeft();
}

// The other side's certificate is looked at, as Prometheus does; a new one is shown without a restart.
TEST(MetricsTest, MetricsGoByTlsAndTheCertificateIsReplaced) {
  const TemporaryFolder folder;
  const auto make = [&](const std::string& name, const char* curve = "P-256") {
    const TestCertificate authority(folder.path() + "/" + name, {.name = name, .authority = true});
    const TestCertificate server(folder.path() + "/server", {.name = "localhost", .curve = curve},
                                 &authority);
  };
  make("first");
  const std::vector<std::string> tls = {"--metrics-listen",          "127.0.0.1:0",
                                        "--metrics-tls-certificate", folder.path() + "/server.pem",
                                        "--metrics-tls-key",         folder.path() + "/server.key"};
  ClusterOfProcesses cluster(10'000, "", tls);
  std::vector<std::string> words = {"worker", "--name", "alpha", "--threads", "1"};
  words.insert(words.end(), tls.begin(), tls.end());
  const auto worker = cluster.Start(words);
  ASSERT_TRUE(worker->WaitFor("works for the master")) << worker->output();
  const auto get = [&](const std::string& output, const std::string& authority) {
    const std::string before = "https://127.0.0.1:";
    EXPECT_NE(output.find(before), std::string::npos) << output;
    const int port = std::atoi(output.c_str() + output.find(before) + before.size());
    return RunProcess({"/usr/bin/python3", "-c",
                       "import ssl, sys, urllib.request as r\n"
                       "context = ssl.create_default_context(cafile=sys.argv[2])\n"
                       "print(r.urlopen('https://localhost:' + sys.argv[1] + '/metrics', context=context,"
                       " timeout=20).read().decode())",
                       std::to_string(port), folder.path() + "/" + authority + ".pem"},
                      folder.path());
  };
  for (const std::string& output : {cluster.master().output(), worker->output()}) {
    const Finished answer = get(output, "first");
    EXPECT_NE(answer.output.find("process_resident_memory_bytes"), std::string::npos) << answer.errors;
    const int port = std::atoi(output.c_str() + output.find("https://127.0.0.1:") + 18);
    EXPECT_EQ(GetHttp(port, "/metrics").find("heddle_"), std::string::npos) << "plain text is no answer";
  }
  // A pair that fits, with a curve that the server of metrics does not know: told once, and the first one
  // stays.
  make("unknown", "secp256k1");
  const std::string refused = "the new certificate of metrics is of no use; the one before is shown";
  ASSERT_TRUE(worker->WaitFor(refused)) << worker->output();
  usleep(4'500'000);  // It has looked again.
  EXPECT_EQ(get(worker->output(), "first").code, 0);
  EXPECT_EQ(worker->output().find(refused), worker->output().rfind(refused)) << worker->output();
  make("second");
  Finished answer;
  for (int look = 0; look < 60 && answer.code != 0; ++look) {
    usleep(500'000);
    answer = get(worker->output(), "second");
  }
  EXPECT_EQ(answer.code, 0) << answer.errors;
  EXPECT_NE(get(worker->output(), "first").code, 0);
  worker->Signal(SIGTERM);
  EXPECT_EQ(worker->Wait(), 0);
  cluster.EndAndExpectNothingLeft();
}

}  // namespace
}  // namespace heddle::testing_support
