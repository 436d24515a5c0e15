// SPDX-License-Identifier: Apache-2.0
// The library that is part of the binary: every file has the shape of library/README.md, and is found after
// what a user has under the same name.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "compiler/build/other_functions.h"
#include "compiler/compile.h"
#include "compiler/help/function_help.h"
#include "compiler/library/library_files.h"
#include "compiler/parse/load_scripts.h"
#include "compiler/parse/parser.h"
#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

TEST(LibraryTest, FilesAreSortedAndFunctionsHaveOneFileEach) {
  const std::span<const LibraryFile> files = LibraryFiles();
  ASSERT_FALSE(files.empty());
  std::set<std::string_view> names;
  for (size_t i = 0; i < files.size(); ++i) {
    if (i > 0) {
      EXPECT_LT(files[i - 1].path, files[i].path);
    }
    if (FunctionOf(files[i]).empty()) continue;
    EXPECT_TRUE(names.insert(FunctionOf(files[i])).second) << files[i].path;
    EXPECT_EQ(ops::FindBuiltin(FunctionOf(files[i])), nullptr)
        << files[i].path << " is never called: a builtin is";
  }
}

TEST(LibraryTest, WhatIsElsewhereIsNotHere) {
  for (const std::string_view name : FunctionsElsewhere())
    EXPECT_EQ(FindLibraryFunction(name), nullptr) << name;
}

TEST(LibraryTest, WhatIsSourcedIsNoFunction) {
  Import import;
  for (const char* path : {"scripts/pipelines/scripts/utils.dml", "pipelines/scripts/utils.dml"}) {
    import.path = path;
    EXPECT_EQ(ImportCandidates(import, {}).back(), "heddle:pipelines/scripts/utils.dml") << path;
  }
  EXPECT_EQ(FindLibraryFunction("utils"), nullptr);
  EXPECT_EQ(FindLibraryFunction("u-net"), nullptr);
  EXPECT_NE(FindLibraryFunction("executePipeline"), nullptr);
}

TEST(LibraryTest, SharedChecksAreSourcedAndNotCalledByName) {
  ASSERT_NE(FindLibraryPath("heddle:checks/arguments.dml"), nullptr);
  EXPECT_EQ(FunctionOf(*FindLibraryPath("heddle:checks/arguments.dml")), "");
  EXPECT_EQ(FindLibraryFunction("arguments"), nullptr);
}

TEST(LibraryTest, EveryFileHasALicenceAndASentence) {
  for (const LibraryFile& file : LibraryFiles()) {
    EXPECT_TRUE(file.text.starts_with("# SPDX-License-Identifier: Apache-2.0\n# ")) << file.path;
    for (const char c : file.text) ASSERT_TRUE(c == '\n' || (c >= ' ' && c < 127)) << file.path;
    Diagnostics diagnostics;
    Parse(LibraryPath(file), std::string(file.text), &diagnostics);
    EXPECT_FALSE(diagnostics.HasErrors()) << diagnostics.RenderAll(Severity::kError);
  }
}

TEST(LibraryTest, EveryHeaderDescribesTheFunction) {
  for (const LibraryFile& file : LibraryFiles()) {
    if (FunctionOf(file).empty()) continue;
    const Result<FunctionHelp> help = HelpOf(file);
    EXPECT_TRUE(help.ok()) << help.status().ToString();
    if (!help.ok()) continue;
    for (const std::string& name : help->see_also)
      EXPECT_TRUE(FindLibraryFunction(name) != nullptr || ops::FindBuiltin(name) != nullptr)
          << file.path << " refers to " << name;
  }
}

TEST(LibraryTest, HelpIsReadFromTheHeaderAndTheFunction) {
  const LibraryFile file = {
      "room/f.dml",
      "# SPDX-License-Identifier: Apache-2.0\n# f: doubles a matrix.\n#\n# More of it.\n#\n"
      "# Arguments:\n#   X   n x m: cells\n#       and more\n#   by  factor\n"
      "# Returns:\n#   Y  n x m\n#   s  sum\n# Method: one pass,\n#   no more\n"
      "# Source: a book\n# See also: lm, glm\n"
      "m_f = function(Matrix[Double] X, Double by = 1 + 1) return (Matrix[Double] Y, Double s) {\n"
      "  Y = X * by\n  s = sum(Y)\n}\n"};
  const Result<FunctionHelp> help = HelpOf(file);
  ASSERT_TRUE(help.ok()) << help.status().ToString();
  EXPECT_EQ(help->summary, "doubles a matrix");
  EXPECT_EQ(help->description, std::vector<std::string>{"More of it."});
  EXPECT_EQ(help->arguments,
            (std::vector<FunctionHelp::Parameter>{{"X", "matrix", "", {"n x m: cells", "and more"}},
                                                  {"by", "double", "1 + 1", {"factor"}}}));
  EXPECT_EQ(help->results.size(), 2u);
  EXPECT_EQ(help->method, (std::vector<std::string>{"one pass,", "no more"}));
  EXPECT_EQ(help->see_also, (std::vector<std::string>{"lm", "glm"}));
  EXPECT_EQ(help->Usage(), "[Y, s] = f(X, by=1 + 1)");
  EXPECT_EQ(
      Render(*help),
      "f: doubles a matrix\n\n  [Y, s] = f(X, by=1 + 1)\n\nMore of it.\n\n"
      "arguments:\n  X   matrix  n x m: cells\n              and more\n  by  double  factor\n\n"
      "results:\n  Y  matrix  n x m\n  s  double  sum\n\nmethod: one pass,\n  no more\nsource: a book\nsee also: lm, glm\n");
}

