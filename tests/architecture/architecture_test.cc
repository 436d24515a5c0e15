// SPDX-License-Identifier: Apache-2.0
// The table in this file is the architecture. Change it on purpose or not at all.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Folder {
  std::string_view name;
  std::vector<std::string_view> may_include;
};

const std::vector<Folder>& Folders() {
  static const auto* folders = new std::vector<Folder>{
      {"core", {}},
      {"ops", {"core"}},
      {"compiler", {"core", "ops"}},
      {"scheduler", {"core", "ops"}},
      {"actor", {"core", "ops"}},
      {"engine", {"core", "ops", "compiler", "scheduler", "actor"}},
      {"cluster", {"core", "ops", "compiler", "scheduler", "actor", "engine", "proto"}},
      {"python", {"core", "compiler", "engine"}},
      {"bench", {"core", "ops", "compiler", "scheduler", "actor", "engine", "cluster"}},
  };
  return *folders;
}

// Outside libraries that only some folders or files may know, by the beginning of their headers' names.
struct Library {
  std::string_view header;
  std::vector<std::string_view> places;
};

const std::vector<Library>& Libraries() {
  static const auto* libraries = new std::vector<Library>{
      {"grpc/", {"cluster/"}},
      {"grpcpp/", {"cluster/"}},
      {"google/protobuf/", {"cluster/"}},
      {"sqlite3.h", {"cluster/"}},
      {"openssl/", {"cluster/"}},
      {"histedit.h", {"cluster/repl/"}},
      {"seccomp.h", {"cluster/executor/"}},
      {"microhttpd.h", {"cluster/metrics/"}},
      {"tbb/", {"ops/", "actor/", "bench/"}},
      {"oneapi/", {"ops/", "actor/", "bench/"}},
      {"Eigen/", {"ops/", "bench/"}},
      {"spdlog/", {"core/environment/log.cc"}},
      {"llvm/", {"compiler/codegen/module/"}},
      {"boost/", {"ops/distribution/", "scheduler/devices/"}},
      {"hdf5.h", {"ops/io/formats/module/hdf5/"}},
      {"matio.h", {"ops/io/formats/module/"}},
      {"arrow/", {"ops/io/formats/module/"}},
      {"parquet/", {"ops/io/formats/module/"}},
      {"zstd.h", {"ops/io/files/"}},
      {"Python.h", {"python/module/"}},
  };
  return *libraries;
}

struct Include {
  std::string name;
  bool angled = false;
};

std::vector<Include> IncludesOf(const std::string& text) {
  std::vector<Include> includes;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    size_t at = line.find_first_not_of(" \t");
    if (at == std::string::npos || line[at] != '#') continue;
    at = line.find_first_not_of(" \t", at + 1);
    if (at == std::string::npos || line.compare(at, 7, "include") != 0) continue;
    at = line.find_first_of("\"<", at + 7);
    if (at == std::string::npos) continue;
    const bool angled = line[at] == '<';
    const size_t end = line.find(angled ? '>' : '"', at + 1);
    if (end != std::string::npos) includes.push_back({line.substr(at + 1, end - at - 1), angled});
  }
  return includes;
}

std::string TopFolder(const std::string& path) { return path.substr(0, path.find('/')); }

