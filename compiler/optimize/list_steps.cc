// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/list_steps.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/optimize/rewrite.h"

namespace heddle::compiler {
namespace {

using KnownList = ListOf<LiveIn>;

LiveIn OfInfo(ValueInfo info) { return {std::move(info), std::nullopt, nullptr}; }

LiveIn OfType(DataType type) { return OfInfo(ValueInfo::OfDeclared(type, ValueType::kUnknown)); }

LiveIn OfList(KnownList list) {
  LiveIn known = UnknownList();
  known.list = std::make_shared<const KnownList>(std::move(list));
  return known;
}

// Elements of which nothing is known.
KnownList OfUnknownElements(size_t count, std::vector<std::string> names) {
  KnownList list;
  list.elements.resize(count);
  list.names = std::move(names);
  return list;
}

std::vector<DataType> TypesOf(const KnownList& list) {
  std::vector<DataType> types;
  for (const LiveIn& element : list.elements) types.push_back(element.info.data_type);
  return types;
}

// One step.
class ListStep {
 public:
  ListStep(const Block& block, const FindLiveIn& find, Status* error)
      : block_(block), find_(find), error_(*error) {}

  std::vector<LiveIn> Infer() {
    switch (block_.operation) {
      case ListOperation::kMake: return {Make()};
      case ListOperation::kCopy: return {Operand("list")};
      case ListOperation::kSlice: return {Slice()};
      case ListOperation::kAssign: return {Assign()};
      case ListOperation::kAppend: return {Append()};
      case ListOperation::kRemove: return Remove();
      case ListOperation::kLength: return {Length()};
      case ListOperation::kAsScalar: return {AsScalar()};
      case ListOperation::kAsMatrix: return {AsMatrix()};
      case ListOperation::kAsFrame: return {AsFrame()};
      case ListOperation::kAsList: return {AsList()};
      case ListOperation::kCbind:
      case ListOperation::kRbind: return {Bind()};
      case ListOperation::kToString: return {OfInfo(ValueInfo::OfScalar(ValueType::kString))};
      case ListOperation::kExists: return {OfInfo(ValueInfo::OfScalar(ValueType::kBoolean))};
      case ListOperation::kRead: return {UnknownList()};
      case ListOperation::kWrite: return {};
      case ListOperation::kAppended: return {OfMatrices(Operand("value"))};
      case ListOperation::kSum:
      case ListOperation::kInserted:
      case ListOperation::kRowsOf:
      case ListOperation::kColumnsOf:
      case ListOperation::kZeros: return {OfMatrices(Operand("list"))};
    }
    return {};
  }

 private:
  const std::string* VariableOf(std::string_view argument) const {
    for (const auto& [name, variable] : block_.arguments)
      if (name == argument) return &variable;
    return nullptr;
  }

  LiveIn KnownOf(const std::string& variable) const {
    const LiveIn* const known = find_(variable);
    return known != nullptr ? *known : LiveIn();
  }

  LiveIn Operand(std::string_view argument) const {
    const std::string* variable = VariableOf(argument);
    return variable != nullptr ? KnownOf(*variable) : LiveIn();
  }

  void Fail(Status status) { error_ = std::move(status); }
  LiveIn Wrong(Status status) {
    Fail(std::move(status));
    return UnknownList();
  }

  LiveIn Make() {
    KnownList list;
    for (const auto& [name, variable] : block_.arguments) {
      Status status = list.Add(name, KnownOf(variable));
      if (!status.ok()) return Wrong(std::move(status));
    }
    return OfList(std::move(list));
  }

  bool PicksOne() const { return *VariableOf("from") == *VariableOf("to"); }

  // The elements that the step's index picks. nullopt when they are not known, or wrong.
  std::optional<ListRange> Range(const KnownList& list) {
    const LiveIn from = Operand("from"), to = Operand("to");
    if (!from.value || !to.value) return std::nullopt;
    Result<ListRange> range = FindInList(list.names, list.size(), *from.value, *to.value);
    if (range.ok()) return *range;
    Fail(range.status());
    return std::nullopt;
  }

  // A list with a matrix in the place of each element that is no list.
  static LiveIn OfMatrices(const LiveIn& known) {
    if (known.list == nullptr) return UnknownList();
    KnownList matrices = *known.list;
    for (LiveIn& element : matrices.elements) {
      const ValueInfo info = element.info;
      if (info.data_type == DataType::kList)
        element = OfMatrices(element);
      else if (info.data_type == DataType::kUnknown)
        element = LiveIn();
      else
        element = OfInfo(ValueInfo::OfMatrix(info.IsMatrix()   ? info.shape
                                             : info.IsScalar() ? Shape{1, 1}
                                                               : Shape()));
    }
    return OfList(std::move(matrices));
  }

