// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/body/body_program.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ops/base/operator.h"
#include "ops/recursion/body/packed_weights.h"

namespace heddle::ops {

using Layout = BodyValue::Layout;
using Source = BodyValue::Source;
using Stage = BodyValue::Stage;
using PlaceKind = ValuePlace::Kind;
using StepKind = BodyStep::Kind;

namespace {

// Finding a region's code by its text takes microseconds: asked again after so much work.
constexpr double kWorkBetweenQuestions = FusedRuntime::kInterpretedWork / 64;
constexpr int64_t kCacheLine = 64;

}  // namespace

class ProgramBuilder {
 public:
  explicit ProgramBuilder(BodyProgram* program) : program_(*program), body_(program->body()) {}

  void Build() {
    program_.places_.resize(body_.values.size());
    program_.read_by_batches_.resize(body_.values.size());
    FindNeeded();
    views_.resize(body_.values.size());
    for (int32_t id = 0; id < Count(); ++id)
      if (IsMade(id) && ValueAt(id).fused_operator == BodyValue::kNone) views_[Index(id)] = FindView(id);
    PlaceResults();
    PlaceClassRows();
    for (int32_t id = Count(); id-- > 0;) PlaceOperands(id);
    PlaceStacked();
    for (int32_t id = 0; id < Count(); ++id)
      if (IsMade(id) && !IsPlaced(id) && IsWritten(id)) PlaceInWorkspace(id);
    for (int32_t fused_operator = 0; fused_operator < body_.fused_operators; ++fused_operator)
      program_.regions_.push_back(LowerFusedOperator(body_, fused_operator));
    MakeSteps(Stage::kPerClass, &program_.class_steps_);
    // Views of rows of the class are set anew in each batch.
    for (int32_t id = 0; id < Count(); ++id)
      if (ValueAt(id).stage == Stage::kPerClass && views_[Index(id)] && IsReadByBatches(id))
        AddView(id, &program_.batch_steps_);
    MakeSteps(Stage::kPerBatch, &program_.batch_steps_);
    for (const std::vector<BodyStep>* steps : {&program_.class_steps_, &program_.batch_steps_})
      for (const BodyStep& step : *steps) program_.has_kernels_ |= step.kind == StepKind::kKernel;
    FindShared();
  }

 private:
  struct View {
    int32_t from;
    int64_t column;
  };

  int32_t Count() const { return static_cast<int32_t>(body_.values.size()); }
  static size_t Index(int32_t id) { return static_cast<size_t>(id); }
  const BodyValue& ValueAt(int32_t id) const { return body_.values[Index(id)]; }
  ValuePlace& PlaceAt(int32_t id) { return program_.places_[Index(id)]; }
  bool IsPlaced(int32_t id) { return PlaceAt(id).kind != PlaceKind::kNone; }
  bool IsMade(int32_t id) const {
    return ValueAt(id).layout != Layout::kShared && program_.needed_[Index(id)];
  }

  void FindNeeded() {
    program_.needed_.assign(body_.values.size(), false);
    for (const int32_t result : body_.results) program_.needed_[Index(result)] = true;
    for (int32_t id = Count(); id-- > 0;) {
      if (!program_.needed_[Index(id)]) continue;
      const BodyValue& value = ValueAt(id);
      if (value.with_child) program_.with_child_.push_back(id);
      for (size_t i = value.with_child ? 1 : 0; i < value.inputs.size(); ++i)
        if (value.inputs[i].id != BodyValue::kNone) program_.needed_[Index(value.inputs[i].id)] = true;
    }
  }

  void FindShared() {
    std::vector<bool> is_read(body_.values.size(), false);
    for (int32_t id = Count(); id-- > 0;) {
      const BodyValue& value = ValueAt(id);
      if (!program_.needed_[Index(id)] || value.layout != Layout::kShared) continue;
      if (value.source == Source::kParameter && is_read[Index(id)]) program_.shared_operands_.push_back(id);
      if (value.source != Source::kOperator) continue;
      program_.shared_operators_.push_back(id);
      for (const BodyValue::Operand& input : value.inputs)
        if (input.id != BodyValue::kNone) is_read[Index(input.id)] = true;
    }
    std::reverse(program_.shared_operators_.begin(), program_.shared_operators_.end());
  }

