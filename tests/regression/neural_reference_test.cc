// SPDX-License-Identifier: Apache-2.0
// Small variants of the neural networks in bench/scripts, with gradients written by hand: NumPy finds the
// same weights after a few steps (neural_reference.py).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace heddle {
namespace {

struct Network {
  const char *name, *result, *sizes;
  const char* precision = "double";
};

class NeuralReferenceTest : public testing::TestWithParam<Network> {};

TEST_P(NeuralReferenceTest, NumPyFindsTheSame) {
  const Network& network = GetParam();
  const testing_support::TemporaryFolder folder;
  const std::string drawn = folder.path() + "/drawn.csv", result = folder.path() + "/result.csv";
  const std::vector<std::string> sizes = testing_support::SplitWords(network.sizes);
  std::vector<std::string> run = {HEDDLE_BINARY_DIR "/heddle",
                                  "run",
                                  "--precision",
                                  network.precision,
                                  HEDDLE_SOURCE_DIR "/bench/scripts/" + std::string(network.name) + ".dml",
                                  "-nvargs",
                                  "drawn=" + drawn,
                                  std::string(network.result) + "=" + result};
  std::vector<std::string> reference = {"/usr/bin/python3",
                                        HEDDLE_SOURCE_DIR "/tests/regression/neural_reference.py",
                                        network.name,
                                        network.precision,
                                        drawn,
                                        result};
  run.insert(run.end(), sizes.begin(), sizes.end());
  reference.insert(reference.end(), sizes.begin(), sizes.end());
  const testing_support::Finished ran = testing_support::RunProcess(run, folder.path(), 300);
  ASSERT_EQ(ran.code, 0) << ran.errors;
  const testing_support::Finished computed = testing_support::RunProcess(reference, folder.path(), 300);
  EXPECT_EQ(computed.code, 0) << computed.output << computed.errors;
}

INSTANTIATE_TEST_SUITE_P(
    Networks, NeuralReferenceTest,
    testing::Values(
        Network{"transformer", "model", "batch=3 places=20 width=32 heads=4 hidden=64 steps=3"},
        Network{"crnn", "model", "batch=3 height=16 width=24 filters=4 memory=8 classes=5 steps=3"},
        Network{"dien", "clicks", "users=20 places=6 things=50 width=8 layer=16"},
        Network{"transformer", "model", "batch=3 places=20 width=32 heads=4 hidden=64 steps=3", "single"},
        Network{"crnn", "model", "batch=3 height=16 width=24 filters=4 memory=8 classes=5 steps=3", "single"},
        Network{"dien", "clicks", "users=20 places=6 things=50 width=8 layer=16", "single"}),
    [](const testing::TestParamInfo<Network>& info) {
      return fmt::format("{}_in_{}", info.param.name, info.param.precision);
    });

}  // namespace
}  // namespace heddle
