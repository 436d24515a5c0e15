// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/codegen/region_case.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/codegen/codegen.h"
#include "ops/simd/cellwise/math.h"

namespace heddle::codegen {
namespace {

using ops::Access;
using ops::RegionNode;
using ops::RegionOp;
using ops::RegionOutput;
using ops::Sink;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kUntouched = 12345.0;
constexpr size_t kPage = 4096;

double RandomCell(std::mt19937& random) {
  static constexpr double kSpecial[] = {
      0.0,        -0.0, 1.0,      -1.0, 2.0,    0.5,     0x1p-1074, -0x1p-1060, 0x1p-1022, kInfinity,
      -kInfinity, NAN,  0x1p1023, -1e9, 0x1p63, -0x1p63, 3.0,       1e300,      -745.2,    709.5};
  const uint32_t kind = random() % 8;
  if (kind == 0) return kSpecial[random() % std::size(kSpecial)];
  if (kind == 1) return 0.0;
  if (kind == 2) return static_cast<double>(static_cast<int>(random() % 21) - 10);
  const double unit = static_cast<double>(random()) / 4294967296.0;
  return kind == 3 ? (unit - 0.5) * 1e10 : (unit - 0.5) * 8.0;
}

int64_t PaddedTo8(int64_t n) { return (n + 7) / 8 * 8; }

}  // namespace

GuardedArray::GuardedArray(size_t size) : size_(size) {
  const size_t bytes = (size * sizeof(double) + kPage - 1) / kPage * kPage;
  bytes_ = bytes + kPage;
  pages_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  HEDDLE_CHECK(pages_ != MAP_FAILED, "a few pages are always there");
  mprotect(static_cast<char*>(pages_) + bytes, kPage, PROT_NONE);
  data_ = reinterpret_cast<double*>(static_cast<char*>(pages_) + bytes) - size;
}
GuardedArray::~GuardedArray() { munmap(pages_, bytes_); }

namespace {

bool ReadsFloats(const ops::Region& region, int input) {
  return std::any_of(region.nodes.begin(), region.nodes.end(), [&](const RegionNode& node) {
    return node.op == RegionOp::kInput && node.input == input && node.single;
  });
}

// Room for so many cells, and where the first is: the last ends at the guard.
std::unique_ptr<GuardedArray> MakeCells(int64_t count, bool single) {
  return std::make_unique<GuardedArray>(static_cast<size_t>(single ? (count + 1) / 2 : count));
}
double* FirstCell(const GuardedArray& array, int64_t count, bool single) {
  return single ? reinterpret_cast<double*>(reinterpret_cast<float*>(array.data() + array.size()) - count)
                : array.data();
}
double Read(const double* cells, int64_t i, bool single) {
  return single ? static_cast<double>(reinterpret_cast<const float*>(cells)[i]) : cells[i];
}
void Write(double* cells, int64_t i, bool single, double x) {
  if (single)
    reinterpret_cast<float*>(cells)[i] = static_cast<float>(x);
  else
    cells[i] = x;
}

}  // namespace

RegionCase::RegionCase(const ops::Region& region, const CaseShape& shape, uint32_t seed)
    : region_(region), shape_(shape) {
  std::mt19937 random(seed);
  const int64_t stride = shape.columns + shape.gap;
  for (int k = 0; k < region.inputs; ++k) {
    // Large enough for every access: an input may be read in several ways.
    bool cells = false, per_row = false, per_column = false;
    for (const RegionNode& node : region.nodes) {
      if (node.op != RegionOp::kInput || node.input != k) continue;
      cells |= node.access == Access::kCells;
      per_row |= node.access == Access::kPerRow;
      per_column |= node.access == Access::kPerColumn;
    }
    const int64_t own_stride = cells ? stride : 1 + shape.gap;
    int64_t size = 1;
    if (per_column) size = std::max(size, shape.columns);
    if (per_row && shape.rows > 0) size = std::max(size, (shape.rows - 1) * own_stride + 1);
    if (cells && shape.rows > 0) size = std::max(size, (shape.rows - 1) * own_stride + shape.columns);
    const bool single = ReadsFloats(region, k);
    inputs_.push_back(MakeCells(size, single));
    double* const first = FirstCell(*inputs_.back(), size, single);
    for (int64_t i = 0; i < size; ++i) Write(first, i, single, RandomCell(random));
    input_pointers_.push_back(first);
    input_strides_.push_back(own_stride);
  }
  for (const RegionOutput& output : region.outputs) {
    // Outputs differ in their strides and in where their first line begins.
    const auto more = region.columns > 0 ? 0 : static_cast<int64_t>(outputs_.size());
    int64_t size = 8 * output.eights;
    if (output.sink == Sink::kStore)
      size = shape.rows == 0 ? 0 : (shape.rows - 1) * (stride + more) + shape.columns + more;
    if (output.sink == Sink::kFoldColumns) size = PaddedTo8(shape.columns);
    if (output.sink == Sink::kFoldRows) size = shape.rows;
    outputs_.push_back(MakeCells(size, output.single));
    output_pointers_.push_back(FirstCell(*outputs_.back(), size, output.single));
    output_sizes_.push_back(size);
    output_strides_.push_back(stride + more);
  }
}

void RegionCase::ResetOutputs() {
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const RegionOutput& output = region_.outputs[o];
    const bool folds = output.sink == Sink::kFoldFlat || output.sink == Sink::kFoldColumns;
    for (int64_t i = 0; i < output_sizes_[o]; ++i)
      Write(output_pointers_[o], i, output.single, folds ? ops::simd::StartOf(output.fold) : kUntouched);
  }
}

