// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_set>

#include "ops/base/kernel.h"
#include "ops/map/java_method_table.h"

// The methods of streams, and of the arrays and lists that they come from. A stage is done with all elements
// before the next one begins: an error that Java would not reach, because a later stage ends early, is
// reached.
namespace heddle::ops {
namespace {

using enum JavaType;

const JavaSignature kTestOfInteger = {{kInteger}, kBoolean};
const JavaSignature kTestOfCharacter = {{kCharacter}, kBoolean};
const JavaSignature kTestOfText = {{kString}, kBoolean};

// The element type of a stream, as the functions of its stages take it.
template <typename Stream>
using ElementOf = typename decltype(Stream::items)::value_type;

template <typename Stream>
const auto& Items(const JavaCall& a) {
  return std::get<Stream>(a[0]).items;
}

// Calls the function on every element until `use` says that it is enough. kCancelled.
template <typename Stream, typename Use>
Status ForEach(const JavaCall& a, const Use& use) {
  for (const auto& item : Items<Stream>(a)) {
    if (IsCancelled(a.cancelled)) return Cancelled("map");
    JavaValue argument = ElementOf<Stream>(item);
    if constexpr (std::is_same_v<ElementOf<Stream>, JavaText>)
      if (item == kJavaNull) argument = JavaNull();
    HEDDLE_ASSIGN_OR_RETURN(JavaValue value, a.function({&argument, 1}));
    if (!use(item, std::move(value))) break;
  }
  return OkStatus();
}

template <typename Stream>
Result<JavaValue> Filter(const JavaCall& a) {
  Stream result;
  HEDDLE_RETURN_IF_ERROR(ForEach<Stream>(a, [&](const auto& item, const JavaValue& passes) {
    if (std::get<bool>(passes)) result.items.push_back(item);
    return true;
  }));
  return JavaValue(std::move(result));
}

// map and its relatives, from one kind of stream to another.
template <typename From, typename To>
Result<JavaValue> Map(const JavaCall& a) {
  To result;
  HEDDLE_RETURN_IF_ERROR(ForEach<From>(a, [&](const auto&, JavaValue value) {
    if constexpr (std::is_same_v<ElementOf<To>, double>)
      value = Widened(std::move(value), kDouble);
    else if constexpr (std::is_same_v<ElementOf<To>, int32_t>)
      value = Widened(std::move(value), kInteger);
    result.items.push_back(std::get<ElementOf<To>>(std::move(value)));
    return true;
  }));
  return JavaValue(std::move(result));
}

// anyMatch: whether an element gives `wanted`; allMatch and noneMatch are what it is not.
template <typename Stream, bool wanted, bool result>
Result<JavaValue> Match(const JavaCall& a) {
  bool found = false;
  HEDDLE_RETURN_IF_ERROR(ForEach<Stream>(a, [&](const auto&, const JavaValue& value) {
    found = std::get<bool>(value) == wanted;
    return !found;
  }));
  return JavaValue(found == result);
}

template <typename Stream>
int64_t CountOf(const Stream& stream) {
  return static_cast<int64_t>(stream.items.size());
}
template <typename Stream>
Stream Sorted(const Stream& stream) {
  Stream result = stream;
  if constexpr (std::is_same_v<ElementOf<Stream>, double>)
    std::sort(result.items.begin(), result.items.end(), [](double x, double y) {
      if (x == 0 && y == 0) return std::signbit(x) && !std::signbit(y);
      return std::isnan(y) ? !std::isnan(x) : x < y;
    });
  else
    std::sort(result.items.begin(), result.items.end());
  return result;
}
template <typename Stream>
Stream Distinct(const Stream& stream) {
  // Doubles as objects: 0.0 and -0.0 differ.
  using Element = ElementOf<Stream>;
  using Key = std::conditional_t<std::is_same_v<Element, double>, int64_t, Element>;
  Stream result;
  std::unordered_set<Key> seen;
  for (const Element& item : stream.items) {
    if constexpr (std::is_same_v<Element, double>) {
      if (!seen.insert(std::bit_cast<int64_t>(item)).second) continue;
    } else if (!seen.insert(item).second) {
      continue;
    }
    result.items.push_back(item);
  }
  return result;
}
template <typename Stream, bool skips>
Result<JavaValue> Cut(const JavaCall& a) {
  const int64_t count = std::get<int64_t>(a[1]);
  if (count < 0) return FailedPrecondition("{}: {} is less than 0", skips ? "skip" : "limit", count);
  const auto& items = Items<Stream>(a);
  const int64_t at = std::min(count, static_cast<int64_t>(items.size()));
  Stream result;
  if (skips)
    result.items.assign(items.begin() + at, items.end());
  else
    result.items.assign(items.begin(), items.begin() + at);
  return JavaValue(std::move(result));
}

int32_t SumOfIntegers(const JavaIntegerStream& stream) {
  uint32_t sum = 0;
  for (const int32_t item : stream.items) sum += static_cast<uint32_t>(item);
  return static_cast<int32_t>(sum);
}
// DoubleStream.sum() loses little: the error of each addition is kept.
double SumOf(const JavaDoubleStream& stream) {
  double sum = 0, lost = 0;
  for (const double number : stream.items) {
    const double term = number - lost, next = sum + term;
    lost = (next - sum) - term;
    sum = next;
  }
  return sum;
}

template <bool is_max>
JavaOptionalInteger Extreme(const JavaIntegerStream& stream) {
  if (stream.items.empty()) return {};
  const auto [least, most] = std::minmax_element(stream.items.begin(), stream.items.end());
  return {is_max ? *most : *least};
}
template <bool is_max>
JavaOptionalDouble ExtremeOfDoubles(const JavaDoubleStream& stream) {
  if (stream.items.empty()) return {};
  for (const double item : stream.items)
    if (std::isnan(item)) return {item};
  const JavaDoubles sorted = Sorted(stream).items;
  return {is_max ? sorted.back() : sorted.front()};
}
JavaOptionalDouble MeanOfIntegers(const JavaIntegerStream& stream) {
  if (stream.items.empty()) return {};
  int64_t sum = 0;
  for (const int32_t item : stream.items) sum += item;
  return {static_cast<double>(sum) / static_cast<double>(stream.items.size())};
}
JavaOptionalDouble MeanOfDoubles(const JavaDoubleStream& stream) {
  if (stream.items.empty()) return {};
  return {SumOf(stream) / static_cast<double>(stream.items.size())};
}

Result<JavaValue> Reduce(const JavaCall& a) {
  JavaValue result = a[1];
  for (const int32_t item : Items<JavaIntegerStream>(a)) {
    if (IsCancelled(a.cancelled)) return Cancelled("map");
    const JavaValue arguments[] = {result, item};
    HEDDLE_ASSIGN_OR_RETURN(JavaValue next, a.function(arguments));
    result = Widened(std::move(next), kInteger);
  }
  return result;
}

template <typename Optional>
Result<JavaValue> Get(const JavaCall& a) {
  const auto& value = std::get<Optional>(a[0]).value;
  if (!value) return FailedPrecondition("the stream has no element to get");
  return JavaValue(*value);
}
template <typename Optional>
Result<JavaValue> GetOrElse(const JavaCall& a) {
  const auto& value = std::get<Optional>(a[0]).value;
  return value ? JavaValue(*value) : a[1];
}
template <typename Optional, bool is_present>
bool HasValue(const Optional& optional) {
  return optional.value.has_value() == is_present;
}
JavaOptionalText FirstText(const JavaTextStream& stream) {
  return stream.items.empty() ? JavaOptionalText() : JavaOptionalText{stream.items.front()};
}
JavaOptionalInteger FirstInteger(const JavaIntegerStream& stream) {
  return stream.items.empty() ? JavaOptionalInteger() : JavaOptionalInteger{stream.items.front()};
}

Result<JavaValue> Joining(const JavaCall& a) {
  JavaJoining joining;
  if (a.size() > 0) joining.separator = a.Text(0);
  if (a.size() > 1) joining.prefix = a.Text(1);
  if (a.size() > 2) joining.suffix = a.Text(2);
  return JavaValue(std::move(joining));
}
JavaText Collected(const JavaTextStream& stream, const JavaJoining& joining) {
  JavaText text = joining.prefix;
  for (size_t i = 0; i < stream.items.size(); ++i) {
    if (i > 0) text += joining.separator;
    text += stream.items[i];
  }
  return text + joining.suffix;
}

// ---- Arrays and lists.

template <typename Array, typename Stream>
Stream StreamOf(const Array& array) {
  return {array};
}
JavaTextStream StreamOfList(const JavaTextList& list) { return {list.items}; }
JavaIntegers ArrayOfIntegers(const JavaIntegerStream& stream) { return stream.items; }
JavaDoubles ArrayOfDoubles(const JavaDoubleStream& stream) { return stream.items; }
JavaTextList ListOfStream(const JavaTextStream& stream) { return {stream.items}; }
JavaTextList ListOfArray(const JavaTexts& texts) { return {texts}; }
Result<JavaValue> ListOf(const JavaCall& a) {
  JavaTextList list;
  for (const JavaValue& value : a.values) list.items.push_back(std::get<JavaText>(value));
  return JavaValue(std::move(list));
}
int32_t PlaceIn(const JavaTextList& list, const JavaText& text) {
  const auto found = std::find(list.items.begin(), list.items.end(), text);
  return found == list.items.end() ? -1 : static_cast<int32_t>(found - list.items.begin());
}
bool Contains(const JavaTextList& list, const JavaText& text) { return PlaceIn(list, text) >= 0; }
int32_t SizeOf(const JavaTextList& list) { return static_cast<int32_t>(list.items.size()); }
bool IsEmptyList(const JavaTextList& list) { return list.items.empty(); }
Result<JavaValue> ItemOf(const JavaCall& a) {
  const JavaTexts& items = std::get<JavaTextList>(a[0]).items;
  const int32_t at = a.Integer(1);
  if (at < 0 || static_cast<size_t>(at) >= items.size())
    return FailedPrecondition("element {} of {}", at, items.size());
  return JavaValue(items[static_cast<size_t>(at)]);
}
Result<JavaValue> CopyOfRange(const JavaCall& a) {
  const JavaTexts& texts = std::get<JavaTexts>(a[0]);
  const int64_t begin = a.Integer(1), end = a.Integer(2);
  const auto size = static_cast<int64_t>(texts.size());
  if (begin < 0 || begin > size || begin > end)
    return FailedPrecondition("copyOfRange: from {} to {} of {}", begin, end, size);
  JavaTexts copy(texts.begin() + begin, texts.begin() + std::min(end, size));
  copy.resize(static_cast<size_t>(end - begin), JavaText(kJavaNull));
  return JavaValue(std::move(copy));
}

// What streams of every kind have.
template <typename Stream>
void AddStream(std::string_view owner, JavaType type, const JavaSignature& test,
               std::vector<JavaMethod>* table) {
  const JavaMethod methods[] = {
      WithFunction(test, {owner, true, "filter", {type, kFunction}, type, Filter<Stream>}),
      WithFunction(test, {owner, true, "anyMatch", {type, kFunction}, kBoolean, Match<Stream, true, true>}),
      WithFunction(test, {owner, true, "allMatch", {type, kFunction}, kBoolean, Match<Stream, false, false>}),
      WithFunction(test, {owner, true, "noneMatch", {type, kFunction}, kBoolean, Match<Stream, true, false>}),
      {owner, true, "count", {type}, kLong, OfOne<Stream, CountOf<Stream>>},
      {owner, true, "distinct", {type}, type, OfOne<Stream, Distinct<Stream>>},
      {owner, true, "sorted", {type}, type, OfOne<Stream, Sorted<Stream>>},
      {owner, true, "limit", {type, kLong}, type, Cut<Stream, false>},
      {owner, true, "skip", {type, kLong}, type, Cut<Stream, true>},
  };
  table->insert(table->end(), std::begin(methods), std::end(methods));
}

template <typename Optional>
void AddOptional(std::string_view owner, JavaType type, std::string_view get, JavaType element,
                 std::vector<JavaMethod>* table) {
  const JavaMethod methods[] = {
      {owner, true, get, {type}, element, Get<Optional>},
      {owner, true, "orElseThrow", {type}, element, Get<Optional>},
      (element == kString ? TakingNull({owner, true, "orElse", {type, element}, element, GetOrElse<Optional>})
                          : JavaMethod{owner, true, "orElse", {type, element}, element, GetOrElse<Optional>}),
      {owner, true, "isPresent", {type}, kBoolean, OfOne<Optional, HasValue<Optional, true>>},
      {owner, true, "isEmpty", {type}, kBoolean, OfOne<Optional, HasValue<Optional, false>>},
      {owner, true, "toString", {type}, kString, TextOfFirst},
  };
  table->insert(table->end(), std::begin(methods), std::end(methods));
}

std::vector<JavaMethod> MakeTable() {
  using Integers = JavaIntegerStream;
  using Texts = JavaTextStream;
  using Characters = JavaCharacterStream;
  using Doubles = JavaDoubleStream;
  const auto maps = [](JavaType from, JavaType to) { return JavaSignature{{from}, to}; };
  std::vector<JavaMethod> table;
  AddStream<Integers>("IntStream", kIntegerStream, kTestOfInteger, &table);
  AddStream<Doubles>("DoubleStream", kDoubleStream, {{kDouble}, kBoolean}, &table);
  AddStream<Characters>("CharStream", kCharacterStream, kTestOfCharacter, &table);
  AddStream<Texts>("Stream", kTextStream, kTestOfText, &table);
  AddOptional<JavaOptionalInteger>("OptionalInt", kOptionalInteger, "getAsInt", kInteger, &table);
  AddOptional<JavaOptionalDouble>("OptionalDouble", kOptionalDouble, "getAsDouble", kDouble, &table);
  AddOptional<JavaOptionalText>("Optional", kOptionalText, "get", kString, &table);
  const JavaMethod methods[] = {
      WithFunction(
          maps(kInteger, kInteger),
          {"IntStream", true, "map", {kIntegerStream, kFunction}, kIntegerStream, Map<Integers, Integers>}),
      WithFunction(maps(kInteger, kCharacter), {"IntStream",
                                                true,
                                                "mapToObj",
                                                {kIntegerStream, kFunction},
                                                kCharacterStream,
                                                Map<Integers, Characters>}),
      WithFunction(
          maps(kInteger, kString),
          {"IntStream", true, "mapToObj", {kIntegerStream, kFunction}, kTextStream, Map<Integers, Texts>}),
      WithFunction(maps(kInteger, kDouble), {"IntStream",
                                             true,
                                             "mapToDouble",
                                             {kIntegerStream, kFunction},
                                             kDoubleStream,
                                             Map<Integers, Doubles>}),
      WithFunction(JavaSignature{{kInteger, kInteger}, kInteger},
                   {"IntStream", true, "reduce", {kIntegerStream, kInteger, kFunction}, kInteger, Reduce}),
      {"IntStream", true, "sum", {kIntegerStream}, kInteger, OfOne<Integers, SumOfIntegers>},
      {"IntStream", true, "max", {kIntegerStream}, kOptionalInteger, OfOne<Integers, Extreme<true>>},
      {"IntStream", true, "min", {kIntegerStream}, kOptionalInteger, OfOne<Integers, Extreme<false>>},
      {"IntStream", true, "average", {kIntegerStream}, kOptionalDouble, OfOne<Integers, MeanOfIntegers>},
      {"IntStream", true, "findFirst", {kIntegerStream}, kOptionalInteger, OfOne<Integers, FirstInteger>},
      {"IntStream", true, "toArray", {kIntegerStream}, kIntegers, OfOne<Integers, ArrayOfIntegers>},
      WithFunction(
          maps(kDouble, kDouble),
          {"DoubleStream", true, "map", {kDoubleStream, kFunction}, kDoubleStream, Map<Doubles, Doubles>}),
      {"DoubleStream", true, "sum", {kDoubleStream}, kDouble, OfOne<Doubles, SumOf>},
      {"DoubleStream", true, "max", {kDoubleStream}, kOptionalDouble, OfOne<Doubles, ExtremeOfDoubles<true>>},
      {"DoubleStream",
       true,
       "min",
       {kDoubleStream},
       kOptionalDouble,
       OfOne<Doubles, ExtremeOfDoubles<false>>},
      {"DoubleStream", true, "average", {kDoubleStream}, kOptionalDouble, OfOne<Doubles, MeanOfDoubles>},
      {"DoubleStream", true, "toArray", {kDoubleStream}, kDoubles, OfOne<Doubles, ArrayOfDoubles>},
      WithFunction(maps(kCharacter, kCharacter), {"CharStream",
                                                  true,
                                                  "map",
                                                  {kCharacterStream, kFunction},
                                                  kCharacterStream,
                                                  Map<Characters, Characters>}),
      WithFunction(
          maps(kCharacter, kString),
          {"CharStream", true, "map", {kCharacterStream, kFunction}, kTextStream, Map<Characters, Texts>}),
      WithFunction(maps(kCharacter, kInteger), {"CharStream",
                                                true,
                                                "mapToInt",
                                                {kCharacterStream, kFunction},
                                                kIntegerStream,
                                                Map<Characters, Integers>}),
      WithFunction(maps(kString, kString),
                   {"Stream", true, "map", {kTextStream, kFunction}, kTextStream, Map<Texts, Texts>}),
      WithFunction(
          maps(kString, kInteger),
          {"Stream", true, "mapToInt", {kTextStream, kFunction}, kIntegerStream, Map<Texts, Integers>}),
      WithFunction(
          maps(kString, kDouble),
          {"Stream", true, "mapToDouble", {kTextStream, kFunction}, kDoubleStream, Map<Texts, Doubles>}),
      {"Stream", true, "findFirst", {kTextStream}, kOptionalText, OfOne<Texts, FirstText>},
      {"Stream", true, "collect", {kTextStream, kJoining}, kString, OfTwo<Texts, Collected, JavaJoining>},
      {"Stream", true, "toList", {kTextStream}, kTextList, OfOne<Texts, ListOfStream>},
      {"Collectors", false, "joining", {}, kJoining, Joining},
      {"Collectors", false, "joining", {kString}, kJoining, Joining},
      {"Collectors", false, "joining", {kString, kString, kString}, kJoining, Joining},
      {"Arrays",
       false,
       "stream",
       {kDoubles},
       kDoubleStream,
       OfOne<JavaDoubles, StreamOf<JavaDoubles, Doubles>>},
      {"Arrays",
       false,
       "stream",
       {kIntegers},
       kIntegerStream,
       OfOne<JavaIntegers, StreamOf<JavaIntegers, Integers>>},
      {"Arrays", false, "stream", {kStrings}, kTextStream, OfOne<JavaTexts, StreamOf<JavaTexts, Texts>>},
      {"Arrays", false, "asList", {kStrings}, kTextList, OfOne<JavaTexts, ListOfArray>},
      Repeating({"Arrays", false, "asList", {kString}, kTextList, ListOf}),
      {"Arrays", false, "toString", {kStrings}, kString, TextOfFirst},
      {"Arrays", false, "toString", {kDoubles}, kString, TextOfFirst},
      {"Arrays", false, "toString", {kIntegers}, kString, TextOfFirst},
      {"Arrays", false, "copyOfRange", {kStrings, kInteger, kInteger}, kStrings, CopyOfRange},
      {"List", false, "of", {kStrings}, kTextList, OfOne<JavaTexts, ListOfArray>},
      Repeating({"List", false, "of", {kString}, kTextList, ListOf}),
      {"List", true, "contains", {kTextList, kString}, kBoolean, OfTwo<JavaTextList, Contains, JavaText>},
      {"List", true, "indexOf", {kTextList, kString}, kInteger, OfTwo<JavaTextList, PlaceIn, JavaText>},
      {"List", true, "size", {kTextList}, kInteger, OfOne<JavaTextList, SizeOf>},
      {"List", true, "isEmpty", {kTextList}, kBoolean, OfOne<JavaTextList, IsEmptyList>},
      {"List", true, "get", {kTextList, kInteger}, kString, ItemOf},
      {"List", true, "stream", {kTextList}, kTextStream, OfOne<JavaTextList, StreamOfList>},
      {"List", true, "toString", {kTextList}, kString, TextOfFirst},
  };
  table.insert(table.end(), std::begin(methods), std::end(methods));
  return table;
}

}  // namespace

std::span<const JavaMethod> JavaStreamMethods() {
  static const auto* const table = new std::vector<JavaMethod>(MakeTable());
  return *table;
}

}  // namespace heddle::ops
