// SPDX-License-Identifier: Apache-2.0
#include "cluster/compiling/compiled_scripts.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace heddle::cluster {
namespace {

bool Waits() { return false; }

CompileReply ReplyOf(const std::string& program) {
  CompileReply reply;
  reply.set_program(program);
  return reply;
}

TEST(CompiledScriptsTest, TheSameScriptIsCompiledOnceAMinute) {
  VirtualClock clock;
  CompiledScripts scripts(clock, 1'000);
  int made = 0;
  const auto get = [&](const std::string& key) {
    return (*scripts.Get(
                key,
                [&]() -> Result<CompileReply> {
                  ++made;
                  return ReplyOf(key + std::to_string(made));
                },
                Waits))
        ->program();
  };
  EXPECT_EQ(get("a"), "a1");
  EXPECT_EQ(get("b"), "b2");
  EXPECT_EQ(get("a"), "a1");
  clock.Advance(60'000'000'000);
  EXPECT_EQ(get("a"), "a1");
  clock.Advance(1);
  EXPECT_EQ(get("a"), "a3") << "files may have other sizes by now";
}

TEST(CompiledScriptsTest, OnlySoManyBytesAreKept) {
  VirtualClock clock;
  CompiledScripts scripts(clock, 1'000);
  int made = 0;
  const auto get = [&](const std::string& key, size_t bytes) {
    ASSERT_TRUE(scripts
                    .Get(
                        key,
                        [&]() -> Result<CompileReply> {
                          ++made;
                          return ReplyOf(std::string(bytes, 'x'));
                        },
                        Waits)
                    .ok());
  };
  get("a", 400);
  get("b", 400);
  get("a", 400);
  get("c", 400);
  EXPECT_EQ(made, 3);
  get("a", 400);
  EXPECT_EQ(made, 3) << "b was not used for longer";
  get("b", 400);
  EXPECT_EQ(made, 4);
  get("huge", 2'000);
  get("huge", 2'000);
  EXPECT_EQ(made, 6) << "too large to be kept";
}

TEST(CompiledScriptsTest, FailuresAreNotKept) {
  VirtualClock clock;
  CompiledScripts scripts(clock, 1'000);
  EXPECT_EQ(scripts
                .Get(
                    "a", []() -> Result<CompileReply> { return Unavailable("busy"); }, Waits)
                .status()
                .message(),
            "busy");
  CompileReply refused;
  refused.set_status("it does not compile");
  EXPECT_TRUE(scripts
                  .Get(
                      "a", [&]() -> Result<CompileReply> { return refused; }, Waits)
                  .ok());
  const auto reply = scripts.Get(
      "a", []() -> Result<CompileReply> { return ReplyOf("p"); }, Waits);
  EXPECT_EQ((*reply)->program(), "p");
}

TEST(CompiledScriptsTest, WhoAsksMeanwhileWaitsForTheSameReply) {
  VirtualClock clock;
  CompiledScripts scripts(clock, 1'000);
  std::atomic<int> made = 0;
  std::atomic<int> asked = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      ++asked;
      const auto reply = scripts.Get(
          "a",
          [&]() -> Result<CompileReply> {
            while (asked < 8) std::this_thread::yield();
            ++made;
            return ReplyOf("p");
          },
          Waits);
      EXPECT_EQ((*reply)->program(), "p");
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);

  // Somebody whom nobody waits for does not.
  const auto reply = scripts.Get(
      "b",
      [&]() -> Result<CompileReply> {
        EXPECT_EQ(scripts
                      .Get(
                          "b", [] { return ReplyOf(""); }, [] { return true; })
                      .status()
                      .message(),
                  "nobody waits for this script any more");
        return ReplyOf("q");
      },
      Waits);
  EXPECT_EQ((*reply)->program(), "q");
}

}  // namespace
}  // namespace heddle::cluster
