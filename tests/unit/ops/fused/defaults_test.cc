// SPDX-License-Identifier: Apache-2.0
// Functions of a CSR matrix that are not zero elsewhere: values at its entries and one for the rest of each
// row.
#include "body_builder.h"
#include "ops/fused/program/tile_program.h"
#include "ops/fused/rows/background_rows.h"

namespace heddle::ops::testing {
namespace {

TEST(DefaultsTest, RepeatedAdditionsAreThoseOfALoop) {
  std::mt19937_64 random(7);
  const auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  for (int i = 0; i < 3000; ++i) {
    double sum = std::ldexp(unit(), static_cast<int>(random() % 40) - 20),
           x = std::ldexp(unit(), static_cast<int>(random() % 60) - 50);
    if (i % 3 == 0) x = std::ldexp(1.0, static_cast<int>(random() % 60) - 55);  // Ties.
    if (i % 5 == 0) sum = 0;
    if (i % 7 == 0) x = 1.5 * std::ldexp(1.0, std::ilogb(sum + 1) - 53);
    if (i % 4 == 1) x = -x;
    if (i % 8 == 1) sum = -sum;
    if (i % 97 == 0) x = std::ldexp(x, -1000);
    if (i % 101 == 0) x = i % 2 == 0 ? INFINITY : NAN;
    if (i % 103 == 0) sum = 1.7e308, x = 1e305;
    const int64_t times = static_cast<int64_t>(random() % 20000);
    double expected = sum;
    for (int64_t k = 0; k < times; ++k) expected += x;
    const double actual = AddRepeatedly(sum, x, times);
    ASSERT_TRUE(expected == actual || (std::isnan(expected) && std::isnan(actual)))
        << sum << " + " << times << " * " << x << ": " << expected << ", " << actual;
  }
}

struct RowsCase {
  Shape shape;
  double density;
};
constexpr RowsCase kCases[] = {
    {{130, 3}, 0.4}, {{100, 64}, 0.1},  {{70, 1000}, 0.02}, {{9, 20000}, 0.001}, {{3, 65536}, 0.0},
    {{515, 16}, 1},  {{20, 3000}, 0.3}, {{1000, 7}, 0.01},  {{5, 65535}, 1e-4},  {{300, 2500}, 0.0005}};

void ExpectDefaults(BodyBuilder& body, const std::string& what) {
  const Result<TileProgram> program = Lower(body.fused());
  ASSERT_TRUE(program.ok()) << what << ": " << program.status().ToString();
  EXPECT_TRUE(program->has_background) << what;
  body.ExpectSame(what);
}

TEST(DefaultsTest, SoftmaxIntoEveryRoot) {
  for (const auto& [shape, density] : kCases) {
    for (const char* root : {"", "rowSums", "rowMaxs", "rowMeans", "rowMins", "rowProds", "rowVars",
                             "rowIndexMax", "sum", "min", "colSums", "colMaxs", "%*%", "t%*%"}) {
      if (shape.Cells() > 100000 && std::string_view("rowSums rowMaxs").find(root) == std::string_view::npos)
        continue;
      BodyBuilder body;
      const NodeId x = body.Input(Value(*ToSparse(Cells(shape.rows, shape.columns, 1, false, density))));
      const NodeId e = body.Op("exp", {body.Op("-", {x, body.Op("rowMaxs", {x})})});
      NodeId value = body.Op("/", {e, body.Op("rowSums", {e})});
      const std::string name = root;
      if (name == "%*%")
        value = body.Op(name, {value, body.Input(Value(Cells(shape.columns, 3, 2)))});
      else if (name == "t%*%")
        value = body.Op(name, {value, body.Input(Value(Cells(shape.rows, 2, 3)))});
      else if (!name.empty())
        value = body.Op(name, {value});
      body.Finish({value});
      ExpectDefaults(body, fmt::format("softmax {} {} {}", name, shape, density));
    }
  }
}

// Special cells, defaults that are negative, infinite, not a number, or scalars; dense values and row vectors
// beside them; a CSR result at the entries.
TEST(DefaultsTest, OddDefaults) {
  for (const auto& [shape, density] : kCases) {
    if (shape.Cells() > 100000) continue;
    for (int variant = 0; variant < 8; ++variant) {
      BodyBuilder body;
      const NodeId x = body.Input(Value(*ToSparse(Cells(shape.rows, shape.columns, 4, true, density))));
      const NodeId column = body.Input(Value(Cells(shape.rows, 1, 5, true))),
                   row = body.Input(Value(Cells(1, shape.columns, 6))),
                   dense = body.Input(Value(Cells(shape.rows, shape.columns, 7)));
      const NodeId two = body.Literal(Scalar(2.0)), s = body.Input(Value(Scalar(-0.75)));
      NodeId value = body.Op("exp", {body.Op("*", {body.Op("-", {x, column}), s})});
      if (variant == 0) value = body.Op("-", {two, value});
      if (variant == 1) value = body.Op("log", {body.Op("+", {x, two}), kNoNode});
      if (variant == 2) value = body.Op("+", {value, row});
      if (variant == 3) value = body.Op("*", {value, dense});
      if (variant == 4) value = body.Op("*", {x, body.Op("/", {value, body.Op("rowSums", {value})})});
      if (variant == 5) value = body.Op("ifelse", {x, value, s});
      if (variant == 6) value = body.Op("/", {body.Op("log", {x, kNoNode}), column});
      if (variant == 7) value = body.Op("+", {body.Op("*", {body.Op("exp", {x}), dense}), value});
      const NodeId sums = body.Op("rowSums", {value});
      body.Finish({value});
      body.ExpectSame(fmt::format("variant {} {} {}", variant, shape, density));
      body.Finish({sums});
      body.ExpectSame(fmt::format("sums of variant {} {} {}", variant, shape, density));
    }
  }
}

TEST(DefaultsTest, ResultsAtTheEntriesStayThere) {
  BodyBuilder body;
  const NodeId x = body.Input(Value(*ToSparse(Cells(300, 200, 8, false, 0.02))));
  const NodeId e = body.Op("exp", {body.Op("-", {x, body.Op("rowMaxs", {x})})});
  body.Finish({body.Op("*", {x, body.Op("/", {e, body.Op("rowSums", {e})})})});
  const Result<TileProgram> program = Lower(body.fused());
  ASSERT_TRUE(program.ok());
  EXPECT_TRUE(program->IsPatterned(0));
  EXPECT_TRUE(std::none_of(program->buffers.begin(), program->buffers.end(),
                           [](int64_t columns) { return columns > 1; }));
  ExpectDefaults(body, "X * softmax(X)");
}

// What a value is elsewhere is found once, however often it is read: there are 2^60 ways through these.
TEST(DefaultsTest, ChainsOfValuesThatAreReadTwice) {
  BodyBuilder body;
  const NodeId x = body.Input(Value(*ToSparse(Cells(20, 100, 10, false, 0.05))));
  NodeId value = body.Op("exp", {body.Op("-", {x, body.Op("rowMaxs", {x})})});
  for (int i = 0; i < 60; ++i) value = body.Op("+", {body.Op("sin", {value}), body.Op("cos", {value})});
  body.Finish({body.Op("rowSums", {value})});
  ExpectDefaults(body, "sin(x) + cos(x), sixty times");
}

TEST(DefaultsTest, DenseTilesWhereNothingIsSaved) {
  BodyBuilder body;
  const NodeId x = body.Input(Value(*ToSparse(Cells(300, 20, 9, false, 0.1))));
  body.Finish({body.Op("+", {body.Op("*", {x, body.Literal(Scalar(2.0))}), body.Literal(Scalar(1.0))})});
  EXPECT_FALSE(Lower(body.fused())->has_background);
}

}  // namespace
}  // namespace heddle::ops::testing
