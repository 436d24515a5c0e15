// SPDX-License-Identifier: Apache-2.0
// The operators compress and decompress: what they store how, and what they tell of it.
#include <gtest/gtest.h>

#include <cmath>

#include "core/values/column_groups.h"
#include "ops/base/cpu.h"
#include "ops/cells/storage.h"
#include "ops/compressed/compression_records.h"
#include "tests/support/frames.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

// Ten columns of few values, larger than the cache of a core.
Matrix FewValues(int64_t times = 5) {
  const int64_t rows = times * SecondLevelCacheBytes() / 80;
  Matrix matrix = *Matrix::Dense(rows, 10);
  for (int64_t i = 0; i < matrix.cells(); ++i)
    matrix.mutable_data()[i] = static_cast<double>((i * 2654435761) >> 7 & 7) * (i % 3 == 0 ? 0.5 : 0);
  return matrix;
}

Matrix RunOn(const std::string& op, const Matrix& matrix, testing::Attributes attributes = {}) {
  testing::Invocation call(op, {Value(matrix)}, std::move(attributes));
  const Result<Value> result = call.RunRows(0, 0, 0, /*threads=*/2);
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  return result.ok() ? result->matrix() : Matrix();
}

std::string WhatWasDone() {
  std::string text;
  for (const CompressionRecord& record : CompressionRecords::Process().Take()) text += ToText(record) + "\n";
  return text;
}

TEST(CompressTest, StoresColumnGroupsAndGivesThemBack) {
  const Matrix matrix = FewValues(/*times=*/5);  // Also of floats.
  WhatWasDone();
  for (const Matrix& stored : {matrix, *AsSparse(matrix), *ToElementType(matrix, ElementType::kFloat32)}) {
    const Matrix compressed = RunOn("compress", stored);
    EXPECT_TRUE(compressed.IsCompressed());
    EXPECT_EQ(compressed.element_type(), stored.element_type());
    EXPECT_LT(compressed.bytes(), stored.bytes() / 2);
    EXPECT_TRUE(Matrix::SameCells(compressed, stored));
    // What is compressed stays so; what is not compressed is nothing to decompress.
    EXPECT_TRUE(Matrix::SameCells(RunOn("compress", compressed), stored));
    const Matrix cells = RunOn("decompress", compressed);
    EXPECT_FALSE(cells.IsCompressed());
    EXPECT_TRUE(Matrix::SameCells(cells, stored));
  }
  EXPECT_TRUE(Matrix::SameCells(RunOn("decompress", matrix), matrix));
}

TEST(CompressTest, LeavesWhatDoesNotPay) {
  WhatWasDone();
  EXPECT_FALSE(RunOn("compress", *FilledMatrix(100, 3, 1)).IsCompressed());
  EXPECT_NE(WhatWasDone().find("as it is: it fits in the cache of a core"), std::string::npos);
  Matrix different = FewValues();
  for (int64_t i = 0; i < different.cells(); ++i)
    different.mutable_data()[i] = std::sqrt(static_cast<double>(i));
  EXPECT_FALSE(RunOn("compress", different).IsCompressed());
  EXPECT_NE(WhatWasDone().find("as it is: it would take 1.00 of its bytes, and "), std::string::npos);
  EXPECT_EQ(RunOn("compress", *Matrix::Dense(0, 4)).shape(), (Shape{0, 4}));
  EXPECT_EQ(RunOn("compress", *Matrix::Dense(4, 0)).shape(), (Shape{4, 0}));
}

// What the compiler puts in front of a loop has to pay for itself.
TEST(CompressTest, WhatALoopReadsTooSeldomStays) {
  const Matrix matrix = FewValues();
  Matrix stored;
  CompressionRecord record;
  KernelContext context;
  const Scalar many(1e6), few(2.0);
  stored = *CompressedOf(matrix, &many, context, &record);
  if (stored.IsCompressed()) {  // The last-level cache is smaller than the matrix.
    EXPECT_EQ(record.why_not, "");
    stored = *CompressedOf(matrix, &few, context, &record);
    EXPECT_NE(record.why_not.find("2 reads of it would save as much as"), std::string::npos)
        << record.why_not;
  } else {
    EXPECT_EQ(record.why_not, "it fits in the last-level cache");
  }
  EXPECT_TRUE(RunOn("compress", matrix).IsCompressed());
}

TEST(CompressTest, FramesStayAsTheyAre) {
  testing::Invocation call("compress", {Value(NumberedFrame(10))});
  const Result<Value> result = call.RunRows(0, 0, 0);
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_TRUE(Frame::SameCells(result->frame(), NumberedFrame(10)));
}

TEST(CompressTest, RecordsAddUpByPlace) {
  WhatWasDone();
  CompressionRecords& records = CompressionRecords::Process();
  records.Add({.place = "line 3 of x.dml",
               .plain_bytes = 8'000'000,
               .bytes = 1'000'000,
               .ns = 2'000'000,
               .groups = "A"});
  records.Add({.place = "line 3 of x.dml",
               .plain_bytes = 8'000'000,
               .bytes = 1'000'000,
               .ns = 2'000'000,
               .groups = "B"});
  records.Add({.place = "line 3 of x.dml", .plain_bytes = 100, .bytes = 100, .why_not = "it is small"});
  EXPECT_EQ(
      WhatWasDone(),
      "line 3 of x.dml, 3 times: 16.0 MB to 2.0 MB (8.0 times smaller) in 0.004 s: B; 1 times as it is: it is small\n");
  EXPECT_EQ(WhatWasDone(), "");
}

TEST(CompressTest, NamesGroupsByEncoding) {
  const Matrix matrix = FewValues();
  CompressionRecord record;
  KernelContext context;
  const Matrix compressed = *CompressedOf(matrix, nullptr, context, &record);
  ASSERT_TRUE(compressed.IsCompressed());
  EXPECT_EQ(record.groups, GroupsText(compressed.groups()));
  EXPECT_NE(record.groups.find("columns in"), std::string::npos) << record.groups;
  EXPECT_NE(record.groups.find("tuples)"), std::string::npos) << record.groups;
}

}  // namespace
}  // namespace heddle::ops
