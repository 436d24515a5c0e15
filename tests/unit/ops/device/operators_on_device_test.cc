// SPDX-License-Identifier: Apache-2.0
// Operators with kernels of their own have the same bytes on a device as on the processor. On machines
// without an OpenCL device (Debian: pocl-opencl-icd) these tests are skipped.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "first_device.h"
#include "ops/base/parallel.h"
#include "ops/device/operators/product.h"
#include "ops/device/run/run_on_device.h"
#include "tests/unit/ops/fused/body_builder.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops::testing {
namespace {

constexpr ElementType kTypes[] = {ElementType::kFloat64, ElementType::kFloat32};

Matrix OfType(const Matrix& x, ElementType type) { return *ToElementType(x, type); }

Matrix Scaled(const Matrix& x, double factor) {
  Matrix scaled = *FilledMatrix(x.rows(), x.columns(), 0.0);
  for (int64_t i = 0; i < x.cells(); ++i) scaled.mutable_data()[i] = x.data()[i] * factor;
  return scaled;
}

// The same device, whose kernels are those for a GPU.
class AsGraphicsDevice : public ComputeDevice {
 public:
  explicit AsGraphicsDevice(ComputeDevice& device) : device_(device), description_(device.description()) {
    description_.is_host = false;
  }
  const DeviceDescription& description() const override { return description_; }
  Result<std::shared_ptr<DeviceMemory>> Allocate(int64_t bytes) override { return device_.Allocate(bytes); }
  Result<std::unique_ptr<DeviceQueue>> MakeQueue() override { return device_.MakeQueue(); }
  Result<std::shared_ptr<DeviceKernel>> Compile(const std::string& source, const std::string& name) override {
    return device_.Compile(source, name);
  }