  template <typename Body>
  void EachReader(int32_t id, const Body& body) const {
    for (int32_t reader = id + 1; reader < Count(); ++reader)
      if (program_.needed_[Index(reader)])
        for (const BodyValue::Operand& input : ValueAt(reader).inputs)
          if (input.id == id) body(reader);
  }
  bool IsResult(int32_t id) const {
    return std::find(body_.results.begin(), body_.results.end(), id) != body_.results.end();
  }
  bool IsReadByBatches(int32_t id) const {
    bool is_read = false;
    EachReader(id, [&](int32_t reader) { is_read |= ValueAt(reader).stage == Stage::kPerBatch; });
    return is_read;
  }

  // Whether a step writes the rows of the value: it is no view, and more than a value inside a fused
  // operator.
  bool IsWritten(int32_t id) const {
    if (views_[Index(id)]) return false;
    const BodyValue& value = ValueAt(id);
    if (value.fused_operator == BodyValue::kNone || IsResult(id) || IsRowFold(body_, id)) return true;
    bool is_read = false;
    for (int32_t reader = id + 1; reader < Count(); ++reader)
      for (const BodyValue::Operand& input : ValueAt(reader).inputs)
        is_read |= input.id == id && ValueAt(reader).fused_operator != value.fused_operator;
    return is_read;
  }

  // A literal whole number; nullopt where the operand is another one or left out.
  std::optional<int64_t> LiteralOf(const BodyValue& value, size_t i) const {
    if (i >= value.inputs.size() || value.inputs[i].id == BodyValue::kNone) return std::nullopt;
    const BodyValue& input = ValueAt(value.inputs[i].id);
    if (input.source != Source::kLiteral || !input.node.info.IsScalar()) return std::nullopt;
    const Scalar& scalar = *input.node.FindAttribute("value");
    if (scalar.IsString()) return std::nullopt;
    const auto whole = static_cast<int64_t>(scalar.AsDouble());
    return static_cast<double>(whole) == scalar.AsDouble() ? std::optional(whole) : std::nullopt;
  }
  static bool IsLeftOut(const BodyValue& value, size_t i) {
    return i >= value.inputs.size() || value.inputs[i].id == BodyValue::kNone;
  }

  // Values whose cells are those of another one, in order.
  std::optional<View> FindView(int32_t id) const {
    const BodyValue& value = ValueAt(id);
    if (value.source == Source::kConvert) {
      const int32_t given = value.inputs[0].id;
      return TypeOf(given) == TypeOf(id) ? std::optional(View{given, 0}) : std::nullopt;
    }
    if (value.source != Source::kOperator || value.inputs.empty() || value.layout != Layout::kRows)
      return std::nullopt;
    const int32_t from = value.inputs[0].id;
    if (from == BodyValue::kNone || ValueAt(from).layout != Layout::kRows) return std::nullopt;
    const BodyValue& input = ValueAt(from);
    const Shape given = input.node.info.shape, shape = value.node.info.shape;
    const bool is_whole = CellsOf(input) == CellsOf(value);
    if (HasRole(value.node, Role::kTranspose) && is_whole && (given.rows == 1 || given.columns == 1))
      return View{from, 0};
    if (HasRole(value.node, Role::kReshape) && is_whole) {
      const Scalar* const by_row = value.node.FindAttribute("byrow");
      if (by_row == nullptr || (by_row->IsBoolean() && by_row->AsBoolean())) return View{from, 0};
      return std::nullopt;
    }
    if (!HasRole(value.node, Role::kRange)) return std::nullopt;
    const std::optional<int64_t> column = ColumnOfRange(value, 1, given, shape);
    return column ? std::optional(View{from, *column}) : std::nullopt;
  }

