// SPDX-License-Identifier: Apache-2.0
// The operators compress and decompress: what they store how, and what they tell of it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>

#include "core/memory/block_pool.h"
#include "core/memory/memory_budget.h"
#include "core/values/column_groups.h"
#include "ops/base/cpu.h"
#include "ops/cells/storage.h"
#include "ops/compressed/compression_records.h"
#include "ops/compressed/numbered_columns.h"
#include "ops/fused/fused.h"
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
  for (const CompressionRecord& record : CompressionRecords::Process().Take(nullptr))
    text += ToText(record) + "\n";
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

// Whatever the room: the matrix stays as it is, and the record says so, as explain does.
TEST(CompressTest, WithoutRoomForGroupsTheMatrixStaysAsItIs) {
  const Matrix matrix = FewValues();
  WhatWasDone();
  MemoryBudget& budget = MemoryBudget::Process();
  const int64_t limit = budget.limit();
  int stays = 0, compressed = 0;
  for (const int64_t room : {int64_t{0}, int64_t{1} << 18, matrix.bytes() / 50, matrix.bytes()}) {
    BlockPool::Process().Trim();
    budget.SetLimit(budget.used() + room);
    CompressionRecord record;
    Result<Matrix> result = Matrix();
    const KernelContext context;
    Arena(2).Execute([&] { result = CompressedOf(matrix, matrix.bytes(), nullptr, context, &record); });
    budget.SetLimit(limit);
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    EXPECT_TRUE(Matrix::SameCells(*result, matrix));
    result->IsCompressed() ? ++compressed : ++stays;
    EXPECT_EQ(record.why_not, result->IsCompressed() ? "" : "there is no memory for the groups beside it");
  }
  EXPECT_GT(stays, 0);
  EXPECT_GT(compressed, 0);
}

// Numbers of the cells of a block, of each column and of several together, are those of first occurrence.
template <typename T>
void ExpectNumbersOfFirstOccurrence(int64_t columns, uint64_t different) {
  constexpr int64_t kRows = 3001;
  std::mt19937_64 random(static_cast<uint64_t>(columns));
  const T special[] = {T{-0.0}, T{0}, std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                       T{-3}, T{0.5}, T{5000}, T{31}, T{32}};
  std::vector<T> cells;
  for (int64_t k = 0; k < kRows * columns; ++k)
    cells.push_back(k % columns % 3 == 2 ? special[random() % std::size(special)]
                                         : static_cast<T>(random() % different));
  std::vector<int32_t> numbered;  // Without the second column.
  for (int32_t j = 0; j < columns; ++j)
    if (j != 1) numbered.push_back(j);
  NumberedColumns<T> block(numbered, columns, kRows);
  JointNumbers joint;
  for (int round = 0; round < 2; ++round) {
    block.Begin();
    block.Add(cells.data(), 1000);
    block.Add(cells.data() + 1000 * columns, kRows - 1000);
    ASSERT_EQ(block.rows(), kRows);
    std::map<std::vector<uint64_t>, uint16_t> tuples;
    for (const int32_t j : numbered) {
      TupleTable<T> table(1);
      for (int64_t i = 0; i < kRows; ++i) {
        const T cell = Canonical(cells[static_cast<size_t>(i * columns + j)]);
        ASSERT_EQ(block.numbers(j)[i], table.Add(&cell)) << "row " << i << " of column " << j;
      }
      const size_t bytes = table.cells().size() * sizeof(T);
      ASSERT_EQ(std::memcmp(block.cells(j).data(), table.cells().data(), bytes), 0);
      if (j == 0)
        joint.Begin(block.numbers(j), table.size(), kRows);
      else
        joint.Join(block.numbers(j), table.size());
    }
    if (numbered.size() < 2) continue;
    for (int64_t i = 0; i < kRows; ++i) {
      std::vector<uint64_t> tuple;
      for (const int32_t j : numbered) tuple.push_back(block.numbers(j)[i]);
      const auto [found, is_new] = tuples.emplace(tuple, tuples.size());
      ASSERT_EQ(joint.numbers()[i], found->second) << "row " << i;
      if (is_new) {
        ASSERT_EQ(joint.first_rows()[found->second], i);
      }
    }
    EXPECT_EQ(joint.first_rows().size(), tuples.size());
  }
}
TEST(CompressTest, CellsAreNumberedByFirstOccurrence) {
  for (const int64_t columns : {1, 3, 4, 7, 8, 9, 17})
    for (const uint64_t different : {2, 32, 40, 2500}) {
      SCOPED_TRACE(::testing::Message() << columns << " columns of " << different);
      ExpectNumbersOfFirstOccurrence<double>(columns, different);
      ExpectNumbersOfFirstOccurrence<float>(columns, different);
    }
}

