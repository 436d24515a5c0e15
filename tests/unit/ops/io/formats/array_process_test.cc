// SPDX-License-Identifier: Apache-2.0
// The process in which a library reads: what it answers, and that it keeps to its memory.
#include "ops/io/formats/libraries/array_process.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "core/memory/block_pool.h"
#include "core/memory/counted_heap.h"
#include "core/memory/memory_budget.h"

namespace heddle::ops {
namespace {

constexpr int64_t kMegabyte = 1 << 20;

// Rows of two cells, each its own number; its last row is not to be had.
class Numbers : public StoredArray {
 public:
  explicit Numbers(int64_t rows, int64_t bytes_of_read = 0)
      : sizes_{rows, 2}, bytes_of_read_(bytes_of_read) {}
  const std::vector<int64_t>& sizes() const override { return sizes_; }
  int64_t bytes_of_read() const override { return bytes_of_read_; }
  const std::string& column_major_writer() const override { return writer_; }
  Status Read(int64_t begin, int64_t end, double* out) override {
    if (end == sizes_[0]) return DataLoss("the last row is damaged").WithNote("so it is");
    std::vector<char> work(static_cast<size_t>(bytes_of_read_));
    std::memset(work.data(), 1, work.size());
    for (int64_t k = 2 * begin; k < 2 * end; ++k) *out++ = static_cast<double>(k);
    return OkStatus();
  }
  Status ReadStored(int64_t, int64_t, StoredCell*) override { return Internal("it is dense"); }

 private:
  const std::vector<int64_t> sizes_;
  const int64_t bytes_of_read_;
  const std::string writer_ = "somebody";
};

using Opened = Result<std::unique_ptr<StoredArray>>;

Opened Make(int64_t rows, int64_t bytes_of_read = 0) {
  return std::unique_ptr<StoredArray>(std::make_unique<Numbers>(rows, bytes_of_read));
}

Opened Open(const std::function<Opened()>& open) { return OpenInProcess("file", "its library", 0, open); }

TEST(ArrayProcessTest, CellsAndFaultsComeBack) {
  const Opened array = Open([]() -> Opened { return Make(300'001); });
  ASSERT_TRUE(array.ok()) << array.status().ToString();
  EXPECT_EQ((*array)->sizes(), (std::vector<int64_t>{300'001, 2}));
  EXPECT_EQ((*array)->column_major_writer(), "somebody");
  std::vector<double> cells(600'000);
  ASSERT_TRUE((*array)->Read(0, 300'000, cells.data()).ok());
  for (size_t k = 0; k < cells.size(); ++k) ASSERT_EQ(cells[k], static_cast<double>(k));
  EXPECT_EQ((*array)->Read(300'000, 300'001, cells.data()).ToString(), "the last row is damaged\nso it is");
  EXPECT_EQ(Open([]() -> Opened { return DataLoss("nothing is there"); }).status().message(),
            "nothing is there");
}

// Who waits for the end of a pipe or socket does not wait for a process that reads a file.
TEST(ArrayProcessTest, HoldsNoConversationOfItsParent) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Opened array = Open([]() -> Opened { return Make(1000); });
  ASSERT_TRUE(array.ok()) << array.status().ToString();
  close(ends[1]);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  close(ends[0]);
  double cells[2];
  EXPECT_TRUE((*array)->Read(7, 8, cells).ok());
}

class MemoryOfArrayProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HeapIsCounted()) GTEST_SKIP() << "the heap is the sanitizer's";
    limit_ = MemoryBudget::Process().limit();
    BlockPool::Process().Trim(INT64_MAX);  // What earlier tests have left there would make room.
    MemoryBudget::Process().SetLimit(MemoryBudget::Process().used() + 100 * kMegabyte);
  }
  void TearDown() override {
    if (HeapIsCounted()) MemoryBudget::Process().SetLimit(limit_);
  }
  int64_t limit_ = 0;
};

// As a damaged file makes libraries do it.
TEST_F(MemoryOfArrayProcessTest, WhatALibraryAsksForBeyondItsShareIsRefused) {
  const Opened large = Open([]() -> Opened {
    std::vector<char> bytes(static_cast<size_t>(300 * kMegabyte));
    std::memset(bytes.data(), 1, bytes.size());
    return Make(bytes.back());
  });
  EXPECT_EQ(large.status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(large.status().message().starts_with(
      "out of memory: cannot read 'file': 314572800 bytes are asked for at once, "))
      << large.status().ToString();
  const Opened many = Open([]() -> Opened {
    std::vector<std::string> pieces;
    for (int64_t i = 0; i < 300; ++i) pieces.emplace_back(static_cast<size_t>(kMegabyte), 'x');
    return Make(static_cast<int64_t>(pieces.size()));
  });
  EXPECT_EQ(many.status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(many.status().message().starts_with("out of memory: cannot read 'file': 10"))
      << many.status().ToString();
}

TEST_F(MemoryOfArrayProcessTest, TheBudgetIsChargedForWhatItMayHold) {
  MemoryBudget& budget = MemoryBudget::Process();
  const int64_t before = budget.used();
  {
    const Opened array = Open([]() -> Opened { return Make(1000, 40 * kMegabyte); });
    ASSERT_TRUE(array.ok()) << array.status().ToString();
    EXPECT_GE(budget.used(), before + 16 * kMegabyte);
    double cells[2];
    ASSERT_TRUE((*array)->Read(7, 8, cells).ok());
    EXPECT_EQ(cells[1], 15);
    EXPECT_GE(budget.used(), before + 56 * kMegabyte);
  }
  EXPECT_LT(budget.used(), before + kMegabyte);
  const Opened array = Open([]() -> Opened { return Make(1000, 200 * kMegabyte); });
  ASSERT_TRUE(array.ok()) << array.status().ToString();
  double cells[2];
  const Status refused = (*array)->Read(7, 8, cells);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(refused.message().starts_with("out of memory: what its library takes to read 'file', 209715"))
      << refused.ToString();
}

}  // namespace
}  // namespace heddle::ops