  // Where a range of that shape begins among the cells of a matrix, if they follow each other: some columns
  // of a row, or some rows. `bounds`: the first of the four operands that tell it.
  std::optional<int64_t> ColumnOfRange(const BodyValue& value, size_t bounds, Shape given,
                                       Shape shape) const {
    const bool of_columns = IsLeftOut(value, bounds) && IsLeftOut(value, bounds + 1) && given.rows == 1;
    const bool of_rows = IsLeftOut(value, bounds + 2) && IsLeftOut(value, bounds + 3);
    if (!of_columns && !of_rows) return std::nullopt;
    if (of_columns) bounds += 2;
    const std::optional<int64_t> first = LiteralOf(value, bounds), last = LiteralOf(value, bounds + 1);
    const int64_t most = of_columns ? given.columns : given.rows;
    if (!first || !last || *first < 1 || *last > most || *last < *first) return std::nullopt;
    if (*last - *first + 1 != (of_columns ? shape.columns : shape.rows)) return std::nullopt;
    if ((of_columns ? shape.rows : shape.columns) != (of_columns ? 1 : given.columns)) return std::nullopt;
    return (*first - 1) * (of_columns ? 1 : given.columns);
  }

  // Of rows some of whose cells are assigned to, which follow each other: where they begin.
  std::optional<int64_t> AssignedFrom(int32_t id) const {
    const BodyValue& value = ValueAt(id);
    if (!HasRole(value.node, Role::kRangeAssign) || value.source != Source::kOperator ||
        value.layout != Layout::kRows)
      return std::nullopt;
    for (size_t i = 0; i < 2; ++i)
      if (IsLeftOut(value, i) || !ValueAt(value.inputs[i].id).node.info.IsMatrix() ||
          TypeOf(value.inputs[i].id) != TypeOf(id))
        return std::nullopt;
    const Shape shape = value.node.info.shape;
    if (ValueAt(value.inputs[0].id).node.info.shape != shape) return std::nullopt;
    return ColumnOfRange(value, 2, shape, ValueAt(value.inputs[1].id).node.info.shape);
  }

  // The number that says the column of a cell of a row, x[1, n]: it is the node's own.
  std::optional<int32_t> NumberedColumn(const BodyValue& value, size_t bounds) const {
    const auto is_first = [&](size_t i) { return IsLeftOut(value, i) || LiteralOf(value, i) == 1; };
    if (!is_first(bounds) || !is_first(bounds + 1) || IsLeftOut(value, bounds + 2) ||
        IsLeftOut(value, bounds + 3))
      return std::nullopt;
    const int32_t number = value.inputs[bounds + 2].id;
    if (number != value.inputs[bounds + 3].id || ValueAt(number).source != Source::kNumber)
      return std::nullopt;
    return number;
  }
  bool IsRow(int32_t id) const {
    const ValueInfo& info = ValueAt(id).node.info;
    return info.IsMatrix() && info.shape.rows == 1;
  }
  std::optional<int32_t> PickedBy(int32_t id) const {
    const BodyValue& value = ValueAt(id);
    if (!HasRole(value.node, Role::kRange) || value.source != Source::kOperator ||
        value.layout != Layout::kRows || value.node.info.shape != Shape{1, 1} || !IsRow(value.inputs[0].id) ||
        TypeOf(value.inputs[0].id) != TypeOf(id))
      return std::nullopt;
    return NumberedColumn(value, 1);
  }
  std::optional<int32_t> PutBy(int32_t id) const {
    const BodyValue& value = ValueAt(id);
    if (!HasRole(value.node, Role::kRangeAssign) || value.source != Source::kOperator ||
        value.layout != Layout::kRows || !IsRow(id))
      return std::nullopt;
    for (size_t i = 0; i < 2; ++i)
      if (IsLeftOut(value, i) || !IsRow(value.inputs[i].id) || TypeOf(value.inputs[i].id) != TypeOf(id))
        return std::nullopt;
    if (ValueAt(value.inputs[0].id).node.info.shape != value.node.info.shape ||
        ValueAt(value.inputs[1].id).node.info.shape != Shape{1, 1})
      return std::nullopt;
    return NumberedColumn(value, 2);
  }

  // Whose cells a value has, where it is a view of another one, or of a view.
  View BaseOf(int32_t id) const {
    View base{id, 0};
    for (; views_[Index(base.from)]; base.from = views_[Index(base.from)]->from)
      base.column += views_[Index(base.from)]->column;
    return base;
  }

