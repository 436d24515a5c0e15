// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/environment/clock.h"
#include "core/memory/counted_heap.h"
#include "ops/base/arguments.h"
#include "ops/base/stages.h"
#include "ops/cells/storage.h"
#include "ops/compressed/compression_records.h"
#include "ops/compressed/exact.h"
#include "ops/compressed/plan_groups.h"
#include "ops/compressed/read_cost.h"

namespace heddle::ops {
namespace {

// kReadsOfCompressing of a matrix in panels, which are read from files: about 4 from a disk with 1 GB/s, 30
// from the page cache of the system.
constexpr double kReadsOfPanels = 8;

Result<ValueInfo> InferSame(const InferContext& context) {
  if (!context.inputs.empty() && context.inputs[0].IsFrame()) return context.inputs[0];
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  return context.inputs[0];
}

RowRule ByRows(const Node&, std::span<const ValueInfo>) { return RowRule::kRowWise; }

// One pass over X that looks each cell up in a table, of about as many operations as `reads` passes take.
Cost CostOfCompressing(const Node&, std::span<const ValueInfo> inputs) {
  const auto bytes = static_cast<double>(KnownBytes(inputs[0]));
  return {.work = bytes / static_cast<double>(sizeof(double)) * kReadsOfCompressing, .bytes = 2 * bytes};
}

// Whether entries of a CSR matrix, read from a file, are -0.0: what operators make of column groups where the
// format is sparse is CSR without zeros.
template <typename T>
bool HasSignedZeros(const Matrix& csr) {
  const T* const values = csr.values<T>() + (csr.rows() == 0 ? 0 : csr.row_offsets()[0]);
  return std::any_of(values, values + csr.stored(), [](T x) { return x == 0 && std::signbit(x); });
}

// Why the matrix is not even looked at; "" where it is.
std::string WhyNotPlanned(const Matrix& x, int64_t whole_bytes, const Scalar* reads) {
  if (std::string why = WhyTooSmall(whole_bytes, reads); !why.empty()) return why;
  // A plan has a few numbers of every cell of the sample, zeros too.
  constexpr double kBytesOfSampledCell = 24;
  if (x.IsSparse() && kBytesOfSampledCell * static_cast<double>(SampledRows(x.rows()).size()) *
                              static_cast<double>(x.columns()) >
                          static_cast<double>(x.bytes()))
    return "its rows are too wide to be sampled";
  if (x.IsSparse() &&
      (x.element_type() == ElementType::kFloat64 ? HasSignedZeros<double>(x) : HasSignedZeros<float>(x)))
    return "it is sparse and has cells of -0.0";
  return "";
}

// Of groups of so many bytes and such a cost.
std::string TakesTooMuch(const CompressionPlan& plan, double bytes, double cost) {
  return fmt::format("it would take {:.2f} of its bytes, and {:.2f} of the time to read it",
                     bytes / plan.plain_bytes, cost / plan.plain_cost);
}

// Whether sums of all cells are exact, as far as the first ones tell.
bool SumsLookExact(const Matrix& x) {
  constexpr int64_t kFirstCells = 1 << 14;
  const auto terms = static_cast<double>(x.cells());
  const auto count = static_cast<size_t>(std::min(x.stored(), kFirstCells));
  const bool is_sparse = x.IsSparse();
  if (x.element_type() == ElementType::kFloat32)
    return AddExactly(UnitsOf(std::span(is_sparse ? x.values<float>() : x.data<float>(), count)), terms);
  return AddExactly(UnitsOf(std::span(is_sparse ? x.values() : x.data(), count)), terms);
}

// Whether dictionaries answer all reads, so that it does not matter what it costs to look cells up.
bool ReadsTuplesAlone(const Matrix& x, const CompressionPlan& plan, const Scalar* reads,
                      const Scalar* of_tuples) {
  return reads != nullptr && of_tuples != nullptr && of_tuples->AsDouble() >= reads->AsDouble() &&
         std::none_of(plan.groups.begin(), plan.groups.end(),
                      [](const PlannedGroup& group) { return group.encoding == Encoding::kUncompressed; }) &&
         SumsLookExact(x);
}

// Why the plan is not carried out; "" where it is. `cost` is that of a read.
std::string WhyNotMade(const CompressionPlan& plan, double cost, int64_t whole_bytes, const Scalar* reads) {
  if (!plan.Pays(cost)) return TakesTooMuch(plan, plan.bytes, cost);
  if (reads == nullptr) return "";
  const double needed = IsReadInPanels(whole_bytes) ? kReadsOfPanels : kReadsOfCompressing;
  const double saved = reads->AsDouble() * (1 - cost / plan.plain_cost);
  if (saved > needed) return "";
  return fmt::format(
      "{:.0f} reads of it would save as much as {:.1f}, and compressing takes as long as {:.0f}",
      reads->AsDouble(), saved, needed);
}

Result<Matrix> PlanAndCompress(const Matrix& x, int64_t whole_bytes, const Scalar* reads,
                               const KernelContext& context, CompressionRecord* record,
                               const Scalar* of_tuples) {
  record->why_not = WhyNotPlanned(x, whole_bytes, reads);
  if (!record->why_not.empty()) return x;
  HEDDLE_ASSIGN_OR_RETURN(const CompressionPlan plan, PlanCompression(x, context));
  const bool of_tuples_alone = ReadsTuplesAlone(x, plan, reads, of_tuples);
  record->why_not = WhyNotMade(plan, of_tuples_alone ? 0 : plan.cost, whole_bytes, reads);
  if (!record->why_not.empty()) return x;
  HEDDLE_ASSIGN_OR_RETURN(ColumnGroups groups, CompressColumns(x, plan, context));
  // Distinct tuples beyond those that the sample let expect are cells that are stored as they were.
  if (const double cost = of_tuples_alone ? 0 : ReadCost(groups); !plan.PaysWith(cost)) {
    record->why_not = TakesTooMuch(plan, static_cast<double>(groups.bytes()), cost);
    return x;
  }
  record->bytes = groups.bytes();
  record->groups = GroupsText(groups);
  return Matrix::OfGroups(std::make_shared<const ColumnGroups>(std::move(groups)));
}

}  // namespace

Result<Matrix> CompressedOf(const Matrix& x, int64_t whole_bytes, const Scalar* reads,
                            const KernelContext& context, CompressionRecord* record,
                            const Scalar* of_tuples) {
  Result<Matrix> result = WithinMemory(
      "compress", [&] { return PlanAndCompress(x, whole_bytes, reads, context, record, of_tuples); });
  if (result.ok() || result.status().code() != StatusCode::kResourceExhausted) return result;
  // How a matrix is stored fails no script.
  record->why_not = "there is no memory for the groups beside it";
  return x;
}

namespace {

Result<Value> RunCompress(const KernelCall& call) {
  if (!call.inputs[0]->IsMatrix()) return *call.inputs[0];
  const Matrix& x = call.inputs[0]->matrix();
  CompressionRecord record{.place = PlaceOf(call.node), .plain_bytes = x.bytes()};
  const int64_t begin_ns = SystemClock().MonotonicNs();
  // Of a panel, or the rows of a rank: what a cache has to hold is the whole.
  const double parts =
      static_cast<double>(call.total_rows) / static_cast<double>(std::max<int64_t>(1, x.rows()));
  const auto whole_bytes = static_cast<int64_t>(static_cast<double>(x.bytes()) * std::max(1.0, parts));
  HEDDLE_ASSIGN_OR_RETURN(
      Matrix result, CompressedOf(x, whole_bytes, call.node.FindAttribute("reads"), call.context, &record,
                                  call.node.FindAttribute("of_tuples")));
  record.ns = SystemClock().MonotonicNs() - begin_ns;
  CompressionRecords::Process().Add(call.context.fused, record);
  return Value(std::move(result));
}

// What is in column groups already stays so.
Result<std::optional<Value>> RunCompressGroups(const KernelCall& call) {
  return std::optional<Value>(*call.inputs[0]);
}

// Column groups come decoded, in the storage that takes fewer bytes.
Result<Value> RunDecompress(const KernelCall& call) {
  if (!call.inputs[0]->IsMatrix()) return *call.inputs[0];
  const Matrix& x = call.inputs[0]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, call.node.info.format == Format::kSparse ? AsSparse(x) : AsDense(x));
  return Value(std::move(result));
}

}  // namespace

