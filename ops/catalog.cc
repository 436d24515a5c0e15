// SPDX-License-Identifier: Apache-2.0
#include "ops/catalog.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>
#include <vector>

#include "core/memory/counted_heap.h"
#include "ops/base/stages.h"
#include "ops/cells/stored_inputs.h"
#include "ops/compressed/run_compressed.h"
#include "ops/elementwise/single_precision.h"

namespace heddle::ops {

// Operators that have a file of their own, one line each.
// clang-format off
#define HEDDLE_OPERATORS(Operator) \
  Operator(kApplySchema)           \
  Operator(kAveragePool)           \
  Operator(kAveragePoolBackward)   \
  Operator(kBatchNorm2d)           \
  Operator(kBatchNorm2dBackward)   \
  Operator(kBatchNorm2dMoments)    \
  Operator(kBiasAdd)               \
  Operator(kBiasMultiply)          \
  Operator(kCategoricalMask)       \
  Operator(kColumnNames)           \
  Operator(kCompareFrames)         \
  Operator(kCompress)              \
  Operator(kQuantizeForm)          \
  Operator(kContains)              \
  Operator(kConv2d)                \
  Operator(kConv2dBackwardData)    \
  Operator(kConv2dBackwardFilter)  \
  Operator(kCovariance)            \
  Operator(kCumsumprod)            \
  Operator(kCumulativeBackward)    \
  Operator(kDecompress)            \
  Operator(kDetectSchema)          \
  Operator(kDeterminant)           \
  Operator(kDeterminantBackward)   \
  Operator(kDropInvalidLength)     \
  Operator(kDropInvalidType)       \
  Operator(kEigen)                 \
  Operator(kEigenBackward)         \
  Operator(kEinsum)                \
  Operator(kErf)                   \
  Operator(kFrame)                 \
  Operator(kGroupAggregate)        \
  Operator(kHistograms)            \
  Operator(kInterQuartileMean)     \
  Operator(kLocalForm)             \
  Operator(kLowerTriangle)         \
  Operator(kLstm)                  \
  Operator(kLstmBackward)          \
  Operator(kLstmBackwardByRows)    \
  Operator(kLstmByRows)            \
  Operator(kLu)                    \
  Operator(kMap)                   \
  Operator(kMatrixSquareRoot)      \
  Operator(kMaxPool)               \
  Operator(kMaxPoolAt)             \
  Operator(kMaxPoolBackward)       \
  Operator(kMedian)                \
  Operator(kMoment)                \
  Operator(kOuterForm)             \
  Operator(kPhased)                \
  Operator(kQr)                    \
  Operator(kQuantile)              \
  Operator(kRanksBackward)         \
  Operator(kRecursiveBackwardCall) \
  Operator(kRecursiveCall)         \
  Operator(kRecursiveForwardCall)  \
  Operator(kRegroup)               \
  Operator(kReplaceTexts)          \
  Operator(kReplicate)             \
  Operator(kRev)                   \
  Operator(kRoll)                  \
  Operator(kRowClassMeet)          \
  Operator(kRowCumsum)             \
  Operator(kSample)                \
  Operator(kSpreadTo)              \
  Operator(kSumTo)                 \
  Operator(kSvd)                   \
  Operator(kTensorCells)           \
  Operator(kTensorDims)            \
  Operator(kTensorText)            \
  Operator(kTokenize)              \
  Operator(kTransformApply)        \
  Operator(kTransformColumnMap)    \
  Operator(kTransformDecode)       \
  Operator(kTransformEncode)       \
  Operator(kTypeOf)                \
  Operator(kUnique)                \
  Operator(kUpperTriangle)         \
  Operator(kValueSwap)             \
  Operator(kWeightedMean)          \
  Operator(kWeightedMoment)        \
  Operator(kWeightedQuantile)
// clang-format on
#define HEDDLE_DECLARE(name) extern const Operator name;
HEDDLE_OPERATORS(HEDDLE_DECLARE)
#undef HEDDLE_DECLARE

namespace {

// Families: files that hold several operators.
using Family = std::span<const Operator> (*)();
constexpr Family kFamilies[] = {
    ElementwiseOperators,   AggregateOperators, CumulativeOperators,   MatmulOperators,
    ReorganizeOperators,    IndexOperators,     GenerateOperators,     SampledProductOperators,
    SelectOperators,        SolveOperators,     ScalarOperators,       TextOperators,
    FileOperators,          FusedOperators,     DeclaredTypeOperators, DistributionOperators,
    CountDistinctOperators, FourierOperators,
};

// Operators by their names. The compiler asks for one at every node, many times: names are short, so a hash
// of few steps and places that are mostly free take less time than a map for any keys.
class NameTable {
 public:
  // False where the name is there already.
  bool Add(std::string_view name, const Operator& op) {
    Place& place = places_[PlaceOf(name)];
    if (place.op != nullptr) return false;
    place = {name, &op};
    HEDDLE_CHECK(2 * ++count_ <= places_.size(), "half of the places are free");
    return true;
  }
  const Operator* Find(std::string_view name) const { return places_[PlaceOf(name)].op; }