TEST(LibraryTest, AHeaderThatLeavesSomethingOutIsAnError) {
  const auto error = [](const std::string& header) {
    const std::string text =
        header + "m_f = function(Matrix[Double] X, Double y) return (Matrix[Double] Y) { Y = X * y }\n";
    return HelpOf({"room/f.dml", text}).status().message();
  };
  const std::string begin = "# f: a sentence.\n";
  const std::string end = "# Method: m\n# Source: s\n";
  EXPECT_EQ(error(end), "room/f.dml: the header does not begin with 'f: ' and a sentence");
  EXPECT_EQ(error(begin + "# Arguments:\n#   X  a\n# Returns:\n#   Y  a\n" + end),
            "room/f.dml: the header does not describe the argument 'y' in its turn");
  EXPECT_EQ(error(begin + "# Arguments:\n#   y  a\n#   X  a\n# Returns:\n#   Y  a\n" + end),
            "room/f.dml: the header does not describe the argument 'X' in its turn");
  EXPECT_EQ(error(begin + "# Arguments:\n#   X  a\n#   y  a\n# Returns:\n#   Y  a\n#   Z  a\n" + end),
            "room/f.dml: there is no result 'Z'");
  EXPECT_EQ(error(begin + "# Arguments:\n#   X  a\n#   y  a\n# Returns:\n#   Y  a\n# Source: s\n"),
            "room/f.dml: the header has no Method or no Source");
}

TEST(LibraryTest, AFunctionMayHaveNoResults) {
  const Result<FunctionHelp> help =
      HelpOf({"room/f.dml",
              "# f: a sentence.\n# Arguments:\n#   X  a\n# Returns: nothing\n# Method: m\n# Source: s\n"
              "m_f = function(Matrix[Double] X) { print(sum(X)) }\n"});
  ASSERT_TRUE(help.ok()) << help.status().ToString();
  EXPECT_EQ(help->Usage(), "f(X)");
}

TEST(LibraryTest, FilesOfTheUserComeFirst) {
  EXPECT_EQ(LibraryCandidates("lm", {.libraries = {"/one"}}),
            (std::vector<std::string>{"scripts/builtin/lm.dml", "/one/builtin/lm.dml", "/one/lm.dml",
                                      "/one/scripts/builtin/lm.dml", "heddle:regression/lm.dml"}));
  Import import;
  import.path = "scripts/regression/lm.dml";
  EXPECT_EQ(ImportCandidates(import, {}).back(), "heddle:regression/lm.dml");
  import.path = "scripts/builtin/lm.dml";
  EXPECT_EQ(ImportCandidates(import, {}).back(), "heddle:regression/lm.dml");
  import.path = "heddle:regression/lm.dml";
  EXPECT_EQ(ImportCandidates(import, {.libraries = {"/one"}}),
            std::vector<std::string>{"heddle:regression/lm.dml"});
}

// What a script gets that calls lm(), with these files of its user.
Status Compile(const std::map<std::string, std::string>& files, uint64_t fingerprint = 0,
               const std::string& script = "print(sum(lm(X=rand(rows=9, cols=2), y=rand(rows=9, cols=1))))") {
  MemorySourceLoader loader(files);
  CompileOptions options;
  options.loader = &loader;
  options.library_fingerprint = fingerprint;
  Diagnostics diagnostics;
  return CompileScript(script, options, &diagnostics).status();
}

TEST(LibraryTest, AFunctionOfTheUserHidesThatOfTheLibrary) {
  EXPECT_TRUE(Compile({}).ok());
  const Status own = Compile(
      {{"scripts/builtin/lm.dml", "m_lm = function(Matrix[Double] A) return (Matrix[Double] B) { B = A }"}});
  EXPECT_NE(own.ToString().find("lm() has no parameter 'X'"), std::string::npos) << own.ToString();
}

TEST(LibraryTest, AnotherVersionOfTheLibraryIsNotUsed) {
  EXPECT_TRUE(Compile({}, LibraryFingerprint()).ok());
  const Status other = Compile({}, LibraryFingerprint() + 1);
  EXPECT_NE(other.ToString().find(
                "the script calls functions of the library, and the master's is of another version\n"
                "'heddle version' tells versions: client and master must be the same"),
            std::string::npos)
      << other.ToString();
  EXPECT_TRUE(Compile({}, LibraryFingerprint() + 1, "print(1)").ok());
}

TEST(LibraryTest, SourceFindsItsFiles) {
  EXPECT_TRUE(
      Compile(
          {}, 0,
          "source(\"heddle:regression/lmDS.dml\") as d\nB = d::m_lmDS(X=rand(rows=9, cols=2), y=rand(rows=9, cols=1))\nprint(sum(B))")
          .ok());
  EXPECT_NE(Compile({}, 0, "source(\"heddle:regression/none.dml\") as d")
                .ToString()
                .find("cannot source 'heddle:regression/none.dml'"),
            std::string::npos);
}

}  // namespace
}  // namespace heddle::compiler