  // Results are written where they belong, also those that are read as cells of another shape.
  void PlaceResults() {
    for (size_t r = 0; r < body_.results.size(); ++r) {
      const int32_t id = body_.results[r];
      const View base = BaseOf(id);
      program_.result_bases_.push_back({base.from, base.column});
      if (ValueAt(id).stage != Stage::kPerBatch || !IsMade(id) || IsPlaced(base.from) ||
          ValueAt(base.from).stage != Stage::kPerBatch ||
          CellsOf(ValueAt(base.from)) != CellsOf(ValueAt(id)) || !IsWritten(base.from))
        continue;
      PlaceAt(base.from) = {.kind = PlaceKind::kResult, .of = static_cast<int32_t>(r)};
    }
  }

  void PlaceClassRows() {
    for (int32_t id = 0; id < Count(); ++id) {
      if (ValueAt(id).stage != Stage::kPerClass || !IsMade(id) || !(IsResult(id) || IsReadByBatches(id)))
        continue;
      const int32_t base = BaseOf(id).from;
      if (IsReadByBatches(id)) program_.read_by_batches_[Index(base)] = true;
      if (IsPlaced(base)) continue;
      PlaceAt(base) = {.kind = PlaceKind::kClassRows};
      program_.class_values_.push_back(base);
    }
  }

  // Rows side by side: the columns of rows, or the rows of matrices.
  bool PutsSideBySide(int32_t id) const {
    const BodyValue& value = ValueAt(id);
    if (value.source != Source::kOperator || value.layout != Layout::kRows || !IsMade(id)) return false;
    if (!(HasRole(value.node, Role::kRbind) ||
          (HasRole(value.node, Role::kCbind) && value.node.info.shape.rows == 1)))
      return false;
    int64_t cells = 0;
    for (const BodyValue::Operand& input : value.inputs) {
      if (input.id == BodyValue::kNone || !ValueAt(input.id).node.info.IsMatrix() ||
          ValueAt(input.id).node.info.element_type != value.node.info.element_type)
        return false;
      cells += CellsOf(ValueAt(input.id));
    }
    return cells == CellsOf(value);
  }

  // What is put side by side is written there, where nothing else has asked for it.
  void PlaceOperands(int32_t id) {
    if (!PutsSideBySide(id)) return;
    int64_t column = 0;
    for (const BodyValue::Operand& input : ValueAt(id).inputs) {
      const int32_t part = input.id;
      if (IsMade(part) && ValueAt(part).stage == ValueAt(id).stage && IsWritten(part) && !IsPlaced(part))
        PlaceAt(part) = {.kind = PlaceKind::kPartOf, .of = id, .column = column};
      column += CellsOf(ValueAt(part));
    }
  }

  ElementType TypeOf(int32_t id) const {
    const ValueInfo& info = ValueAt(id).node.info;
    return info.IsScalar() ? ElementType::kFloat64 : info.element_type;
  }
  int64_t RowBytesOf(int32_t id) const { return CellsOf(ValueAt(id)) * BytesOf(TypeOf(id)); }
  // Rows of doubles behind rows of floats begin at an address of a double, whatever their number.
  void PlaceInWorkspace(int32_t id) {
    AlignTo(BytesOf(TypeOf(id)));
    PlaceAt(id) = {.kind = PlaceKind::kWorkspace, .offset = program_.row_bytes_};
    program_.row_bytes_ += RowBytesOf(id);
  }
  void AlignTo(int64_t bytes) { program_.row_bytes_ = (program_.row_bytes_ + bytes - 1) / bytes * bytes; }

  bool IsProduct(int32_t id) const {
    const BodyValue& value = ValueAt(id);
    if (!IsMade(id) || value.with_child || !HasRole(value.node, Role::kProduct) ||
        value.layout != Layout::kRows)
      return false;
    const BodyValue &left = ValueAt(value.inputs[0].id), &right = ValueAt(value.inputs[1].id);
    return left.layout == Layout::kRows && right.layout == Layout::kShared &&
           PackedWeights::Takes(right.node.info.shape);
  }
  bool IsNodeProduct(int32_t id) const {
    const BodyValue& value = ValueAt(id);
    if (!HasRole(value.node, Role::kProduct) || value.layout != Layout::kRows) return false;
    const BodyValue& right = ValueAt(value.inputs[1].id);
    return right.layout == Layout::kRows && PackedWeights::Takes(right.node.info.shape);
  }

