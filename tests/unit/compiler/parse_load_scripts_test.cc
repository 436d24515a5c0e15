// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "compiler/parse/load_scripts.h"

namespace heddle::compiler {
namespace {

constexpr char kFunction[] = "f = function(double a) return (double b) { b = a }\n";

// Counts how often a file is read.
class CountingLoader : public MemorySourceLoader {
 public:
  using MemorySourceLoader::MemorySourceLoader;
  Result<std::string> Load(const std::string& path) override {
    Result<std::string> text = MemorySourceLoader::Load(path);
    if (text.ok()) ++reads;
    return text;
  }
  int reads = 0;
};

std::string Paths(const ScriptSet& set) {
  std::string paths;
  for (const ScriptFile& file : set.files) paths += file.path + " ";
  return paths;
}

TEST(LoadScriptsTest, FollowsSourcesOnceAlsoInCycles) {
  CountingLoader loader(
      {{"a.dml", "source(\"b.dml\") as b\nsource(\"main.dml\") as m\n" + std::string(kFunction)},
       {"b.dml", "source(\"a.dml\") as a source(\"b.dml\") as self\n" + std::string(kFunction)}});
  Diagnostics diagnostics;
  ScriptLoader scripts({}, &loader, &diagnostics);
  scripts.LoadMain("main.dml", "source(\"a.dml\") as a\nsource(\"./b.dml\") as b\nx = a::f(1)");
  const ScriptSet& set = scripts.scripts();
  EXPECT_EQ(diagnostics.RenderAll(Severity::kError), "");
  EXPECT_EQ(Paths(set), "main.dml a.dml b.dml ");
  EXPECT_EQ(loader.reads, 2);
  EXPECT_EQ(set.files[0].imports[0].file, 1);
  EXPECT_EQ(set.files[0].imports[1].file, 2);
  EXPECT_EQ(set.files[1].imports[0].file, 2);
  EXPECT_EQ(set.files[1].imports[1].file, 0);
  EXPECT_EQ(set.files[2].imports[0].file, 1);
  EXPECT_EQ(set.files[2].imports[1].file, 2);
}

TEST(LoadScriptsTest, TriesTheDirectoryThenScriptsThenTheLibrary) {
  Import import;
  import.path = "nn/a.dml";
  EXPECT_EQ(ImportCandidates(import, {}), (std::vector<std::string>{"nn/a.dml", "scripts/nn/a.dml"}));
  import.directory = "d";
  EXPECT_EQ(ImportCandidates(import, {.libraries = {"/lib"}}),
            (std::vector<std::string>{"d/nn/a.dml", "d/scripts/nn/a.dml", "/lib/nn/a.dml",
                                      "/lib/scripts/nn/a.dml"}));
  import.path = "/abs/./a.dml";
  EXPECT_EQ(ImportCandidates(import, {.libraries = {"/lib"}}), (std::vector<std::string>{"/abs/a.dml"}));
}

TEST(LoadScriptsTest, SourcesAreRelativeToTheWorkingDirectoryNotToTheFile) {
  CountingLoader loader({{"d/a.dml", "source(\"b.dml\") as b\n" + std::string(kFunction)},
                         {"scripts/b.dml", kFunction},
                         {"d/b.dml", "broken ="},
                         {"/lib/scripts/c.dml", kFunction},
                         {"e/x.dml", kFunction}});
  Diagnostics diagnostics;
  ScriptLoader scripts({.libraries = {"/lib"}}, &loader, &diagnostics);
  scripts.LoadMain("main.dml",
                   "source(\"d/a.dml\") as a source(\"c.dml\") as c setwd(\"e\") source(\"x.dml\") as x");
  const ScriptSet& set = scripts.scripts();
  EXPECT_EQ(diagnostics.RenderAll(Severity::kError), "");
  EXPECT_EQ(Paths(set), "main.dml d/a.dml /lib/scripts/c.dml e/x.dml scripts/b.dml ");
}

TEST(LoadScriptsTest, ALibraryMayItselfBeAFolderOfScripts) {
  Import import;
  import.path = "scripts/nn/a.dml";
  EXPECT_EQ(
      ImportCandidates(import, {.libraries = {"/one", "two"}}),
      (std::vector<std::string>{"scripts/nn/a.dml", "scripts/scripts/nn/a.dml", "/one/scripts/nn/a.dml",
                                "/one/scripts/scripts/nn/a.dml", "/one/nn/a.dml", "two/scripts/nn/a.dml",
                                "two/scripts/scripts/nn/a.dml", "two/nn/a.dml"}));
}

TEST(LoadScriptsTest, AFileOfTheLibraryIsLookedForOnceWithWhatItSources) {
  CountingLoader loader({{"/one/g.dml", kFunction},
                         {"/two/builtin/f.dml", "source(\"nn/a.dml\") as a\n" + std::string(kFunction)},
                         {"/two/nn/a.dml", kFunction}});
  Diagnostics diagnostics;
  ScriptLoader scripts({.libraries = {"/one", "/two"}}, &loader, &diagnostics);
  scripts.LoadMain("main.dml", "x = 1");
  EXPECT_EQ(scripts.LoadLibraryFunction("f", {"main.dml", 1, 5}), 1);
  EXPECT_EQ(scripts.LoadLibraryFunction("f", {"main.dml", 2, 5}), 1);
  EXPECT_EQ(scripts.LoadLibraryFunction("g", {"main.dml", 3, 5}), 3);
  EXPECT_EQ(scripts.LoadLibraryFunction("h", {"main.dml", 4, 5}), std::nullopt);
  EXPECT_EQ(Paths(scripts.scripts()), "main.dml /two/builtin/f.dml /two/nn/a.dml /one/g.dml ");
  EXPECT_EQ(loader.reads, 3);
  EXPECT_FALSE(scripts.scripts().files[0].is_library);
  EXPECT_TRUE(scripts.scripts().files[2].is_library);
}

// A script calls the function of its folder, Heddle's own functions call their own; both may be there.
TEST(LoadScriptsTest, AFunctionOfHeddlesLibraryCallsHeddles) {
  MemorySourceLoader loader({{"lib/lm.dml", kFunction}, {"lib/f.dml", kFunction}});
  Diagnostics diagnostics;
  ScriptLoader scripts({.libraries = {"lib"}}, &loader, &diagnostics);
  scripts.LoadMain("main.dml", "x = 1");
  const auto path_of = [&](const std::string& name, bool from_library) {
    const std::optional<int32_t> file = scripts.LoadLibraryFunction(name, {"main.dml", 1, 5}, from_library);
    return scripts.scripts().files[static_cast<size_t>(file.value_or(0))].path;
  };
  EXPECT_EQ(path_of("lm", false), "lib/lm.dml");
  EXPECT_EQ(path_of("lm", true), "heddle:regression/lm.dml");
  EXPECT_EQ(path_of("f", true), "lib/f.dml") << "which Heddle has not";
}

TEST(LoadScriptsTest, ErrorsInAFileOfTheLibraryNameItAndTheFirstCall) {
  MemorySourceLoader loader(std::map<std::string, std::string>{{"lib/f.dml", "m_f = function() { y = }"}});
  Diagnostics diagnostics;
  ScriptLoader scripts({.libraries = {"lib"}}, &loader, &diagnostics);
  scripts.LoadMain("main.dml", "x = f(1)");
  scripts.LoadLibraryFunction("f", {"main.dml", 1, 5});
  EXPECT_EQ(diagnostics.RenderAll(Severity::kError),
            "lib/f.dml:1:24: error: expected an expression, found '}'\n"
            "    1 | m_f = function() { y = }\n"
            "      |                        ^\n"
            "in the file of f(), called at main.dml:1:5\n");
  EXPECT_TRUE(scripts.scripts().files[1].has_errors);
}

TEST(LoadScriptsTest, AMissingFileIsNamedWithThePlacesTried) {
  MemorySourceLoader loader(std::map<std::string, std::string>{});
  Diagnostics diagnostics;
  ScriptLoader scripts({}, &loader, &diagnostics);
  scripts.LoadMain("main.dml", "x = 1\nsource(\"a.dml\") as a");
  const ScriptSet& set = scripts.scripts();
  EXPECT_EQ(set.files[0].imports[0].file, -1);
  EXPECT_EQ(diagnostics.RenderAll(Severity::kError),
            "main.dml:2:1: error: cannot source 'a.dml': no such file\n"
            "    2 | source(\"a.dml\") as a\n"
            "      | ^~~~~~~~~~~~~~~~~~~~\n"
            "tried a.dml\n"
            "tried scripts/a.dml\n");
}

TEST(LoadScriptsTest, ANamespaceIsOneFile) {
  MemorySourceLoader loader({{"a.dml", kFunction}, {"b.dml", kFunction}});
  Diagnostics diagnostics;
  ScriptLoader scripts({}, &loader, &diagnostics);
  scripts.LoadMain("main.dml", "source(\"a.dml\") as n\nsource(\"a.dml\") as n\nsource(\"b.dml\") as n");
  ASSERT_EQ(diagnostics.errors(), 1u);
  const Diagnostic& error = *diagnostics.Sorted(Severity::kError)[0];
  EXPECT_EQ(error.message, "the namespace 'n' is bound to two files");
  EXPECT_EQ(error.range.begin, (Place{3, 1}));
  EXPECT_EQ(error.notes[0], "on line 1 it is bound to a.dml, here to b.dml");
}

TEST(LoadScriptsTest, ErrorsOfAllFilesAreReported) {
  MemorySourceLoader loader(std::map<std::string, std::string>{{"a.dml", "f = function(double x) { y = }"}});
  Diagnostics diagnostics;
  ScriptLoader scripts({}, &loader, &diagnostics);
  scripts.LoadMain("main.dml", "source(\"a.dml\") as a\nx = )");
  ASSERT_EQ(diagnostics.errors(), 2u);
  EXPECT_EQ(diagnostics.Sorted(Severity::kError)[0]->file, "main.dml");
  EXPECT_EQ(diagnostics.Sorted(Severity::kError)[1]->file, "a.dml");
}

TEST(FileSourceLoaderTest, ReadsBelowItsDirectory) {
  const std::filesystem::path directory =
      std::filesystem::path(testing::TempDir()) / "heddle_source_loader_test";
  std::filesystem::create_directories(directory / "folder");
  std::ofstream(directory / "a.dml", std::ios::binary) << "x = 1\n";
  std::ofstream(directory / "empty.dml", std::ios::binary);
  FileSourceLoader loader(directory.string());
  EXPECT_EQ(*loader.Load("a.dml"), "x = 1\n");
  EXPECT_EQ(*loader.Load("folder/../a.dml"), "x = 1\n");
  EXPECT_EQ(*loader.Load((directory / "a.dml").string()), "x = 1\n");
  EXPECT_EQ(*loader.Load("empty.dml"), "");
  EXPECT_EQ(loader.Load("b.dml").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(loader.Load("folder").status().code(), StatusCode::kNotFound);
  std::filesystem::remove_all(directory);
}

TEST(LoadScriptsTest, AFileThatNeverEndsIsRefused) {
  FileSourceLoader loader("");
  Diagnostics diagnostics;
  ScriptLoader scripts({}, &loader, &diagnostics);
  scripts.LoadMain("main.dml", "source(\"/dev/zero\") as z");
  ASSERT_EQ(diagnostics.errors(), 1u);
  const Diagnostic& error = *diagnostics.Sorted(Severity::kError)[0];
  EXPECT_EQ(error.message, "a script has at most 67108864 bytes, this has more");
  EXPECT_EQ(error.notes, std::vector<std::string>{"is this a data file?"});
}

}  // namespace
}  // namespace heddle::compiler
