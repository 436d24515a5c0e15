// SPDX-License-Identifier: Apache-2.0
// What scripts print does not depend on how their matrices are stored: every case of tests/scripts/cases runs
// once more with kernels that compress each matrix that they make, on one rank, in panels, or on three
// (HEDDLE_ALL_PLANS=1: in each of these ways); and random programs, in which any matrix may be compressed and
// decompressed, with plans of fusion at random.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/compile.h"
#include "core/environment/random.h"
#include "ops/compressed/plan_groups.h"
#include "tests/support/all_plans.h"
#include "tests/support/seeds.h"
#include "tests/unit/engine/random_programs.h"
#include "tests/unit/engine/script_runner.h"
#include "tests/unit/ops/compressed/random_groups.h"

namespace heddle::engine {
namespace {

class CompressingKernels : public ops::KernelSource {
 public:
  /// `of_compress`: only what compress() gives, which leaves small matrices as they are.
  explicit CompressingKernels(bool of_compress = false) : of_compress_(of_compress) {}

  using KernelSource::Run;
  Status Run(const ops::KernelCall& call, std::span<Value> results) const override {
    HEDDLE_RETURN_IF_ERROR(ops::CatalogKernels().Run(call, results));
    // Between the phases of an operator are lists of its own.
    if (call.phase != Phase::kWhole || (of_compress_ && call.node.op != "compress")) return OkStatus();
    for (Value& result : results) {
      if (!result.IsMatrix() || result.matrix().IsCompressed()) continue;
      if (result.matrix().cells() == 0 || result.matrix().cells() > kMostCells) continue;
      const auto seed = static_cast<uint32_t>(result.matrix().cells() + call.node.position.line);
      result = Value(ops::testing::RandomGroups(result.matrix(), seed));
      compressed_.fetch_add(1, std::memory_order_relaxed);
    }
    return OkStatus();
  }
  int64_t compressed() const { return compressed_; }

 private:
  static constexpr int64_t kMostCells = 20'000;
  const bool of_compress_;
  mutable std::atomic<int64_t> compressed_ = 0;
};

std::optional<Program> Compiled(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  compiler::CompileOptions options;
  options.script = path.filename().string();
  compiler::Diagnostics diagnostics;
  Result<Program> program = compiler::CompileScript(text.str(), options, &diagnostics);
  if (!program.ok()) return std::nullopt;  // It needs arguments, or files that it names.
  return *std::move(program);
}

ScriptOutcome RunIn(const std::filesystem::path& folder, const Program& program, SessionOptions options,
                    const ops::KernelSource* kernels) {
  Stretch whole;
  whole.is_watched = false;
  whole.folders.assign(static_cast<size_t>(options.ranks), folder.string());
  return RunProgram(program, std::move(options), &whole, kernels);
}

class CompressedValuesTest : public testing::TestWithParam<const char*> {
 protected:
  SessionOptions Options() const {
    if (std::string(GetParam()) == "Ranks") return SplitOver(3);
    SessionOptions options;
    options.threads = 2;
    if (std::string(GetParam()) == "Panels") options.panel_bytes = 20'000;
    return options;
  }
};

TEST_P(CompressedValuesTest, ScriptsPrintTheSame) {
  const std::filesystem::path folder = std::filesystem::path(HEDDLE_SOURCE_DIR) / "tests/scripts/cases";
  std::string made = testing::TempDir() + "compressed_valuesXXXXXX";
  ASSERT_NE(mkdtemp(made.data()), nullptr);
  const std::filesystem::path scratch = made;
  for (const auto& file : std::filesystem::directory_iterator(folder.parent_path() / "data"))
    std::filesystem::copy(file.path(), scratch / file.path().filename(),
                          std::filesystem::copy_options::recursive);
  std::vector<std::filesystem::path> cases;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (file.path().extension() == ".dml") cases.push_back(file.path());
  std::sort(cases.begin(), cases.end());
  const CompressingKernels kernels;
  int runs = 0;
  // What ranks and panels do with a value is the same in many scripts: each script goes one of the ways.
  const bool all = testing_support::RunsAllPlans();
  const std::string way = GetParam();
  const size_t first = all || way == "Whole" ? 0 : way == "Panels" ? 1 : 2;
  for (size_t i = first; i < cases.size(); i += all ? 1 : 3) {
    const std::filesystem::path& path = cases[i];
    const std::optional<Program> program = Compiled(path);
    if (!program) continue;
    const ScriptOutcome plain = RunIn(scratch, *program, Options(), nullptr);
    if (!plain.status.ok()) continue;
    SCOPED_TRACE(path.filename());
    const ScriptOutcome compressed = RunIn(scratch, *program, Options(), &kernels);
    EXPECT_TRUE(compressed.status.ok()) << compressed.status.ToString();
    EXPECT_EQ(compressed.output, plain.output);
    ++runs;
  }
  std::filesystem::remove_all(scratch);
  EXPECT_GT(runs, 25);
  EXPECT_GT(kernels.compressed(), 150);
}

// Some matrices of the program are compressed behind the statement that makes them, some are decompressed
// later. A block ends there: within one, compress() is read through. `compresses`: false leaves compress()
// and decompress() out, and the ends of blocks in.
std::string WithCompression(const std::string& program, uint64_t seed, bool compresses) {
  SeededRandom random(seed);
  std::istringstream lines(program);
  std::string text;
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    text += line + "\n";
    const size_t end = line.find(" = ");
    if (line.empty() || line[0] != 'v' || end == std::string::npos || end > 4) continue;
    names.push_back(line.substr(0, end));
    const uint64_t drawn = random.Below(6);
    const std::string& earlier = names[random.Below(names.size())];
    if (compresses && drawn < 3) text += fmt::format("{0} = compress({0})\n", names.back());
    if (compresses && drawn == 3) text += fmt::format("{0} = decompress({0})\n", earlier);
    if (drawn < 4) text += fmt::format("if (nrow({}) < 0) print(\"none\")\n", names.back());
  }
  return text;
}

TEST_P(CompressedValuesTest, RandomProgramsPrintTheSame) {
  const testing_support::Seeds seeds = testing_support::SeedsOf(15);
  const CompressingKernels of_compress(/*of_compress=*/true), all;
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const std::string program = RandomMatrixProgram(seed);
    const std::string plain = WithCompression(program, seed, /*compresses=*/false);
    const std::string compressing = WithCompression(program, seed, /*compresses=*/true);
    SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << compressing);
    SessionOptions options = Options();
    const ScriptOutcome expected = RunScript(plain, options);
    options.fusion = fmt::format("random:{}", seed);
    for (const CompressingKernels* kernels : {&of_compress, &all}) {
      const ScriptOutcome outcome = RunScript(compressing, options, kernels);
      ASSERT_EQ(outcome.status.code(), expected.status.code()) << outcome.status.ToString();
      ASSERT_EQ(outcome.output, expected.output);
    }
  }
  EXPECT_GT(of_compress.compressed(), static_cast<int64_t>(seeds.count() / 2));
}

INSTANTIATE_TEST_SUITE_P(Ways, CompressedValuesTest, testing::Values("Whole", "Panels", "Ranks"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace heddle::engine