/// compress(X), [C, M] = compress(X, M): X, stored by groups of columns where that is read faster
/// (docs/compression.md), and the types of its columns, a frame of one row. M, where it is given, is how
/// SystemDS is to store X; here it changes nothing. A frame stays as it is.
///
/// Shapes:  those of X, as its type and format.
/// Exact:   the same cells, but for payloads of NaN.
/// Stored:  what fits in the cache of a core stays as it is, and what products would read not much faster.
///          Attribute `reads` (a number; of compress-loops): how often the matrix will be read. Then what
///          fits in the last-level cache stays as well, and what so many reads do not pay for: fewer do where
///          the whole matrix is larger than the memory. Attribute `of_tuples`: how many of these reads ask
///          for what dictionaries tell, and look no cell up.
/// Rows:    each rank compresses its own.
/// Cost:    reads X once, and looks up every cell.
extern constexpr Operator kCompress = {.name = "compress",
                                       .form = CallForm::kSame,
                                       .parameters = "X M?",
                                       .min_inputs = 1,
                                       .max_inputs = 1,
                                       .results = 2,
                                       .infer = InferSame,
                                       .row_rule = ByRows,
                                       .input_use = AllByRows,
                                       .cost = CostOfCompressing,
                                       .run = RunCompress,
                                       .run_compressed = RunCompressGroups,
                                       .takes_singles = TakesAnySingles,
                                       .takes_frames = true,
                                       .adjoints = "dy"};

/// decompress(X): X, not in column groups.
///
/// Shapes:  those of X, as its type and format. Exact.
/// Cost:    writes X once where it is compressed.
extern constexpr Operator kDecompress = {.name = "decompress",
                                         .form = CallForm::kSame,
                                         .parameters = "X",
                                         .min_inputs = 1,
                                         .max_inputs = 1,
                                         .infer = InferSame,
                                         .row_rule = ByRows,
                                         .input_use = AllByRows,
                                         .run = RunDecompress,
                                         .takes_singles = TakesAnySingles,
                                         .takes_frames = true,
                                         .adjoints = "dy"};

/// local(X): X. In SystemDS it tells where X is to be.
extern constexpr Operator kLocalForm = {.name = "local", .form = CallForm::kSame, .parameters = "X"};

/// quantize_compress(X, s): floor(X * s), where s is a number or has one for each row.
extern constexpr Operator kQuantizeForm = {
    .name = "quantize_compress", .form = CallForm::kQuantize, .parameters = "X s"};

}  // namespace heddle::ops