// What is wrong with the includes of the file at `path` (from the root of the project).
std::vector<std::string> CheckIncludes(const std::string& path, const std::string& text) {
  std::vector<std::string> faults;
  const std::string own = TopFolder(path);
  const auto folder =
      std::find_if(Folders().begin(), Folders().end(), [&](const Folder& f) { return f.name == own; });
  if (folder == Folders().end()) return {path + " lies in no folder of the table"};
  for (const Include& include : IncludesOf(text)) {
    for (const Library& library : Libraries()) {
      if (!include.name.starts_with(library.header)) continue;
      if (std::none_of(library.places.begin(), library.places.end(),
                       [&](auto place) { return path.starts_with(place); }))
        faults.push_back(path + " includes <" + include.name + ">, which only " +
                         std::string(library.places[0]) + " may know");
    }
    const std::string other = TopFolder(include.name);
    const bool of_project =
        other == "proto" || other == "tests" || other.size() == include.name.size() ||
        std::any_of(Folders().begin(), Folders().end(), [&](const Folder& f) { return f.name == other; });
    if (include.angled || !of_project || other == own) continue;
    if (other.size() == include.name.size()) {
      faults.push_back(path + " includes \"" + include.name + "\" without its folder");
    } else if (std::find(folder->may_include.begin(), folder->may_include.end(), other) ==
               folder->may_include.end()) {
      faults.push_back(path + " includes " + other + "/, which " + own + "/ may not know");
    }
  }
  return faults;
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

using Files = std::map<std::string, std::string>;  // path from the root of the project -> text

Files SourcesUnder(const std::vector<std::string>& folders) {
  Files files;
  const fs::path root = HEDDLE_SOURCE_DIR;
  for (const std::string& folder : folders) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (entry.is_regular_file() && (extension == ".h" || extension == ".cc" || extension == ".inc"))
        files[fs::relative(entry.path(), root)] = ReadFile(entry.path());
    }
  }
  return files;
}

std::vector<std::string> TableFolders() {
  std::vector<std::string> names;
  for (const Folder& folder : Folders()) names.emplace_back(folder.name);
  return names;
}

// AVX-512 files are compiled for a CPU that not everyone has. A library template in one of them could become
// everyone's copy of that template when the linker chooses, so neither they nor what they include may reach
// such a header.
std::vector<std::string> CheckAvx512(const std::string& path, const Files& files) {
  static const std::set<std::string> kAllowed = {"immintrin.h", "x86intrin.h", "stdint.h", "stddef.h"};
  std::vector<std::string> faults;
  std::set<std::string> seen;
  std::vector<std::string> open = {path};
  while (!open.empty()) {
    const std::string at = open.back();
    open.pop_back();
    if (!seen.insert(at).second) continue;
    const auto file = files.find(at);
    if (file == files.end()) {
      faults.push_back(path + " includes " + at + ", which is no file of the project");
      continue;
    }
    for (const Include& include : IncludesOf(file->second)) {
      if (kAllowed.contains(include.name)) continue;
      if (!include.angled)
        open.push_back(include.name);
      else
        faults.push_back(path + " includes <" + include.name + "> (through " + at +
                         "), which AVX-512 files may not know");
    }
  }
  return faults;
}

// The folders that each folder includes, by their whole paths; of files that `joins` is true for, none.
using Includes = std::map<std::string, std::set<std::string>>;
Includes FolderIncludes(const Files& files, const std::set<std::string>& joins) {
  Includes includes;
  for (const auto& [path, text] : files) {
    if (joins.contains(path)) continue;
    const std::string own = fs::path(path).parent_path();
    for (const Include& include : IncludesOf(text)) {
      const std::string other = fs::path(include.name).parent_path();
      if (!include.angled && files.contains(include.name) && other != own) includes[own].insert(other);
    }
  }
  return includes;
}

// A way from a folder back to itself: "ops/simd -> ops/reduction -> ops/simd"; empty when there is none.
std::string FindCycle(const Includes& includes) {
  std::set<std::string> done;
  std::vector<std::string> way;
  const std::function<std::string(const std::string&)> visit = [&](const std::string& folder) {
    const auto seen = std::find(way.begin(), way.end(), folder);
    if (seen != way.end()) {
      std::string cycle;
      for (auto step = seen; step != way.end(); ++step) cycle += *step + " -> ";
      return cycle + folder;
    }
    if (done.contains(folder)) return std::string();
    way.push_back(folder);
    if (const auto next = includes.find(folder); next != includes.end())
      for (const std::string& other : next->second)
        if (std::string cycle = visit(other); !cycle.empty()) return cycle;
    way.pop_back();
    done.insert(folder);
    return std::string();
  };
  for (const auto& [folder, others] : includes)
    if (std::string cycle = visit(folder); !cycle.empty()) return cycle;
  return {};
}

// A word of the file's name that collects everything.
std::string VagueWord(const std::string& path) {
  static const std::set<std::string> kVague = {"util",    "utils",  "utility", "utilities", "helper",
                                               "helpers", "common", "manager", "misc",      "managers"};
  std::istringstream words(fs::path(path).stem().string());
  for (std::string word; std::getline(words, word, '_');)
    if (kVague.contains(word)) return word;
  return {};
}

