// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/run/run_body.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/values/panels.h"
#include "ops/base/operator.h"
#include "ops/base/parallel.h"
#include "ops/cells/move_cells.h"
#include "ops/recursion/run/matrix_rows.h"

namespace heddle::ops {
namespace {

using PlaceKind = ValuePlace::Kind;
using StepKind = BodyStep::Kind;

// Integers below are told apart by doubles.
constexpr double kMostWhole = 9007199254740992.0;

// Whether both are one value. Addresses tell matrices apart, as the program holds those of the last
// evaluation: no other matrix takes their place in memory.
bool IsSame(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.IsScalar()) {
    const Scalar &x = a.scalar(), &y = b.scalar();
    return !x.IsString() && !y.IsString() && x.type() == y.type() &&
           std::bit_cast<uint64_t>(x.AsDouble()) == std::bit_cast<uint64_t>(y.AsDouble()) &&
           std::fabs(x.AsDouble()) < kMostWhole;
  }
  return a.IsMatrix() && a.matrix().IsSameView(b.matrix());
}

}  // namespace

BodyRun::BodyRun(std::shared_ptr<const RecursiveBody> body, const Linearized::Class& node_class,
                 std::span<const int64_t> nodes, const KernelSource& kernels, KernelContext& context,
                 RecursionCache& cache)
    : body_(std::move(body)),
      program_(cache.ProgramOf(body_)),
      class_(node_class),
      nodes_(nodes),
      kernels_(kernels),
      context_(context),
      cache_(cache),
      shared_(body_->values.size()),
      shared_numbers_(body_->values.size()),
      shared_rows_(body_->values.size()),
      packed_(body_->values.size()) {}

Status BodyRun::Begin(const std::map<std::string, Value>& parameters, NodeResults* results) {
  HEDDLE_RETURN_IF_ERROR(ReadParameters(parameters));
  HEDDLE_RETURN_IF_ERROR(ComputeShared());
  const auto pack = [&](int32_t id) {
    const Value& right = shared_[static_cast<size_t>(ValueAt(id).inputs[1].id)];
    packed_[static_cast<size_t>(id)] = cache_.PackedOf(right.matrix());
  };
  for (const std::vector<BodyStep>* steps : {&program_->class_steps(), &program_->batch_steps()})
    for (const BodyStep& step : *steps)
      if (step.kind == StepKind::kMultiply) pack(step.value);
  for (const int32_t id : program_->with_child()) pack(id);
  HEDDLE_RETURN_IF_ERROR(AllocateProducts(results));
  return ComputeClassRows();
}

Status BodyRun::ReadParameters(const std::map<std::string, Value>& parameters) {
  for (size_t id = 0; id < body_->values.size(); ++id) {
    const BodyValue& value = body_->values[id];
    if (!program_->IsNeeded(static_cast<int32_t>(id))) continue;
    if (value.source == Source::kLiteral) {
      shared_[id] = *value.node.FindAttribute("value");
    } else if (value.source == Source::kParameter) {
      const auto found = parameters.find(value.name);
      if (found == parameters.end())
        return Internal("a recursive body reads '{}', which is missing", value.name);
      shared_[id] = found->second;
    } else {
      continue;
    }
    HEDDLE_RETURN_IF_ERROR(StoreShared(static_cast<int32_t>(id)));
  }
  return OkStatus();
}

// Operators on parameters alone: their results are those of the last evaluation where the parameters are.
Status BodyRun::ComputeShared() {
  if (program_->shared_operators().empty()) return OkStatus();
  const std::shared_ptr<const BodyProgram::SharedValues> last = program_->LastShared();
  BodyProgram::SharedValues now;
  bool is_same = last != nullptr;
  for (const int32_t id : program_->shared_operands()) {
    const Value& read = shared_[static_cast<size_t>(id)];
    is_same = is_same && IsSame(read, last->operands[now.operands.size()]);
    now.operands.push_back(read);
  }
  for (size_t i = 0; i < program_->shared_operators().size(); ++i) {
    const int32_t id = program_->shared_operators()[i];
    if (is_same)
      shared_[static_cast<size_t>(id)] = last->results[i];
    else
      HEDDLE_RETURN_IF_ERROR(RunSharedOperator(id));
    HEDDLE_RETURN_IF_ERROR(StoreShared(id));
    now.results.push_back(shared_[static_cast<size_t>(id)]);
  }
  if (!is_same) program_->SaveShared(std::move(now));
  return OkStatus();
}

