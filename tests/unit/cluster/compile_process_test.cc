// SPDX-License-Identifier: Apache-2.0
#include "cluster/compiling/compile_process.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>

#include "cluster/executor/executor_messages.h"
#include "core/memory/counted_heap.h"
#include "engine/wire/value_wire.h"
#include "tests/support/process.h"

namespace heddle::cluster {
namespace {

using testing_support::kPatience;

bool Never() { return false; }

CompileRequest RequestOf(const std::string& script) {
  CompileRequest request;
  request.mutable_submit()->set_script_name("a.dml");
  request.mutable_submit()->set_script_text(script);
  LauncherMessage message;
  message.start.emplace().directory = "/";
  request.set_start(ToLine(message));
  return request;
}

// Compilers that go wrong: shell scripts in their place.
class CompileProcessTest : public testing::Test {
 protected:
  Status Run(const std::string& commands, const CompileLimits& limits = {},
             const std::function<bool()>& given_up = Never) {
    const std::string path = folder_.path() + "/compiler";
    testing_support::WriteText(path, "#!/bin/sh\n" + commands + "\n");
    EXPECT_EQ(chmod(path.c_str(), 0700), 0);
    return CompileInProcess(RequestOf("print(1)"), limits, given_up, path).status();
  }
  testing_support::TemporaryFolder folder_;
};

TEST_F(CompileProcessTest, AProgramAndItsWarningsComeBack) {
  const Result<CompileReply> reply = CompileInProcess(RequestOf("x = 1\nprint(x + 1)"), {}, Never);
  ASSERT_TRUE(reply.ok()) << reply.status().ToString();
  EXPECT_EQ(reply->status(), "");
  EXPECT_NE(reply->program().find("print"), std::string::npos);
  const Result<CompileReply> refused = CompileInProcess(RequestOf("print(y)"), {}, Never);
  ASSERT_TRUE(refused.ok());
  Status status;
  ASSERT_TRUE(engine::DecodeStatus(refused->status(), &status).ok());
  EXPECT_EQ(ExitCode(status), 3) << status.ToString();
}

TEST_F(CompileProcessTest, HowACompilerEndedIsToldWithTheScript) {
  const Status crash = Run("echo 'a check failed' >&2; kill -ABRT $$");
  EXPECT_EQ(crash.message(),
            "the compiler was ended by signal 6 (Aborted) while it compiled the script 'a.dml'");
  EXPECT_EQ(ExitCode(crash), 70);
  EXPECT_EQ(crash.notes().back(), "a check failed");
  EXPECT_EQ(ExitCode(Run("kill -SEGV $$")), 70);
  EXPECT_EQ(ExitCode(Run("exit 70")), 70);
  const Status silent = Run("exit 0");
  EXPECT_EQ(silent.message(), "the compiler ended with code 0 while it compiled the script 'a.dml'");
  EXPECT_EQ(ExitCode(silent), 70);
  const Status killed = Run("kill -KILL $$");
  EXPECT_EQ(killed.message(),
            "the compiler was ended by signal 9 (Killed) while it compiled the script 'a.dml'");
  EXPECT_EQ(ExitCode(killed), 5);
  EXPECT_EQ(killed.notes()[0], "so the kernel ends a process when memory runs out");
  EXPECT_EQ(ExitCode(Run("kill -TERM $$")), 6);
  const Status memory = Run("echo 'out of memory: 12 bytes are not to be had' >&2; exit 5");
  EXPECT_EQ(memory.message(), "out of memory while the script 'a.dml' was compiled");
  EXPECT_EQ(ExitCode(memory), 5);
  EXPECT_EQ(memory.notes().back(), "out of memory: 12 bytes are not to be had");
  EXPECT_EQ(ExitCode(Run("echo nonsense >&3")), 70);
}

TEST_F(CompileProcessTest, ACompilerThatDoesNotEndIsEnded) {
  const auto begin = std::chrono::steady_clock::now();
  CompileLimits limits;
  limits.most_ns = 200'000'000;
  const Status slow = Run("exec sleep 600", limits);
  EXPECT_EQ(slow.message(),
            "the script 'a.dml' was not compiled within 0.2 s, which is as long as this master compiles one");
  EXPECT_EQ(ExitCode(slow), 3);
  EXPECT_EQ(slow.notes()[0], "'heddle master --compile-seconds N' gives scripts more time");
  // One that talks for ever, one that closes its end and stays.
  EXPECT_EQ(ExitCode(Run("exec cat /dev/zero >&2", limits)), 3);
  EXPECT_NE(ExitCode(Run("exec 3>&-; exec sleep 600", limits)), 0);
  int asked = 0;
  const Status given_up = Run("exec sleep 600", {}, [&] { return ++asked == 3; });
  EXPECT_EQ(given_up.code(), StatusCode::kCancelled);
  EXPECT_EQ(given_up.message(), "nobody waits for the script 'a.dml' any more");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20 * kPatience));
  if (!HeapIsCounted()) return;
  CompileLimits small;
  small.memory_bytes = int64_t{40} << 20;
  std::string text;
  for (int i = 0; i < 60'000; ++i) text += fmt::format("x{} = {} + 1\n", i, i);
  const Result<CompileReply> large = CompileInProcess(RequestOf(text + "print(1)\n"), small, Never);
  Status status = large.status();
  if (large.ok()) {
    ASSERT_TRUE(engine::DecodeStatus(large->status(), &status).ok());
  }
  EXPECT_EQ(ExitCode(status), 5) << status.ToString();
}

}  // namespace
}  // namespace heddle::cluster
