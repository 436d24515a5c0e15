// SPDX-License-Identifier: Apache-2.0
// Parts of `heddle repl`; tests/terminal has the whole.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cluster/repl/complete.h"
#include "cluster/repl/history.h"
#include "compiler/parse/parser.h"
#include "engine/interactive/definitions.h"
#include "tests/support/process.h"

namespace heddle::cluster {
namespace {

using Words = std::vector<std::string>;
using testing_support::ReadText;
using testing_support::TemporaryFolder;
using testing_support::WriteText;

class InteractiveSessionTest : public testing::Test {
 protected:
  static engine::InteractiveSession::Options OptionsWith(std::string* printed) {
    engine::InteractiveSession::Options options;
    options.directory = "/";
    options.print = [printed](std::string_view text) { *printed += text; };
    options.warn = [](std::string_view) {};
    return options;
  }
  std::string printed_;
  engine::InteractiveSession session_{OptionsWith(&printed_)};
};

TEST_F(InteractiveSessionTest, AFailedStatementLeavesCellsThatItHasAssigned) {
  ASSERT_TRUE(session_.Run("X = matrix(1, rows=3, cols=1)", nullptr).ok());
  EXPECT_EQ(session_.Run("for (i in 1:5) { X[i, 1] = i * 10 }", nullptr).code(),
            StatusCode::kFailedPrecondition);
  ASSERT_TRUE(session_.Run("sum(X)", nullptr).ok());
  EXPECT_EQ(printed_, "3.0\n");
}

TEST_F(InteractiveSessionTest, UnseededNumbersGoOnAndASeedRepeatsThem) {
  const auto run = [](int64_t seed) {
    std::string printed;
    engine::InteractiveSession::Options options = OptionsWith(&printed);
    options.session.seed = seed;
    engine::InteractiveSession session(std::move(options));
    EXPECT_TRUE(session.Run("as.scalar(rand(rows=1, cols=1))", nullptr).ok());
    EXPECT_TRUE(session.Run("as.scalar(rand(rows=1, cols=1))", nullptr).ok());
    return printed;
  };
  const std::string first = run(7);
  EXPECT_EQ(run(7), first);
  EXPECT_NE(run(8), first);
  const size_t line = first.find('\n') + 1;
  EXPECT_NE(first.substr(0, line), first.substr(line)) << "each call has numbers of its own";
}

TEST_F(InteractiveSessionTest, ACancelledEntryStopsBetweenStatementsToo) {
  engine::Cancellation cancellation;
  cancellation.Request(Cancelled("stop"));
  EXPECT_EQ(session_.Run("x = 1; y = sum(rand(rows=10, cols=10))", &cancellation).code(),
            StatusCode::kCancelled);
  EXPECT_EQ(session_.variables().Find("y"), nullptr);
}

TEST_F(InteractiveSessionTest, WordsAreCompleted) {
  ASSERT_TRUE(session_.Run("some_matrix = matrix(1, 2, 2); some_number = 1", nullptr).ok());
  ASSERT_TRUE(
      session_
          .Run("someFunction = function(double alpha, double beta) return (double c) { c = alpha }", nullptr)
          .ok());
  const auto words = [&](std::string_view text) { return Complete(text, session_).words; };
  EXPECT_EQ(words("x = some"), Words({"someFunction", "some_matrix", "some_number"}));
  EXPECT_EQ(Complete("x = some", session_).Common(), "some");
  EXPECT_EQ(Complete("x = some", session_).begin, 4u);
  EXPECT_EQ(words("sum(X) + rowM"), Words({"rowMaxs", "rowMeans", "rowMins"}));
  EXPECT_EQ(words("someFunction(alp"), Words({"alpha="}));
  EXPECT_EQ(words("someFunction(1, be"), Words({"beta="}));
  EXPECT_EQ(words("someFunction(sum(1), alp"), Words({"alpha="}));
  EXPECT_EQ(words("(alp"), Words());
  EXPECT_EQ(words(":t"), Words({":time", ":type"}));
  EXPECT_EQ(words(":type some_m"), Words({"some_matrix"}));
  EXPECT_EQ(words("nothing_like_it"), Words());
}

TEST(CompleteTest, FunctionsOfNamespaces) {
  const std::map<std::string, std::string> files = {
      {"lib.dml",
       "first = function(double a) return (double b) { b = a }\n"
       "second = function(double a) return (double b) { b = a }\n"}};
  const auto loader = std::make_shared<compiler::MemorySourceLoader>(files);
  engine::InteractiveSession::Options options;
  options.print = options.warn = [](std::string_view) {};
  options.loader = loader;
  engine::InteractiveSession session(std::move(options));
  ASSERT_TRUE(session.Run("source(\"lib.dml\") as lib", nullptr).ok());
  EXPECT_EQ(Complete("x = li", session).words, Words({"lib::", "list"}));
  EXPECT_EQ(Complete("x = lib::", session).words, Words({"first", "second"}));
  EXPECT_EQ(Complete("x = lib::se", session).words, Words({"second"}));
  EXPECT_EQ(Complete("x = other::se", session).words, Words());
}

TEST_F(InteractiveSessionTest, FilesAreCompletedWithinQuotes) {
  const TemporaryFolder folder;
  WriteText(folder.path() + "/data.csv", "");
  WriteText(folder.path() + "/data/part", "");
  WriteText(folder.path() + "/.hidden", "");
  const std::string path = folder.path() + "/";
  EXPECT_EQ(Complete("X = read(\"" + path + "da", session_).words,
            Words({path + "data.csv", path + "data/"}));
  EXPECT_EQ(Complete("X = read('" + path, session_).words, Words({path + "data.csv", path + "data/"}));
  EXPECT_EQ(Complete(":load " + path + "data.", session_).words, Words({path + "data.csv"}));
  EXPECT_EQ(Complete("x = \"a\" + da", session_).words.size(), Complete("da", session_).words.size());
}

TEST(HistoryTest, EntriesOfSeveralLinesComeBackAndOnlyTheOwnerReadsThem) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/state/heddle/history";
  const Words entries = {"x = 1", "f = function() return (double a) {\n  a = 1\n}", "s = \"a\\nb\\\\\""};
  History first(path);
  for (const std::string& entry : entries) first.Add(entry);
  first.Add(entries.back());  // once is enough
  EXPECT_EQ(History(path).entries(), entries);
  struct stat status = {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(stat((folder.path() + "/state/heddle").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST(HistoryTest, TwoSessionsAddToOneFileAndALongOneIsShortened) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/history";
  History one(path), other(path);
  one.Add("a");
  other.Add("b");
  one.Add("c");
  EXPECT_EQ(History(path).entries(), Words({"a", "b", "c"}));
  std::string text;
  for (size_t i = 0; i < 3 * History::kMost; ++i) text += "x = " + std::to_string(i) + "\n";
  WriteText(path, text);
  const History shortened(path);
  EXPECT_EQ(shortened.entries().size(), History::kMost);
  EXPECT_EQ(shortened.entries().back(), "x = " + std::to_string(3 * History::kMost - 1));
  EXPECT_EQ(History(path).entries(), shortened.entries());
  EXPECT_LT(ReadText(path).size(), text.size() / 2);
  History nowhere("");
  nowhere.Add("x");
  EXPECT_EQ(nowhere.entries(), Words({"x"}));
}

TEST(DefinitionsTest, TheTextKeepsDefinitionsOnTheirLinesAndNothingElse) {
  engine::Definitions definitions;
  const auto add = [&](const std::string& entry) {
    compiler::Diagnostics diagnostics;
    const compiler::ScriptFile file =
        compiler::Parse("input", definitions.TextWith(entry), &diagnostics, /*takes_expressions=*/true);
    EXPECT_FALSE(diagnostics.HasErrors()) << diagnostics.RenderAll(compiler::Severity::kError);
    definitions.Add(entry, &file);
  };
  add("x = 1");
  add("s = \"\u00e9\"; f = function(double a)\n  return (double b) { b = a }; y = 3");
  definitions.Add("wrong (", nullptr);
  add("source(\"lib.dml\") as lib");
  EXPECT_EQ(
      definitions.TextWith("z"),
      "\n         f = function(double a)\n  return (double b) { b = a }       \n\nsource(\"lib.dml\") as lib\nz");
  EXPECT_EQ(definitions.next_line(), 6);
  ASSERT_EQ(definitions.functions().size(), 1u);
  EXPECT_EQ(definitions.functions()[0].text, "f = function(double a)   return (double b)");
  EXPECT_EQ(definitions.functions()[0].parameters, Words({"a"}));
  add("f = function(double c) return (double d) { d = c }");
  EXPECT_EQ(definitions.TextWith("z"),
            "\n\n\n\nsource(\"lib.dml\") as lib\n"
            "f = function(double c) return (double d) { d = c }\nz");
  definitions.Clear();
  EXPECT_EQ(definitions.TextWith("z"), "\n\n\n\n\n\nz");
}

}  // namespace
}  // namespace heddle::cluster
