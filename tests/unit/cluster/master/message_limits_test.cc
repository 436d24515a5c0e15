// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/message_limits.h"

#include <gtest/gtest.h>

#include <functional>

#include "cluster/executor/executor_messages.h"

namespace heddle::cluster {
namespace {

SubmitRequest Sound() {
  SubmitRequest request;
  request.set_request_id("r");
  request.set_directory("/");
  request.mutable_options()->set_fusion("cost");
  return request;
}

// What is wrong with a sound request after `change`.
template <typename Change>
std::string Wrong(const Change& change) {
  SubmitRequest request = Sound();
  change(request, *request.mutable_options());
  const Status status = CheckMessage(request);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  return status.message();
}

TEST(MessageLimitsTest, AListNamesStatesThatThereAre) {
  ListRequest list;
  list.add_states("RUNNING");
  EXPECT_TRUE(CheckMessage(list).ok());
  list.add_states("SLEEPING");
  EXPECT_EQ(CheckMessage(list).message(), "ListRequest.states: 'SLEEPING' is no state of a job");
}

TEST(MessageLimitsTest, LogsAndRecordsAreBounded) {
  ExecutorReport report;
  report.set_job("j1");
  report.set_log(std::string(32 << 10, 'x'));
  report.set_log_offset(7);
  report.set_record(std::string(16 << 20, 'x'));
  EXPECT_TRUE(CheckMessage(report).ok());
  report.set_log_offset(-1);
  EXPECT_EQ(CheckMessage(report).message(),
            "ExecutorReport.log_offset is -1; it goes from 0 to 9223372036854743039");
  report.set_log_offset(INT64_MAX);
  EXPECT_FALSE(CheckMessage(report).ok());
  report.set_log_offset(0);
  report.mutable_log()->push_back('x');
  EXPECT_EQ(CheckMessage(report).message(), "ExecutorReport.log has 32769 bytes; it has from 0 to 32768");
  report.clear_log();
  report.mutable_record()->push_back('x');
  EXPECT_FALSE(CheckMessage(report).ok());
  WatchRequest watch;
  watch.set_job("j1");
  watch.set_log_rank(-1);
  EXPECT_EQ(CheckMessage(watch).message(), "WatchRequest.log_rank is -1; it goes from 0 to 4095");
}

TEST(MessageLimitsTest, ASubmitNamesTheFieldThatIsOutOfItsLimits) {
  EXPECT_TRUE(CheckMessage(Sound()).ok());
  using R = SubmitRequest;
  using O = SubmitOptions;
  EXPECT_EQ(Wrong([](R&, O& options) { options.set_threads(1'000'000'000); }),
            "SubmitOptions.threads is 1000000000; it goes from 0 to 4096");
  EXPECT_EQ(Wrong([](R&, O& options) { options.set_threads(-1); }),
            "SubmitOptions.threads is -1; it goes from 0 to 4096");
  EXPECT_EQ(Wrong([](R& request, O&) { request.set_workers(4097); }),
            "SubmitRequest.workers is 4097; it goes from 0 to 4096");
  EXPECT_EQ(Wrong([](R& request, O&) { request.set_workers(INT32_MIN); }),
            "SubmitRequest.workers is -2147483648; it goes from 0 to 4096");
  EXPECT_EQ(Wrong([](R&, O& options) { options.set_memory_bytes(-1); }),
            "SubmitOptions.memory_bytes is -1; it goes from 0 to 9223372036854775807");
  EXPECT_EQ(
      Wrong([](R&, O& options) { options.set_min_distributed_bytes(INT64_MIN); }),
      "SubmitOptions.min_distributed_bytes is -9223372036854775808; it goes from 0 to 9223372036854775807");
  EXPECT_EQ(Wrong([](R&, O& options) { options.set_seed(-2); }),
            "SubmitOptions.seed is -2; it goes from -1 to 9223372036854775807");
  EXPECT_EQ(Wrong([](R&, O& options) { options.set_fusion("some"); }),
            "SubmitOptions.fusion is 'some'; it is off, all, no-redundancy, cost or random:SEED");
  EXPECT_EQ(Wrong([](R&, O& options) { options.set_fusion("random:-1"); }),
            "SubmitOptions.fusion is 'random:-1'; it is off, all, no-redundancy, cost or random:SEED");
  EXPECT_EQ(Wrong([](R&, O& options) { options.set_cpu("avx2,sse"); }),
            "SubmitOptions.cpu is 'sse'; it is auto, avx2 or avx512");
  EXPECT_EQ(Wrong([](R&, O& options) { options.add_disabled_passes("none"); }),
            "SubmitOptions.disabled_passes: 'none' is no pass or rule");
  EXPECT_EQ(Wrong([](R& request, O&) { request.set_request_id(std::string(201, 'r')); }),
            "SubmitRequest.request_id has 201 bytes; it has from 1 to 200");
  EXPECT_EQ(Wrong([](R& request, O&) { request.clear_request_id(); }),
            "SubmitRequest.request_id has 0 bytes; it has from 1 to 200");
  EXPECT_EQ(Wrong([](R& request, O&) { request.set_directory("here"); }),
            "SubmitRequest.directory: the folder 'here' of a job is not absolute");
  EXPECT_EQ(Wrong([](R& request, O&) { request.set_directory(std::string("/a\0b", 4)); }),
            "SubmitRequest.directory has a zero byte");
  EXPECT_EQ(Wrong([](R& request, O&) { request.add_data_roots("here"); }),
            "SubmitRequest.data_roots: the folder 'here' of a job is not absolute");
  EXPECT_EQ(Wrong([](R& request, O&) { request.add_named_paths(std::string("/a\0b", 4)); }),
            "SubmitRequest.named_paths has a zero byte");
}

TEST(MessageLimitsTest, ListsHaveABound) {
  WorkerIntroduction worker;
  constexpr int kMost = 10'000;
  for (int i = 0; i <= kMost; ++i) worker.add_executors();
  EXPECT_EQ(CheckMessage(worker).message(),
            "WorkerIntroduction.executors has 10001 entries; it has 10000 at most");
}

TEST(MessageLimitsTest, NamesMayHoldAnyBytes) {
  SubmitRequest request = Sound();
  request.set_directory("/data/\xff\xfe");
  request.set_script_name("\xe9.dml");
  SourceFile* file = request.add_files();
  file->set_path("\xe8.dml");
  file->set_text("\xe8");
  SubmitRequest again;
  ASSERT_TRUE(again.ParseFromString(request.SerializeAsString()));
  EXPECT_EQ(again.directory(), request.directory());
  EXPECT_EQ(again.files(0).path(), "\xe8.dml");
  EXPECT_TRUE(CheckMessage(again).ok());
}

TEST(MessageLimitsTest, OtherRequestsOfUsers) {
  ListRequest list;
  list.set_most(-1);
  EXPECT_EQ(CheckMessage(list).message(), "ListRequest.most is -1; it goes from 0 to 2147483647");
  JobRequest job;
  job.set_job(std::string(65, 'j'));
  EXPECT_EQ(CheckMessage(job).message(), "JobRequest.job has 65 bytes; it has from 1 to 64");
  WatchRequest watch;
  watch.set_job("j1");
  watch.set_output_offset(-5);
  EXPECT_EQ(CheckMessage(watch).message(),
            "WatchRequest.output_offset is -5; it goes from 0 to 9223372036854775807");
  EXPECT_EQ(CheckMessage(DrainRequest()).message(), "DrainRequest.node has 0 bytes; it has from 1 to 256");
}

TEST(MessageLimitsTest, WorkersAndTheirReports) {
  WorkerIntroduction worker;
  EXPECT_TRUE(CheckMessage(worker).ok());
  ExecutorReport* report = worker.add_executors();
  report->set_job("j1");
  report->set_rank(-1);
  EXPECT_EQ(CheckMessage(worker).message(), "ExecutorReport.rank is -1; it goes from 0 to 4095");
  report->set_rank(0);
  report->set_output("abc");
  report->set_output_offset(INT64_MAX - 2);
  EXPECT_EQ(CheckMessage(worker).code(), StatusCode::kInvalidArgument)
      << "its end is past the largest number";
  Welcome welcome;
  EXPECT_EQ(CheckMessage(welcome).message(), "Welcome.ttl_ms is 0; it goes from 1 to 86400000");
}

// Also what the line between launcher and executor cannot hold is out of its limits, not another number.
TEST(MessageLimitsTest, TheStartOfAnExecutor) {
  LauncherMessage message;
  message.start.emplace();
  message.start->directory = "/";
  EXPECT_TRUE(CheckStart(*message.start).ok()) << CheckStart(*message.start).ToString();
  const auto wrong = [&](const std::string& field, const std::string& number) {
    std::string line = ToLine(message);
    const size_t at = line.find("\"" + field + "\":");
    EXPECT_NE(at, std::string::npos) << line;
    const size_t begin = at + field.size() + 3;
    line.replace(begin, line.find_first_of(",}", begin) - begin, number);
    return CheckStart(*ParseLauncherMessage(line)->start).message();
  };
  EXPECT_EQ(wrong("threads", "1000000000"),
            "ExecutorStart.options.threads is 1000000000; it goes from 0 to 4096");
  EXPECT_EQ(wrong("threads", "4294967297"),
            "ExecutorStart.options.threads is 2147483647; it goes from 0 to 4096");
  EXPECT_EQ(wrong("threads", "0"), "ExecutorStart.options.threads is 0; it goes from 1 to 4096");
  EXPECT_EQ(wrong("ranks", "18446744073709551615"),
            "ExecutorStart.options.ranks is 2147483647; it goes from 1 to 4096");
  EXPECT_EQ(wrong("rank", "1"), "ExecutorStart.options.rank is 1; it goes from 0 to 0");
  EXPECT_EQ(wrong("silence_ms", "0"), "ExecutorStart.silence_ms is 0; it goes from 10 to 86400000");
  EXPECT_EQ(wrong("devices", "\"gpu\""),
            "ExecutorStart.options.devices is 'gpu'; it is cpu, auto, or opencl:0 to opencl:127");
  EXPECT_EQ(wrong("max_call_depth", "0"),
            "ExecutorStart.options.max_call_depth is 0; it goes from 1 to 1000000");
}

TEST(MessageLimitsTest, ATokenHasANameAndRolesThatGoTogether) {
  CreateTokenRequest sound;
  sound.set_name("ci-1@example.org");
  sound.add_roles("viewer");
  sound.add_roles("submitter");
  EXPECT_TRUE(CheckMessage(sound).ok());
  const auto wrong = [&](const std::function<void(CreateTokenRequest*)>& change) {
    CreateTokenRequest request = sound;
    change(&request);
    return CheckMessage(request).message();
  };
  const std::string names =
      "a token and its owner have names of up to 64 letters, digits, '-', '_', '.' and '@'";
  for (const std::string& bad :
       {std::string(), std::string("a b"), std::string(65, 'a'), std::string("\x1b[2J")})
    EXPECT_EQ(wrong([&](auto* request) { request->set_name(bad); }), names);
  EXPECT_EQ(wrong([](auto* request) { request->set_owner("a/b"); }), names);
  EXPECT_EQ(wrong([](auto* request) { request->add_roles("king"); }),
            "'king' is no role of a token: viewer, submitter, operator, admin or worker");
  EXPECT_EQ(wrong([](auto* request) { request->add_roles("executor"); }),
            "'executor' is no role of a token: viewer, submitter, operator, admin or worker");
  EXPECT_EQ(wrong([](auto* request) { request->clear_roles(); }),
            "a token has a role: viewer, submitter, operator, admin or worker");
  EXPECT_EQ(wrong([](auto* request) { request->add_roles("worker"); }),
            "a token by which workers join has no other role");
  EXPECT_EQ(wrong([](auto* request) { request->set_reusable(true); }),
            "only a token of the role worker is reusable: others are used again anyway");
  EXPECT_NE(wrong([](auto* request) { request->set_lives_ms(-1); }), "");
}

}  // namespace
}  // namespace heddle::cluster