 private:
  ComputeDevice& device_;
  DeviceDescription description_;
};

class OperatorsOnDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device_ = FirstDevice();
    if (device_ == nullptr) GTEST_SKIP() << "this machine has no OpenCL device";
    Result<std::unique_ptr<DeviceQueue>> queue = device_->MakeQueue();
    ASSERT_TRUE(queue.ok()) << queue.status().ToString();
    queue_ = *std::move(queue);
  }

  // Rows of a matrix on the device that has three more above.
  Matrix There(const Matrix& x) {
    Matrix taller = *Matrix::Dense(x.rows() + 3, x.columns(), x.element_type());
    const auto bytes = static_cast<size_t>(BytesOf(x.element_type()));
    std::fill_n(taller.mutable_data<char>(), static_cast<size_t>(taller.cells()) * bytes, 1);
    std::copy_n(x.data<char>(), static_cast<size_t>(x.cells()) * bytes,
                taller.mutable_data<char>() + static_cast<size_t>(3 * x.columns()) * bytes);
    return ToDevice(taller, *device_, *queue_)->Rows(3, 3 + x.rows());
  }

  void ExpectSameCells(const Matrix& expected, const Matrix& actual) {
    ASSERT_TRUE(actual.IsOnDevice());
    const Result<Matrix> cells = ToDense(actual);
    ASSERT_TRUE(cells.ok()) << cells.status().ToString();
    EXPECT_EQ(expected.element_type(), cells->element_type());
    EXPECT_EQ(expected.shape(), cells->shape());
    EXPECT_TRUE(Matrix::SameCells(expected, *cells));
  }

  auto OnHost() {
    return [](const KernelCall& call, std::span<Value> results) {
      return CatalogKernels().Run(call, results);
    };
  }
  auto OnDevice() {
    return [this](const KernelCall& call, std::span<Value> results) {
      return DeviceOperators::Of(*device_).Run(call, *queue_, results);
    };
  }

  // A call of the operator on the host; its inputs, types and result are in `call`.
  Value OnHost(Invocation& call, Phase phase = Phase::kWhole, int64_t begin = 0, int64_t end = 0,
               int64_t total = 0) {
    for (size_t i = 0; i < call.inputs.size(); ++i)
      if (call.inputs[i] && call.inputs[i]->IsMatrix())
        call.infos[i].element_type = call.inputs[i]->matrix().element_type();
    const Result<std::vector<ValueInfo>> inferred = call.InferWith(call.scalars);
    EXPECT_TRUE(inferred.ok()) << inferred.status().ToString();
    call.SetInfos(*inferred);
    call.node.info.element_type = call.infos[0].element_type;
    return Run(call, phase, begin, end, total, OnHost());
  }

  // Host and device have the same bytes, and the result is on the device.
  void ExpectSame(Invocation call, int64_t begin = 0, int64_t end = 0, int64_t total = 0) {
    SCOPED_TRACE(fmt::format("{} of {}, {}", call.node.op, call.inputs[0]->matrix().shape(),
                             Name(call.inputs[0]->matrix().element_type())));
    const Value expected = OnHost(call, Phase::kWhole, begin, end, total);
    ASSERT_TRUE(DeviceOperators::CanRun(call.node, call.infos).ok());
    ASSERT_TRUE(StaysOnDevice(call.node, call.infos, 0));
    for (std::optional<Value>& input : call.inputs)
      if (input && input->IsMatrix()) input = Value(There(input->matrix()));
    const Value actual = Run(call, Phase::kWhole, begin, end, total, OnDevice());
    if (!HasFailure()) ExpectSameCells(expected.matrix(), actual.matrix());
  }

  template <typename Kernel>
  Value Run(Invocation& call, Phase phase, int64_t begin, int64_t end, int64_t total, Kernel kernel) {
    std::vector<const Value*> inputs;
    for (const std::optional<Value>& input : call.inputs) inputs.push_back(input ? &*input : nullptr);
    Value result;
    Status status;
    Arena(1).Execute([&] {
      status = kernel(KernelCall{.node = call.node,
                                 .phase = phase,
                                 .inputs = inputs,
                                 .input_infos = call.infos,
                                 .row_begin = begin,
                                 .row_end = end,
                                 .total_rows = total,
                                 .context = context_,
                                 .op = call.op},
                      {&result, 1});
    });
    EXPECT_TRUE(status.ok()) << call.node.op << ": " << status.ToString();
    return result;
  }

  // X %*% Y, or t(X) %*% Y, by both kernels, at once and in many launches.
  void ExpectSameProduct(const Matrix& x, const Matrix& y, bool is_transposed, bool is_symmetric = false,
                         bool in_local_memory = true) {
    Invocation call(is_transposed ? "t%*%" : "%*%", {Value(x), Value(y)});
    if (is_symmetric) call.node.inputs = {0, 0};
    const Value expected = OnHost(call);
    const int64_t terms = y.rows(), m = is_transposed ? x.columns() : x.rows();
    const bool is_cut = is_transposed || (m * y.columns() <= 65536 && terms >= 65536);
    const Matrix left = There(x), right = There(y);
    const DeviceProduct product = {.m = m,
                                   .n = y.columns(),
                                   .terms = terms,
                                   .height = is_cut ? Granule(terms) : terms,
                                   .type = x.element_type(),
                                   .a = PlaceOf(left),
                                   .a_row = is_transposed ? 1 : x.columns(),
                                   .a_column = is_transposed ? x.columns() : 1,
                                   .b = PlaceOf(right),
                                   .is_symmetric = is_symmetric};
    ProductLimits limits = ProductLimits::Of(device_->description());
    struct Mode {
      const char* name;
      int64_t work_of_launch, least_tiles, payload_bytes;
    };
    // Leaves by groups of their own, all by one, two or four by one; few tiles, terms and leaves at a time.
    for (const Mode& mode : {Mode{"by leaves", int64_t{1} << 40, 1000, 1 << 20},
                             Mode{"in one run", int64_t{1} << 40, 1, 1 << 20},
                             Mode{"in runs", int64_t{1} << 40, 2, 1 << 20},
                             Mode{"in many launches", 1, 2, 2 * 8 * m * y.columns()}})
      for (const bool is_local : {false, true}) {
        if (is_local && !in_local_memory) continue;
        SCOPED_TRACE(fmt::format("{} and {}, {}{}{}, {}", x.shape(), y.shape(), Name(x.element_type()),
                                 is_transposed ? ", transposed" : "", is_local ? ", in local memory" : "",
                                 mode.name));
        limits.is_in_local_memory = is_local;
        limits.work_of_launch = mode.work_of_launch;
        limits.least_tiles = mode.least_tiles;
        limits.payload_bytes = mode.payload_bytes;
        DeviceCommands commands(*device_, *queue_, nullptr);
        const Result<std::shared_ptr<const CellsOnDevice>> cells = Multiply(commands, product, limits);
        ASSERT_TRUE(cells.ok()) << cells.status().ToString();
        ASSERT_TRUE(queue_->Finish().ok());
        ExpectSameCells(expected.matrix(), Matrix::OfDeviceCells(*cells));
      }
  }

  ComputeDevice* device_ = nullptr;
  std::unique_ptr<DeviceQueue> queue_;
  KernelContext context_;
};