  // Products with one matrix whose results are free to stand below each other.
  void PlaceStacked() {
    stacks_.assign(body_.values.size(), -1);
    joins_.assign(body_.values.size(), {});
    for (int32_t first = 0; first < Count(); ++first) {
      if (ValueAt(first).stacked != first) continue;
      std::vector<int32_t> members;
      for (int32_t id = first; id < Count(); ++id)
        if (ValueAt(id).stacked == first && IsProduct(id) && !IsPlaced(id)) members.push_back(id);
      if (members.size() < 2) continue;
      // Their left operands stand below each other from the start where nothing else has placed them.
      std::vector<int32_t> lefts;
      for (const int32_t id : members) lefts.push_back(ValueAt(id).inputs[0].id);
      std::vector<int32_t> sorted = lefts;
      std::sort(sorted.begin(), sorted.end());
      const bool are_free = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() &&
                            std::all_of(lefts.begin(), lefts.end(), [&](int32_t left) {
                              return IsMade(left) && ValueAt(left).stage == Stage::kPerBatch &&
                                     IsWritten(left) && !IsPlaced(left) &&
                                     ValueAt(left).source != Source::kChild && !ValueAt(left).with_child;
                            });
      AlignTo(kCacheLine);
      if (are_free) {
        for (const int32_t left : lefts) PlaceInWorkspace(left);
      } else {
        stacks_[Index(members[0])] = program_.row_bytes_;
        program_.row_bytes_ += static_cast<int64_t>(lefts.size()) * RowBytesOf(lefts[0]);
      }
      AlignTo(kCacheLine);
      for (const int32_t id : members) PlaceInWorkspace(id);
      for (size_t i = 1; i < members.size(); ++i) is_joined_.push_back(members[i]);
      joins_[Index(members[0])] = std::move(members);
    }
  }

  // Steps -------------------------------------------------------------------------------------

  // A view of a view is one of what that looks at: the other one may not be there in levels.
  void AddView(int32_t id, std::vector<BodyStep>* steps) const {
    const View view = BaseOf(id);
    steps->push_back({.kind = StepKind::kView, .value = id, .from = view.from, .column = view.column});
  }

  // The values that one step computes are those of a fused operator, or of stacked products.
  std::vector<int32_t> ValuesOfStep(int32_t id) const {
    if (ValueAt(id).fused_operator == BodyValue::kNone)
      return joins_[Index(id)].empty() ? std::vector<int32_t>{id} : joins_[Index(id)];
    std::vector<int32_t> values;
    for (int32_t other = 0; other < Count(); ++other)
      if (ValueAt(other).fused_operator == ValueAt(id).fused_operator) values.push_back(other);
    return values;
  }

  void MakeSteps(Stage stage, std::vector<BodyStep>* steps) {
    std::vector<bool> is_done(body_.values.size(), true);
    for (int32_t id = 0; id < Count(); ++id)
      if (IsMade(id) && ValueAt(id).stage == stage) is_done[Index(id)] = false;
    const auto is_ready = [&](const std::vector<int32_t>& values) {
      return std::all_of(values.begin(), values.end(), [&](int32_t id) {
        const BodyValue& value = ValueAt(id);
        return std::all_of(value.inputs.begin(), value.inputs.end(), [&](const BodyValue::Operand& input) {
          return value.with_child || input.id == BodyValue::kNone || is_done[Index(input.id)] ||
                 std::find(values.begin(), values.end(), input.id) != values.end();
        });
      });
    };
    // Whatever can run runs in the order of the values; fused operators wait for all that they read.
    for (bool has_run = true; has_run;) {
      has_run = false;
      for (int32_t id = 0; id < Count(); ++id) {
        if (is_done[Index(id)] || std::find(is_joined_.begin(), is_joined_.end(), id) != is_joined_.end())
          continue;
        const std::vector<int32_t> values = ValuesOfStep(id);
        if (!is_ready(values)) continue;
        AddStep(id, values, steps);
        for (const int32_t value : values) is_done[Index(value)] = true;
        has_run = true;
      }
    }
    HEDDLE_CHECK(std::find(is_done.begin(), is_done.end(), false) == is_done.end(),
                 "fused operators of a recursive body wait for nothing that waits for them");
  }

