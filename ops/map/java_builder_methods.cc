// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/map/java_method_table.h"

// The methods of StringBuilder. Those that change it give the changed one.
namespace heddle::ops {
namespace {

using enum JavaType;

const JavaText& Built(const JavaCall& a) { return std::get<JavaBuilder>(a[0]).text; }
Result<JavaValue> Changed(JavaText text) { return JavaValue(JavaBuilder{std::move(text)}); }

Status Beyond(std::string_view method, int64_t position, const JavaText& text) {
  return FailedPrecondition("{}: {} is beyond the text '{}' of length {}", method, position, Shown(text),
                            text.size());
}

Result<JavaValue> Empty(const JavaCall&) { return Changed({}); }
Result<JavaValue> OfText(const JavaCall& a) { return Changed(a.Text(0)); }
Result<JavaValue> OfCapacity(const JavaCall& a) {
  if (a.Integer(0) < 0) return FailedPrecondition("a StringBuilder of the capacity {}", a.Integer(0));
  return Changed({});
}
Result<JavaValue> Append(const JavaCall& a) { return Changed(Built(a) + TextOf(a[1])); }
Result<JavaValue> AppendPart(const JavaCall& a) {
  const JavaText& text = a.Text(1);
  const int64_t begin = a.Integer(2), end = a.Integer(3);
  if (begin < 0 || begin > end) return Beyond("append", begin, text);
  if (end > static_cast<int64_t>(text.size())) return Beyond("append", end, text);
  return Changed(Built(a) + text.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
}
Result<JavaValue> Insert(const JavaCall& a) {
  JavaText text = Built(a);
  const int32_t at = a.Integer(1);
  if (at < 0 || static_cast<size_t>(at) > text.size()) return Beyond("insert", at, text);
  return Changed(text.insert(static_cast<size_t>(at), TextOf(a[2])));
}

// Halves of a character beyond U+FFFF keep their order.
Result<JavaValue> Reverse(const JavaCall& a) {
  JavaText text(Built(a).rbegin(), Built(a).rend());
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    const bool is_pair =
        text[i] >= 0xDC00 && text[i] < 0xE000 && text[i + 1] >= 0xD800 && text[i + 1] < 0xDC00;
    if (is_pair) std::swap(text[i], text[i + 1]), ++i;
  }
  return Changed(std::move(text));
}

Result<JavaValue> DeleteUnit(const JavaCall& a) {
  JavaText text = Built(a);
  const int32_t at = a.Integer(1);
  if (at < 0 || static_cast<size_t>(at) >= text.size()) return Beyond("deleteCharAt", at, text);
  return Changed(text.erase(static_cast<size_t>(at), 1));
}

// delete and replace: an end behind the text is its end.
Result<JavaValue> ReplacePart(const JavaCall& a) {
  JavaText text = Built(a);
  const int64_t begin = a.Integer(1);
  const int64_t end = std::min<int64_t>(a.Integer(2), static_cast<int64_t>(text.size()));
  if (begin < 0 || begin > end) return Beyond(a.size() > 3 ? "replace" : "delete", begin, text);
  const JavaText& fresh = a.size() > 3 ? a.Text(3) : JavaText();
  return Changed(text.replace(static_cast<size_t>(begin), static_cast<size_t>(end - begin), fresh));
}

// What String does with the same arguments.
template <auto& name>
Result<JavaValue> AsText(const JavaCall& a) {
  std::vector<JavaValue> values(a.values.begin(), a.values.end());
  std::vector<JavaType> types;
  for (JavaValue& value : values) {
    if (auto* const builder = std::get_if<JavaBuilder>(&value)) value = JavaText(std::move(builder->text));
    types.push_back(TypeOf(value));
  }
  JavaCall call = a;
  call.values = values;
  return FindJavaMethod("String", true, name, types, std::nullopt)->run(call);
}
constexpr char kLength[] = "length", kIsEmpty[] = "isEmpty", kCharAt[] = "charAt", kIndexOf[] = "indexOf",
               kLastIndexOf[] = "lastIndexOf", kSubstring[] = "substring", kChars[] = "chars",
               kCompareTo[] = "compareTo";

const JavaMethod kMethods[] = {
    {"StringBuilder", false, "new", {}, kBuilder, Empty},
    {"StringBuilder", false, "new", {kInteger}, kBuilder, OfCapacity},
    {"StringBuilder", false, "new", {kString}, kBuilder, OfText},
    {"StringBuilder", true, "append", {kBuilder, kAny}, kBuilder, Append},
    {"StringBuilder", true, "append", {kBuilder, kString, kInteger, kInteger}, kBuilder, AppendPart},
    {"StringBuilder", true, "insert", {kBuilder, kInteger, kAny}, kBuilder, Insert},
    {"StringBuilder", true, "reverse", {kBuilder}, kBuilder, Reverse},
    {"StringBuilder", true, "deleteCharAt", {kBuilder, kInteger}, kBuilder, DeleteUnit},
    {"StringBuilder", true, "delete", {kBuilder, kInteger, kInteger}, kBuilder, ReplacePart},
    {"StringBuilder", true, "replace", {kBuilder, kInteger, kInteger, kString}, kBuilder, ReplacePart},
    {"StringBuilder", true, "toString", {kBuilder}, kString, TextOfFirst},
    {"StringBuilder", true, "length", {kBuilder}, kInteger, AsText<kLength>},
    {"StringBuilder", true, "isEmpty", {kBuilder}, kBoolean, AsText<kIsEmpty>},
    {"StringBuilder", true, "charAt", {kBuilder, kInteger}, kCharacter, AsText<kCharAt>},
    {"StringBuilder", true, "indexOf", {kBuilder, kString}, kInteger, AsText<kIndexOf>},
    {"StringBuilder", true, "indexOf", {kBuilder, kString, kInteger}, kInteger, AsText<kIndexOf>},
    {"StringBuilder", true, "lastIndexOf", {kBuilder, kString}, kInteger, AsText<kLastIndexOf>},
    {"StringBuilder", true, "substring", {kBuilder, kInteger}, kString, AsText<kSubstring>},
    {"StringBuilder", true, "substring", {kBuilder, kInteger, kInteger}, kString, AsText<kSubstring>},
    {"StringBuilder", true, "chars", {kBuilder}, kIntegerStream, AsText<kChars>},
    {"StringBuilder", true, "compareTo", {kBuilder, kBuilder}, kInteger, AsText<kCompareTo>},
};

}  // namespace

std::span<const JavaMethod> JavaBuilderMethods() { return kMethods; }

}  // namespace heddle::ops