struct Sizes {
  int64_t m, terms, n;
};

// Around the edges of tiles (64 x 24 or 32, 128 x 64), of steps (16, 256) and of blocks of floats (64).
TEST_F(OperatorsOnDeviceTest, Products) {
  for (const ElementType type : kTypes)
    for (const Sizes& s : {Sizes{1, 1, 9}, Sizes{7, 15, 23}, Sizes{8, 16, 24}, Sizes{9, 17, 25},
                           Sizes{63, 63, 31}, Sizes{64, 64, 64}, Sizes{65, 65, 65}, Sizes{128, 33, 48},
                           Sizes{129, 257, 130}, Sizes{130, 520, 9}, Sizes{5, 0, 9}, Sizes{0, 4, 9}}) {
      const uint32_t seed = static_cast<uint32_t>(s.m + s.terms);
      ExpectSameProduct(OfType(Cells(s.m, s.terms, seed, s.m > 60), type),
                        OfType(Cells(s.terms, s.n, seed + 1, s.m == 65), type), false);
      if (HasFailure()) return;
    }
}

TEST_F(OperatorsOnDeviceTest, TransposedProducts) {
  for (const ElementType type : kTypes)
    for (const Sizes& s : {Sizes{1, 1, 9}, Sizes{3, 63, 25}, Sizes{25, 64, 24}, Sizes{9, 65, 65},
                           Sizes{66, 200, 12}, Sizes{130, 450, 10}, Sizes{10, 700, 9}, Sizes{9, 0, 9}}) {
      const Matrix x = OfType(Cells(s.terms, s.m, 1, s.m > 60), type);
      ExpectSameProduct(x, OfType(Cells(s.terms, s.n, 2), type), true);
      if (s.m > 8) ExpectSameProduct(x, x, true, true);
      if (HasFailure()) return;
    }
}

// A long inner dimension is cut into panels.
TEST_F(OperatorsOnDeviceTest, ProductsOfManyTerms) {
  for (const ElementType type : kTypes)
    ExpectSameProduct(OfType(Cells(3, 66'000, 1), type), OfType(Cells(66'000, 9, 2), type), false, false,
                      /*in_local_memory=*/false);
}

// Products that vanish, and cells below the least normal number.
TEST_F(OperatorsOnDeviceTest, ProductsOfSmallNumbers) {
  for (const double factor : {0x1p-530, 0x1p-537})
    ExpectSameProduct(Scaled(Cells(9, 40, 1), factor), Scaled(Cells(40, 10, 2), factor), false);
  // Chains that end in -0.0, of whole steps of terms, and such leaves.
  ExpectSameProduct(*FilledMatrix(9, 48, 1e-200), *FilledMatrix(48, 10, -1e-200), false);
  ExpectSameProduct(*FilledMatrix(128, 9, 1e-200), *FilledMatrix(128, 10, -1e-200), true);
  for (const double factor : {0x1p-66, 0x1p-75}) {
    const Matrix x = OfType(Scaled(Cells(9, 40, 1), factor), ElementType::kFloat32);
    const Matrix y = OfType(Scaled(Cells(40, 10, 2), factor), ElementType::kFloat32);
    ExpectSameProduct(x, y, false);
    ExpectSameProduct(OfType(Scaled(Cells(40, 9, 1), factor), ElementType::kFloat32), y, true);
  }
}

TEST_F(OperatorsOnDeviceTest, ProductsAsOperators) {
  for (const ElementType type : kTypes) {
    const Matrix x = OfType(Cells(70, 40, 1), type), y = OfType(Cells(40, 30, 2), type);
    ExpectSame(Invocation("%*%", {Value(x), Value(y)}));
    ExpectSame(Invocation("t%*%", {Value(x), Value(OfType(Cells(70, 9, 2), type))}));
  }
}