  void AddStep(int32_t id, const std::vector<int32_t>& values, std::vector<BodyStep>* steps) {
    const BodyValue& value = ValueAt(id);
    if (value.fused_operator != BodyValue::kNone) {
      if (!program_.regions_[static_cast<size_t>(value.fused_operator)].outputs.empty())
        steps->push_back({.kind = StepKind::kRegion, .value = value.fused_operator});
      return;
    }
    if (views_[Index(id)]) return AddView(id, steps);
    if (value.with_child || value.source == Source::kChild) {
      steps->push_back({.kind = StepKind::kChildren, .value = id});
    } else if (value.source == Source::kNumber) {
      steps->push_back({.kind = StepKind::kNumbers, .value = id});
    } else if (value.source == Source::kLookup) {
      steps->push_back({.kind = StepKind::kLookup, .value = id});
    } else if (value.source == Source::kConvert) {
      steps->push_back({.kind = StepKind::kConvert, .value = id});
    } else if (IsProduct(id)) {
      steps->push_back(
          {.kind = StepKind::kMultiply, .value = id, .stacked = values, .stack_offset = stacks_[Index(id)]});
    } else if (IsNodeProduct(id)) {
      steps->push_back({.kind = StepKind::kNodeProduct, .value = id});
    } else if (HasRole(value.node, Role::kTranspose) && ValueAt(value.inputs[0].id).layout == Layout::kRows) {
      steps->push_back({.kind = StepKind::kTranspose, .value = id});
    } else if (PutsSideBySide(id)) {
      int64_t column = 0;
      for (const BodyValue::Operand& input : value.inputs) {
        const ValuePlace& place = PlaceAt(input.id);
        if (!(place.kind == PlaceKind::kPartOf && place.of == id && place.column == column))
          steps->push_back({.kind = StepKind::kCopy, .value = id, .from = input.id, .column = column});
        column += CellsOf(ValueAt(input.id));
      }
    } else if (const std::optional<int64_t> first = AssignedFrom(id)) {
      steps->push_back({.kind = StepKind::kCopy, .value = id, .from = value.inputs[0].id});
      steps->push_back({.kind = StepKind::kCopy, .value = id, .from = value.inputs[1].id, .column = *first});
    } else if (const std::optional<int32_t> picked_by = PickedBy(id)) {
      steps->push_back({.kind = StepKind::kPick, .value = id, .from = *picked_by});
    } else if (const std::optional<int32_t> put_by = PutBy(id)) {
      steps->push_back({.kind = StepKind::kCopy, .value = id, .from = value.inputs[0].id});
      steps->push_back({.kind = StepKind::kPut, .value = id, .from = *put_by});
    } else {
      steps->push_back({.kind = StepKind::kKernel, .value = id});
    }
  }

  BodyProgram& program_;
  const RecursiveBody& body_;
  std::vector<std::optional<View>> views_;  // By value.
  std::vector<int64_t> stacks_;             // By the first value of stacked products.
  std::vector<std::vector<int32_t>> joins_;
  std::vector<int32_t> is_joined_;  // The others.
};

BodyProgram::BodyProgram(std::shared_ptr<const RecursiveBody> body) : body_(std::move(body)) {
  ProgramBuilder(this).Build();
  for (const BodyRegion& region : regions_) {
    codes_.push_back(std::make_unique<Code>());
    if (!region.outputs.empty()) codes_.back()->interpreted = *InterpretedRegions().Compile(region.region);
  }
}

Result<const RegionCode*> BodyProgram::CodeOf(int32_t fused_operator, int64_t rows,
                                              FusedRuntime& runtime) const {
  Code& code = *codes_[static_cast<size_t>(fused_operator)];
  if (const RegionCode* const ready = code.ready.load(std::memory_order_acquire); ready != nullptr)
    return ready;
  const BodyRegion& region = regions_[static_cast<size_t>(fused_operator)];
  const std::lock_guard lock(code.mutex);
  if (code.compiled == nullptr) {
    code.work += static_cast<double>(rows) * static_cast<double>(region.columns) * region.work;
    if (code.work < code.least) return code.interpreted.get();
    HEDDLE_ASSIGN_OR_RETURN(code.compiled, runtime.CodeOf(region.region, code.work));
    code.ready.store(code.compiled.get(), std::memory_order_release);
    code.work = 0;
    code.least = kWorkBetweenQuestions;
  }
  return code.compiled != nullptr ? code.compiled.get() : code.interpreted.get();
}

}  // namespace heddle::ops
