// SPDX-License-Identifier: Apache-2.0
// What is in memory while the values of a checkpoint are written and read.
#include "engine/checkpoints/checkpoint_file.h"

#include <gtest/gtest.h>

#include <atomic>
#include <utility>

#include "core/memory/block_pool.h"
#include "core/memory/memory_budget.h"
#include "ops/frame/row_pieces.h"
#include "ops/panels/spill_files.h"
#include "tests/unit/engine/memory_checkpoints.h"

namespace heddle::engine {
namespace {

constexpr const char* kName = "test/1-1";
constexpr int64_t kMiB = int64_t{1} << 20;

// Rows of a value, and how many bytes of them were asked for at a time.
class WatchedPanels : public RowPanels {
 public:
  explicit WatchedPanels(Value value) : value_(std::move(value)) {}
  Shape shape() const override { return value_.shape(); }
  bool IsFrame() const override { return value_.IsFrame(); }
  int64_t bytes() const override { return 0; }
  Result<Value> Rows(int64_t begin, int64_t end) const override {
    HEDDLE_ASSIGN_OR_RETURN(Value rows, ops::SliceRows(value_, begin, end));
    most_bytes_ = std::max(most_bytes_, rows.bytes());
    ++reads_;
    return rows;
  }
  int64_t most_bytes() const { return most_bytes_; }
  int reads() const { return reads_; }

 private:
  const Value value_;
  mutable int64_t most_bytes_ = 0;
  mutable int reads_ = 0;
};

Matrix Numbered(int64_t rows, int64_t columns) {
  Matrix matrix = *Matrix::Dense(rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i) matrix.mutable_data()[i] = static_cast<double>(i);
  return matrix;
}

ControlState StateOf(Variable variable) {
  ControlState state;
  state.seeds.push_back({});
  VariableTable frame;
  frame.Set("X", std::move(variable));
  state.frames.push_back(std::move(frame));
  return state;
}

class CheckpointFileTest : public testing::Test {
 protected:
  // Writes it as panels of one rank, reads it back.
  Value ThroughPanels(const Value& value, const ValueInfo& info, int64_t piece_bytes) {
    const auto panels = std::make_shared<const WatchedPanels>(value);
    Variable variable{.value = Value(std::shared_ptr<const RowPanels>(panels)), .info = info};
    variable.is_panels = true;
    EXPECT_TRUE(WriteCheckpoint(StateOf(std::move(variable)), 0, kName, store_, piece_bytes).ok());
    most_bytes_ = panels->most_bytes();
    reads_ = panels->reads();
    const Result<ControlState> read = ReadCheckpoint(kName, 1, 0, 1, store_, *panels_);
    EXPECT_TRUE(read.ok()) << read.status().ToString();
    const Value found = read->frames[0].Find("X")->value;
    EXPECT_TRUE(found.IsPanels());
    return *found.panels()->Rows(0, value.shape().rows);
  }

