// SPDX-License-Identifier: Apache-2.0
// How cases are made: by their seed alone, of every kind.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "ops/base/operator.h"
#include "tests/fuzz/fuzz_case.h"
#include "tests/fuzz/minimize.h"
#include "tests/fuzz/script_text.h"

namespace heddle::fuzz {
namespace {

TEST(FuzzCaseTest, TheSeedAloneMakesACase) {
  const std::vector<CorpusScript> corpus = LoadCorpus();
  std::set<std::string> scripts;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const FuzzCase c = MakeCase(seed, corpus), again = MakeCase(seed, corpus);
    EXPECT_EQ(c.files, again.files) << seed;
    EXPECT_EQ(FirstRun(c), FirstRun(again)) << seed;
    EXPECT_EQ(c.second_run, again.second_run) << seed;
    scripts.insert(c.files.at(kScriptName));
  }
  EXPECT_GE(scripts.size(), 150u);
}

TEST(FuzzCaseTest, EveryBuiltinIsCalledAndEveryFormatRead) {
  const std::vector<CorpusScript> corpus = LoadCorpus();
  std::set<std::string> tokens, origins;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const FuzzCase c = MakeCase(seed, corpus);
    for (const std::string& token : SplitTokens(c.files.at(kScriptName))) tokens.insert(token);
    origins.insert(c.origin.substr(0, c.origin.find(' ')));
  }
  for (const std::string& name : ops::BuiltinNames()) EXPECT_TRUE(tokens.contains(name)) << name;
  for (const char* format : {"\"csv\"", "\"libsvm\"", "\"mm\"", "\"text\""})
    EXPECT_TRUE(tokens.contains(format)) << format;
  EXPECT_EQ(origins, (std::set<std::string>{"changed", "data", "generated", "large"}));
}

TEST(FuzzCaseTest, TheCorpusHoldsEveryScriptOfTheTestsAndExamples) {
  const std::vector<CorpusScript> corpus = LoadCorpus();
  for (const char* name :
       {"aggregates.dml", "example_logreg.args", "bench_kmeans.args", "singular_solve.error"}) {
    const auto found = std::find_if(corpus.begin(), corpus.end(),
                                    [&](const CorpusScript& script) { return script.name == name; });
    ASSERT_NE(found, corpus.end()) << name;
    EXPECT_FALSE(found->text.empty()) << name;
  }
}

TEST(FuzzCaseTest, TokensJoinToTheTextTheyWereSplitFrom) {
  for (const CorpusScript& script : LoadCorpus())
    EXPECT_EQ(JoinTokens(SplitTokens(script.text)), script.text);
  EXPECT_EQ(
      SplitTokens("x<-3.5e-2 %*% f.g(\"a\\\"b\")#c"),
      (std::vector<std::string>{"x", "<-", "3.5e-2", " ", "%*%", " ", "f.g", "(", "\"a\\\"b\"", ")", "#c"}));
}

TEST(MinimizeTest, LeavesWhatTheFaultNeeds) {
  std::vector<std::string> pieces;
  for (int i = 0; i < 100; ++i) pieces.push_back(std::to_string(i));
  const auto needs_17_and_60 = [](const std::vector<std::string>& some) {
    return std::find(some.begin(), some.end(), "17") != some.end() &&
           std::find(some.begin(), some.end(), "60") != some.end();
  };
  EXPECT_EQ(MinimizePieces(pieces, needs_17_and_60, 1000), (std::vector<std::string>{"17", "60"}));
}

}  // namespace
}  // namespace heddle::fuzz
