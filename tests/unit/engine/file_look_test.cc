// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/file_look.h"

#include <gtest/gtest.h>

#include "ops/io/files/files.h"

namespace heddle::engine {
namespace {

constexpr char kRest[] = " : unknown unknown ?x? dense @ \"a.dml\":1:1\n";

FileLook LookAt(std::initializer_list<std::string> nodes) {
  std::string text;
  for (const std::string& node : nodes) text += node + kRest;
  const Result<Graph> graph = Graph::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().ToString();
  compiler::LiveIns live_in;
  live_in["p"] = {ValueInfo::OfScalar(ValueType::kString), Scalar("look_a")};
  live_in["q"] = {ValueInfo::OfScalar(ValueType::kString), std::nullopt};
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(testing::TempDir());
  return LookAtFiles(*graph, live_in, files.get());
}

std::string Paths(const FileLook& look) {
  std::string paths;
  for (const auto& [path, version] : look.versions) paths += (paths.empty() ? "" : " ") + path;
  return paths;
}

TEST(FileLookTest, ReadsWaitForWritesOfTheSameFileOnly) {
  const FileLook other =
      LookAt({"%0 = literal() value=\"look_a\"", "%1 = literal() value=\"look_b\"", "%2 = write(%0, %0)",
              "%3 = read(%1) after(%2)", "%4 = write(%0, %1) after(%3)"});
  EXPECT_TRUE(other.waiting.empty());
  EXPECT_EQ(Paths(other), "look_b look_b.mtd");
  const FileLook same =
      LookAt({"%0 = literal() value=\"look_a\"", "%1 = literal() value=\"look_b\"",
              "%2 = literal() value=\"./look_a\"", "%3 = read(%0)", "%4 = write(%0, %0) after(%3)",
              "%5 = read(%1) after(%4)", "%6 = read(%2) after(%5)", "%7 = read(%1) after(%6)"});
  EXPECT_EQ(same.waiting, (std::set<NodeId>{6, 7}));  // 7 is behind one that waits
  EXPECT_EQ(Paths(same), "look_a look_a.mtd look_b look_b.mtd");
}

TEST(FileLookTest, MetadataAndFoldersAreReadWithTheirFile) {
  EXPECT_EQ(LookAt({"%0 = literal() value=\"look_a.mtd\"", "%1 = literal() value=\"look_a\"",
                    "%2 = write(%0, %0)", "%3 = read(%1) after(%2)"})
                .waiting,
            (std::set<NodeId>{3}));
  EXPECT_EQ(LookAt({"%0 = literal() value=\"look/part\"", "%1 = literal() value=\"look\"",
                    "%2 = write(%0, %0)", "%3 = read(%1) after(%2)"})
                .waiting,
            (std::set<NodeId>{3}));
}

TEST(FileLookTest, APathThatIsComputedIsComputedAndAnUnknownOneIsAnyFile) {
  const auto waiting = [](const std::string& name, const std::string& added) {
    return !LookAt({"%0 = variable() name=\"" + name + "\"", "%1 = literal() value=\"" + added + "\"",
                    "%2 = +(%0, %1)", "%3 = literal() value=\"look_abc\"", "%4 = write(%3, %2)",
                    "%5 = read(%3) after(%4)"})
                .waiting.empty();
  };
  EXPECT_TRUE(waiting("p", "bc"));
  EXPECT_FALSE(waiting("p", "bd"));
  EXPECT_TRUE(waiting("q", "bd"));
}

TEST(FileLookTest, WhatRankZeroSawTravelsAsText) {
  FileLook look;
  look.waiting = {3, 70};
  look.versions["a b\nc"] = {
      .kind = ops::FileVersion::Kind::kFile, .bytes = 12, .seconds = -3, .nanoseconds = 9};
  look.versions[""] = {};
  const std::string text = look.ToText();
  const Result<FileLook> parsed = FileLook::Parse(text);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->ToText(), text);
  EXPECT_EQ(parsed->waiting, look.waiting);
  EXPECT_EQ(parsed->versions.at("a b\nc").bytes, 12);
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(FileLook::Parse(text.substr(0, size)).ok()) << size;
}

}  // namespace
}  // namespace heddle::engine
