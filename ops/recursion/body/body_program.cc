// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/body/body_program.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ops/base/operator.h"
#include "ops/recursion/body/packed_weights.h"

namespace heddle::ops {

using Item = RecursiveBody::Item;
using Form = RecursiveBody::Form;
using Source = RecursiveBody::Source;
using Stage = RecursiveBody::Stage;
using PlaceKind = ItemPlace::Kind;
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
    program_.places_.resize(body_.items.size());
    program_.read_by_levels_.resize(body_.items.size());
    FindNeeded();
    views_.resize(body_.items.size());
    for (int32_t id = 0; id < Count(); ++id)
      if (IsMade(id) && ItemAt(id).group == RecursiveBody::kNone) views_[Index(id)] = FindView(id);
    PlaceResults();
    PlaceKept();
    for (int32_t id = Count(); id-- > 0;) PlaceOperands(id);
    PlaceJoined();
    for (int32_t id = 0; id < Count(); ++id)
      if (IsMade(id) && !IsPlaced(id) && IsWritten(id)) MakeRoom(id);
    for (int32_t group = 0; group < body_.groups; ++group)
      program_.regions_.push_back(LowerGroup(body_, group));
    MakeSteps(Stage::kAhead, &program_.ahead_);
    // Views of what was ahead are found anew in each batch.
    for (int32_t id = 0; id < Count(); ++id)
      if (ItemAt(id).stage == Stage::kAhead && views_[Index(id)] && IsReadByLevels(id))
        AddView(id, &program_.level_);
    MakeSteps(Stage::kLevel, &program_.level_);
    for (const std::vector<BodyStep>* steps : {&program_.ahead_, &program_.level_})
      for (const BodyStep& step : *steps) program_.has_kernels_ |= step.kind == StepKind::kKernel;
    FindOnce();
  }

 private:
  struct View {
    int32_t from;
    int64_t column;
  };

  int32_t Count() const { return static_cast<int32_t>(body_.items.size()); }
  static size_t Index(int32_t id) { return static_cast<size_t>(id); }
  const Item& ItemAt(int32_t id) const { return body_.items[Index(id)]; }
  ItemPlace& PlaceAt(int32_t id) { return program_.places_[Index(id)]; }
  bool IsPlaced(int32_t id) { return PlaceAt(id).kind != PlaceKind::kNone; }
  bool IsMade(int32_t id) const { return ItemAt(id).form != Form::kSame && program_.needed_[Index(id)]; }

  void FindNeeded() {
    program_.needed_.assign(body_.items.size(), false);
    for (const int32_t result : body_.results) program_.needed_[Index(result)] = true;
    for (int32_t id = Count(); id-- > 0;) {
      if (!program_.needed_[Index(id)]) continue;
      const Item& item = ItemAt(id);
      if (item.pushed) program_.pushed_.push_back(id);
      for (size_t i = item.pushed ? 1 : 0; i < item.inputs.size(); ++i)
        if (item.inputs[i].value != RecursiveBody::kNone)
          program_.needed_[Index(item.inputs[i].value)] = true;
    }
  }

  void FindOnce() {
    std::vector<bool> is_read(body_.items.size(), false);
    for (int32_t id = Count(); id-- > 0;) {
      const Item& item = ItemAt(id);
      if (!program_.needed_[Index(id)] || item.form != Form::kSame) continue;
      if (item.source == Source::kParameter && is_read[Index(id)]) program_.once_reads_.push_back(id);
      if (item.source != Source::kOperator) continue;
      program_.once_makes_.push_back(id);
      for (const RecursiveBody::Operand& input : item.inputs)
        if (input.value != RecursiveBody::kNone) is_read[Index(input.value)] = true;
    }
    std::reverse(program_.once_makes_.begin(), program_.once_makes_.end());
  }

  template <typename Body>
  void EachReader(int32_t id, const Body& body) const {
    for (int32_t reader = id + 1; reader < Count(); ++reader)
      if (program_.needed_[Index(reader)])
        for (const RecursiveBody::Operand& input : ItemAt(reader).inputs)
          if (input.value == id) body(reader);
  }
  bool IsResult(int32_t id) const {
    return std::find(body_.results.begin(), body_.results.end(), id) != body_.results.end();
  }
  bool IsReadByLevels(int32_t id) const {
    bool is_read = false;
    EachReader(id, [&](int32_t reader) { is_read |= ItemAt(reader).stage == Stage::kLevel; });
    return is_read;
  }

  // Of an item that is neither inside a fused operator only nor a view: a step writes its rows.
  bool IsWritten(int32_t id) const {
    if (views_[Index(id)]) return false;
    const Item& item = ItemAt(id);
    if (item.group == RecursiveBody::kNone || IsResult(id) || IsFoldItem(body_, id)) return true;
    bool is_read = false;
    for (int32_t reader = id + 1; reader < Count(); ++reader)
      for (const RecursiveBody::Operand& input : ItemAt(reader).inputs)
        is_read |= input.value == id && ItemAt(reader).group != item.group;
    return is_read;
  }

  // A literal whole number; nullopt where the operand is another one or left out.
  std::optional<int64_t> LiteralOf(const Item& item, size_t i) const {
    if (i >= item.inputs.size() || item.inputs[i].value == RecursiveBody::kNone) return std::nullopt;
    const Item& input = ItemAt(item.inputs[i].value);
    if (input.source != Source::kLiteral || !input.node.info.IsScalar()) return std::nullopt;
    const Scalar& value = *input.node.FindAttribute("value");
    if (value.IsString()) return std::nullopt;
    const auto whole = static_cast<int64_t>(value.AsDouble());
    return static_cast<double>(whole) == value.AsDouble() ? std::optional(whole) : std::nullopt;
  }
  static bool IsLeftOut(const Item& item, size_t i) {
    return i >= item.inputs.size() || item.inputs[i].value == RecursiveBody::kNone;
  }

  // Values whose cells are those of another one, in order.
  std::optional<View> FindView(int32_t id) const {
    const Item& item = ItemAt(id);
    if (item.source == Source::kConvert) {
      const int32_t given = item.inputs[0].value;
      return TypeOf(given) == TypeOf(id) ? std::optional(View{given, 0}) : std::nullopt;
    }
    if (item.source != Source::kOperator || item.inputs.empty() || item.form != Form::kRows)
      return std::nullopt;
    const int32_t from = item.inputs[0].value;
    if (from == RecursiveBody::kNone || ItemAt(from).form != Form::kRows) return std::nullopt;
    const Item& input = ItemAt(from);
    const Shape given = input.node.info.shape, shape = item.node.info.shape;
    const bool is_whole = CellsOf(input) == CellsOf(item);
    if (RoleOf(item.node) == Role::kTranspose && is_whole && (given.rows == 1 || given.columns == 1))
      return View{from, 0};
    if (RoleOf(item.node) == Role::kReshape && is_whole) {
      const Scalar* const by_row = item.node.FindAttribute("byrow");
      if (by_row == nullptr || (by_row->IsBoolean() && by_row->AsBoolean())) return View{from, 0};
      return std::nullopt;
    }
    if (RoleOf(item.node) != Role::kRange) return std::nullopt;
    const std::optional<int64_t> column = ColumnOfRange(item, 1, given, shape);
    return column ? std::optional(View{from, *column}) : std::nullopt;
  }

  // Where a range of that shape begins among the cells of a matrix, if they follow each other: some columns
  // of a row, or some rows. `bounds`: the first of the four operands that tell it.
  std::optional<int64_t> ColumnOfRange(const Item& item, size_t bounds, Shape given, Shape shape) const {
    const bool of_columns = IsLeftOut(item, bounds) && IsLeftOut(item, bounds + 1) && given.rows == 1;
    const bool of_rows = IsLeftOut(item, bounds + 2) && IsLeftOut(item, bounds + 3);
    if (!of_columns && !of_rows) return std::nullopt;
    if (of_columns) bounds += 2;
    const std::optional<int64_t> first = LiteralOf(item, bounds), last = LiteralOf(item, bounds + 1);
    const int64_t most = of_columns ? given.columns : given.rows;
    if (!first || !last || *first < 1 || *last > most || *last < *first) return std::nullopt;
    if (*last - *first + 1 != (of_columns ? shape.columns : shape.rows)) return std::nullopt;
    if ((of_columns ? shape.rows : shape.columns) != (of_columns ? 1 : given.columns)) return std::nullopt;
    return (*first - 1) * (of_columns ? 1 : given.columns);
  }

  // Of rows some of whose cells are assigned to, which follow each other: where they begin.
  std::optional<int64_t> AssignedFrom(int32_t id) const {
    const Item& item = ItemAt(id);
    if (RoleOf(item.node) != Role::kRangeAssign || item.source != Source::kOperator ||
        item.form != Form::kRows)
      return std::nullopt;
    for (size_t i = 0; i < 2; ++i)
      if (IsLeftOut(item, i) || !ItemAt(item.inputs[i].value).node.info.IsMatrix() ||
          TypeOf(item.inputs[i].value) != TypeOf(id))
        return std::nullopt;
    const Shape shape = item.node.info.shape;
    if (ItemAt(item.inputs[0].value).node.info.shape != shape) return std::nullopt;
    return ColumnOfRange(item, 2, shape, ItemAt(item.inputs[1].value).node.info.shape);
  }

  // The number that says the column of a cell of a row, x[1, n]: it is the node's own.
  std::optional<int32_t> NumberedColumn(const Item& item, size_t bounds) const {
    const auto is_first = [&](size_t i) { return IsLeftOut(item, i) || LiteralOf(item, i) == 1; };
    if (!is_first(bounds) || !is_first(bounds + 1) || IsLeftOut(item, bounds + 2) ||
        IsLeftOut(item, bounds + 3))
      return std::nullopt;
    const int32_t number = item.inputs[bounds + 2].value;
    if (number != item.inputs[bounds + 3].value || ItemAt(number).source != Source::kNumber)
      return std::nullopt;
    return number;
  }
  bool IsRow(int32_t id) const {
    const ValueInfo& info = ItemAt(id).node.info;
    return info.IsMatrix() && info.shape.rows == 1;
  }
  std::optional<int32_t> PickedBy(int32_t id) const {
    const Item& item = ItemAt(id);
    if (RoleOf(item.node) != Role::kRange || item.source != Source::kOperator || item.form != Form::kRows ||
        item.node.info.shape != Shape{1, 1} || !IsRow(item.inputs[0].value) ||
        TypeOf(item.inputs[0].value) != TypeOf(id))
      return std::nullopt;
    return NumberedColumn(item, 1);
  }
  std::optional<int32_t> PutBy(int32_t id) const {
    const Item& item = ItemAt(id);
    if (RoleOf(item.node) != Role::kRangeAssign || item.source != Source::kOperator ||
        item.form != Form::kRows || !IsRow(id))
      return std::nullopt;
    for (size_t i = 0; i < 2; ++i)
      if (IsLeftOut(item, i) || !IsRow(item.inputs[i].value) || TypeOf(item.inputs[i].value) != TypeOf(id))
        return std::nullopt;
    if (ItemAt(item.inputs[0].value).node.info.shape != item.node.info.shape ||
        ItemAt(item.inputs[1].value).node.info.shape != Shape{1, 1})
      return std::nullopt;
    return NumberedColumn(item, 2);
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
      if (ItemAt(id).stage != Stage::kLevel || !IsMade(id) || IsPlaced(base.from) ||
          ItemAt(base.from).stage != Stage::kLevel || CellsOf(ItemAt(base.from)) != CellsOf(ItemAt(id)) ||
          !IsWritten(base.from))
        continue;
      PlaceAt(base.from) = {.kind = PlaceKind::kResult, .of = static_cast<int32_t>(r)};
    }
  }

  void PlaceKept() {
    for (int32_t id = 0; id < Count(); ++id) {
      if (ItemAt(id).stage != Stage::kAhead || !IsMade(id) || !(IsResult(id) || IsReadByLevels(id))) continue;
      const int32_t kept = BaseOf(id).from;
      if (IsReadByLevels(id)) program_.read_by_levels_[Index(kept)] = true;
      if (IsPlaced(kept)) continue;
      PlaceAt(kept) = {.kind = PlaceKind::kKept};
      program_.kept_.push_back(kept);
    }
  }

  // Rows side by side: the columns of rows, or the rows of matrices.
  bool PutsSideBySide(int32_t id) const {
    const Item& item = ItemAt(id);
    if (item.source != Source::kOperator || item.form != Form::kRows || !IsMade(id)) return false;
    if (!(RoleOf(item.node) == Role::kRbind ||
          (RoleOf(item.node) == Role::kCbind && item.node.info.shape.rows == 1)))
      return false;
    int64_t cells = 0;
    for (const RecursiveBody::Operand& input : item.inputs) {
      if (input.value == RecursiveBody::kNone || !ItemAt(input.value).node.info.IsMatrix() ||
          ItemAt(input.value).node.info.element_type != item.node.info.element_type)
        return false;
      cells += CellsOf(ItemAt(input.value));
    }
    return cells == CellsOf(item);
  }

  // What is put side by side is written there, where nothing else has asked for it.
  void PlaceOperands(int32_t id) {
    if (!PutsSideBySide(id)) return;
    int64_t column = 0;
    for (const RecursiveBody::Operand& input : ItemAt(id).inputs) {
      const int32_t value = input.value;
      if (IsMade(value) && ItemAt(value).stage == ItemAt(id).stage && IsWritten(value) && !IsPlaced(value))
        PlaceAt(value) = {.kind = PlaceKind::kInside, .of = id, .column = column};
      column += CellsOf(ItemAt(value));
    }
  }

  ElementType TypeOf(int32_t id) const {
    const ValueInfo& info = ItemAt(id).node.info;
    return info.IsScalar() ? ElementType::kFloat64 : info.element_type;
  }
  int64_t RowBytesOf(int32_t id) const { return CellsOf(ItemAt(id)) * BytesOf(TypeOf(id)); }
  // Rows of doubles behind rows of floats begin at an address of a double, whatever their number.
  void MakeRoom(int32_t id) {
    AlignTo(BytesOf(TypeOf(id)));
    PlaceAt(id) = {.kind = PlaceKind::kRoom, .offset = program_.row_bytes_};
    program_.row_bytes_ += RowBytesOf(id);
  }
  void AlignTo(int64_t bytes) { program_.row_bytes_ = (program_.row_bytes_ + bytes - 1) / bytes * bytes; }

  bool IsProduct(int32_t id) const {
    const Item& item = ItemAt(id);
    if (!IsMade(id) || item.pushed || RoleOf(item.node) != Role::kProduct || item.form != Form::kRows)
      return false;
    const Item &left = ItemAt(item.inputs[0].value), &right = ItemAt(item.inputs[1].value);
    return left.form == Form::kRows && right.form == Form::kSame &&
           PackedWeights::Takes(right.node.info.shape);
  }
  bool IsNodeProduct(int32_t id) const {
    const Item& item = ItemAt(id);
    if (RoleOf(item.node) != Role::kProduct || item.form != Form::kRows) return false;
    const Item& right = ItemAt(item.inputs[1].value);
    return right.form == Form::kRows && PackedWeights::Takes(right.node.info.shape);
  }

  // Products with one matrix whose results are free to stand below each other.
  void PlaceJoined() {
    stacks_.assign(body_.items.size(), -1);
    joins_.assign(body_.items.size(), {});
    for (int32_t first = 0; first < Count(); ++first) {
      if (ItemAt(first).joined != first) continue;
      std::vector<int32_t> members;
      for (int32_t id = first; id < Count(); ++id)
        if (ItemAt(id).joined == first && IsProduct(id) && !IsPlaced(id)) members.push_back(id);
      if (members.size() < 2) continue;
      // Their left operands stand below each other from the start where nothing else has placed them.
      std::vector<int32_t> lefts;
      for (const int32_t id : members) lefts.push_back(ItemAt(id).inputs[0].value);
      std::vector<int32_t> sorted = lefts;
      std::sort(sorted.begin(), sorted.end());
      const bool are_free = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end() &&
                            std::all_of(lefts.begin(), lefts.end(), [&](int32_t left) {
                              return IsMade(left) && ItemAt(left).stage == Stage::kLevel && IsWritten(left) &&
                                     !IsPlaced(left) && ItemAt(left).source != Source::kChild &&
                                     !ItemAt(left).pushed;
                            });
      AlignTo(kCacheLine);
      if (are_free) {
        for (const int32_t left : lefts) MakeRoom(left);
      } else {
        stacks_[Index(members[0])] = program_.row_bytes_;
        program_.row_bytes_ += static_cast<int64_t>(lefts.size()) * RowBytesOf(lefts[0]);
      }
      AlignTo(kCacheLine);
      for (const int32_t id : members) MakeRoom(id);
      for (size_t i = 1; i < members.size(); ++i) is_joined_.push_back(members[i]);
      joins_[Index(members[0])] = std::move(members);
    }
  }

  // Steps -------------------------------------------------------------------------------------

  // A view of a view is one of what that looks at: the other one may not be there in levels.
  void AddView(int32_t id, std::vector<BodyStep>* steps) const {
    const View view = BaseOf(id);
    steps->push_back({.kind = StepKind::kView, .item = id, .from = view.from, .column = view.column});
  }

  // The items that one step computes are those of a fused operator, or of joined products.
  std::vector<int32_t> ItemsOfStep(int32_t id) const {
    if (ItemAt(id).group == RecursiveBody::kNone)
      return joins_[Index(id)].empty() ? std::vector<int32_t>{id} : joins_[Index(id)];
    std::vector<int32_t> items;
    for (int32_t other = 0; other < Count(); ++other)
      if (ItemAt(other).group == ItemAt(id).group) items.push_back(other);
    return items;
  }

  void MakeSteps(Stage stage, std::vector<BodyStep>* steps) {
    std::vector<bool> is_done(body_.items.size(), true);
    for (int32_t id = 0; id < Count(); ++id)
      if (IsMade(id) && ItemAt(id).stage == stage) is_done[Index(id)] = false;
    const auto is_ready = [&](const std::vector<int32_t>& items) {
      return std::all_of(items.begin(), items.end(), [&](int32_t id) {
        const Item& item = ItemAt(id);
        return std::all_of(item.inputs.begin(), item.inputs.end(), [&](const RecursiveBody::Operand& input) {
          return item.pushed || input.value == RecursiveBody::kNone || is_done[Index(input.value)] ||
                 std::find(items.begin(), items.end(), input.value) != items.end();
        });
      });
    };
    // Whatever can run runs in the order of the items; fused operators wait for all that they read.
    for (bool has_run = true; has_run;) {
      has_run = false;
      for (int32_t id = 0; id < Count(); ++id) {
        if (is_done[Index(id)] || std::find(is_joined_.begin(), is_joined_.end(), id) != is_joined_.end())
          continue;
        const std::vector<int32_t> items = ItemsOfStep(id);
        if (!is_ready(items)) continue;
        AddStep(id, items, steps);
        for (const int32_t item : items) is_done[Index(item)] = true;
        has_run = true;
      }
    }
    HEDDLE_CHECK(std::find(is_done.begin(), is_done.end(), false) == is_done.end(),
                 "fused operators of a recursive body wait for nothing that waits for them");
  }

  void AddStep(int32_t id, const std::vector<int32_t>& items, std::vector<BodyStep>* steps) {
    const Item& item = ItemAt(id);
    if (item.group != RecursiveBody::kNone) {
      if (!program_.regions_[static_cast<size_t>(item.group)].outputs.empty())
        steps->push_back({.kind = StepKind::kRegion, .item = item.group});
      return;
    }
    if (views_[Index(id)]) return AddView(id, steps);
    if (item.pushed || item.source == Source::kChild) {
      steps->push_back({.kind = StepKind::kChildren, .item = id});
    } else if (item.source == Source::kNumber) {
      steps->push_back({.kind = StepKind::kNumbers, .item = id});
    } else if (item.source == Source::kLookup) {
      steps->push_back({.kind = StepKind::kLookup, .item = id});
    } else if (item.source == Source::kConvert) {
      steps->push_back({.kind = StepKind::kConvert, .item = id});
    } else if (IsProduct(id)) {
      steps->push_back(
          {.kind = StepKind::kMultiply, .item = id, .joined = items, .stack = stacks_[Index(id)]});
    } else if (IsNodeProduct(id)) {
      steps->push_back({.kind = StepKind::kNodeProduct, .item = id});
    } else if (RoleOf(item.node) == Role::kTranspose && ItemAt(item.inputs[0].value).form == Form::kRows) {
      steps->push_back({.kind = StepKind::kTranspose, .item = id});
    } else if (PutsSideBySide(id)) {
      int64_t column = 0;
      for (const RecursiveBody::Operand& input : item.inputs) {
        const ItemPlace& place = PlaceAt(input.value);
        if (!(place.kind == PlaceKind::kInside && place.of == id && place.column == column))
          steps->push_back({.kind = StepKind::kCopy, .item = id, .from = input.value, .column = column});
        column += CellsOf(ItemAt(input.value));
      }
    } else if (const std::optional<int64_t> first = AssignedFrom(id)) {
      steps->push_back({.kind = StepKind::kCopy, .item = id, .from = item.inputs[0].value});
      steps->push_back({.kind = StepKind::kCopy, .item = id, .from = item.inputs[1].value, .column = *first});
    } else if (const std::optional<int32_t> picked_by = PickedBy(id)) {
      steps->push_back({.kind = StepKind::kPick, .item = id, .from = *picked_by});
    } else if (const std::optional<int32_t> put_by = PutBy(id)) {
      steps->push_back({.kind = StepKind::kCopy, .item = id, .from = item.inputs[0].value});
      steps->push_back({.kind = StepKind::kPut, .item = id, .from = *put_by});
    } else {
      steps->push_back({.kind = StepKind::kKernel, .item = id});
    }
  }

  BodyProgram& program_;
  const RecursiveBody& body_;
  std::vector<std::optional<View>> views_;  // By item.
  std::vector<int64_t> stacks_;             // By the first item of joined products.
  std::vector<std::vector<int32_t>> joins_;
  std::vector<int32_t> is_joined_;  // The others.
};