 private:
  struct Place {
    std::string_view name;
    const Operator* op = nullptr;
  };

  // Where the name is, or the free place where it would be.
  size_t PlaceOf(std::string_view name) const {
    size_t hash = name.size();
    for (const char c : name) hash = hash * 31 + static_cast<unsigned char>(c);
    for (size_t i = (hash ^ (hash >> 10)) % places_.size();; i = (i + 1) % places_.size())
      if (places_[i].op == nullptr || places_[i].name == name) return i;
  }

  std::array<Place, 1024> places_;
  size_t count_ = 0;
};

struct Catalog {
  std::vector<const Operator*> all;
  NameTable by_name;
  NameTable builtins;
  std::array<std::vector<std::string_view>, static_cast<size_t>(Role::kAssert) + 1> names_by_role;

  Catalog() {
    for (Family family : kFamilies)
      for (const Operator& op : family()) Add(op);
#define HEDDLE_ADD(name) Add(name);
    HEDDLE_OPERATORS(HEDDLE_ADD)
#undef HEDDLE_ADD
  }

  void Add(const Operator& op) {
    all.push_back(&op);
    if (op.infer != nullptr || op.infer_several != nullptr) {
      HEDDLE_CHECK(by_name.Add(op.name, op), "operator names are unique");
      names_by_role[static_cast<size_t>(op.role)].push_back(op.name);
    }
    if (op.form == CallForm::kNone) return;
    AddBuiltin(op.name, op);
    for (std::string_view rest = op.aliases; !rest.empty();) {
      const std::string_view alias = rest.substr(0, rest.find(' '));
      AddBuiltin(alias, op);
      rest.remove_prefix(std::min(rest.size(), alias.size() + 1));
    }
  }

  bool HasRole(std::string_view name, Role role) const {
    for (const std::string_view of_role : names_by_role[static_cast<size_t>(role)])
      if (name == of_role) return true;
    return false;
  }

  void AddBuiltin(std::string_view name, const Operator& op) {
    HEDDLE_CHECK(builtins.Add(name, op), "a name calls one operator");
  }
};

// Made when it is first asked for, which may be before main(). A pointer of its own says that it is there: it
// is asked at every node, many times, and the guard of a local static takes longer than the look-up.
std::atomic<const Catalog*> made_catalog = nullptr;

[[gnu::noinline]] const Catalog& MakeCatalog() {
  static const Catalog catalog;
  made_catalog.store(&catalog, std::memory_order_release);
  return catalog;
}

const Catalog& TheCatalog() {
  const Catalog* const made = made_catalog.load(std::memory_order_acquire);
  return made != nullptr ? *made : MakeCatalog();
}

class CatalogKernelSource : public KernelSource {
 public:
  Status Run(const KernelCall& call, std::span<Value> results) const override {
    const Operator* op = call.op != nullptr ? call.op : FindOperator(call.node.op);
    if (op == nullptr || (op->run == nullptr && op->run_several == nullptr))
      return Internal("no kernel for operator {}", call.node.op);
    return WithinMemory(call.node.op, [&]() -> Status {
      if (!HasCompressed(call)) return RunConverted(*op, call, results);
      return RunCompressed(*op, call, results, [op](const KernelCall& decoded, std::span<Value> of) {
        return RunConverted(*op, decoded, of);
      });
    });
  }