// What the compiler puts in front of a loop has to pay for itself.
TEST(CompressTest, WhatALoopReadsTooSeldomStays) {
  const Matrix matrix = FewValues();
  Matrix stored;
  CompressionRecord record;
  KernelContext context;
  const Scalar many(1e6), few(2.0);
  stored = *CompressedOf(matrix, matrix.bytes(), &many, context, &record);
  if (stored.IsCompressed()) {  // The last-level cache is smaller than the matrix.
    EXPECT_EQ(record.why_not, "");
    stored = *CompressedOf(matrix, matrix.bytes(), &few, context, &record);
    EXPECT_NE(record.why_not.find("2 reads of it would save as much as"), std::string::npos)
        << record.why_not;
  } else {
    EXPECT_EQ(record.why_not, "it fits in the last-level cache");
  }
  EXPECT_TRUE(RunOn("compress", matrix).IsCompressed());
}

// Entries of a CSR matrix that comes from a file may be -0.0, which operators would not see in column groups.
TEST(CompressTest, SparseMatricesWithSignedZerosStayAsTheyAre) {
  WhatWasDone();
  for (const ElementType type : {ElementType::kFloat64, ElementType::kFloat32}) {
    Matrix sparse = *ToElementType(*AsSparse(FewValues(10)), type);
    EXPECT_TRUE(RunOn("compress", sparse).IsCompressed());
    type == ElementType::kFloat64 ? sparse.mutable_values<double>()[5] = -0.0
                                  : sparse.mutable_values<float>()[5] = -0.0f;
    EXPECT_TRUE(RunOn("compress", sparse).IsSparse());
    EXPECT_NE(WhatWasDone().find("it is sparse and has cells of -0.0"), std::string::npos);
  }
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
  records.Add(nullptr, {.place = "line 3 of x.dml",
                        .plain_bytes = 8'000'000,
                        .bytes = 1'000'000,
                        .ns = 2'000'000,
                        .groups = "A"});
  records.Add(nullptr, {.place = "line 3 of x.dml",
                        .plain_bytes = 8'000'000,
                        .bytes = 1'000'000,
                        .ns = 2'000'000,
                        .groups = "B"});
  records.Add(nullptr,
              {.place = "line 3 of x.dml", .plain_bytes = 100, .bytes = 100, .why_not = "it is small"});
  EXPECT_EQ(
      WhatWasDone(),
      "line 3 of x.dml, 3 times: 16.0 MB to 2.0 MB (8.0 times smaller) in 0.004 s: B; 1 times as it is: it is small\n");
  EXPECT_EQ(WhatWasDone(), "");
}

// Sessions of one process at the same time tell what each of them has compressed.
TEST(CompressTest, RecordsAreThoseOfASession) {
  WhatWasDone();
  FusedRuntime first(nullptr, false, {}), second(nullptr, false, {});
  testing::Invocation call("compress", {Value(FewValues())});
  for (FusedRuntime* const session : {&first, &second, &first}) {
    call.context.fused = session;
    ASSERT_TRUE(call.RunRows(0, 0, 0).ok());
  }
  CompressionRecords& records = CompressionRecords::Process();
  const std::vector<CompressionRecord> of_first = records.Take(&first), of_second = records.Take(&second);
  ASSERT_EQ(of_first.size(), 1u);
  ASSERT_EQ(of_second.size(), 1u);
  EXPECT_EQ(of_first[0].calls, 2 * of_second[0].calls);
  EXPECT_TRUE(records.Take(&first).empty());
  EXPECT_EQ(WhatWasDone(), "");
}