std::vector<double> RegionCase::TakeOutputs() const {
  std::vector<double> all;
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const int64_t size = region_.outputs[o].sink == Sink::kFoldColumns ? shape_.columns : output_sizes_[o];
    for (int64_t i = 0; i < size; ++i) all.push_back(Read(output_pointers_[o], i, region_.outputs[o].single));
  }
  return all;
}

std::vector<double> RegionCase::Run(const ops::RegionCode& code) {
  ResetOutputs();
  ops::RegionCall call;
  call.rows = shape_.rows;
  call.columns = shape_.columns;
  call.inputs = input_pointers_.data();
  call.input_strides = input_strides_.data();
  call.outputs = output_pointers_.data();
  call.output_strides = output_strides_.data();
  call.stream = shape_.stream ? 1 : 0;
  code.Run(call);
  return TakeOutputs();
}

std::vector<double> RegionCase::RunLiterally() {
  ResetOutputs();
  std::vector<double> values(region_.nodes.size());
  for (int64_t i = 0; i < shape_.rows; ++i) {
    std::vector<std::vector<double>> lanes(region_.outputs.size());
    for (size_t o = 0; o < lanes.size(); ++o) lanes[o].assign(8, ops::simd::StartOf(region_.outputs[o].fold));
    for (int64_t j = 0; j < shape_.columns; ++j) {
      for (size_t n = 0; n < values.size(); ++n) values[n] = ValueAt(static_cast<int>(n), i, j, values);
      for (size_t o = 0; o < lanes.size(); ++o) {
        const RegionOutput& output = region_.outputs[o];
        const double x = values[static_cast<size_t>(output.node)];
        double* const out = output_pointers_[o];
        const auto fold_into = [&](double& cell) { cell = ops::simd::FoldTwo(output.fold, cell, x); };
        switch (output.sink) {
          case Sink::kStore: Write(out, i * output_strides_[o] + j, output.single, x); break;
          case Sink::kFoldFlat: fold_into(out[j % (8 * output.eights)]); break;
          case Sink::kFoldColumns: fold_into(out[j]); break;
          case Sink::kFoldRows: fold_into(lanes[o][static_cast<size_t>(j % 8)]); break;
        }
      }
    }
    for (size_t o = 0; o < lanes.size(); ++o)
      if (region_.outputs[o].sink == Sink::kFoldRows)
        output_pointers_[o][i] = ops::simd::FoldLanes(region_.outputs[o].fold, lanes[o].data()) /
                                 (region_.outputs[o].is_mean ? static_cast<double>(shape_.columns) : 1.0);
  }
  return TakeOutputs();
}

double RegionCase::ValueAt(int position, int64_t i, int64_t j, std::vector<double>& values) const {
  const RegionNode& node = region_.nodes[static_cast<size_t>(position)];
  const auto operand = [&](int k) { return values[static_cast<size_t>(k)]; };
  double value = 0;
  switch (node.op) {
    case RegionOp::kInput: {
      const double* const input = input_pointers_[static_cast<size_t>(node.input)];
      const int64_t stride = input_strides_[static_cast<size_t>(node.input)];
      value = node.access == Access::kCells       ? Read(input, i * stride + j, node.single)
              : node.access == Access::kPerRow    ? Read(input, i * stride, node.single)
              : node.access == Access::kPerColumn ? input[j]
                                                  : input[0];
      break;
    }
    case RegionOp::kLiteral: value = node.literal; break;
    case RegionOp::kUnary: value = ops::Apply(node.unary, operand(node.a)); break;
    case RegionOp::kBinary:
      value = ops::Apply(node.binary, operand(node.a), operand(node.b));
      if ((node.skips_a && operand(node.a) == 0) || (node.skips_b && operand(node.b) == 0)) value = 0.0;
      break;
    case RegionOp::kSelect: value = operand(node.a) != 0 ? operand(node.b) : operand(node.c); break;
  }
  return node.drops_negative_zero ? value + 0.0 : value;
}

std::string FirstDifference(const std::vector<double>& expected, const std::vector<double>& actual) {
  if (expected.size() != actual.size()) return "sizes differ";
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(actual[i])) continue;
    if (std::memcmp(&expected[i], &actual[i], sizeof(double)) != 0)
      return fmt::format("output cell {}: expected {}, is {}", i, expected[i], actual[i]);
  }
  return {};
}