 private:
  static Status RunConverted(const Operator& op, const KernelCall& call, std::span<Value> results) {
    if (TakesStorages(op, call)) return RunStored(op, call, results);
    HEDDLE_ASSIGN_OR_RETURN(const StoredInputs inputs, StoredInputs::Of(op, call));
    return RunStored(op, inputs.With(call), results);
  }

  static Status RunStored(const Operator& op, const KernelCall& call, std::span<Value> results) {
    const bool takes = op.takes_singles != nullptr && op.takes_singles(call);
    return !takes && HasSingles(call) ? RunWidened(op, call, results) : RunOperator(op, call, results);
  }
};

Status RefuseFrames(const InferContext& context) {
  for (size_t i = 0; i < context.inputs.size(); ++i)
    if (context.inputs[i].IsFrame())
      return InvalidArgument("{}: argument {} is a frame", context.node.op, i + 1)
          .WithNote("as.matrix(F) makes a matrix of a frame whose cells are numbers");
  return OkStatus();
}

}  // namespace

const Operator* FindOperator(std::string_view name) { return TheCatalog().by_name.Find(name); }

namespace {

Status RunStage(const KernelCall& call, std::span<Value> outputs) {
  const StagedForm& form = call.stage->form;
  const bool reads_inputs = form.stages[static_cast<size_t>(call.stage->stage)].reads_inputs;
  const size_t own = reads_inputs ? call.node.inputs.size() : 0;
  return form.run(
      {.form = form,
       .node = call.node,
       .input_infos = call.input_infos,
       .stage = form.units == nullptr ? call.stage->stage : call.stage->stage % kStagesOfReduction,
       .result = form.units == nullptr ? 0 : static_cast<size_t>(call.stage->stage / kStagesOfReduction),
       .rank = call.stage->rank,
       .rows = call.stage->rows,
       .result_rows = call.stage->result_rows,
       .inputs = call.inputs.first(own),
       .received = call.inputs.subspan(own),
       .before = call.stage->before,
       .begin = call.row_begin,
       .end = call.row_end,
       .context = call.context},
      outputs);
}

}  // namespace

Status RunOperator(const Operator& op, const KernelCall& call, std::span<Value> results) {
  if (call.phase == Phase::kStage) return RunStage(call, results);
  if (op.run_several != nullptr) return op.run_several(call, results);
  HEDDLE_ASSIGN_OR_RETURN(results[0], op.run(call));
  return OkStatus();
}

const Operator* FindBuiltin(std::string_view name) { return TheCatalog().builtins.Find(name); }

std::vector<std::string> BuiltinNames() {
  std::vector<std::string> names;
  for (const Operator* op : TheCatalog().all)
    if (op->form != CallForm::kNone) names.emplace_back(op->name);
  std::sort(names.begin(), names.end());
  return names;
}

std::span<const Operator* const> AllOperators() { return TheCatalog().all; }

std::vector<OperatorParameter> ParseParameters(std::string_view text) {
  std::vector<OperatorParameter> parameters;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    OperatorParameter parameter;
    if (word.front() == '@') {
      parameter.attribute = true;
      word.remove_prefix(1);
    }
    if (word.back() == ']') {
      parameter.length = word[word.size() - 2] - '0';
      word.remove_suffix(3);
    }
    if (word.back() == '?') {
      parameter.optional = true;
      word.remove_suffix(1);
    }
    parameter.name = word;
    parameters.push_back(parameter);
  }
  return parameters;
}

Result<ValueInfo> Infer(const InferContext& context) {
  std::vector<ValueInfo> results;
  return Infer(context, &results);
}

