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

using PlaceKind = ItemPlace::Kind;
using StepKind = BodyStep::Kind;

// Integers below are told apart by doubles.
constexpr double kMostWhole = 9007199254740992.0;

// Values that are kept take no other's place in memory.
bool IsSame(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.IsScalar()) {
    const Scalar &x = a.scalar(), &y = b.scalar();
    return !x.IsString() && !y.IsString() && x.type() == y.type() &&
           std::bit_cast<uint64_t>(x.AsDouble()) == std::bit_cast<uint64_t>(y.AsDouble()) &&
           std::fabs(x.AsDouble()) < kMostWhole;
  }
  if (!a.IsMatrix()) return false;
  const Matrix &x = a.matrix(), &y = b.matrix();
  return x.data<char>() == y.data<char>() && x.shape() == y.shape() && x.storage() == y.storage() &&
         x.element_type() == y.element_type();
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
      once_(body_->items.size()),
      numbers_(body_->items.size()),
      same_(body_->items.size()),
      packed_(body_->items.size()) {}

Status BodyRun::Begin(const std::map<std::string, Value>& parameters, NodeResults* results) {
  HEDDLE_RETURN_IF_ERROR(ReadParameters(parameters));
  HEDDLE_RETURN_IF_ERROR(RunOnce());
  const auto pack = [&](int32_t id) {
    const Value& right = once_[static_cast<size_t>(ItemOf(id).inputs[1].value)];
    packed_[static_cast<size_t>(id)] = cache_.Of(right.matrix());
  };
  for (const std::vector<BodyStep>* steps : {&program_->ahead(), &program_->level()})
    for (const BodyStep& step : *steps)
      if (step.kind == StepKind::kMultiply) pack(step.item);
  for (const int32_t id : program_->pushed()) pack(id);
  HEDDLE_RETURN_IF_ERROR(MakeRoomForProducts(results));
  return RunAhead();
}

Status BodyRun::ReadParameters(const std::map<std::string, Value>& parameters) {
  for (size_t id = 0; id < body_->items.size(); ++id) {
    const Item& item = body_->items[id];
    if (!program_->IsNeeded(static_cast<int32_t>(id))) continue;
    if (item.source == Source::kLiteral) {
      once_[id] = *item.node.FindAttribute("value");
    } else if (item.source == Source::kParameter) {
      const auto found = parameters.find(item.name);
      if (found == parameters.end())
        return Internal("a recursive body reads '{}', which is missing", item.name);
      once_[id] = found->second;
    } else {
      continue;
    }
    HEDDLE_RETURN_IF_ERROR(KeepDense(static_cast<int32_t>(id)));
  }
  return OkStatus();
}

// Operators on parameters, which are the same as in the last evaluation where those are.
Status BodyRun::RunOnce() {
  if (program_->once_makes().empty()) return OkStatus();
  const std::shared_ptr<const BodyProgram::OnceValues> last = program_->LastOnce();
  BodyProgram::OnceValues now;
  bool is_same = last != nullptr;
  for (const int32_t id : program_->once_reads()) {
    const Value& read = once_[static_cast<size_t>(id)];
    is_same = is_same && IsSame(read, last->read[now.read.size()]);
    now.read.push_back(read);
  }
  for (size_t i = 0; i < program_->once_makes().size(); ++i) {
    const int32_t id = program_->once_makes()[i];
    if (is_same)
      once_[static_cast<size_t>(id)] = last->made[i];
    else
      HEDDLE_RETURN_IF_ERROR(RunOperatorOnce(id));
    HEDDLE_RETURN_IF_ERROR(KeepDense(id));
    now.made.push_back(once_[static_cast<size_t>(id)]);
  }
  if (!is_same) program_->KeepOnce(std::move(now));
  return OkStatus();
}

