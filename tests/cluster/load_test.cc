// SPDX-License-Identifier: Apache-2.0
// A master with many jobs, clients and connections. A small part runs in every test; all of it by hand, or,
// with HEDDLE_LOAD=queue, 10,000 jobs that run to their ends beside the small part of the rest:
//
//     HEDDLE_LOAD=full test_processes --gtest_filter='LoadTest.*'
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "cluster/client/client.h"
#include "proto/master.pb.h"
#include "tests/cluster/cluster_of_processes.h"
#include "tests/support/http_request.h"

namespace heddle::testing_support {
namespace {

using std::chrono::steady_clock;

struct Load {
  int queued = 200;       // Jobs that wait before it begins.
  int rate = 50;          // Submits a second
  int seconds = 3;        // for so long.
  int watchers = 20;      // Clients that follow a job that waits.
  int connections = 100;  // Connections without a call.
  bool is_full = false;

  static Load OfEnvironment() {
    const char* const variable = std::getenv("HEDDLE_LOAD");
    const std::string load = variable == nullptr ? "" : variable;
    if (load == "queue") return {.queued = 10'000, .is_full = true};
    if (load != "full") return {};
    return {
        .queued = 10'000, .rate = 500, .seconds = 30, .watchers = 200, .connections = 1'100, .is_full = true};
  }
};

class LoadTest : public testing::Test {
 protected:
  std::unique_ptr<cluster::Client> Connect() {
    const std::string token = ReadText(cluster_.master_folder() + "/client.token");
    auto client =
        cluster::Client::Connect({cluster_.address(), token.substr(0, token.find('\n')), "", "", ""});
    EXPECT_TRUE(client.ok());
    return *std::move(client);
  }
  // The id of the job, "" when the master refused it.
  std::string Submit(cluster::Client& client, int number) {
    cluster::JobSubmission submission;
    submission.request_id = "r" + std::to_string(number);
    submission.script_name = "load.dml";
    submission.script_text = "print(1 + 1)";
    submission.directory = cluster_.folder();
    submission.workers = 1;
    submission.retry_for_ms = 60'000;
    submission.options.threads = 0;
    const auto job = client.Submit(submission, nullptr);
    if (job.ok()) return job->id;
    const std::lock_guard lock(mutex_);
    ++refused_[job.status().message()];
    return "";
  }
  int64_t MasterKilobytes(const std::string& field) {
    const std::string status = ReadText("/proc/" + std::to_string(cluster_.master().pid()) + "/status");
    const size_t at = status.find(field + ":");
    return at == std::string::npos ? -1 : std::atoll(status.c_str() + at + field.size() + 1);
  }
  // A number that the master tells of itself.
  int64_t Metric(const std::string& name) {
    const std::string before = "http://127.0.0.1:";
    const std::string& output = cluster_.master().output();
    const std::string text =
        GetHttp(std::atoi(output.c_str() + output.find(before) + before.size()), "/metrics");
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::atoll(text.c_str() + at + name.size() + 2);
  }
  static double Milliseconds(steady_clock::time_point since) {
    return std::chrono::duration<double, std::milli>(steady_clock::now() - since).count();
  }
  static double Percentile(std::vector<double>* times, double share) {
    if (times->empty()) return 0;
    std::sort(times->begin(), times->end());
    return (
        *times)[std::min(times->size() - 1, static_cast<size_t>(share * static_cast<double>(times->size())))];
  }