TEST(ArchitectureTest, FoldersIncludeOnlyWhatTheTableAllows) {
  const Files files = SourcesUnder(TableFolders());
  ASSERT_GT(files.size(), 20u) << "the sources were not found under " << HEDDLE_SOURCE_DIR;
  for (const auto& [path, text] : files)
    for (const std::string& fault : CheckIncludes(path, text)) ADD_FAILURE() << fault;
}

TEST(ArchitectureTest, AViolationIsFoundAndNamed) {
  using Faults = std::vector<std::string>;
  EXPECT_EQ(CheckIncludes("actor/runtime.cc",
                          "#include \"actor/runtime.h\"\n  #  include \"compiler/compile.h\"\n"),
            Faults{"actor/runtime.cc includes compiler/, which actor/ may not know"});
  EXPECT_EQ(CheckIncludes("core/programs/graph.h", "#include \"ops/catalog.h\""),
            Faults{"core/programs/graph.h includes ops/, which core/ may not know"});
  EXPECT_EQ(CheckIncludes("actor/remote.cc", "#include \"proto/executor.pb.h\""),
            Faults{"actor/remote.cc includes proto/, which actor/ may not know"});
  EXPECT_EQ(
      CheckIncludes("ops/product/matmul.cc", "#include <spdlog/spdlog.h>\n#include <Eigen/Dense>"),
      Faults{
          "ops/product/matmul.cc includes <spdlog/spdlog.h>, which only core/environment/log.cc may know"});
  EXPECT_EQ(
      CheckIncludes("compiler/fuse.cc", "#include <tbb/task_arena.h>\n#include <grpcpp/grpcpp.h>").size(),
      2u);
  EXPECT_EQ(CheckIncludes("scheduler/place.cc", "#include \"place.h\""),
            Faults{"scheduler/place.cc includes \"place.h\" without its folder"});
  EXPECT_EQ(
      CheckIncludes(
          "cluster/link/grpc_link.cc",
          "#include \"compiler/compile.h\"\n#include \"proto/executor.pb.h\"\n#include <grpcpp/grpcpp.h>"),
      Faults{});
  EXPECT_EQ(CheckIncludes("ops/sum.cc", "// #include \"compiler/compile.h\"\n#include <vector>"), Faults{});
}

TEST(ArchitectureTest, Avx512FilesReachNoLibraryHeader) {
  const Files files = SourcesUnder(TableFolders());
  for (const auto& [path, text] : files)
    if (path.starts_with("ops/simd/") && path.ends_with("_avx512.cc"))
      for (const std::string& fault : CheckAvx512(path, files)) ADD_FAILURE() << fault;
}

TEST(ArchitectureTest, ALibraryHeaderBehindAProjectHeaderIsFound) {
  const Files files = {
      {"ops/simd/sum_avx512.cc", "#include <immintrin.h>\n#include \"ops/simd/sum.h\"\n"},
      {"ops/simd/sum.h", "#include <stdint.h>\n#include \"ops/simd/loop.h\"\n#include \"ops/simd/sum.h\""},
      {"ops/simd/loop.h", "#include <algorithm>\n"},
      {"ops/simd/max_avx512.cc", "#include <immintrin.h>\n#include <stddef.h>\n"},
  };
  EXPECT_EQ(CheckAvx512("ops/simd/sum_avx512.cc", files),
            std::vector<std::string>{
                "ops/simd/sum_avx512.cc includes <algorithm> (through ops/simd/loop.h), which AVX-512 "
                "files may not know"});
  EXPECT_TRUE(CheckAvx512("ops/simd/max_avx512.cc", files).empty());
}

// Each folder can be read after those that it includes. ops/catalog.cc is the list of all operators and
// ops/io/formats/format_table.cc that of all formats: what declares them may be known everywhere.
TEST(ArchitectureTest, NoFoldersIncludeEachOther) {
  const Files files = SourcesUnder(TableFolders());
  const Includes includes = FolderIncludes(files, {"ops/catalog.cc", "ops/io/formats/format_table.cc"});
  EXPECT_GT(includes.size(), 20u);
  EXPECT_EQ(FindCycle(includes), "");
  EXPECT_EQ(FindCycle({{"a", {"b", "c"}}, {"b", {"c"}}, {"c", {"d"}}}), "");
  EXPECT_EQ(FindCycle({{"a", {"b"}}, {"b", {"c", "d"}}, {"d", {"b"}}}), "b -> d -> b");
}

