// SPDX-License-Identifier: Apache-2.0
// The promise of --memory and of the default limit is about the process: scripts whose strings, texts,
// working copies or sizes ask for more than there is end within the limit, or with exit code 5 and the
// numbers. The peak is what the kernel saw.
#include <gtest/gtest.h>

#include <fstream>

#include "core/memory/counted_heap.h"
#include "core/memory/memory_bounds.h"
#include "tests/cluster/cluster_of_processes.h"
#include "tests/cluster/control_group.h"
#include "tests/support/measured_process.h"

namespace heddle {
namespace {

using testing_support::ControlGroup;
using testing_support::MeasuredEnd;
using testing_support::RunMeasured;
using testing_support::TemporaryFolder;
using testing_support::WriteText;

constexpr int64_t kMB = 1'000'000;

// What a script wants, and whether that can be had within 200 MB.
struct MemoryCase {
  const char* name;
  const char* script;
  enum { kFits, kDoesNotFit, kEither, kIsNoFile } outcome;
};

#define HEDDLE_FIVE_TIMES(text) text text text text text
#define HEDDLE_DOUBLED "s = s + s\n"

const MemoryCase kCases[] = {
    {"string_doubled_in_straight_code",
     "s = \"0123456789\"\n" HEDDLE_FIVE_TIMES(HEDDLE_FIVE_TIMES(HEDDLE_DOUBLED)) "print(s == \"x\")",
     MemoryCase::kDoesNotFit},
    {"string_doubled", "s = \"0123456789\"\nfor (i in 1:40) { s = s + s }\nprint(\"done\")",
     MemoryCase::kDoesNotFit},
    {"string_doubled_without_loop",
     "s = \"0123456789\"\nn = 24\nwhile (n > 0) { n = n - 1\n s = s + s }\nprint(s == s)",
     MemoryCase::kDoesNotFit},
    {"strings_in_variables",
     "s = \"0123456789\"\nfor (i in 1:23) { s = s + s }\na = s + 1\nb = s + 2\nc = s + 3\n"
     "print(a == b)\nprint(b == c)\nprint(a == c)",
     MemoryCase::kDoesNotFit},
    {"print_of_a_long_string", "s = \"0123456789\"\nfor (i in 1:21) { s = s + s }\nprint(s)",
     MemoryCase::kFits},
    {"write_text", "X = rand(rows=1000000, cols=10, seed=1)\nwrite(X, \"x\", format=\"text\")",
     MemoryCase::kFits},
    {"write_csv", "X = rand(rows=1000000, cols=10, seed=1)\nwrite(X, \"x\", format=\"csv\")",
     MemoryCase::kFits},
    {"write_csv_of_one_row",
     "X = rand(rows=1, cols=9000000, seed=1)\nwrite(X, \"x\", format=\"csv\", header=TRUE)",
     MemoryCase::kFits},
    {"write_matrix_market", "X = rand(rows=1000000, cols=10, seed=1)\nwrite(X, \"x\", format=\"mm\")",
     MemoryCase::kFits},
    {"to_string",
     "X = rand(rows=1000000, cols=10, seed=1)\nprint(toString(X, rows=1000000, cols=10, decimal=15) == \"\")",
     MemoryCase::kDoesNotFit},
    {"order", "X = rand(rows=6000000, cols=1, seed=1)\nY = order(target=X)\nprint(sum(Y))",
     MemoryCase::kFits},
    {"order_that_fits", "X = rand(rows=1500000, cols=1, seed=1)\nY = order(target=X)\nprint(sum(Y))",
     MemoryCase::kFits},
    {"inv", "X = rand(rows=3000, cols=3000, seed=1)\nprint(sum(inv(X)))", MemoryCase::kDoesNotFit},
    {"solve", "X = rand(rows=3200, cols=3200, seed=1)\nprint(sum(solve(X, rowSums(X))))",
     MemoryCase::kDoesNotFit},
    {"cholesky", "X = diag(matrix(1, rows=4000, cols=1)) + 0\nprint(sum(cholesky(X)))",
     MemoryCase::kDoesNotFit},
    {"det", "X = rand(rows=3200, cols=3200, seed=1)\nprint(det(X) == 0)", MemoryCase::kDoesNotFit},
    {"rand_sparse_huge", "X = rand(rows=1200, cols=1000000000, sparsity=0.1, seed=1)\nprint(sum(X))",
     MemoryCase::kDoesNotFit},
    {"rand_dense_huge", "X = rand(rows=100000, cols=10000, seed=1)\nprint(sum(X * 2))", MemoryCase::kEither},
    {"table", "X = round(rand(rows=5000000, cols=1, min=1, max=1000000, seed=1))\nprint(nrow(table(X, X)))",
     MemoryCase::kDoesNotFit},
    {"remove_empty",
     "X = rand(rows=1000000, cols=16, seed=1)\n"
     "Y = removeEmpty(target=X, margin=\"rows\", select=X[,1] > 0.1)\nprint(sum(X) + sum(Y))",
     MemoryCase::kEither},
    {"cumsum", "X = rand(rows=1000000, cols=12, seed=1)\nprint(sum(cumsum(X + 1)))", MemoryCase::kEither},
    {"column_sums_of_a_wide_sparse_matrix",
     "X = rand(rows=3000, cols=3000000, sparsity=0.0005, seed=1)\nprint(sum(colSums(X)))",
     MemoryCase::kEither},
    {"product_of_sparse_matrices",
     "X = rand(rows=20000, cols=20000, sparsity=0.01, seed=1)\nprint(sum(X %*% X))", MemoryCase::kEither},
    {"a_frame_of_many_columns", "F = as.frame(matrix(0, 1, 3000000))\nprint(ncol(cbind(F, F)))",
     MemoryCase::kEither},
    {"frames_bound_in_a_loop",
     "F = as.frame(matrix(0, 1, 1000))\nG = F\nfor (i in 1:60) F = cbind(F, G)\nprint(ncol(F))",
     MemoryCase::kFits},
    {"read_parts", "X = read(\"parts\", format=\"csv\")\nprint(sum(order(target=X, by=1)))",
     MemoryCase::kFits},
    {"read_parts_in_panels", "X = read(\"parts\", format=\"csv\")\nprint(sum(X))", MemoryCase::kEither},
    {"read_device", "X = read(\"/dev/zero\", format=\"csv\")\nprint(sum(X))", MemoryCase::kIsNoFile},
    {"matrix_of_a_text",
     "s = \"1 2 3 4 5 6 7 8 \"\nfor (i in 1:21) { s = s + s }\nprint(sum(matrix(s, rows=8388608, cols=2)))",
     MemoryCase::kEither},
};

// Well, or for want of memory; data that is no file may be refused as that, too.
void ExpectEnd(const MemoryCase& c, const MeasuredEnd& ended) {
  EXPECT_TRUE(ended.code == 0 || ended.code == 5 || (ended.code == 4 && c.outcome == MemoryCase::kIsNoFile))
      << ended.code << ": " << ended.text;
}

void ExpectOutcome(const MemoryCase& c, const MeasuredEnd& ended) {
  ExpectEnd(c, ended);
  if (c.outcome == MemoryCase::kFits || c.outcome == MemoryCase::kDoesNotFit) {
    EXPECT_EQ(ended.code, c.outcome == MemoryCase::kFits ? 0 : 5) << ended.text;
  }
  if (ended.code == 5) {
    EXPECT_NE(ended.text.find("out of memory: "), std::string::npos) << ended.text;
    EXPECT_NE(ended.text.find(" bytes"), std::string::npos) << ended.text;
    EXPECT_NE(ended.text.find("--memory"), std::string::npos) << ended.text;
  }
}

class MemoryPromise : public testing::TestWithParam<MemoryCase> {
 protected:
  void SetUp() override {
    if (!HeapIsCounted()) GTEST_SKIP() << "sanitizers take memory of their own";
    WriteText(folder_.path() + "/case.dml", GetParam().script);
    if (std::string(GetParam().name).starts_with("read_parts")) WriteParts();
  }
  // 1e7 rows of 9 columns, in two files of 90 MB.
  void WriteParts() const {
    std::filesystem::create_directory(folder_.path() + "/parts");
    std::string lines;
    for (int i = 0; i < 100'000; ++i) lines += "1,2,3,4,5,6,7,8,9\n";
    for (const char* part : {"a", "b"}) {
      std::ofstream file(folder_.path() + "/parts/" + part, std::ios::binary);
      for (int i = 0; i < 50; ++i) file << lines;
    }
  }
  TemporaryFolder folder_;
};

TEST_P(MemoryPromise, RunStaysInItsLimit) {
  const MeasuredEnd ended = RunMeasured(
      {testing_support::Binary(), "run", "--memory", std::to_string(200 * kMB), "case.dml"}, folder_.path());
  ExpectOutcome(GetParam(), ended);
  EXPECT_LE(ended.peak_bytes, testing_support::MostOfProcess(200 * kMB));
}

TEST_P(MemoryPromise, EveryProcessOfSimStaysInItsLimit) {
  const MeasuredEnd ended = RunMeasured(
      {testing_support::Binary(), "sim", "--workers", "2", "--memory", std::to_string(200 * kMB), "case.dml"},
      folder_.path());
  ExpectEnd(GetParam(), ended);
  EXPECT_LE(ended.peak_bytes, testing_support::MostOfProcess(200 * kMB));
}

TEST_P(MemoryPromise, UlimitIsFollowedWithoutAnOption) {
  const MeasuredEnd ended = RunMeasured({testing_support::Binary(), "run", "case.dml"}, folder_.path(),
                                        {.address_space = 900 * kMB});
  ExpectEnd(GetParam(), ended);
}

TEST_P(MemoryPromise, AControlGroupIsFollowedWithoutAnOption) {
  const ControlGroup group(300 * kMB);
  if (group.path().empty()) GTEST_SKIP() << "this machine lets us make no control group";
  ExpectOutcome(GetParam(), RunMeasured({testing_support::Binary(), "run", "case.dml"}, folder_.path(),
                                        {.group = group.path()}));
  const MeasuredEnd sim = RunMeasured({testing_support::Binary(), "sim", "--workers", "2", "case.dml"},
                                      folder_.path(), {.group = group.path()});
  ExpectEnd(GetParam(), sim);
}

INSTANTIATE_TEST_SUITE_P(All, MemoryPromise, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(MemoryPromiseTest, ALimitBeyondWhatThereIsIsWarnedOf) {
  const TemporaryFolder folder;
  const MeasuredEnd ended =
      RunMeasured({testing_support::Binary(), "run", "--memory", "100000G", "-e", "print(1)"}, folder.path());
  EXPECT_EQ(ended.code, 0);
  EXPECT_NE(ended.text.find("heddle: warning: --memory 107374182400000 is more than there is: "),
            std::string::npos)
      << ended.text;
}

}  // namespace
}  // namespace heddle
