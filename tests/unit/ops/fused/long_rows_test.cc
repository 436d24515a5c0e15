// SPDX-License-Identifier: Apache-2.0
// Rows of several column chunks whose aggregates are read inside: phases over the same columns in one
// operator.
#include "body_builder.h"
#include "ops/fused/program/tile_program.h"

namespace heddle::ops::testing {
namespace {

constexpr Shape kLong[] = {{1, 200000}, {3, 70000}, {2, 131073}, {19, 65537}};

// Also checks that each phase is what the body needs and no more.
void ExpectPhases(BodyBuilder& body, int phases, const std::string& what) {
  const Result<TileProgram> program = Lower(body.fused());
  ASSERT_TRUE(program.ok()) << what << ": " << program.status().ToString();
  EXPECT_EQ(program->phases, phases) << what;
  body.ExpectSame(what);
}

NodeId Shifted(BodyBuilder& body, NodeId x, const char* by) { return body.Op("-", {x, body.Op(by, {x})}); }

TEST(LongRowsTest, Softmax) {
  for (const Shape& shape : kLong) {
    for (const bool sparse : {false, true}) {
      BodyBuilder body;
      const Matrix cells = Cells(shape.rows, shape.columns, 1, false, sparse ? 0.1 : 1);
      const NodeId x = body.Input(Value(sparse ? *ToSparse(cells) : cells));
      const NodeId e = body.Op("exp", {Shifted(body, x, "rowMaxs")});
      body.Finish({body.Op("/", {e, body.Op("rowSums", {e})})});
      ExpectPhases(body, 3, fmt::format("softmax {}{}", shape, sparse ? " CSR" : ""));
    }
  }
}

TEST(LongRowsTest, LogSoftmaxAndItsSum) {
  for (const Shape& shape : kLong) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(shape.rows, shape.columns, 2)));
    const NodeId d = Shifted(body, x, "rowMaxs");
    const NodeId logs = body.Op("log", {body.Op("rowSums", {body.Op("exp", {d})}), kNoNode});
    body.Finish({body.Op("-", {d, logs})});
    ExpectPhases(body, 3, fmt::format("log-softmax {}", shape));
    body.Finish({body.Op("sum", {body.Op("-", {d, logs})})});
    ExpectPhases(body, 3, fmt::format("its sum {}", shape));
    body.Finish({body.Op("+", {body.Op("rowMaxs", {x}), logs})});
    body.ExpectSame(fmt::format("logsumexp {}", shape));
  }
}

TEST(LongRowsTest, LayerNorm) {
  for (const Shape& shape : kLong) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(shape.rows, shape.columns, 3))),
                 g = body.Input(Value(Cells(1, shape.columns, 4))),
                 b = body.Input(Value(Cells(1, shape.columns, 5)));
    const NodeId d = Shifted(body, x, "rowMeans");
    const NodeId spread = body.Op(
        "sqrt", {body.Op("+", {body.Op("rowMeans", {body.Op("*", {d, d})}), body.Literal(Scalar(1e-5))})});
    const NodeId y = body.Op("+", {body.Op("*", {body.Op("/", {d, spread}), g}), b});
    body.Finish({y});
    ExpectPhases(body, 3, fmt::format("layer norm {}", shape));
    body.fused().kind = FusionTemplate::kStitch;
    body.Finish({y, spread, body.Op("rowMeans", {x}), body.Op("mean", {y}), body.Op("max", {x})});
    ExpectPhases(body, 3, fmt::format("layer norm and more {}", shape));
  }
}

// Exponentials that two later phases read, beside results that are written before they were read for the last
// time, and none at all.
TEST(LongRowsTest, HeavyValuesAreKept) {
  for (const Shape& shape : kLong) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(shape.rows, shape.columns, 6)));
    const NodeId e = body.Op("exp", {x});
    const NodeId p = body.Op("/", {e, body.Op("rowSums", {e})});
    const NodeId q = body.Op("*", {e, body.Op("rowMaxs", {body.Op("sqrt", {p})})});
    body.Finish({body.Op("rowSums", {q})});
    const Result<TileProgram> program = Lower(body.fused());
    ASSERT_TRUE(program.ok()) << program.status().ToString();
    EXPECT_EQ(program->saved_arrays, 1);
    ExpectPhases(body, 3, fmt::format("saved {}", shape));
    body.Finish({q});
    EXPECT_EQ(Lower(body.fused())->saved_arrays, 0);
    body.ExpectSame(fmt::format("saved in the result {}", shape));
    body.fused().kind = FusionTemplate::kStitch;
    body.Finish({e, p, q});
    EXPECT_EQ(Lower(body.fused())->saved_arrays, 0);
    body.ExpectSame(fmt::format("saved values are results {}", shape));
    body.Finish({p, body.Op("rowMins", {q})});
    EXPECT_EQ(Lower(body.fused())->saved_arrays, 1);
    body.ExpectSame(fmt::format("read after a result is written {}", shape));
  }
}

