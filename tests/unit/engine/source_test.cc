// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <utility>

#include "tests/support/process.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

// Of what `read(path)` gives; without a path where it has none.
Source SourceOfRead(const std::string& path, ops::Files& files) {
  Graph graph;
  Node literal;
  literal.op = "literal";
  literal.info = ValueInfo::OfScalar(ValueType::kString);
  literal.SetAttribute("value", Scalar(path));
  Node read;
  read.op = "read";
  read.info = ValueInfo::OfMatrix({3, 1});
  read.inputs = {graph.Add(std::move(literal))};
  Node assign;
  assign.op = "assign";
  assign.info = read.info;
  assign.SetAttribute("name", Scalar("X"));
  assign.inputs = {graph.Add(std::move(read))};
  const NodeId assigned = graph.Add(std::move(assign));
  std::string variable;
  const std::shared_ptr<const Source> source =
      Sources(CompileOrDie("print(1)"), &files).Of(graph, assigned, &variable);
  return source == nullptr ? Source() : *source;
}

// A file that somebody replaces while a block runs that has read it.
TEST(SourcesTest, TheVersionIsTheOneThatAllRanksRead) {
  const testing_support::TemporaryFolder folder;
  const std::string path = folder.path() + "/in.csv";
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(folder.path());
  std::ofstream(path) << "1\n2\n3\n";
  const ops::FileVersion read = files->versions()->Find("in.csv");
  EXPECT_EQ(SourceOfRead("in.csv", *files).path, "") << "nobody has said which version it is";
  files->versions()->Expect({{"in.csv", read}}, 0);
  std::ofstream(path) << "1\n2\n3\n4\n";
  const Source source = SourceOfRead("in.csv", *files);
  EXPECT_EQ(source.path, "in.csv");
  EXPECT_TRUE(source.version.IsSame(read)) << source.version.Describe();
  EXPECT_FALSE(source.version.IsSame(files->versions()->Find("in.csv")));
}

// Of a pipe nobody knows whether it gives the same once more.
TEST(SourcesTest, PipesAndDevicesAreNone) {
  const testing_support::TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder.path() + "/pipe").c_str(), 0600), 0);
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(folder.path());
  for (const std::string path : {"pipe", "/dev/null", "missing"}) {
    files->versions()->Expect({{path, files->versions()->Find(path)}}, 0);
    EXPECT_EQ(SourceOfRead(path, *files).path, "") << path;
  }
}

}  // namespace
}  // namespace heddle::engine