  MemoryCheckpoints store_;
  const std::unique_ptr<ops::SpillFiles> files_ = ops::MakeSpillFiles("");
  const std::unique_ptr<ops::PanelStore> panels_ = ops::MakePanelStore(*files_);
  int64_t most_bytes_ = 0;
  int reads_ = 0;
};

TEST_F(CheckpointFileTest, PanelsAreReadAPieceAtATime) {
  const Matrix dense = Numbered(100'000, 10);
  const Value found = ThroughPanels(Value(dense), ValueInfo::OfMatrix(dense.shape()), kMiB);
  EXPECT_LE(most_bytes_, kMiB);
  EXPECT_LE(reads_, 10);
  EXPECT_EQ(found.matrix().At(77'777, 3), dense.At(77'777, 3));
}

// Their rows tell how many bytes they have, and nothing else does.
TEST_F(CheckpointFileTest, RowsOfEntriesAndTextsAreReadAPieceAtATime) {
  const Matrix sparse = *ToSparse(Numbered(50'000, 10));
  ValueInfo info = ValueInfo::OfMatrix(sparse.shape());
  info.format = Format::kSparse;
  const Value found = ThroughPanels(Value(sparse), info, kMiB);
  EXPECT_LE(most_bytes_, 2 * kMiB);
  EXPECT_EQ(found.matrix().At(44'444, 7), sparse.At(44'444, 7));

  const std::string text(1'000, 'x');
  const std::vector<std::string_view> texts(8'000, text);
  auto schema = std::make_shared<Schema>();
  schema->types = {ColumnType::kString};
  const Frame frame(schema, {*Column::OfTexts(texts)});
  const Value read = ThroughPanels(Value(frame), ValueInfo::OfFrame(frame.rows(), schema), kMiB);
  EXPECT_LE(most_bytes_, 2 * kMiB);
  EXPECT_TRUE(Frame::SameCells(read.frame(), frame));
}

Variable SplitOver(std::vector<int64_t> cuts, const Matrix& whole, int rank) {
  const auto at = static_cast<size_t>(rank);
  Variable variable{.value = Value(whole.Rows(cuts[at], cuts[at + 1])),
                    .info = ValueInfo::OfMatrix(whole.shape())};
  variable.distribution = {.kind = Distribution::Kind::kSplit, .split = {.cuts = std::move(cuts)}};
  return variable;
}

// A rank that gets nothing of a value reads nothing of it.
TEST_F(CheckpointFileTest, ARankWithoutRowsHoldsNoneInMemory) {
  const Matrix matrix = Numbered(100'000, 10);
  ASSERT_TRUE(WriteCheckpoint(StateOf(SplitOver({0, 100'000}, matrix, 0)), 0, kName, store_, kMiB).ok());
  BlockPool::Process().Trim();
  const int64_t before = BlockPool::Process().Statistics().in_use_bytes;
  MemoryBudget& budget = MemoryBudget::Process();
  const int64_t limit = budget.limit();
  budget.SetLimit(budget.used() + kMiB);
  const Result<ControlState> state = ReadCheckpoint(kName, 1, /*rank=*/0, /*ranks=*/2, store_, *panels_);
  budget.SetLimit(limit);
  ASSERT_TRUE(state.ok()) << state.status().ToString();
  EXPECT_EQ(state->frames[0].Find("X")->value.shape(), (Shape{0, 10}));
  EXPECT_LE(BlockPool::Process().Statistics().in_use_bytes - before, 64 << 10);
  const Result<ControlState> other = ReadCheckpoint(kName, 1, /*rank=*/1, /*ranks=*/2, store_, *panels_);
  ASSERT_TRUE(other.ok()) << other.status().ToString();
  EXPECT_EQ(other->frames[0].Find("X")->value.matrix().At(99'999, 9), 999'999.0);
}

// Parts of neighbours are not in memory beside the value that they become.
TEST_F(CheckpointFileTest, PartsOfLargeValuesAreReadOneAfterTheOther) {
  const Matrix matrix = Numbered(500'000, 10);
  for (int rank = 0; rank < 3; ++rank)
    ASSERT_TRUE(WriteCheckpoint(StateOf(SplitOver({0, 100'000, 300'000, 500'000}, matrix, rank)), rank, kName,
                                store_, kMiB)
                    .ok());
  ASSERT_TRUE(panels_->SetRoom(0).ok());
  BlockPool::Process().Trim();
  MemoryBudget& budget = MemoryBudget::Process();
  const int64_t limit = budget.limit();
  budget.SetLimit(budget.used() + 60 * kMiB);  // The value has 38 MiB, its largest part 15.
  const Result<ControlState> state = ReadCheckpoint(kName, 3, 0, 1, store_, *panels_);
  budget.SetLimit(limit);
  ASSERT_TRUE(state.ok()) << state.status().ToString();
  const Variable& found = *state->frames[0].Find("X");
  ASSERT_TRUE(found.value.IsMatrix());
  for (int64_t row = 0; row < matrix.rows(); row += 999)
    ASSERT_EQ(found.value.matrix().At(row, 5), matrix.At(row, 5)) << row;
}

}  // namespace
}  // namespace heddle::engine