Status BodyRun::RunSharedOperator(int32_t id) {
  const BodyValue& value = ValueAt(id);
  std::vector<const Value*> inputs;
  std::vector<ValueInfo> infos;
  for (const BodyValue::Operand& input : value.inputs) {
    const bool is_left_out = input.id == BodyValue::kNone;
    inputs.push_back(is_left_out ? nullptr : &shared_[static_cast<size_t>(input.id)]);
    infos.push_back(is_left_out ? ValueInfo() : ValueAt(input.id).node.info);
  }
  HEDDLE_ASSIGN_OR_RETURN(shared_[static_cast<size_t>(id)],
                          Call(id, value.node, inputs, infos, value.node.info.shape.rows));
  return OkStatus();
}

// Sets what steps read of a shared value.
Status BodyRun::StoreShared(int32_t id) {
  const auto place = static_cast<size_t>(id);
  Value& shared = shared_[place];
  if (shared.IsScalar() && !shared.scalar().IsString()) shared_numbers_[place] = shared.scalar().AsDouble();
  if (!shared.IsMatrix()) return OkStatus();
  if (shared.matrix().storage() != Storage::kDense) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix dense, ToDense(shared.matrix()));
    shared = std::move(dense);
  }
  shared_rows_[place] = {MutableRowOf(shared.matrix(), 0), 0};
  if (shared.matrix().cells() == 1) shared_numbers_[place] = shared.matrix().At(0, 0);
  return OkStatus();
}

// In rows from 0 on: one for each node of the class, or for each node whose numbers are distinct.
Status BodyRun::ComputeClassRows() {
  if (program_->class_steps().empty()) return OkStatus();
  int64_t rows = class_.end - class_.begin;
  if (PaysToFindEqualNodes()) {
    DistinctRows distinct = FindDistinctRows(class_.numbers, rows);
    const auto count = static_cast<int64_t>(distinct.first.size());
    if (count <= rows - rows / 4) {
      distinct_ = std::move(distinct);
      rows = count;
    }
  }
  for (const int32_t id : program_->class_values()) {
    const BodyValue& value = ValueAt(id);
    const ElementType type =
        value.node.info.IsScalar() ? ElementType::kFloat64 : value.node.info.element_type;
    HEDDLE_ASSIGN_OR_RETURN(Matrix of_class, Matrix::Dense(rows, CellsOf(value), type));
    shared_[static_cast<size_t>(id)] = std::move(of_class);
  }
  HEDDLE_RETURN_IF_ERROR(RunRows(0, rows, nullptr));
  if (!distinct_.first.empty())
    for (const int32_t id : program_->class_values())
      if (!HasDistinctRowsAlone(id)) HEDDLE_RETURN_IF_ERROR(CopyToNodes(id));
  return OkStatus();
}

// Nodes whose numbers are the same, as leaves with one word, have the same rows. Finding them takes some ten
// nanoseconds a node, which pays where more is computed than rows are looked up.
bool BodyRun::PaysToFindEqualNodes() const {
  return class_.number_count > 0 && std::any_of(program_->class_steps().begin(),
                                                program_->class_steps().end(), [](const BodyStep& step) {
                                                  return step.kind != StepKind::kNumbers &&
                                                         step.kind != StepKind::kLookup &&
                                                         step.kind != StepKind::kView;
                                                });
}