// What several ranks send each other of t(X) %*% Y.
TEST_F(OperatorsOnDeviceTest, NodesOfTransposedProducts) {
  for (const ElementType type : kTypes)
    for (const bool is_symmetric : {false, true}) {
      const Matrix x = OfType(Cells(2000, 12, 1), type);
      const Matrix y = is_symmetric ? x : OfType(Cells(2000, 10, 2), type);
      for (const auto& [begin, end] : {std::pair<int64_t, int64_t>(0, 832), {832, 2000}, {832, 832}}) {
        Invocation call("t%*%", {Value(x), Value(y)});
        if (is_symmetric) call.node.inputs = {0, 0};
        OnHost(call);
        call.inputs = {Value(x.Rows(begin, end)), Value(y.Rows(begin, end))};
        const Value expected = Run(call, Phase::kPartial, begin, end, 2000, OnHost());
        const Value actual = Run(call, Phase::kPartial, begin, end, 2000, OnDevice());
        if (HasFailure()) return;
        EXPECT_TRUE(Matrix::SameCells(expected.matrix(), actual.matrix()))
            << begin << " to " << end << (is_symmetric ? ", symmetric" : "");
      }
    }
}

TEST_F(OperatorsOnDeviceTest, ACancelledProductEnds) {
  std::atomic<bool> cancelled = false;
  DeviceCommands commands(*device_, *queue_, &cancelled);
  const Matrix x = There(Cells(200, 30, 1)), y = There(Cells(30, 40, 2));
  const DeviceProduct product = {.m = 200,
                                 .n = 40,
                                 .terms = 30,
                                 .height = 30,
                                 .a = PlaceOf(x),
                                 .a_row = 30,
                                 .b = PlaceOf(y)};
  const ProductLimits limits = {.is_in_local_memory = false, .work_of_launch = 1, .least_tiles = 1};
  EXPECT_TRUE(Multiply(commands, product, limits).ok());
  cancelled = true;
  EXPECT_EQ(Multiply(commands, product, limits).status().code(), StatusCode::kCancelled);
  EXPECT_TRUE(queue_->Finish().ok());
}

TEST_F(OperatorsOnDeviceTest, Moves) {
  const auto number = [](double x) { return Value(Scalar(x)); };
  for (const ElementType type : kTypes) {
    for (const Shape& shape : {Shape{1, 40}, Shape{40, 1}, Shape{16, 16}, Shape{17, 33}, Shape{65, 5},
                               Shape{0, 5}, Shape{5, 0}}) {
      const Value x(OfType(Cells(shape.rows, shape.columns, 1, true), type));
      ExpectSame(Invocation("t", {x}));
      ExpectSame(Invocation("rev", {x}));
      for (const double shift : {1.0, -3.0, 40.0}) ExpectSame(Invocation("roll", {x, number(shift)}));
      if (HasFailure()) return;
    }
    const Value x(OfType(Cells(17, 33, 1, true), type)), y(OfType(Cells(17, 4, 2), type));
    const Value z(OfType(Cells(5, 33, 3), type)), none(OfType(Cells(17, 0, 3), type));
    ExpectSame(Invocation("cbind", {x, y, none, x}));
    ExpectSame(Invocation("rbind", {x, z, z}));
    ExpectSame(Invocation("index", {x, number(3), number(9), number(2), number(5)}));
    ExpectSame(Invocation("index", {x, number(3), number(9), std::nullopt, std::nullopt}));
    ExpectSame(Invocation("index", {x, std::nullopt, std::nullopt, number(33), number(33)}));
    ExpectSame(Invocation("diag", {Value(OfType(Cells(20, 20, 1), type))}));
  }
  // Rows 3 to 9 of a matrix that other ranks have the others of.
  const Matrix square = Cells(20, 20, 1);
  Invocation call("diag", {Value(square)});
  OnHost(call);
  call.inputs = {Value(There(square.Rows(3, 10)))};
  const Value actual = Run(call, Phase::kWhole, 3, 10, 20, OnDevice());
  ASSERT_FALSE(HasFailure());
  Matrix expected = *Matrix::Dense(7, 1);
  for (int64_t i = 0; i < 7; ++i) expected.mutable_data()[i] = square.At(3 + i, 3 + i);
  ExpectSameCells(expected, actual.matrix());
}