  LiveIn Slice() {
    const LiveIn list = Operand("list");
    if (list.list != nullptr)
      if (const std::optional<ListRange> range = Range(*list.list)) return OfList(list.list->Slice(*range));
    return PicksOne() ? OfList(OfUnknownElements(1, {})) : UnknownList();
  }

  LiveIn Assign() {
    const LiveIn old = Operand("list"), value = Operand("value");
    if (old.list == nullptr) return UnknownList();
    const std::optional<ListRange> range = Range(*old.list);
    const bool is_known = value.info.data_type != DataType::kList || value.list != nullptr;
    if (!range || !is_known) return OfList(OfUnknownElements(old.list->size(), old.list->names));
    KnownList list = *old.list;
    if (Status status = list.Replace(*range, value); !status.ok()) return Wrong(std::move(status));
    return OfList(std::move(list));
  }

  LiveIn Append() {
    const LiveIn old = Operand("list"), value = Operand("value");
    const bool is_known = value.info.data_type != DataType::kList || value.list != nullptr;
    if (old.list == nullptr || !is_known) return UnknownList();
    KnownList list = *old.list;
    if (Status status = list.Append(value); !status.ok()) return Wrong(std::move(status));
    return OfList(std::move(list));
  }

  std::vector<LiveIn> Remove() {
    const LiveIn old = Operand("list");
    const std::optional<ListRange> range = old.list != nullptr ? Range(*old.list) : std::nullopt;
    if (!range) return {UnknownList(), UnknownList()};
    KnownList removed = old.list->Slice(*range);
    removed.names.clear();
    KnownList rest = *old.list;
    rest.Erase(*range);
    return {OfList(std::move(rest)), OfList(std::move(removed))};
  }

  LiveIn Length() const {
    LiveIn length = OfInfo(ValueInfo::OfScalar(ValueType::kInteger));
    if (const LiveIn list = Operand("list"); list.list != nullptr)
      length.value = Scalar(static_cast<int64_t>(list.list->size()));
    return length;
  }

  // The list, or what the step's index picks of it, if its elements are known and what the operation takes.
  std::shared_ptr<const KnownList> Elements() {
    LiveIn list = Operand("list");
    if (list.list != nullptr && VariableOf("from") != nullptr) list = Slice();
    if (list.list == nullptr) return nullptr;
    Status status = CheckElements(block_.operation, TypesOf(*list.list));
    if (status.ok()) return list.list;
    Fail(std::move(status));
    return nullptr;
  }

  LiveIn AsScalar() {
    const auto list = Elements();
    if (list == nullptr) return OfInfo(ValueInfo::OfScalar(ValueType::kUnknown));
    const LiveIn& first = list->elements[0];
    if (first.info.IsScalar()) return first;
    return OfInfo(ValueInfo::OfScalar(first.info.IsMatrix() ? ValueType::kDouble : ValueType::kUnknown));
  }

  LiveIn AsMatrix() {
    const auto list = Elements();
    if (list == nullptr) return OfInfo(ValueInfo::OfMatrix(Shape()));
    if (list->size() > 1) return OfInfo(ValueInfo::OfMatrix(Shape{static_cast<int64_t>(list->size()), 1}));
    const ValueInfo& only = list->elements[0].info;
    if (only.IsMatrix()) return OfInfo(only);
    return OfInfo(ValueInfo::OfMatrix(only.IsScalar() ? Shape{1, 1} : Shape()));
  }

  LiveIn AsFrame() {
    const auto list = Elements();
    if (list != nullptr && list->elements[0].info.data_type == DataType::kFrame) return list->elements[0];
    return OfType(DataType::kFrame);
  }

  LiveIn AsList() {
    const auto list = Elements();
    if (list != nullptr && list->elements[0].info.data_type == DataType::kList) return list->elements[0];
    return UnknownList();
  }

  LiveIn Bind() {
    const auto list = Elements();
    if (list == nullptr) return LiveIn();
    const bool by_column = block_.operation == ListOperation::kCbind;
    Shape bound = list->elements[0].info.shape;
    for (size_t i = 0; i < list->size(); ++i) {
      const ValueInfo& info = list->elements[i].info;
      if (!info.IsMatrix()) return LiveIn();
      if (i == 0) continue;
      const int64_t along = by_column ? info.shape.columns : info.shape.rows;
      int64_t& sum = by_column ? bound.columns : bound.rows;
      sum = sum == kUnknown || along == kUnknown ? kUnknown : sum + along;
    }
    return OfInfo(ValueInfo::OfMatrix(bound));
  }