Status BodyRun::CopyToNodes(int32_t id) {
  const Matrix distinct = shared_[static_cast<size_t>(id)].matrix();
  const auto rows = static_cast<int64_t>(distinct_.row_of.size());
  HEDDLE_ASSIGN_OR_RETURN(Matrix all, Matrix::Dense(rows, distinct.columns(), distinct.element_type()));
  const auto bytes = static_cast<size_t>(RowBytes(all));
  ParallelFor(rows, RowGrain(all.columns()), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      std::memcpy(MutableRowOf(all, i), RowOf(distinct, distinct_.row_of[static_cast<size_t>(i)]), bytes);
  });
  shared_[static_cast<size_t>(id)] = std::move(all);
  return OkStatus();
}

// Classes that multiply the same result by the same parameter share the product.
Status BodyRun::AllocateProducts(NodeResults* results) {
  for (const int32_t id : program_->with_child()) {
    const BodyValue& value = ValueAt(id);
    const auto result = static_cast<size_t>(ValueAt(value.inputs[0].id).result);
    const std::string& parameter = ValueAt(value.inputs[1].id).name;
    const auto product =
        std::find_if(results->products.begin(), results->products.end(),
                     [&](const auto& made) { return made.result == result && made.parameter == parameter; });
    products_.push_back(static_cast<size_t>(product - results->products.begin()));
    if (product != results->products.end()) continue;
    HEDDLE_ASSIGN_OR_RETURN(Matrix rows, Matrix::Dense(results->rows[result].rows(), CellsOf(value),
                                                       value.node.info.element_type));
    results->products.push_back({.result = result, .parameter = parameter, .rows = std::move(rows)});
  }
  return OkStatus();
}

Status BodyRun::RunBatch(int64_t begin, int64_t end, NodeResults* results, PendingProducts* pending) const {
  MultiplyChildren(results, pending);
  HEDDLE_RETURN_IF_ERROR(RunRows(begin, end, results));
  for (auto& places : *pending) places.emplace_back(begin, end);
  return OkStatus();
}

// Multiplies all results that are there: those of the children are among them.
void BodyRun::MultiplyChildren(NodeResults* results, PendingProducts* pending) const {
  for (size_t i = 0; i < products_.size(); ++i) {
    const NodeResults::Product& product = results->products[products_[i]];
    const PackedWeights& weights = *packed_[static_cast<size_t>(program_->with_child()[i])];
    const Matrix& left = results->rows[product.result];
    for (const auto& [begin, end] : (*pending)[products_[i]])
      weights.Multiply(RowOf(left, begin), left.columns(), end - begin, MutableRowOf(product.rows, begin),
                       product.rows.columns(), context_.cancelled);
    (*pending)[products_[i]].clear();
  }
}

Status BodyRun::RunRows(int64_t begin, int64_t end, NodeResults* results) const {
  const int threads = ParallelThreads();
  const int64_t rows = end - begin, height = RowsAtOnce(rows, program_->row_bytes(), threads);
  const int64_t chunks = CeilDivide(rows, height);
  if (chunks == 1 || threads == 1) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      HEDDLE_RETURN_IF_ERROR(
          RunChunk(begin + chunk * height, std::min(end, begin + (chunk + 1) * height), results));
    return OkStatus();
  }
  std::vector<Status> failed(static_cast<size_t>(chunks));  // The first one counts.
  ParallelFor(chunks, 1, [&](int64_t first, int64_t last) {
    const SerialLoops serial;
    for (int64_t chunk = first; chunk < last; ++chunk)
      failed[static_cast<size_t>(chunk)] =
          RunChunk(begin + chunk * height, std::min(end, begin + (chunk + 1) * height), results);
  });
  for (const Status& status : failed) HEDDLE_RETURN_IF_ERROR(status);
  return OkStatus();
}