// Operators compute on values; files are read and written by tasks of the plan, and by the store of panels.
TEST(ArchitectureTest, NoOperatorKnowsFilesAndTheBaseKnowsNoOperator) {
  int read = 0;
  for (const auto& [path, text] : SourcesUnder({"ops"})) {
    // A driver of devices is no operator: it keeps on disk what it has compiled.
    if (path.starts_with("ops/io/") || path.starts_with("ops/panels/") ||
        path.starts_with("ops/device/opencl/") || path == "ops/catalog.cc")
      continue;
    ++read;
    for (const Include& include : IncludesOf(text)) {
      EXPECT_FALSE(include.name.starts_with("ops/io/")) << path << " includes " << include.name;
      const bool is_of_base = path.starts_with("ops/base/") && include.name.starts_with("ops/");
      EXPECT_TRUE(!is_of_base || include.name.starts_with("ops/base/"))
          << path << " includes " << include.name;
    }
  }
  EXPECT_GT(read, 400);
}

// Operators that code asks for by their names: Is("%*%").
std::vector<std::string> OperatorsAskedFor(const std::string& text) {
  static const std::set<std::string> kNoOperators = {"variable", "literal", "assign", "result", "phased"};
  static const std::string_view kAsks = ".Is(\"";
  std::vector<std::string> names;
  for (size_t at = text.find(kAsks); at != std::string::npos; at = text.find(kAsks, at + 1)) {
    const size_t begin = at + kAsks.size();
    std::string name = text.substr(begin, text.find('"', begin) - begin);
    if (!kNoOperators.contains(name)) names.push_back(std::move(name));
  }
  return names;
}

// What one operator is to others stands in its descriptor (ops/base/operator_traits.h, Role).
TEST(ArchitectureTest, CodeAsksForRolesOfOperatorsAndNotForNames) {
  int read = 0;
  for (const auto& [path, text] : SourcesUnder(
           {"compiler", "scheduler", "actor", "engine", "ops/fused", "ops/region", "ops/recursion"})) {
    // Those ask tokens.
    if (path.starts_with("compiler/parse/") || path.starts_with("compiler/editor/")) continue;
    ++read;
    for (const std::string& name : OperatorsAskedFor(text))
      ADD_FAILURE() << path << " asks for the operator \"" << name << "\": give its descriptor a role";
  }
  EXPECT_GT(read, 300);
  EXPECT_EQ(OperatorsAskedFor("if (node.Is(\"variable\") || graph[id].Is(\"%*%\"))"),
            std::vector<std::string>{"%*%"});
}

TEST(ArchitectureTest, NoFolderHidesTwoConcepts) {
  std::map<std::string, int> sizes;
  for (const auto& [path, text] : SourcesUnder(TableFolders())) ++sizes[fs::path(path).parent_path()];
  for (const auto& [folder, files] : sizes)
    EXPECT_LE(files, 45) << folder << " has " << files << " files: about forty are a room, more are two";
}

TEST(ArchitectureTest, NoFileCollectsEverything) {
  std::vector<std::string> folders = TableFolders();
  folders.emplace_back("tests");
  for (const auto& [path, text] : SourcesUnder(folders))
    EXPECT_EQ(VagueWord(path), "")
        << path << ": ask what its functions have in common and use the answer as the name";
  EXPECT_EQ(VagueWord("ops/csv_utils.h"), "utils");
  EXPECT_EQ(VagueWord("cluster/manager.cc"), "manager");
  EXPECT_EQ(VagueWord("ops/product/matmul.cc"), "");
}