  const Block& block_;
  const FindLiveIn& find_;
  Status& error_;
};

LiveIn JoinKnown(const LiveIn& a, const LiveIn& b) {
  LiveIn joined = OfInfo(JoinInfos(a.info, b.info));
  if (a.value && IsSameValue(a.value, b.value)) joined.value = a.value;
  joined.list = JoinLists(a.list, b.list);
  return joined;
}

}  // namespace

LiveIn UnknownList() { return OfType(DataType::kList); }

std::vector<LiveIn> InferListStep(const Block& block, const FindLiveIn& find, Status* error) {
  return ListStep(block, find, error).Infer();
}

Status CheckElements(ListOperation operation, const std::vector<DataType>& types) {
  const auto fails = [&](std::string_view why) { return FailedPrecondition("{}: {}", Name(operation), why); };
  if (types.empty()) return fails("the list has no elements");
  const std::string first = fmt::format("the element of the list is a {}", Name(types[0]));
  const bool is_list = types[0] == DataType::kList;
  switch (operation) {
    case ListOperation::kAsScalar:
      if (is_list) return fails(first).WithNote("as.list(l[i]) takes it");
      return OkStatus();
    case ListOperation::kAsMatrix:
      if (types.size() == 1) return is_list ? fails(first).WithNote("as.list(l[i]) takes it") : OkStatus();
      for (size_t i = 0; i < types.size(); ++i)
        if (types[i] != DataType::kScalar && types[i] != DataType::kUnknown)
          return fails(fmt::format("element {} of the list is a {}", i + 1, Name(types[i])))
              .WithNote("of several elements only scalars make a column; as.matrix(l[i]) takes one");
      return OkStatus();
    case ListOperation::kAsFrame:
    case ListOperation::kAsList: {
      if (types.size() != 1) return fails(fmt::format("the list has {} elements, not one", types.size()));
      const bool wants_list = operation == ListOperation::kAsList;
      if (types[0] == DataType::kUnknown || is_list == wants_list) return OkStatus();
      return fails(wants_list ? first + ", not a list" : first);
    }
    case ListOperation::kCbind:
    case ListOperation::kRbind:
      for (size_t i = 0; i < types.size(); ++i)
        if (types[i] == DataType::kList) return fails(fmt::format("element {} of the list is a list", i + 1));
      return OkStatus();
    default: return OkStatus();
  }
}

ValueInfo JoinInfos(const ValueInfo& a, const ValueInfo& b) {
  if (a.data_type != b.data_type) return ValueInfo();
  ValueInfo joined = a;
  if (a.value_type != b.value_type) joined.value_type = ValueType::kUnknown;
  if (a.shape.rows != b.shape.rows) joined.shape.rows = kUnknown;
  if (a.shape.columns != b.shape.columns) joined.shape.columns = kUnknown;
  if (a.format != b.format) joined.format = Format::kDense;
  if (a.schema != nullptr && (b.schema == nullptr || *a.schema != *b.schema)) joined.schema = nullptr;
  return joined;
}

bool IsSameValue(const std::optional<Scalar>& a, const std::optional<Scalar>& b) {
  return a.has_value() == b.has_value() && (!a || IsSameScalar(*a, *b));
}

std::shared_ptr<const ListOf<LiveIn>> JoinLists(const std::shared_ptr<const ListOf<LiveIn>>& a,
                                                const std::shared_ptr<const ListOf<LiveIn>>& b) {
  if (a == b) return a;
  if (a == nullptr || b == nullptr || a->size() != b->size() || a->names != b->names) return nullptr;
  KnownList joined;
  joined.names = a->names;
  for (size_t i = 0; i < a->size(); ++i) joined.elements.push_back(JoinKnown(a->elements[i], b->elements[i]));
  return std::make_shared<const KnownList>(std::move(joined));
}

bool IsSameList(const std::shared_ptr<const ListOf<LiveIn>>& a,
                const std::shared_ptr<const ListOf<LiveIn>>& b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr || a->size() != b->size() || a->names != b->names) return false;
  for (size_t i = 0; i < a->size(); ++i) {
    const LiveIn& x = a->elements[i];
    const LiveIn& y = b->elements[i];
    if (!(x.info == y.info) || !IsSameValue(x.value, y.value) || !IsSameList(x.list, y.list)) return false;
  }
  return true;
}

}  // namespace heddle::compiler
