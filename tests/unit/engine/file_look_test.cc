// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/file_look.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "ops/io/files/files.h"
#include "ops/io/formats/file_format.h"
#include "ops/io/formats/read_stages.h"

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
  look.shared = {{2, "a b\nc"}, {4, ""}};
  const std::string text = look.ToText();
  const Result<FileLook> parsed = FileLook::Parse(text);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->ToText(), text);
  EXPECT_EQ(parsed->waiting, look.waiting);
  EXPECT_EQ(parsed->shared, look.shared);
  EXPECT_EQ(parsed->versions.at("a b\nc").bytes, 12);
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(FileLook::Parse(text.substr(0, size)).ok()) << size;
}

// Of files that are large, of text, and not known yet.
TEST(FileLookTest, LargeFilesOfTextAreLookedAtTogether) {
  const std::string folder = testing::TempDir() + "/shared_looks";
  std::filesystem::create_directories(folder);
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(folder);
  const std::string table = "1,2\n3,4\n5,6\n7,8\n";
  for (const std::string name : {"large.csv", "known.csv"}) ASSERT_TRUE(files->Replace(name, table).ok());
  ASSERT_TRUE(files->Replace("small.csv", "1,2\n").ok());
  ASSERT_TRUE(files->Replace("array.mtx", "%%MatrixMarket matrix array real general\n1 1\n1\n").ok());
  std::string text;
  for (const std::string name : {"large.csv", "known.csv", "small.csv", "absent.csv"}) {
    const int node = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    text += fmt::format("%{} = literal() value=\"{}\"{}%{} = read(%{}){}", node, name, kRest, node + 1, node,
                        kRest);
  }
  const Result<Graph> graph = Graph::Parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  ASSERT_TRUE(ops::Summarize(*ops::ResolveReadOptions(Node(), "known.csv", *files), *files).ok());
  FileLook look = LookAtFiles(*graph, {}, files.get());
  EXPECT_EQ(look.shared.size(), 4U);
  FindSharedLooks(*graph, static_cast<int64_t>(table.size()), *files, &look);
  EXPECT_EQ(look.shared, (std::map<NodeId, std::string>{{1, "large.csv"}}));
  // What the session runs then: a plan of its own, in which every rank has a share.
  const Graph shared = GraphOfSharedLook((*graph)[1], "large.csv", 3);
  EXPECT_EQ(shared[0].op, "lookAtFile");
  EXPECT_EQ(shared[0].Text("path"), "large.csv");
  EXPECT_EQ(shared[0].info.shape, (Shape{3, 1}));
}

// Of files that are large, and in the order of their columns.
TEST(FileLookTest, ReadsThatSendCellsAreMarked) {
  const std::string folder = testing::TempDir() + "/sent_cells";
  std::filesystem::create_directories(folder);
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(folder);
  std::string cells;
  for (int j = 1; j <= 3; ++j)
    for (int i = 1; i <= 500; ++i) cells += fmt::format("{} {} 1\n", i, j);
  ASSERT_TRUE(files->Replace("columns.ijv", cells).ok());
  ASSERT_TRUE(files->Replace("table.csv", "1,2\n3,4\n").ok());
  Graph graph;
  std::vector<std::optional<Scalar>> values;
  for (const std::string name : {"columns.ijv", "table.csv"}) {
    Node path;
    path.op = "literal";
    path.SetAttribute("value", Scalar(name));
    path.info = ValueInfo::OfScalar(ValueType::kString);
    Node read;
    read.op = "read";
    read.inputs = {graph.Add(std::move(path))};
    read.info = ValueInfo::OfMatrix(name == "table.csv" ? Shape{2, 2} : Shape{500, 3});
    graph.Add(std::move(read));
    values.insert(values.end(), {Scalar(name), std::nullopt});
  }
  const auto marked = [&](int32_t ranks, int64_t min_distributed_bytes) {
    MarkSendingReads(values, ranks, min_distributed_bytes, 0, *files, &graph);
    return std::pair(ops::SendsCells(graph[1]), ops::SendsCells(graph[3]));
  };
  EXPECT_EQ(marked(2, 0), std::pair(true, false));
  EXPECT_EQ(marked(2, 500 * 3 * 8 + 1), std::pair(false, false));
  EXPECT_EQ(marked(3, 500 * 3 * 8), std::pair(true, false));
  values[0].reset();
  EXPECT_EQ(marked(3, 0), std::pair(false, false));
}

}  // namespace
}  // namespace heddle::engine
