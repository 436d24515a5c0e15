// SPDX-License-Identifier: Apache-2.0
// Every part that reads bytes from outside, in this process, with the inputs that are kept and with damaged
// ones. Of those that once did harm each is a file of tests/fuzz/inputs/INLET.
#include "tests/fuzz/inlets.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/memory/memory_budget.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/kept_inputs.h"
#include "tests/support/process.h"

namespace heddle::fuzz {
namespace {

constexpr int64_t kMemory = int64_t{128} << 20;

int64_t Number(const char* variable, int64_t otherwise) {
  const char* value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? otherwise : std::stoll(value);
}

// The most that this process held, in bytes, as the kernel counts it.
int64_t PeakBytes() {
  std::istringstream status(testing_support::ReadText("/proc/self/status"));
  for (std::string word; status >> word;) {
    int64_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes << 10;
  }
  return 0;
}

class InletTest : public testing::TestWithParam<size_t> {
 protected:
  InletTest() : limit_(MemoryBudget::Process().limit()) { MemoryBudget::Process().SetLimit(kMemory); }
  ~InletTest() override { MemoryBudget::Process().SetLimit(limit_); }

  const Inlet& inlet() const { return Inlets()[GetParam()]; }
  // The input lies in a file while it is read: what kills this process can be read afterwards.
  void Try(const std::string& bytes, const std::string& which) {
    const std::string path = HEDDLE_BINARY_DIR "/fuzz/" + inlet().name;
    testing_support::WriteText(path, bytes);
    const std::string fault = JudgeInlet(inlet(), bytes);
    if (fault.empty()) return;
    std::filesystem::copy_file(path, path + "." + which, std::filesystem::copy_options::overwrite_existing);
    ADD_FAILURE() << inlet().name << ", " << which << ": " << fault << "\nthe input is in " << path << "."
                  << which;
  }

 private:
  const int64_t limit_;
};

TEST_P(InletTest, ComesBackWhateverTheBytesAre) {
  std::filesystem::create_directories(HEDDLE_BINARY_DIR "/fuzz");
  ASSERT_FALSE(inlet().seeds.empty());
  size_t read = 0;
  for (const std::string& seed : inlet().seeds) read += inlet().read(seed).ok();
  // A reader that refuses all of them shows nothing.
  EXPECT_GE(read * 5, inlet().seeds.size());
  const std::vector<std::string> harmful = HarmfulInputs(inlet().name);
  for (size_t i = 0; i < harmful.size(); ++i) Try(harmful[i], fmt::format("harmful{}", i));
  std::vector<std::string> inputs = CorpusOf(inlet().name);
  for (size_t i = 0; i < inputs.size(); ++i) Try(inputs[i], fmt::format("corpus{}", i));
  inputs.insert(inputs.end(), inlet().seeds.begin(), inlet().seeds.end());
  const int64_t first = Number("HEDDLE_FUZZ_SEED", 1);
  const int64_t count = Number("HEDDLE_FUZZ_INPUTS", inlet().is_slow ? 300 : 1500);
  for (int64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    Chooser choose(static_cast<uint64_t>(seed));
    std::string bytes = Damaged(inputs, choose);
    if (inlet().repair && choose.Chance(70)) inlet().repair(&bytes);
    Try(bytes, std::to_string(seed));
  }
}

INSTANTIATE_TEST_SUITE_P(Fuzz, InletTest, testing::Range<size_t>(0, Inlets().size()),
                         [](const auto& info) { return Inlets()[info.param].name; });

// The last of this file: of all inputs before none made the process larger than it may be.
TEST(MemoryOfInletsTest, HoldsItsPromise) {
  constexpr int64_t kWithoutInputs = int64_t{160} << 20;  // the program, its tables, what malloc keeps
  if (testing_support::kPatience == 1) {
    EXPECT_LE(PeakBytes(), kMemory + kWithoutInputs);
  }
}

}  // namespace
}  // namespace heddle::fuzz