  const Load load_ = Load::OfEnvironment();
  ClusterOfProcesses cluster_{10'000, "", {"--metrics-listen", "127.0.0.1:0"}};
  std::mutex mutex_;
  std::map<std::string, int> refused_;
};

TEST_F(LoadTest, ManyJobsWaitAndStatusIsAnsweredMeanwhile) {
  constexpr int kSubmitters = 16;
  std::atomic<int> next = 0;
  std::atomic<int> taken = 0;
  const auto submit_all = [&](int until, int rate) {
    const auto begin = steady_clock::now();
    const int first = next;
    std::vector<double> times;
    std::vector<std::thread> threads;
    for (int i = 0; i < kSubmitters; ++i)
      threads.emplace_back([&] {
        const auto client = Connect();
        for (int number = next++; number < until; number = next++) {
          if (rate > 0)  // Each has its moment.
            std::this_thread::sleep_until(begin +
                                          std::chrono::microseconds(1'000'000LL * (number - first) / rate));
          const auto sent = steady_clock::now();
          if (!Submit(*client, number).empty()) ++taken;
          const std::lock_guard lock(mutex_);
          times.push_back(Milliseconds(sent));
        }
      });
    for (std::thread& thread : threads) thread.join();
    next = until;
    const double seconds = Milliseconds(begin) / 1e3;
    std::printf("%d submits in %.1f s: %.0f a second, median %.1f ms, p99 %.1f ms\n", until - first, seconds,
                (until - first) / seconds, Percentile(&times, 0.5), Percentile(&times, 0.99));
    return seconds;
  };
  submit_all(load_.queued, /*rate=*/0);

  std::vector<std::shared_ptr<grpc::Channel>> connections;
  grpc::ChannelArguments own_connection;
  own_connection.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  for (int i = 0; i < load_.connections; ++i) {
    connections.push_back(
        grpc::CreateCustomChannel(cluster_.address(), grpc::InsecureChannelCredentials(), own_connection));
    connections.back()->GetState(/*try_to_connect=*/true);
  }
  engine::Cancellation enough;
  std::vector<std::unique_ptr<engine::Cancellation>> cancellations;
  std::vector<std::thread> watchers;
  for (int i = 0; i < load_.watchers; ++i) {
    cancellations.push_back(std::make_unique<engine::Cancellation>());
    watchers.emplace_back([this, cancellation = cancellations.back().get()] {
      JobDescription last;
      (void)Connect()->Watch("j" + std::to_string(load_.queued), /*follow=*/true, {}, cancellation, &last,
                             1000);
    });
  }

  std::atomic<bool> done = false;
  std::vector<double> answers;
  std::thread asker([&] {
    const auto client = Connect();
    for (int i = 1; !done; i = i % load_.queued + 1) {
      JobDescription job;
      const auto sent = steady_clock::now();
      EXPECT_TRUE(client->Get("j" + std::to_string(i), &job).ok());
      answers.push_back(Milliseconds(sent));
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  submit_all(load_.queued + load_.rate * load_.seconds, load_.rate);
  done = true;
  asker.join();
  const int64_t peak_kb = MasterKilobytes("VmHWM");
  std::printf("status: %zu answers, median %.1f ms, p99 %.1f ms, longest %.1f ms\n", answers.size(),
              Percentile(&answers, 0.5), Percentile(&answers, 0.99), answers.back());
  std::printf("the master: %.0f MB, most %.0f MB\n", static_cast<double>(MasterKilobytes("VmRSS")) / 1e3,
              static_cast<double>(peak_kb) / 1e3);
  for (const auto& [why, count] : refused_) std::printf("refused %d times: %s\n", count, why.c_str());
  for (const auto& cancellation : cancellations) cancellation->Request(Cancelled("enough"));
  for (std::thread& watcher : watchers) watcher.join();
  EXPECT_EQ(taken, load_.queued + load_.rate * load_.seconds);
  EXPECT_LE(Percentile(&answers, 0.99), 200.0 * kPatience);
  if (kPatience == 1) {
    EXPECT_LE(peak_kb, 200'000);  // A sanitizer takes more.
  }

  // Every job that was acknowledged runs.
  const auto begin = steady_clock::now();
  const auto worker = cluster_.Start({"worker", "--name", "w", "--threads", "4", "--slots", "4"});
  const auto client = Connect();
  const auto limit = std::chrono::seconds((load_.is_full ? 3600 : 120) * kPatience);
  const auto in = [&](const std::vector<std::string>& states, int most) {
    ListRequest request;
    for (const std::string& state : states) request.add_states(state);
    request.set_most(most);
    ListReply jobs;
    EXPECT_TRUE(client->List(request, &jobs).ok());
    return jobs;
  };
  const std::vector<std::string> open = {"QUEUED", "ADMITTED", "STARTING", "RUNNING", "RECOVERING"};
  while (in(open, 1).jobs_size() > 0 && steady_clock::now() < begin + limit) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const ListReply failed = in({"FAILED", "CANCELLED"}, 1);
    for (const JobDescription& job : failed.jobs()) FAIL() << job.job() << job.state() << job.reason();
  }
  EXPECT_EQ(in(open, 1).jobs_size(), 0);
  // Only a thousand that have ended are remembered.
  EXPECT_GE(in({"SUCCEEDED"}, 0).jobs_size(), std::min<int>(taken, 1000));
  // None is lost, and none runs twice.
  EXPECT_EQ(Metric("heddle_jobs_finished_total{state=\"SUCCEEDED\"}"), taken);
  EXPECT_EQ(Metric("heddle_job_attempts_total"), taken);
  EXPECT_EQ(Metric("heddle_executor_exits_total{how=\"done\"}"), taken);
  const double seconds = Milliseconds(begin) / 1e3;
  std::printf("all %d jobs ran in %.1f s: %.0f a second\n", taken.load(), seconds, taken / seconds);
  std::printf("the master: %.0f MB, most %.0f MB\n", static_cast<double>(MasterKilobytes("VmRSS")) / 1e3,
              static_cast<double>(MasterKilobytes("VmHWM")) / 1e3);
}

// 100 jobs of two workers each on 8 workers of two slots: 8 run at a time, 13 rounds.
TEST_F(LoadTest, SlotsOfManyWorkersAreFilled) {
  const int workers = load_.is_full ? 8 : 2;
  const int jobs = load_.is_full ? 100 : 6;
  const double seconds = load_.is_full ? 10 : 1;
  std::vector<std::unique_ptr<BackgroundProcess>> processes;
  for (int i = 0; i < workers; ++i) {
    processes.push_back(cluster_.Start(
        {"worker", "--name", "w" + std::to_string(i), "--threads", "2", "--slots", "2", "--memory", "1G"}));
    ASSERT_TRUE(processes.back()->WaitFor("works for the master")) << processes.back()->output();
  }
  const auto client = Connect();
  cluster::JobSubmission submission;
  submission.script_text =
      "t0 = time()\nwhile (time() - t0 < " + std::to_string(seconds * 1e9) + ") { x = 1 }\nprint(\"done\")";
  submission.directory = cluster_.folder();
  submission.workers = 2;
  submission.options.threads = 0;
  const auto begin = steady_clock::now();
  std::vector<std::string> ids;
  for (int i = 0; i < jobs; ++i) {
    submission.request_id = "m" + std::to_string(i);
    const auto job = client->Submit(submission, nullptr);
    ASSERT_TRUE(job.ok()) << job.status().ToString();
    ids.push_back(job->id);
  }
  for (const std::string& id : ids) {
    JobDescription last;
    std::string output;
    cluster::Client::WatchEvents events;
    events.output = [&](std::string_view text) { output += text; };
    ASSERT_TRUE(client->Watch(id, /*follow=*/true, events, nullptr, &last, 10'000).ok());
    EXPECT_EQ(last.state(), "SUCCEEDED") << last.reason();
    EXPECT_EQ(output, "done\n");
    EXPECT_EQ(std::vector<int>(last.threads().begin(), last.threads().end()), (std::vector<int>{1, 1}));
  }
  const double took = Milliseconds(begin) / 1e3;
  const int rounds = (jobs + workers - 1) / workers;
  std::printf("%d jobs of two workers and %.0f s on %d workers of two slots: %.1f s, bound %.1f s\n", jobs,
              seconds, workers, took, rounds * seconds);
  if (load_.is_full) {
    EXPECT_LE(took, 1.1 * rounds * seconds);
  }
}

}  // namespace
}  // namespace heddle::testing_support