BodyProgram::BodyProgram(std::shared_ptr<const RecursiveBody> body) : body_(std::move(body)) {
  ProgramBuilder(this).Build();
  for (const ItemRegion& region : regions_) {
    codes_.push_back(std::make_unique<Code>());
    if (!region.outputs.empty()) codes_.back()->interpreted = *InterpretedRegions().Compile(region.region);
  }
}

Result<const RegionCode*> BodyProgram::CodeOf(int32_t group, int64_t rows, FusedRuntime& runtime) const {
  Code& code = *codes_[static_cast<size_t>(group)];
  if (const RegionCode* const ready = code.ready.load(std::memory_order_acquire); ready != nullptr)
    return ready;
  const ItemRegion& region = regions_[static_cast<size_t>(group)];
  const std::lock_guard lock(code.mutex);
  if (code.made == nullptr) {
    code.work += static_cast<double>(rows) * static_cast<double>(region.columns) * region.work;
    if (code.work < code.least) return code.interpreted.get();
    HEDDLE_ASSIGN_OR_RETURN(code.made, runtime.CodeOf(region.region, code.work));
    code.ready.store(code.made.get(), std::memory_order_release);
    code.work = 0;
    code.least = kWorkBetweenQuestions;
  }
  return code.made != nullptr ? code.made.get() : code.interpreted.get();
}

}  // namespace heddle::ops