// What a script or a test writes where somebody starts it is no part of the project. Entries that begin with
// a dot are tools', and folders of builds are ignored.
TEST(ArchitectureTest, TheRootHoldsWhatIsListed) {
  std::set<std::string> known = {"CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json", "LICENSE",
                                 "README.md",    "cmake",          "deploy",            "docs",
                                 "examples",     "findings",       "library",           "proto",
                                 "tests",        "third_party"};
  for (const std::string& folder : TableFolders()) known.insert(folder);
  const std::set<std::string> ignored = {"build", "shared", "compile_commands.json"};
  for (const auto& entry : fs::directory_iterator(HEDDLE_SOURCE_DIR)) {
    const std::string name = entry.path().filename();
    if (name.starts_with('.') || ignored.contains(name)) continue;
    EXPECT_TRUE(known.contains(name))
        << name << ": something was written into the root of the project; what belongs there is listed here";
  }
  for (const std::string& name : known)
    EXPECT_TRUE(fs::exists(fs::path(HEDDLE_SOURCE_DIR) / name)) << name << " is listed and not there";
}

// What a script writes when somebody runs it there is no part of its case.
TEST(ArchitectureTest, FoldersOfCasesHoldCasesAlone) {
  const std::set<std::string> parts = {".dml", ".expected", ".args"};
  for (const auto& entry : fs::directory_iterator(fs::path(HEDDLE_SOURCE_DIR) / "tests/scripts/cases"))
    EXPECT_TRUE(parts.contains(entry.path().extension())) << entry.path();
}

TEST(ArchitectureTest, EverySourceNamesItsLicence) {
  std::vector<std::string> folders = TableFolders();
  folders.emplace_back("tests");
  for (const auto& [path, text] : SourcesUnder(folders))
    EXPECT_TRUE(text.starts_with("// SPDX-License-Identifier: Apache-2.0\n")) << path;
}

// deploy/format sees to it. Text in quotes is not cut, nor are tables that a macro goes through.
TEST(ArchitectureTest, LinesFitTheLayout) {
  std::vector<std::string> folders = TableFolders();
  for (const char* more : {"tests", "bench"}) folders.emplace_back(more);
  for (const auto& [path, text] : SourcesUnder(folders)) {
    std::istringstream lines(text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (line.size() > 110 && line.find('"') == std::string::npos && !line.ends_with('\\'))
        ADD_FAILURE() << path << ":" << number << " has " << line.size() << " columns";
    }
  }
}

// Paths of files of the project in a page of text: what stands in backticks and begins with a folder.
std::vector<std::string> PathsIn(const std::string& page) {
  static const std::regex kPath("`([a-z_]+(?:/[A-Za-z0-9_.-]+)+)`");
  std::vector<std::string> paths;
  for (std::sregex_iterator at(page.begin(), page.end(), kPath), end; at != end; ++at) {
    const std::string path = (*at)[1];
    const std::string extension = fs::path(path).extension();
    const bool is_file = extension == ".h" || extension == ".cc" || extension == ".md" ||
                         extension == ".inc" || extension == ".proto";
    if (is_file) paths.push_back(path);
  }
  return paths;
}

// A file that has moved is found where it is, from the root of the project or from the page's own folder.
TEST(ArchitectureTest, PagesNameFilesThatAreThere) {
  const fs::path root = HEDDLE_SOURCE_DIR;
  int found = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string page = fs::relative(entry.path(), root);
    if (entry.path().extension() != ".md" || page.starts_with("build") || page == "CHANGELOG.md") continue;
    for (const std::string& path : PathsIn(ReadFile(entry.path()))) {
      ++found;
      EXPECT_TRUE(fs::exists(root / path) || fs::exists(entry.path().parent_path() / path))
          << page << " names " << path << ", which is not there";
    }
  }
  EXPECT_GT(found, 60);
  EXPECT_EQ(PathsIn("see `core/status.h`, `cluster/link` and `x/y.csv`, not core/shape.h"),
            std::vector<std::string>{"core/status.h"});
}

TEST(ArchitectureTest, EveryFolderSaysWhatItIsFor) {
  std::vector<std::string> folders = TableFolders();
  for (const char* more : {"proto", "deploy", "tests", "examples"}) folders.emplace_back(more);
  for (const std::string& folder : folders)
    EXPECT_TRUE(fs::exists(fs::path(HEDDLE_SOURCE_DIR) / folder / "README.md"))
        << folder << "/ has no README.md";
}

}  // namespace