// Variances of an input's rows beside other aggregates: its chunks are read once more than by the tiles.
TEST(LongRowsTest, VariancesOfRows) {
  for (const Shape& shape : kLong) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(shape.rows, shape.columns, 11))),
                 v = body.Input(Value(Cells(1, shape.columns, 12)));
    const NodeId sds = body.Op("rowSds", {x}), vars = body.Op("rowVars", {x});
    const NodeId y = body.Op("/", {Shifted(body, x, "rowMeans"), sds});
    body.Finish({y});
    ExpectPhases(body, 2, fmt::format("standard scores {}", shape));
    body.Finish({vars});
    ExpectPhases(body, 1, fmt::format("alone {}", shape));
    body.Finish({body.Op("*", {x, body.Op("sqrt", {sds})})});
    ExpectPhases(body, 2, fmt::format("a phase without other aggregates {}", shape));
    body.Finish({body.Op("sum", {y})});
    ExpectPhases(body, 2, fmt::format("their sum {}", shape));
    body.fused().kind = FusionTemplate::kStitch;
    const NodeId e = body.Op("exp", {body.Op("-", {y, body.Op("rowMaxs", {y})})});
    body.Finish({y, body.Op("rowSums", {e}), vars, sds, body.Op("rowMins", {body.Op("*", {x, v})}),
                 body.Op("mean", {e})});
    ExpectPhases(body, 3, fmt::format("beside others {}", shape));
    if (shape.rows < 4) continue;
    body.Finish({body.Op("colSums", {body.Op("*", {x, v})}), vars, body.Op("colMaxs", {y})});
    ExpectPhases(body, 2, fmt::format("beside sums of columns {}", shape));
  }
}

TEST(LongRowsTest, VariancesOfLargeNumbersAndOfNone) {
  for (const Matrix& cells : {Enlarged(Cells(3, 70000, 13)), Cells(3, 131073, 13, /*special=*/true)}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(cells));
    body.fused().kind = FusionTemplate::kStitch;
    body.Finish({body.Op("*", {x, body.Op("rowVars", {x})}), body.Op("rowSds", {x})});
    ExpectPhases(body, 2, fmt::format("{}", cells.shape()));
  }
}

TEST(LongRowsTest, WhatIsNotACellOrAFoldIsRefused) {
  BodyBuilder body;
  const NodeId x = body.Input(Value(Cells(3, 70000, 7)));
  body.Finish({body.Op("*", {x, body.Op("rowVars", {body.Op("exp", {x})})})});
  EXPECT_EQ(CanRunFused(body.fused()).ToString(), "rowVars of rows longer than a column chunk");
  body.Finish({body.Op("*", {x, body.Op("rowIndexMax", {x})})});
  EXPECT_EQ(CanRunFused(body.fused()).ToString(), "rowIndexMax of rows longer than a column chunk");
  const NodeId y = body.Input(Value(Cells(3, 2, 8)));
  body.Finish({body.Op("t%*%", {Shifted(body, x, "rowMeans"), y})});
  EXPECT_EQ(CanRunFused(body.fused()).ToString(),
            "an aggregate of rows longer than a column chunk beside what needs whole rows");
}

// Softmax of rows of several column chunks, and of several panels of rows, beside sums of its columns.
TEST(LongRowsTest, SumsOfColumnsBesideAggregatesOfRows) {
  for (const Shape& shape : {Shape{5, 131080}, {70, 65540}}) {
    for (const char* of_columns : {"colSums", "colMaxs"}) {
      BodyBuilder body;
      const NodeId x = body.Input(Value(Cells(shape.rows, shape.columns, 9))),
                   v = body.Input(Value(Cells(1, shape.columns, 10)));
      const NodeId e = body.Op("exp", {Shifted(body, x, "rowMaxs")});
      const NodeId p = body.Op("/", {e, body.Op("rowSums", {e})});
      body.Finish({body.Op(of_columns, {p})});
      body.ExpectSame(fmt::format("{} of softmax {}", of_columns, shape));
      body.fused().kind = FusionTemplate::kStitch;
      body.Finish({body.Op(of_columns, {p}), p, body.Op("rowMins", {body.Op("*", {p, v})}),
                   body.Op("sum", {e}), body.Op("colSums", {body.Op("*", {x, v})})});
      body.ExpectSame(fmt::format("{} beside others {}", of_columns, shape));
    }
  }
}

}  // namespace
}  // namespace heddle::ops::testing
