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

// A region is a maximal chain of cell-wise operators of a fused operator that one loop can compute: the unit
// of code generation. It knows nothing of matrices, formats and threads; the skeletons of this folder call it
// on tiles of rows.
namespace heddle::ops {

/// How an input is read at cell (i, j) of the region's rows x columns.
enum class Access : uint8_t {
  kCells,      ///< input[i * stride + j]
  kPerRow,     ///< input[i * stride]
  kPerColumn,  ///< input[j]
  kScalar,     ///< input[0]
};

enum class RegionOp : uint8_t { kInput, kLiteral, kUnary, kBinary, kSelect };

/// Whether the rows of an input, which have no gaps and come from memory, are fetched: what follows the cells
/// that are read, from eight pages in turn, or a few kilobytes ahead (docs/fusion.md, section 3).
enum class RowsAhead : uint8_t { kNone, kSideBySide, kInOrder };

/// One value of a region. Operands are positions of earlier nodes.
struct RegionNode {
  RegionOp op = RegionOp::kInput;
  Access access = Access::kCells;  ///< kInput
  int input = 0;                   ///< kInput: position in RegionCall::inputs
  bool single = false;             ///< kInput of kCells or kPerRow: the cells are floats, the value a double.
  /// kInput of kCells. All inputs that are fetched are floats or none is, and they are in one way.
  RowsAhead ahead = RowsAhead::kNone;
  double literal = 0;                     ///< kLiteral
  UnaryCode unary = UnaryCode::kNot;      ///< kUnary
  BinaryCode binary = BinaryCode::kAdd;   ///< kBinary
  int a = -1, b = -1, c = -1;             ///< kSelect: a != 0 ? b : c
  bool skips_a = false, skips_b = false;  ///< kBinary: +0.0 where that operand is zero (docs/numerics.md R6)
  bool drops_negative_zero = false;       ///< The result of a CSR node: + 0.0 at the end (R6)
  bool operator==(const RegionNode&) const = default;
};

/// True if the result needs no rounding to be a float when the operands are floats.
bool KeepsSingles(const RegionNode& node);

/// What becomes of a value.
enum class Sink : uint8_t {
  kStore,        ///< output[i * stride + j] = value
  kFoldFlat,     ///< output[j mod 8 eights] takes value, j ascending; only for calls with rows == 1. The fold
                 ///< says how.
  kFoldColumns,  ///< output[j] takes value, i ascending; output is 64-byte aligned and padded to 8 doubles
  kFoldRows,     ///< output[i] = L of eight lanes over j, started afresh (simd::FoldRows)
};

struct RegionOutput {
  int node = 0;
  Sink sink = Sink::kStore;
  simd::Fold fold = simd::Fold::kAdd;  ///< Of the folding sinks.
  int eights = 1;                      ///< kFoldFlat: 1 to 8, the same for all of a region.
  bool is_mean = false;                ///< kFoldRows: the fold divided by the number of columns.
  bool single = false;                 ///< kStore: rounded to floats.
  bool operator==(const RegionOutput&) const = default;
};

struct Region {
  std::vector<RegionNode> nodes;
  std::vector<RegionOutput> outputs;
  int inputs = 0;
  /// Not 0: every call has so many columns, and no input or kStore output has gaps between rows (of one cell
  /// where it is kPerRow, which it then is everywhere). Rows are unrolled and several are in flight, so this
  /// is for short rows of light operators. No kFoldFlat.
  int columns = 0;
  /// Eight doubles are two registers of four where the machine has registers of eight. The results are the
  /// same.
  bool halves = false;

  /// One line a node; the key of every cache of generated code. Parses back.
  std::string ToText() const;
  static Result<Region> Parse(std::string_view text);
  bool operator==(const Region&) const = default;
};

/// Columns of a region that is made for a number of columns.
constexpr int kMostNarrowColumns = 64;

/// Operands, inputs, codes, outputs. An error here is our bug (kInternal). Parse and all sources of code ask
/// it.
Status Verify(const Region& region);

/// One call of the code of a region. A C structure: generated code reads it, see compiler/codegen. Change
/// kRegionAbi with it.
struct RegionCall {
  int64_t rows = 1, columns = 0;
  const double* const* inputs = nullptr;   ///< In truth of floats where the region says so.
  const int64_t* input_strides = nullptr;  ///< Cells between rows; of kCells and kPerRow inputs.
  double* const* outputs = nullptr;
  const int64_t* output_strides = nullptr;  ///< Of kStore outputs.
  int64_t stream = 0;  ///< Not 0: kStore (aligned whole lines) and kFoldRows outputs go past the caches.
};
constexpr int kRegionAbi = 4;
using RegionFunction = void (*)(const RegionCall* call);

/// Machine code of a region; owns what it needs. Thread-safe to call.
class RegionCode {
 public:
  virtual ~RegionCode() = default;
  virtual void Run(const RegionCall& call) const = 0;
};

/// Where skeletons find code. Thread-safe; asks for the same region give the same code.
class RegionSource {
 public:
  virtual ~RegionSource() = default;
  virtual Result<std::shared_ptr<const RegionCode>> Compile(const Region& region) = 0;
};

/// Runs regions by the kernels of ops/simd/cellwise/elementwise.h on runs of a few hundred cells that stay in
/// the first-level cache: the same bits as generated code, about two to five times slower. Never fails.
RegionSource& InterpretedRegions();

}  // namespace heddle::ops