Status BodyRun::RunOperatorOnce(int32_t id) {
  const Item& item = ItemOf(id);
  std::vector<const Value*> inputs;
  std::vector<ValueInfo> infos;
  for (const RecursiveBody::Operand& input : item.inputs) {
    const bool is_left_out = input.value == RecursiveBody::kNone;
    inputs.push_back(is_left_out ? nullptr : &once_[static_cast<size_t>(input.value)]);
    infos.push_back(is_left_out ? ValueInfo() : ItemOf(input.value).node.info);
  }
  HEDDLE_ASSIGN_OR_RETURN(once_[static_cast<size_t>(id)],
                          Call(id, item.node, inputs, infos, item.node.info.shape.rows));
  return OkStatus();
}

// What steps read of a value that is the same for all.
Status BodyRun::KeepDense(int32_t id) {
  const auto place = static_cast<size_t>(id);
  Value& value = once_[place];
  if (value.IsScalar() && !value.scalar().IsString()) numbers_[place] = value.scalar().AsDouble();
  if (!value.IsMatrix()) return OkStatus();
  if (value.matrix().storage() != Storage::kDense) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix dense, ToDense(value.matrix()));
    value = std::move(dense);
  }
  same_[place] = {MutableRowOf(value.matrix(), 0), 0};
  if (value.matrix().cells() == 1) numbers_[place] = value.matrix().At(0, 0);
  return OkStatus();
}

// In rows from 0 on: nodes of the class, or what is distinct of them.
Status BodyRun::RunAhead() {
  if (program_->ahead().empty()) return OkStatus();
  int64_t rows = class_.end - class_.begin;
  if (PaysToShare()) {
    DistinctRows distinct = FindDistinctRows(class_.numbers, rows);
    const auto count = static_cast<int64_t>(distinct.first.size());
    if (count <= rows - rows / 4) {
      shared_ = std::move(distinct);
      rows = count;
    }
  }
  for (const int32_t id : program_->kept()) {
    const Item& item = ItemOf(id);
    const ElementType type = item.node.info.IsScalar() ? ElementType::kFloat64 : item.node.info.element_type;
    HEDDLE_ASSIGN_OR_RETURN(Matrix kept, Matrix::Dense(rows, CellsOf(item), type));
    once_[static_cast<size_t>(id)] = std::move(kept);
  }
  HEDDLE_RETURN_IF_ERROR(RunRows(0, rows, nullptr));
  if (!shared_.first.empty())
    for (const int32_t id : program_->kept())
      if (!IsGathered(id)) HEDDLE_RETURN_IF_ERROR(ExpandShared(id));
  return OkStatus();
}

// Nodes whose numbers are the same, the words of their leaves, have the same values ahead. Telling them apart
// takes some ten nanoseconds a node: worth it where more than rows are looked up.
bool BodyRun::PaysToShare() const {
  return class_.given > 0 &&
         std::any_of(program_->ahead().begin(), program_->ahead().end(), [](const BodyStep& step) {
           return step.kind != StepKind::kNumbers && step.kind != StepKind::kLookup &&
                  step.kind != StepKind::kView;
         });
}

Status BodyRun::ExpandShared(int32_t id) {
  const Matrix distinct = once_[static_cast<size_t>(id)].matrix();
  const auto rows = static_cast<int64_t>(shared_.row_of.size());
  HEDDLE_ASSIGN_OR_RETURN(Matrix all, Matrix::Dense(rows, distinct.columns(), distinct.element_type()));
  const auto bytes = static_cast<size_t>(RowBytes(all));
  ParallelFor(rows, RowGrain(all.columns()), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      std::memcpy(MutableRowOf(all, i), RowOf(distinct, shared_.row_of[static_cast<size_t>(i)]), bytes);
  });
  once_[static_cast<size_t>(id)] = std::move(all);
  return OkStatus();
}

