// SPDX-License-Identifier: Apache-2.0
// What devices do with CSR matrices has the bytes of the processor. On machines without an OpenCL device
// (Debian: pocl-opencl-icd) these tests are skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "device_comparison.h"
#include "ops/device/device_matrix.h"
#include "ops/device/operators/spread_entries.h"

namespace heddle::ops::testing {
namespace {

class CsrOnDeviceTest : public TilesOnDeviceTest {
 protected:
  void ExpectNothingLeftToHost() {
    EXPECT_GT(ran(), 0);
    EXPECT_TRUE(left_to_host().empty()) << left_to_host().begin()->first;
  }
};

// In single precision chains of floats: over blocks of 64 columns of a CSR matrix, some of which have no
// entry, and over blocks of 64 of its rows.
TEST_F(CsrOnDeviceTest, ProductsOfFloats) {
  for (const bool at_entries : {false, true}) {
    const Shape shape = at_entries ? Shape{1025, 70} : Shape{150, 300};
    BodyBuilder body;
    const NodeId x = body.Input(Value(*ToSparse(Cells(shape.rows, shape.columns, 1, false, 0.03))));
    const NodeId cells = at_entries ? body.Op("round", {x}) : x;
    const NodeId v = body.Input(Value(Cells(shape.columns, 66, 3))),
                 y = body.Input(Value(Cells(shape.rows, 12, 4)));
    body.Finish({body.Op("%*%", {cells, v})});
    body.ExpectSame(fmt::format("X V of {}, {}", shape, at_entries ? "at entries" : "an input"));
    body.Finish({body.Op("t%*%", {cells, y})});
    body.ExpectSame(fmt::format("t(X) Y of {}, {}", shape, at_entries ? "at entries" : "an input"));
  }
  ExpectNothingLeftToHost();
}

// Zeros that are made at entries meet infinities: they count as absent. Sums that are infinite nevertheless
// are the host's.
TEST_F(CsrOnDeviceTest, ZerosBesideInfinities) {
  BodyBuilder body;
  const NodeId x = body.Input(Value(*ToSparse(Cells(130, 40, 1, false, 0.2))));
  const NodeId rounded = body.Op("round", {x});
  const NodeId y = body.Input(Value(Cells(130, 12, 2, true))), v = body.Input(Value(Cells(40, 12, 3, true)));
  body.Finish({body.Op("t%*%", {rounded, y})});
  body.ExpectSame("t(round(X)) Y");
  body.Finish({body.Op("%*%", {rounded, v})});
  body.ExpectSame("round(X) V");
  EXPECT_GT(ran(), 0);
}

// Cells of several CSR matrices: at the entries that all have, and at those of the driver.
TEST_F(CsrOnDeviceTest, CellsOfSeveralMatrices) {
  for (const bool is_kept : {false, true}) {
    const Shape shape = is_kept ? Shape{300, 70} : Shape{130, 40};
    BodyBuilder body;
    const auto input = [&](uint32_t seed, double density) {
      return body.Input(Value(*ToSparse(Cells(shape.rows, shape.columns, seed, false, density))));
    };
    const NodeId x = input(1, 0.3), y = input(2, 0.4), z = input(3, 0.1);
    const NodeId cells = body.Op("*", {body.Op("*", {x, y}), body.Op("abs", {is_kept ? y : z})});
    body.fused().kind = FusionTemplate::kStitch;
    if (is_kept)
      body.Finish({cells, body.Op("rowMaxs", {cells})});
    else
      body.Finish({body.Op("sum", {cells}), body.Op("rowSums", {cells}), body.Op("rowMins", {cells}),
                   body.Op("colSums", {cells}),
                   body.Op("t%*%", {cells, body.Input(Value(Cells(shape.rows, 3, 4)))})});
    body.ExpectSame(fmt::format("cells of three CSR matrices {}", shape));
  }
  ExpectNothingLeftToHost();
}

// Minima, maxima, means and products of rows at entries.
TEST_F(CsrOnDeviceTest, FoldsOfEntries) {
  BodyBuilder body;
  const NodeId x = body.Input(Value(*ToSparse(Cells(200, 24, 1, true, 0.5))));
  const NodeId cells = body.Op("*", {x, body.Input(Value(Cells(200, 24, 2)))});
  body.fused().kind = FusionTemplate::kStitch;
  body.Finish({body.Op("rowMins", {cells}), body.Op("rowMaxs", {cells}), body.Op("rowMeans", {cells}),
               body.Op("rowProds", {cells})});
  body.ExpectSame("folds of rows at entries");
  EXPECT_GT(ran(), 0);
}

// Results with the entries of the driver, without those that have become zero.
TEST_F(CsrOnDeviceTest, ResultsWithTheDriversEntries) {
  BodyBuilder body;
  const NodeId x = body.Input(Value(*ToSparse(Cells(300, 70, 1, false, 0.1))));
  const NodeId half = body.Literal(Scalar(0.5)), tiny = body.Literal(Scalar(1e-323));
  body.fused().kind = FusionTemplate::kStitch;
  const NodeId rounded = body.Op("round", {x});
  body.Finish({body.Op("*", {x, half}), body.Op("abs", {x}), rounded, body.Op("*", {x, tiny}),
               body.Op("rowSums", {rounded}), body.Op("*", {x, body.Op("rowMaxs", {x})})});
  body.ExpectSame("CSR results");
  ExpectNothingLeftToHost();
}

// A row without entries whose cells are all 0 / 0: the host makes such a result.
TEST_F(CsrOnDeviceTest, ResultsWithOtherCells) {
  Matrix x = Cells(70, 20, 1, false, 0.9);
  for (const bool has_empty_row : {false, true}) {
    for (int64_t j = 0; j < 20; ++j) x.mutable_data()[7 * 20 + j] = has_empty_row ? 0.0 : 1.0;
    BodyBuilder body;
    const NodeId in = body.Input(Value(*ToSparse(x)));
    const NodeId sums = body.Op("rowSums", {body.Op("abs", {in})});
    body.Finish({body.Op("/", {in, sums})});
    body.ExpectSame("X / rowSums(abs(X))");
    EXPECT_EQ(left_to_host().empty(), !has_empty_row);
  }
  EXPECT_GT(ran(), 0);
}

// Beside a dense result of its shape a CSR one is made of dense rows, of which the device takes the cells
// that are not 0: also where rows have none, and of a column.
TEST_F(CsrOnDeviceTest, ResultsThatAreMadeOfDenseRows) {
  for (const Shape& shape : {Shape{300, 40}, Shape{700, 1}}) {
    Matrix x = Cells(shape.rows, shape.columns, 1, false, 0.2);
    for (int64_t i = 0; i < shape.rows; i += 3)
      std::fill_n(x.mutable_data() + i * shape.columns, shape.columns, 0.0);
    BodyBuilder body;
    const NodeId in = body.Input(Value(*ToSparse(x)));
    const NodeId cells = body.Input(Value(Cells(shape.rows, shape.columns, 2)));
    const NodeId product = body.Op("*", {in, cells});
    body.fused().kind = FusionTemplate::kStitch;
    body.Finish({product, body.Op("+", {cells, product})});
    EXPECT_EQ(body.fused().body[product].info.format, Format::kSparse);
    body.ExpectSame(fmt::format("X * Y and Y + X * Y of {}", shape));
    if (HasFailure()) return;
  }
  ExpectNothingLeftToHost();
}

// Softmax of rows of a CSR matrix: exp(X - rowMaxs(X)) is not 0 beside the entries.
TEST_F(CsrOnDeviceTest, CellsThatAreNotZeroBesideTheEntries) {
  for (const int64_t k : {2, 12}) {
    const Shape shape = k == 2 ? Shape{130, 40} : Shape{70, 3};
    BodyBuilder body;
    const NodeId x = body.Input(Value(*ToSparse(Cells(shape.rows, shape.columns, 1, false, 0.2))));
    const NodeId e = body.Op("exp", {body.Op("-", {x, body.Op("rowMaxs", {x})})});
    const NodeId shares = body.Op("/", {e, body.Op("rowSums", {e})});
    const NodeId v = body.Input(Value(Cells(shape.columns, k, 2)));
    body.fused().kind = FusionTemplate::kStitch;
    body.Finish({body.Op("%*%", {shares, v}), body.Op("rowMins", {shares}), body.Op("rowProds", {e}),
                 body.Op("colSums", {shares}), body.Op("sum", {e})});
    body.ExpectSame(fmt::format("softmax of rows {}", shape));
  }
  ExpectNothingLeftToHost();
}

// Softmax at the entries of a mask, 0 beside them but in rows without entries, times a matrix in which zeros
// meet what is infinite, and one that is finite.
TEST_F(CsrOnDeviceTest, ZerosThatCountInProducts) {
  for (const bool is_special : {false, true}) {
    BodyBuilder body;
    const NodeId mask = body.Input(Value(*ToSparse(Cells(130, 40, 1, false, is_special ? 0.05 : 0.3))));
    const NodeId given = body.Input(Value(Cells(130, 40, 2))), zero = body.Literal(Scalar(0.0));
    const NodeId scores =
        body.Op("ifelse", {body.Op("==", {mask, zero}), body.Literal(Scalar(-INFINITY)), given});
    const NodeId e = body.Op("exp", {body.Op("-", {scores, body.Op("rowMaxs", {scores})})});
    const NodeId shares = body.Op("/", {e, body.Op("rowSums", {e})});
    const NodeId v = body.Input(Value(Cells(40, is_special ? 12 : 3, 3, is_special)));
    body.Finish({body.Op("%*%", {shares, v})});
    body.ExpectSame(is_special ? "shares of infinite cells" : "shares of finite cells");
  }
  EXPECT_GT(ran(), 0);
}

// A CSR matrix on the device: both ways, without zeros, and its dense cells there.
TEST_F(CsrOnDeviceTest, CopiesThereAndBack) {
  ComputeDevice& device = *FirstDevice();
  const std::unique_ptr<DeviceQueue> queue = *device.MakeQueue();
  for (const ElementType type : {ElementType::kFloat64, ElementType::kFloat32}) {
    const Matrix all = *ToElementType(*ToSparse(Cells(90, 30, 1, true, 0.2)), type);
    Matrix with_zeros = *Matrix::Sparse(all.rows(), all.columns(), all.stored(), type);
    std::copy_n(all.row_offsets(), all.rows() + 1, with_zeros.mutable_row_offsets());
    std::copy_n(all.column_indexes(), all.stored(), with_zeros.mutable_column_indexes());
    std::copy_n(all.values<char>(), all.stored() * BytesOf(type), with_zeros.mutable_values<char>());
    std::fill_n(with_zeros.mutable_values<char>(), 10 * BytesOf(type), char{0});
    for (const Matrix& x : {all, all.Rows(20, 60), with_zeros, all.Rows(5, 5)}) {
      const Result<Matrix> there = EntriesToDevice(x, device, *queue);
      ASSERT_TRUE(there.ok()) << there.status().ToString();
      ASSERT_TRUE(queue->Finish().ok());
      EXPECT_EQ(there->bytes(), x.stored() * (BytesOf(type) + 4) + (x.rows() + 1) * 8);
      const Result<Matrix> back = ToHost(*there);
      ASSERT_TRUE(back.ok()) << back.status().ToString();
      EXPECT_TRUE(back->IsSparse());
      EXPECT_EQ(back->stored(), x.CountNonzeros());
      EXPECT_TRUE(Matrix::SameCells(x, *back));
      if (x.rows() == 0) continue;
      const int64_t last = x.rows() - 3;
      EXPECT_TRUE(Matrix::SameCells(x.Rows(2, last), *ToHost(there->Rows(2, last))));
      const Result<Matrix> dense = SpreadEntries(there->Rows(2, last), device, *queue);
      ASSERT_TRUE(dense.ok()) << dense.status().ToString();
      ASSERT_TRUE(queue->Finish().ok());
      EXPECT_TRUE(Matrix::SameCells(x.Rows(2, last), *ToHost(*dense)));
    }
  }
}

}  // namespace
}  // namespace heddle::ops::testing