void ExpectSameBits(const ops::Region& region, const std::vector<CaseShape>& shapes, uint32_t seed) {
  static GeneratedCode& source = []() -> GeneratedCode& {
    CodegenOptions options;
    options.use_disk_cache = false;
    return *GeneratedRegions(options).release();
  }();
  const auto generated = source.Compile(region);
  ASSERT_TRUE(generated.ok()) << generated.status().ToString();
  ops::Region halved_region = region;
  halved_region.half_registers = true;
  const auto halved = source.Compile(halved_region);
  ASSERT_TRUE(halved.ok()) << halved.status().ToString();
  const auto interpreted = ops::InterpretedRegions().Compile(region);
  ASSERT_TRUE(interpreted.ok()) << interpreted.status().ToString();
  for (const CaseShape& shape : shapes) {
    RegionCase test(region, shape, seed++);
    const std::vector<double> expected = test.RunLiterally();
    const std::string where = fmt::format("{} x {} gap {} stream {} seed {}\n{}", shape.rows, shape.columns,
                                          shape.gap, shape.stream, seed - 1, region.ToText());
    ASSERT_EQ(FirstDifference(expected, test.Run(**interpreted)), "") << "interpreted " << where;
    ASSERT_EQ(FirstDifference(expected, test.Run(**generated)), "") << "generated " << where;
    ASSERT_EQ(FirstDifference(expected, test.Run(**halved)), "") << "generated, by halves " << where;
  }
}

ops::Region RandomRegion(std::mt19937& random, int nodes, bool flat) {
  ops::Region region;
  region.inputs = 1 + static_cast<int>(random() % 4);
  static constexpr double kLiterals[] = {0.0, -0.0, 1.0, 2.0, -1.5, 0.5, 1e-300, kInfinity, NAN, 1000.0, 3.0};
  for (int i = 0; i < nodes; ++i) {
    RegionNode& node = region.nodes.emplace_back();
    const auto operand = [&] { return static_cast<int>(random() % static_cast<uint32_t>(i)); };
    const uint32_t kind = i == 0 ? 0 : random() % 12;
    if (kind < 3) {
      node.access = static_cast<Access>(i == 0 ? 0 : random() % 4);
      node.input = static_cast<int>(random() % static_cast<uint32_t>(region.inputs));
    } else if (kind == 3) {
      node.op = RegionOp::kLiteral;
      node.literal = kLiterals[random() % std::size(kLiterals)];
    } else if (kind < 6) {
      node.op = RegionOp::kUnary;
      node.unary = static_cast<ops::UnaryCode>(random() % ops::kUnaryCodes);
      node.a = operand();
    } else if (kind == 6) {
      node.op = RegionOp::kSelect;
      node.a = operand();
      node.b = operand();
      node.c = operand();
    } else {
      node.op = RegionOp::kBinary;
      node.binary = static_cast<ops::BinaryCode>(random() % ops::kBinaryCodes);
      node.a = operand();
      node.b = operand();
      node.skips_a = random() % 8 == 0;
      node.skips_b = random() % 8 == 0;
    }
    node.drops_negative_zero = random() % 10 == 0;
  }
  for (int k = 0; k < region.inputs; ++k) {
    bool single = random() % 2 == 0;
    for (const RegionNode& node : region.nodes)
      if (node.op == RegionOp::kInput && node.input == k)
        single = single && (node.access == Access::kCells || node.access == Access::kPerRow);
    for (RegionNode& node : region.nodes)
      if (node.op == RegionOp::kInput && node.input == k) node.single = single;
  }
  const bool fetches_single = random() % 2 == 0;
  const ops::RowPrefetch prefetch =
      random() % 2 == 0 ? ops::RowPrefetch::kPagesInTurn : ops::RowPrefetch::kInOrder;
  for (RegionNode& node : region.nodes)
    if (node.op == RegionOp::kInput && node.access == Access::kCells && node.single == fetches_single)
      node.prefetch = random() % 2 == 0 ? prefetch : ops::RowPrefetch::kNone;
  const int eights = random() % 2 == 0 ? 1 : 1 + static_cast<int>(random() % 8);
  const uint32_t outputs = 1 + random() % 3;
  for (uint32_t o = 0; o < outputs; ++o) {
    RegionOutput& output = region.outputs.emplace_back();
    output.node = o == 0 ? nodes - 1 : static_cast<int>(random() % static_cast<uint32_t>(nodes));
    output.sink = static_cast<Sink>(random() % 4);
    if (output.sink == Sink::kFoldFlat && !flat) output.sink = Sink::kStore;
    if (output.sink != Sink::kStore) output.fold = static_cast<ops::simd::Fold>(random() % 4);
    if (output.sink == Sink::kFoldFlat) output.eights = eights;
    output.single = output.sink == Sink::kStore && random() % 3 == 0;
    output.is_mean =
        output.sink == Sink::kFoldRows && output.fold == ops::simd::Fold::kAdd && random() % 2 == 0;
  }
  return region;
}

}  // namespace heddle::codegen
