// SPDX-License-Identifier: Apache-2.0
// Products with wide right operands inside fused operators, tile by tile: cell-wise operators before and
// after them, with the bytes of the operators one by one.
#include "body_builder.h"
#include "ops/base/cpu.h"
#include "ops/fused/program/tile_program.h"
#include "ops/product/matmul.h"

namespace heddle::ops::testing {
namespace {

// m, inner, n: around tiles of 144 rows, panels of 64, strips of 12 and 24 columns, steps of 256 and 512 of
// the inner dimension.
struct Sizes {
  int64_t m, inner, n;
};
void PrintTo(const Sizes& sizes, std::ostream* out) {
  *out << sizes.m << "x" << sizes.inner << "x" << sizes.n;
}
constexpr Sizes kSizes[] = {{2, 3, 64},      {7, 1, 65},    {143, 20, 72},  {145, 100, 96},  {289, 255, 100},
                            {600, 257, 131}, {1000, 2, 64}, {333, 600, 77}, {2100, 30, 200}, {130, 520, 500}};

// On every CPU that this machine has kernels for.
class WideProducts : public ::testing::TestWithParam<std::tuple<Cpu, Sizes>> {
 protected:
  void SetUp() override {
    // The other kernels can only run where the CPU has their instructions.
    if (!IsSupported(std::get<0>(GetParam())))
      GTEST_SKIP() << "this machine cannot run " << Name(std::get<0>(GetParam()));
    ASSERT_TRUE(ForceCpu(std::get<0>(GetParam())).ok());
  }
  void TearDown() override { ASSERT_TRUE(ForceCpu("auto").ok()); }
  Sizes sizes() const { return std::get<1>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Cpus, WideProducts,
                         ::testing::Combine(::testing::Values(Cpu::kAvx2, Cpu::kAvx512),
                                            ::testing::ValuesIn(kSizes)),
                         [](const auto& test) {
                           return std::string(Name(std::get<0>(test.param))) + "_" +
                                  ::testing::PrintToString(std::get<1>(test.param));
                         });

bool IsWide(const FusedOperator& fused) {
  const Result<TileProgram> program = Lower(fused);
  return program.ok() && HasWideProduct(*program);
}

TEST_P(WideProducts, AfterCellwiseOperatorsAndBeforeThem) {
  const auto [m, inner, n] = sizes();
  for (const bool before : {false, true}) {
    for (const bool after : {false, true}) {
      for (const char* root : {"", "sum", "colSums", "rowSums", "colMaxs", "mean"}) {
        if (!before && !after && *root == 0) continue;
        BodyBuilder body;
        const NodeId x = body.Input(Value(Cells(m, inner, 1))), b = body.Input(Value(Cells(inner, n, 2)));
        const NodeId row = body.Input(Value(Cells(1, n, 3))), column = body.Input(Value(Cells(m, 1, 4)));
        NodeId value = before ? body.Op("*", {body.Op("abs", {x}), column}) : x;
        value = body.Op("%*%", {value, b});
        if (after) value = body.Op("+", {body.Op("*", {value, column}), row});
        body.Finish({*root == 0 ? value : body.Op(root, {value})});
        EXPECT_TRUE(IsWide(body.fused()));
        body.ExpectSame(std::string(before ? "(|X|*w)" : "X") + "%*%B" + (after ? "*w+r " : " ") + root);
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(WideProducts, BesideOtherMatricesOfBothShapes) {
  const auto [m, inner, n] = sizes();
  for (const char* root : {"", "sum"}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(m, inner, 5))), b = body.Input(Value(Cells(inner, n, 6)));
    const NodeId y = body.Input(Value(Cells(m, n, 7))), z = body.Input(Value(Cells(m, inner, 8)));
    const NodeId error = body.Op("-", {body.Op("%*%", {body.Op("-", {x, z}), b}), y});
    const NodeId square = body.Op("*", {error, error});
    body.Finish({*root == 0 ? square : body.Op(root, {square})});
    body.ExpectSame(std::string("((X-Z)%*%B-Y)^2 ") + root);
  }
}

TEST_P(WideProducts, Softmax) {
  const auto [m, inner, n] = sizes();
  BodyBuilder body;
  const NodeId x = body.Input(Value(Cells(m, inner, 9))), b = body.Input(Value(Cells(inner, n, 10)));
  const NodeId product = body.Op("%*%", {x, b});
  const NodeId e = body.Op("exp", {body.Op("-", {product, body.Op("rowMaxs", {product})})});
  body.Finish({body.Op("/", {e, body.Op("rowSums", {e})})});
  body.ExpectSame("softmax of X%*%B");
}

TEST_P(WideProducts, OneAfterTheOther) {
  const auto [m, inner, n] = sizes();
  for (const int64_t k : {1, 5, 20, 70}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(m, inner, 11))), b = body.Input(Value(Cells(inner, n, 12))),
                 c = body.Input(Value(Cells(n, k, 13)));
    const NodeId hidden = body.Op("sigmoid", {body.Op("%*%", {x, b})});
    const NodeId out = body.Op("tanh", {body.Op("%*%", {hidden, c})});
    body.Finish({k == 5 ? body.Op("t%*%", {x, out}) : out});
    body.ExpectSame("tanh(sigmoid(X%*%B)%*%C) k=" + std::to_string(k));
  }
}

TEST_P(WideProducts, TransposedTimesThem) {
  const auto [m, inner, n] = sizes();
  if (inner * n > 1 << 18) return;  // Payloads are not that large.
  for (const bool multiplied : {false, true}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(m, inner, 18))), y = body.Input(Value(Cells(m, n, 19))),
                 w = body.Input(Value(Cells(m, 1, 20)));
    const NodeId p = multiplied
                         ? body.Op("sigmoid", {body.Op("%*%", {x, body.Input(Value(Cells(inner, n, 21)))})})
                         : body.Op("*", {y, w});
    body.Finish({body.Op("t%*%", {x, body.Op("-", {p, y})})});
    body.ExpectSame(multiplied ? "t(X)%*%(sigmoid(X%*%B)-Y)" : "t(X)%*%(Y*w-Y)");
  }
}

// t(Z) %*% Z: the upper half is computed, a tile after the other, the last columns as rows; beside it a
// product with other cells.
TEST_P(WideProducts, SymmetricHalves) {
  for (const int64_t n : {9, 24, 26, 33, 52, 100, 149, 265}) {
    for (const bool same : {true, false}) {
      for (const int64_t m : {sizes().m, 3 * sizes().m}) {
        BodyBuilder body;
        const NodeId x = body.Input(Value(Cells(m, n, 22, m < 300))), w = body.Input(Value(Cells(1, n, 23)));
        const NodeId z = body.Op("-", {x, w});
        body.Finish({body.Op("t%*%", {z, same ? z : body.Op("abs", {z})})});
        body.ExpectSame(fmt::format("t(X-w)%*%{} of {}x{}", same ? "(X-w)" : "abs(X-w)", m, n));
      }
    }
  }
}

TEST_P(WideProducts, ColumnsOfThem) {
  const auto [m, inner, n] = sizes();
  BodyBuilder body;
  const NodeId x = body.Input(Value(Cells(m, inner, 14))), b = body.Input(Value(Cells(inner, n, 15)));
  const NodeId product = body.Op("%*%", {x, b});
  const NodeId gated = body.Op(
      "*", {body.Op("sigmoid", {body.Columns(product, 1, n / 2)}), body.Columns(product, n - n / 2 + 1, n)});
  body.Finish({gated});
  body.ExpectSame("sigmoid(P[,1:n/2])*P[,...]");
}

TEST_P(WideProducts, OfASparseLeftOperand) {
  const auto [m, inner, n] = sizes();
  for (const char* root : {"", "sum"}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(*ToSparse(Cells(m, inner, 16, false, 0.2)))),
                 b = body.Input(Value(Cells(inner, n, 17)));
    const NodeId value = body.Op("exp", {body.Op("%*%", {x, b})});
    body.Finish({*root == 0 ? value : body.Op(root, {value})});
    body.ExpectSame(std::string("exp(CSR%*%B) ") + root);
  }
}

}  // namespace
}  // namespace heddle::ops::testing
