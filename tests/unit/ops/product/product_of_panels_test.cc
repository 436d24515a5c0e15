// SPDX-License-Identifier: Apache-2.0
#include "ops/product/product_of_panels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "ops/base/held_bytes.h"
#include "ops/panels/panel_store.h"
#include "tests/unit/ops/panels/panels_fixture.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::FilesInMemory;
using testing::Inputs;
using testing::Invocation;
using testing::RandomCells;

struct PanelProduct {
  Matrix cells;
  PanelStatistics statistics;
};

// The product of operands that are panels in files, of which `held_bytes` may be in memory.
PanelProduct Multiply(const Matrix& a, const Matrix& y, int64_t held_bytes) {
  FilesInMemory files;
  const std::unique_ptr<PanelStore> store = MakePanelStore(files, /*least_panel_bytes=*/1);
  EXPECT_TRUE(store->SetRoom(0).ok());
  const auto in_files = [&](const Matrix& x) {
    const auto collector = store->Collect(x.shape(), false);
    EXPECT_TRUE(collector->Add(Value(x)).ok());
    return Value(*collector->Finish());
  };
  Invocation call("%*%", {Value(a), Value(y)});
  const Result<std::vector<ValueInfo>> infos = call.InferWith(call.scalars);
  call.SetInfos(*infos);
  call.node.info.element_type = a.element_type();
  for (size_t i = 0; i < 2; ++i) call.infos[i].element_type = a.element_type();
  EXPECT_TRUE(MultipliesPanels(call.node, call.infos));
  call.node.SetAttribute(kHeldBytes, Scalar(held_bytes));
  call.context.panels = store.get();
  const std::vector<Value> inputs = {in_files(a), in_files(y)};
  const std::vector<const Value*> pointers = {&inputs[0], &inputs[1]};
  Value result;
  const Status status = CatalogKernels().Run({.node = call.node,
                                              .phase = Phase::kPanels,
                                              .inputs = pointers,
                                              .input_infos = call.infos,
                                              .context = call.context,
                                              .op = call.op},
                                             {&result, 1});
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(result.IsPanels());
  if (!result.IsPanels()) return {};
  PanelProduct product{.statistics = store->Statistics()};
  product.cells = result.panels()->Rows(0, result.shape().rows)->matrix();
  return product;
}

TEST(ProductOfPanelsTest, CellsAreThoseOfTheWholeProduct) {
  struct Size {
    int64_t m, k, n;
  };
  for (const Size& size :
       {Size{300, 200, 250}, {1, 300, 7'000}, {700, 90, 9}, {64, 1000, 64}, {513, 65, 129}}) {
    const Matrix a = RandomCells(size.m, size.k, 1), y = RandomCells(size.k, size.n, 2);
    Invocation whole("%*%", {Value(a), Value(y)});
    const Matrix expected = whole.RunMatrices()[0];
    for (const int64_t held_bytes : {int64_t{40'000}, int64_t{400'000}, int64_t{1} << 30}) {
      const PanelProduct product = Multiply(a, y, held_bytes);
      EXPECT_TRUE(Matrix::SameCells(product.cells, expected))
          << size.m << " x " << size.k << " x " << size.n << ", " << held_bytes;
    }
  }
}

TEST(ProductOfPanelsTest, FloatsAreAddedUpInWholeBlocks) {
  const Matrix a = *ToElementType(RandomCells(200, 700, 1), ElementType::kFloat32);
  const Matrix y = *ToElementType(RandomCells(700, 150, 2), ElementType::kFloat32);
  const PanelProduct whole = Multiply(a, y, int64_t{1} << 30);
  for (const int64_t held_bytes : {int64_t{50'000}, int64_t{200'000}})
    EXPECT_TRUE(Matrix::SameCells(Multiply(a, y, held_bytes).cells, whole.cells)) << held_bytes;
}

// What is read is what the blocks say, beside operands that are cut into slices and blocks that are joined.
TEST(ProductOfPanelsTest, OperandsAreReadOncePerBlock) {
  constexpr int64_t kSide = 1500, kHeldBytes = 3 << 20;
  const Matrix a = RandomCells(kSide, kSide, 1), y = RandomCells(kSide, kSide, 2);
  const ProductBlocks blocks = BlocksOfProduct(kSide, kSide, kSide, kHeldBytes);
  const int64_t passes = CeilDivide(kSide, blocks.rows) + CeilDivide(kSide, blocks.columns);
  EXPECT_GT(passes, 4);
  const PanelProduct product = Multiply(a, y, kHeldBytes);
  const double read = static_cast<double>(product.statistics.read_bytes) / (8 * kSide * kSide);
  EXPECT_GE(read, static_cast<double>(passes));
  EXPECT_LE(read, 1.5 * static_cast<double>(passes + 3)) << "chunks of which only a part is needed";
}

// At most 1.2 times the least that any order of the multiplications reads, where there is more than one
// block.
TEST(ProductOfPanelsTest, BlocksAreReadAboutAsRarelyAsCanBe) {
  for (const int64_t held : {int64_t{100} << 20, int64_t{1} << 30})
    for (const int64_t side : {int64_t{100'000}, int64_t{300'000}, int64_t{1'000'000}}) {
      const ProductBlocks blocks = BlocksOfProduct(side, side, side, held);
      const double passes = 1.0 * static_cast<double>(CeilDivide(side, blocks.rows)) +
                            static_cast<double>(CeilDivide(side, blocks.columns));
      EXPECT_LE(passes, 1.2 * 2 * static_cast<double>(side) / std::sqrt(static_cast<double>(held) / 8))
          << side << ", " << held;
    }
}

TEST(ProductOfPanelsTest, BlocksFitInWhatMayBeHeld) {
  struct Size {
    int64_t m, k, n;
  };
  for (const int64_t held : {int64_t{1} << 20, int64_t{100} << 20, int64_t{1} << 30})
    for (const Size& size : {Size{1'000'000, 50'000, 50'000},
                             {50'000, 50'000, 1'000'000},
                             {100, 10'000'000, 10'000},
                             {10'000'000, 1000, 20}}) {
      const ProductBlocks blocks = BlocksOfProduct(size.m, size.k, size.n, held);
      const int64_t cells = blocks.rows * blocks.columns + blocks.inner * (blocks.rows + blocks.columns);
      EXPECT_LE(cells * 8, held) << size.m << " " << size.k << " " << size.n;
      EXPECT_GE(blocks.rows, 1);
      EXPECT_LE(blocks.rows, size.m);
      EXPECT_LE(blocks.columns, size.n);
    }
}

}  // namespace
}  // namespace heddle::ops
