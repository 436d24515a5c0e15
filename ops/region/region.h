// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "ops/simd/aggregate.h"
#include "ops/simd/cellwise/elementwise.h"

// A region is a set of cell-wise operators that one loop computes: the unit of code generation. It knows
// nothing of matrices, formats and threads. Callers make one (ops/fused/lower for tiles of a fused operator,
// ops/recursion for nodes of a batch) and call its code on rows and columns of cells.
//
// sum(abs(X + 1) * X) of one row of cells is
//
//     region 1
//     %0 = cells 0
//     %1 = literal 0x1p+0
//     %2 = Add %0 %1
//     %3 = Absolute %2
//     %4 = Multiply %3 %0
//     fold-flat add %4
namespace heddle::ops {

/// How an input is read at cell (i, j) of the region's rows x columns.
enum class Access : uint8_t {
  kCells,      ///< input[i * stride + j]
  kPerRow,     ///< input[i * stride]
  kPerColumn,  ///< input[j]
  kScalar,     ///< input[0]
};

enum class RegionOp : uint8_t { kInput, kLiteral, kUnary, kBinary, kSelect };

/// Which lines of an input the loop prefetches while it reads cells of it (simd/prefetch.h; docs/fusion.md,
/// section 3). Only of inputs whose rows have no gaps and come from memory.
enum class RowPrefetch : uint8_t {
  kNone,
  kPagesInTurn,  ///< A line of each of the next eight pages in turn.
  kInOrder,      ///< The line a few kilobytes behind the one that is read.
};

/// One value of a region. Operands are positions of earlier nodes.
struct RegionNode {
  RegionOp op = RegionOp::kInput;
  Access access = Access::kCells;  ///< kInput
  int input = 0;                   ///< kInput: position in RegionCall::inputs
  bool single = false;             ///< kInput of kCells or kPerRow: the cells are floats, the value a double.
  /// kInput of kCells. Inputs of a region that are prefetched are so in one way, and all floats or all
  /// doubles.
  RowPrefetch prefetch = RowPrefetch::kNone;
  double literal = 0;                    ///< kLiteral
  UnaryCode unary = UnaryCode::kNot;     ///< kUnary
  BinaryCode binary = BinaryCode::kAdd;  ///< kBinary
  int a = -1, b = -1, c = -1;            ///< kSelect: a != 0 ? b : c
  /// kBinary: the result is +0.0 where that operand is zero, as where a CSR operand has no entry
  /// (docs/numerics.md R6).
  bool skips_a = false, skips_b = false;
  bool drops_negative_zero = false;  ///< -0.0 becomes +0.0, as in every CSR value (R6).
  bool operator==(const RegionNode&) const = default;
};

/// True if the result needs no rounding to be a float when the operands are floats.
bool KeepsSingles(const RegionNode& node);

/// What the loop does with a value.
enum class Sink : uint8_t {
  kStore,  ///< output[i * stride + j] = value
  /// output[j mod (8 * eights)] = fold(output[j mod (8 * eights)], value), j ascending; calls have one row.
  kFoldFlat,
  kFoldColumns,  ///< output[j] = fold(output[j], value), i ascending; 64-byte aligned, padded to 8 doubles
  kFoldRows,     ///< output[i] = the fold of row i, from nothing, in the order of simd::FoldRows
};

struct RegionOutput {
  int node = 0;
  Sink sink = Sink::kStore;
  simd::Fold fold = simd::Fold::kAdd;  ///< Of the folding sinks.
  int eights = 1;                      ///< kFoldFlat: 1 to 8, the same for all such outputs of a region.
  bool is_mean = false;                ///< kFoldRows: the fold divided by the number of columns.
  bool single = false;                 ///< kStore: rounded to floats.
  bool operator==(const RegionOutput&) const = default;
};

struct Region {
  std::vector<RegionNode> nodes;
  std::vector<RegionOutput> outputs;
  int inputs = 0;
  /// Not 0: every call has exactly so many columns, and rows of inputs and kStore outputs have no gaps (a
  /// kPerRow input then has one cell a row, and no node reads the same input by kCells). Rows are unrolled
  /// and several are in flight, so this is for short rows of light operators. No output is kFoldFlat.
  int columns = 0;
  /// Use two registers of four doubles where the machine has registers of eight. The results are the same.
  bool half_registers = false;

  /// One line a node; the key of every cache of generated code. Parses back.
  std::string ToText() const;
  static Result<Region> Parse(std::string_view text);
  bool operator==(const Region&) const = default;
};

/// The largest Region::columns.
constexpr int kMostNarrowColumns = 64;

/// Checks operands, inputs, codes and outputs. An error here is our bug (kInternal). Parse and every source
/// of code call it.
Status Verify(const Region& region);

/// One call of the code of a region. A C structure: generated code reads it, see compiler/codegen. Change
/// kRegionAbi with it.
struct RegionCall {
  int64_t rows = 1, columns = 0;
  const double* const* inputs = nullptr;   ///< Addresses of floats where the node is `single`.
  const int64_t* input_strides = nullptr;  ///< Cells between rows; of kCells and kPerRow inputs.
  double* const* outputs = nullptr;
  const int64_t* output_strides = nullptr;  ///< Of kStore outputs.
  int64_t stream =
      0;  ///< Not 0: kStore outputs (aligned whole lines) and kFoldRows outputs bypass the caches.
};
constexpr int kRegionAbi = 4;
using RegionFunction = void (*)(const RegionCall* call);

/// Machine code of a region; owns what it needs. Thread-safe to call.
class RegionCode {
 public:
  virtual ~RegionCode() = default;
  virtual void Run(const RegionCall& call) const = 0;
};

/// Makes or finds the code of regions. Thread-safe; the same region always gets the same code.
class RegionSource {
 public:
  virtual ~RegionSource() = default;
  virtual Result<std::shared_ptr<const RegionCode>> Compile(const Region& region) = 0;
};

/// Runs regions by the kernels of ops/simd/cellwise/elementwise.h on runs of a few hundred cells that stay in
/// the first-level cache: the same bits as generated code, about two to five times slower. Never fails.
RegionSource& InterpretedRegions();

}  // namespace heddle::ops