// Rows longer than a column chunk: what the chunks of each add up to is joined by a tree.
TEST_F(OperatorsOnDeviceTest, LongRows) {
  ComputeDevice* const device = device_;
  static auto* const graphics = new AsGraphicsDevice(*device);  // Operators are kept by device.
  for (const ElementType type : kTypes)
    for (const Shape& shape : {Shape{1, 65537}, Shape{3, 131080}, Shape{2, 200000}}) {
      device_ = device_ == device ? graphics : device;
      const Value x(OfType(Cells(shape.rows, shape.columns, 1, shape.rows == 3), type));
      for (const char* name : {"rowVars", "rowSds", "rowIndexMax", "rowIndexMin"})
        if (shape.rows != 3 || name[3] == 'I') ExpectSame(Invocation(name, {x}));
      for (const int64_t k : {1, 3})
        ExpectSame(Invocation("%*%", {x, Value(OfType(Cells(shape.columns, k, 2), type))}));
      if (HasFailure()) return;
    }
  // Equal extremes, and none.
  Matrix same = *FilledMatrix(3, 70000, -2.0);
  for (int64_t j = 0; j < 70000; ++j) {
    same.mutable_data()[70000 + j] = std::numeric_limits<double>::quiet_NaN();
    same.mutable_data()[140000 + j] = j % 9 == 0 ? -std::numeric_limits<double>::infinity() : -0.0;
  }
  for (const char* name : {"rowIndexMax", "rowIndexMin"}) ExpectSame(Invocation(name, {Value(same)}));
  // Deviations that leave the range of doubles are the host's.
  Invocation large("rowSds", {Value(Scaled(Cells(2, 70000, 1), 1e200))});
  OnHost(large);
  large.inputs[0] = Value(There(large.inputs[0]->matrix()));
  std::vector<const Value*> inputs = {&*large.inputs[0]};
  Value result;
  const KernelCall call{.node = large.node,
                        .phase = Phase::kWhole,
                        .inputs = inputs,
                        .input_infos = large.infos,
                        .context = context_};
  const Status status = DeviceOperators::Of(*device_).Run(call, *queue_, {&result, 1});
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
}

// Around granules of 64 rows.
TEST_F(OperatorsOnDeviceTest, CumulativeOperators) {
  for (const ElementType type : kTypes)
    for (const char* name : {"cumsum", "cumprod", "cummin", "cummax"})
      for (const Shape& shape : {Shape{1, 9}, Shape{63, 1}, Shape{64, 3}, Shape{65, 2}, Shape{1000, 8},
                                 Shape{0, 3}, Shape{3, 0}}) {
        const Matrix x = Cells(shape.rows, shape.columns, 1, shape.rows == 65);
        ExpectSame(Invocation(name, {Value(OfType(x, type))}));
        if (HasFailure()) return;
      }
  for (const ElementType type : kTypes)
    for (const int64_t rows : {0, 1, 15, 16, 17, 100})
      ExpectSame(Invocation("cumsumprod", {Value(OfType(Cells(rows, 2, 1), type))}));
}

// Calls that have no kernel are the host's.
TEST_F(OperatorsOnDeviceTest, OthersAreTheHosts) {
  const Matrix x = Cells(9, 10, 1);
  Invocation sparse("t", {Value(*ToSparse(x))});
  OnHost(sparse);
  EXPECT_EQ(DeviceOperators::CanRun(sparse.node, sparse.infos).code(), StatusCode::kUnimplemented);
  Invocation diagonal("diag", {Value(Cells(9, 1, 1))});
  OnHost(diagonal);
  EXPECT_EQ(DeviceOperators::CanRun(diagonal.node, diagonal.infos).code(), StatusCode::kUnimplemented);
  Invocation wrong("%*%", {Value(x), Value(Cells(10, 9, 1))});
  OnHost(wrong);
  wrong.inputs[1] = Value(Cells(11, 9, 1));
  std::vector<const Value*> inputs = {&*wrong.inputs[0], &*wrong.inputs[1]};
  Value result;
  EXPECT_EQ(DeviceOperators::Of(*device_)
                .Run({.node = wrong.node,
                      .phase = Phase::kWhole,
                      .inputs = inputs,
                      .input_infos = wrong.infos,
                      .context = context_},
                     *queue_, {&result, 1})
                .code(),
            StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace heddle::ops::testing