Result<ValueInfo> Infer(const InferContext& context, std::vector<ValueInfo>* results) {
  results->clear();
  const Operator* op = FindOperator(context.node.op);
  if (op == nullptr) return Internal("unknown operator {}", context.node.op);
  const int inputs = static_cast<int>(context.inputs.size());
  if (inputs < op->min_inputs || (op->max_inputs >= 0 && inputs > op->max_inputs))
    return Internal("operator {} has {} inputs", context.node.op, inputs);
  if (!op->takes_frames) HEDDLE_RETURN_IF_ERROR(RefuseFrames(context));
  const auto set_element_type = [&](ValueInfo& info) {
    if (!info.IsMatrix() || op->infers_element_types) return;
    const auto matrix = std::find_if(context.inputs.begin(), context.inputs.end(),
                                     [](const ValueInfo& input) { return input.IsMatrix(); });
    info.element_type = matrix == context.inputs.end() ? context.element_type : matrix->element_type;
  };
  if (op->infer_several != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(*results,
                            WithinMemory(context.node.op, [&] { return op->infer_several(context); }));
    for (ValueInfo& info : *results) set_element_type(info);
    return ValueInfo::OfTuple();
  }
  Result<ValueInfo> info = WithinMemory(context.node.op, [&] { return op->infer(context); });
  if (info.ok()) set_element_type(*info);
  return info;
}

RowRule RowRuleOf(const Node& node, std::span<const ValueInfo> inputs) {
  const Operator* op = FindOperator(node.op);
  return op && op->row_rule ? op->row_rule(node, inputs) : RowRule::kWhole;
}

OperatorKind KindOf(const Node& node) {
  const Operator* op = FindOperator(node.op);
  return op == nullptr ? OperatorKind::kOther : op->kind;
}

Role RoleOf(const Node& node) {
  const Operator* op = FindOperator(node.op);
  return op == nullptr ? Role::kNone : op->role;
}

bool HasRole(const Node& node, Role role) { return HasRole(node, {role}); }

bool HasRole(const Node& node, std::initializer_list<Role> roles) {
  const Catalog& catalog = TheCatalog();
  for (const Role role : roles)
    if (catalog.HasRole(node.op, role)) return true;
  return false;
}

bool IsSize(const Node& node) {
  const Operator* op = FindOperator(node.op);
  return op != nullptr && op->size_of != nullptr;
}

RowUse RowUseOf(const Node& node) {
  const Operator* op = FindOperator(node.op);
  return op == nullptr ? RowUse::kNone : op->fusion.use;
}

PanelUse PanelUseOf(const Graph& graph, const Node& node) {
  const Operator* op = FindOperator(node.op);
  return op == nullptr || op->panel_use == nullptr ? PanelUse::kNone : op->panel_use(graph, node);
}

InputUse InputUseOf(const Node& node, std::span<const ValueInfo> inputs, int i) {
  const Operator* op = FindOperator(node.op);
  return op && op->input_use ? op->input_use(node, inputs, i) : InputUse::kWhole;
}

Cost CostOf(const Node& node, std::span<const ValueInfo> inputs) {
  const Operator* op = FindOperator(node.op);
  if (op && op->cost) return op->cost(node, inputs);
  Cost cost;
  for (const ValueInfo& input : inputs)
    if (input.IsTabular() && input.shape.IsKnown())
      cost.bytes += 8.0 * static_cast<double>(input.shape.Cells());
  const std::span<const ValueInfo> results = ResultsOf(node);
  for (const ValueInfo& result : results)
    if (result.IsTabular() && result.shape.IsKnown())
      cost.bytes += 8.0 * static_cast<double>(result.shape.Cells());
  cost.work = cost.bytes / 8;
  return cost;
}

int64_t TotalRowsOf(const Operator& op, const Node& node, std::span<const ValueInfo> inputs) {
  const ValueInfo& result = ResultsOf(node)[0];
  int64_t rows = result.IsTabular() ? result.shape.rows : 0;
  if (op.row_rule != nullptr && !inputs.empty() && inputs[0].IsTabular()) {
    const RowRule rule = op.row_rule(node, inputs);
    if (rule == RowRule::kReduce || rule == RowRule::kMixed) rows = inputs[0].shape.rows;
  }
  return std::max<int64_t>(rows, 0);
}

double WorkingBytesOf(const Node& node, std::span<const ValueInfo> inputs) {
  const Operator* op = FindOperator(node.op);
  if (op == nullptr || op->working_bytes == nullptr) return 0;
  const bool known = std::all_of(inputs.begin(), inputs.end(), [](const ValueInfo& input) {
    return !input.IsTabular() || input.shape.IsKnown();
  });
  return known ? op->working_bytes(node, inputs) : 0;
}

const KernelSource& CatalogKernels() {
  static const CatalogKernelSource source;
  return source;
}

}  // namespace heddle::ops