Status BodyRun::RunChunk(int64_t begin, int64_t end, NodeResults* results) const {
  if (IsCancelled(context_.cancelled)) return Cancelled("the job was cancelled");
  std::unique_ptr<BodyWorkspace> workspace = cache_.TakeWorkspace();
  const Chunk chunk{*workspace, begin, end, results};
  const int64_t bytes = chunk.rows() * program_->row_bytes();
  if (workspace->bytes < bytes) {
    workspace->memory = AlignedArray(CeilDivide(bytes, int64_t{8}));
    workspace->bytes = bytes;
  }
  workspace->at = shared_rows_;
  if (program_->has_kernels()) workspace->kernel_results.assign(body_->values.size(), Value());
  SetPlaces(chunk);
  Status status;
  for (const BodyStep& step : results == nullptr ? program_->class_steps() : program_->batch_steps()) {
    status = RunStep(step, chunk);
    if (!status.ok()) break;
  }
  if (results != nullptr && status.ok())
    for (size_t i = 0; i < body_->results.size(); ++i) Store(i, chunk);
  cache_.GiveBack(std::move(workspace));
  return status;
}

void BodyRun::SetPlaces(const Chunk& chunk) const {
  char* const memory = reinterpret_cast<char*>(chunk.workspace.memory.data());
  const Stage stage = chunk.results == nullptr ? Stage::kPerClass : Stage::kPerBatch;
  for (auto id = static_cast<int32_t>(body_->values.size()); id-- > 0;) {
    const ValuePlace& place = program_->PlaceOf(id);
    const BodyValue& value = ValueAt(id);
    ValueRows& rows = chunk.workspace.at[static_cast<size_t>(id)];
    const int64_t cells = CellsOf(value);
    switch (place.kind) {
      case PlaceKind::kNone: break;
      case PlaceKind::kWorkspace:
        if (value.stage == stage) rows = {memory + chunk.rows() * place.offset, cells};
        break;
      case PlaceKind::kPartOf: {
        const ValueRows& outer = chunk.workspace.at[static_cast<size_t>(place.of)];
        if (value.stage == stage) rows = {outer.cells + place.column * CellBytes(value), outer.stride};
        break;
      }
      case PlaceKind::kResult:
        if (chunk.results != nullptr)
          rows = {MutableRowOf(chunk.results->rows[static_cast<size_t>(place.of)], chunk.begin), cells};
        break;
      case PlaceKind::kClassRows: {
        if (stage == Stage::kPerBatch && HasDistinctRowsAlone(id)) break;
        const int64_t first = chunk.begin - (stage == Stage::kPerClass ? 0 : class_.begin);
        rows = {MutableRowOf(shared_[static_cast<size_t>(id)].matrix(), first), cells};
        break;
      }
    }
  }
}

Status BodyRun::RunStep(const BodyStep& step, const Chunk& chunk) const {
  switch (step.kind) {
    case StepKind::kNumbers: return Numbers(step.value, chunk);
    case StepKind::kLookup: return Lookup(step.value, chunk);
    case StepKind::kChildren: return Children(step.value, chunk);
    case StepKind::kView: {
      const ValueRows& from = RowsOf(step.from, chunk);
      chunk.workspace.at[static_cast<size_t>(step.value)] = {
          from.cells + step.column * CellBytes(ValueAt(step.value)), from.stride};
      return OkStatus();
    }
    case StepKind::kCopy: Copy(step, chunk); return OkStatus();
    case StepKind::kPick:
    case StepKind::kPut: return MoveNumbered(step, chunk);
    case StepKind::kConvert: Convert(step.value, chunk); return OkStatus();
    case StepKind::kMultiply: Multiply(step, chunk); return OkStatus();
    case StepKind::kRegion: return CallRegion(step.value, chunk);
    case StepKind::kTranspose: Transpose(step.value, chunk); return OkStatus();
    case StepKind::kNodeProduct: MultiplyNodes(step.value, chunk); return OkStatus();
    case StepKind::kKernel: return RunKernel(step.value, chunk);
  }
  return OkStatus();
}

}  // namespace heddle::ops