// Classes that multiply the same result by the same parameter share the product.
Status BodyRun::MakeRoomForProducts(NodeResults* results) {
  for (const int32_t id : program_->pushed()) {
    const Item& item = ItemOf(id);
    const auto result = static_cast<size_t>(ItemOf(item.inputs[0].value).result);
    const std::string& parameter = ItemOf(item.inputs[1].value).name;
    const auto product =
        std::find_if(results->products.begin(), results->products.end(),
                     [&](const auto& made) { return made.result == result && made.parameter == parameter; });
    products_.push_back(static_cast<size_t>(product - results->products.begin()));
    if (product != results->products.end()) continue;
    HEDDLE_ASSIGN_OR_RETURN(
        Matrix rows, Matrix::Dense(results->rows[result].rows(), CellsOf(item), item.node.info.element_type));
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

// Products of all results that there are: those of the children are among them.
void BodyRun::MultiplyChildren(NodeResults* results, PendingProducts* pending) const {
  for (size_t i = 0; i < products_.size(); ++i) {
    const NodeResults::Product& product = results->products[products_[i]];
    const PackedWeights& weights = *packed_[static_cast<size_t>(program_->pushed()[i])];
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
  workspace->at = same_;
  if (program_->has_kernels()) workspace->values.assign(body_->items.size(), Value());
  SetPlaces(chunk);
  Status status;
  for (const BodyStep& step : results == nullptr ? program_->ahead() : program_->level()) {
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
  const Stage stage = chunk.results == nullptr ? Stage::kAhead : Stage::kLevel;
  for (auto id = static_cast<int32_t>(body_->items.size()); id-- > 0;) {
    const ItemPlace& place = program_->PlaceOf(id);
    const Item& item = ItemOf(id);
    ItemRows& rows = chunk.workspace.at[static_cast<size_t>(id)];
    const int64_t cells = CellsOf(item);
    switch (place.kind) {
      case PlaceKind::kNone: break;
      case PlaceKind::kRoom:
        if (item.stage == stage) rows = {memory + chunk.rows() * place.offset, cells};
        break;
      case PlaceKind::kInside: {
        const ItemRows& outer = chunk.workspace.at[static_cast<size_t>(place.of)];
        if (item.stage == stage) rows = {outer.cells + place.column * CellBytes(item), outer.stride};
        break;
      }
      case PlaceKind::kResult:
        if (chunk.results != nullptr)
          rows = {MutableRowOf(chunk.results->rows[static_cast<size_t>(place.of)], chunk.begin), cells};
        break;
      case PlaceKind::kKept: {
        if (stage == Stage::kLevel && IsGathered(id)) break;
        const int64_t first = chunk.begin - (stage == Stage::kAhead ? 0 : class_.begin);
        rows = {MutableRowOf(once_[static_cast<size_t>(id)].matrix(), first), cells};
        break;
      }
    }
  }
}

Status BodyRun::RunStep(const BodyStep& step, const Chunk& chunk) const {
  switch (step.kind) {
    case StepKind::kNumbers: return Numbers(step.item, chunk);
    case StepKind::kLookup: return Lookup(step.item, chunk);
    case StepKind::kChildren: return Children(step.item, chunk);
    case StepKind::kView: {
      const ItemRows& from = RowsOf(step.from, chunk);
      chunk.workspace.at[static_cast<size_t>(step.item)] = {
          from.cells + step.column * CellBytes(ItemOf(step.item)), from.stride};
      return OkStatus();
    }
    case StepKind::kCopy: Copy(step, chunk); return OkStatus();
    case StepKind::kPick:
    case StepKind::kPut: return MoveNumbered(step, chunk);
    case StepKind::kConvert: Convert(step.item, chunk); return OkStatus();
    case StepKind::kMultiply: Multiply(step, chunk); return OkStatus();
    case StepKind::kRegion: return CallRegion(step.item, chunk);
    case StepKind::kTranspose: Transpose(step.item, chunk); return OkStatus();
    case StepKind::kNodeProduct: MultiplyNodes(step.item, chunk); return OkStatus();
    case StepKind::kKernel: return RunKernel(step.item, chunk);
  }
  return OkStatus();
}

}  // namespace heddle::ops