// A panel fits in any cache: what counts is the matrix that it is a part of.
TEST(CompressTest, PanelsOfALargeMatrixAreCompressed) {
  const Matrix panel = FewValues();
  const Scalar reads(1000.0), few_reads(15.0);
  KernelContext context;
  CompressionRecord record;
  EXPECT_FALSE(CompressedOf(panel, SecondLevelCacheBytes() + 1, &reads, context, &record)->IsCompressed());
  EXPECT_EQ(record.why_not, "it fits in the last-level cache");
  EXPECT_TRUE(CompressedOf(panel, int64_t{1} << 40, &reads, context, &record)->IsCompressed());
  // Where memory holds the whole, few reads do not pay for compressing; reads of files do.
  MemoryBudget& budget = MemoryBudget::Process();
  const int64_t limit = budget.limit();
  budget.SetLimit(int64_t{1} << 42);
  EXPECT_FALSE(CompressedOf(panel, int64_t{1} << 40, &few_reads, context, &record)->IsCompressed());
  EXPECT_TRUE(record.why_not.starts_with("15 reads of it would save as much as ")) << record.why_not;
  budget.SetLimit(int64_t{1} << 40);
  EXPECT_TRUE(CompressedOf(panel, int64_t{1} << 40, &few_reads, context, &record)->IsCompressed());
  budget.SetLimit(limit);
}

// Three columns with 1,000 values and 25 with 200, which products look up in the caches.
Matrix ManyLookUps() {
  Matrix matrix = *Matrix::Dense(20'000, 28);
  for (int64_t i = 0; i < matrix.cells(); ++i) {
    const int64_t values = i % 28 < 3 ? 1000 : 200;
    matrix.mutable_data()[i] = static_cast<double>((i * 7919 + i / 28 * 104'729) % values);
  }
  return matrix;
}

// What dictionaries tell looks no cell up.
TEST(CompressTest, ReadsDecideByWhatTheyAsk) {
  const Matrix matrix = ManyLookUps();
  KernelContext context;
  CompressionRecord record;
  constexpr int64_t kLarge = int64_t{1} << 40;
  const Scalar reads(1000.0), half(500.0);
  const auto is_made = [&](const Scalar* of_tuples) {
    return CompressedOf(matrix, kLarge, &reads, context, &record, of_tuples)->IsCompressed();
  };
  EXPECT_FALSE(is_made(nullptr)) << record.groups;
  EXPECT_FALSE(is_made(&half)) << record.groups;
  EXPECT_TRUE(is_made(&reads)) << record.why_not;
  // Sums that are rounded read every cell.
  Matrix rounded = *Matrix::Dense(matrix.rows(), matrix.columns());
  for (int64_t i = 0; i < matrix.cells(); ++i) rounded.mutable_data()[i] = matrix.data()[i] / 3;
  EXPECT_FALSE(CompressedOf(rounded, kLarge, &reads, context, &record, &reads)->IsCompressed());
}

TEST(CompressTest, NamesGroupsByEncoding) {
  const Matrix matrix = FewValues();
  CompressionRecord record;
  KernelContext context;
  const Matrix compressed = *CompressedOf(matrix, matrix.bytes(), nullptr, context, &record);
  ASSERT_TRUE(compressed.IsCompressed());
  EXPECT_EQ(record.groups, GroupsText(compressed.groups()));
  EXPECT_NE(record.groups.find("columns in"), std::string::npos) << record.groups;
  EXPECT_NE(record.groups.find("tuples)"), std::string::npos) << record.groups;
}

}  // namespace
}  // namespace heddle::ops
