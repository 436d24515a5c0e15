// SPDX-License-Identifier: Apache-2.0
#include "core/programs/text_format.h"

#include <charconv>
#include <limits>
#include <utility>
#include <vector>

#include "core/call_site.h"
#include "core/text/quoted.h"

namespace heddle {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

constexpr int64_t kMostColumnsOfRun = int64_t{1} << 28;
constexpr size_t kMostCalls = 2000;  // around a place; a bound, for texts from outside

}  // namespace

void AppendInfo(const ValueInfo& info, std::string* out) {
  out->append(" : ");
  AppendType(info, out);
}

void AppendType(const ValueInfo& info, std::string* out) {
  const auto dimension = [out](int64_t size) {
    if (size == kUnknown)
      out->push_back('?');
    else
      AppendInteger(size, out);
  };
  out->append(Name(info.data_type));
  out->push_back(' ');
  out->append(Name(info.value_type));
  out->push_back(' ');
  dimension(info.shape.rows);
  out->push_back('x');
  dimension(info.shape.columns);
  out->push_back(' ');
  out->append(Name(info.format));
  if (info.element_type == ElementType::kFloat32) out->append(" f32");
  if (info.schema == nullptr) return;
  out->append(" schema(");
  out->append(info.schema->ToText());
  out->push_back(')');
}

void AppendPosition(const SourcePosition& position, std::string* out) {
  if (position == SourcePosition()) return;
  const SourcePosition* place = &position;
  while (true) {
    out->append(" @ ");
    AppendQuoted(place->file, out);
    out->push_back(':');
    AppendInteger(place->line, out);
    out->push_back(':');
    AppendInteger(place->column, out);
    if (place->call == nullptr) return;
    out->append(" in ");
    AppendQuoted(place->call->function, out);
    place = &place->call->position;
  }
}

void AppendNodeId(NodeId id, std::string* out) {
  if (id == kNoNode) {
    out->push_back('_');
    return;
  }
  out->push_back('%');
  AppendInteger(id, out);
}

void TextReader::SkipBlanks() {
  while (at_ < text_.size() && IsBlank(text_[at_])) ++at_;
}

void TextReader::Fail(std::string_view expected) {
  if (!ok()) return;
  size_t line = 1;
  size_t line_begin = 0;
  for (size_t i = 0; i < at_; ++i)
    if (text_[i] == '\n') ++line, line_begin = i + 1;
  std::string_view found = text_.substr(at_, 20);
  found = found.substr(0, found.find('\n'));
  status_ = DataLoss("{} text, line {}, column {}: expected {}, found \"{}\"", what_, line,
                     at_ - line_begin + 1, expected, found);
}

void TextReader::Fail(const Status& status) {
  if (ok()) status_ = status;
}

bool TextReader::AtEnd() {
  SkipBlanks();
  return !ok() || at_ == text_.size();
}

char TextReader::Peek() {
  SkipBlanks();
  return ok() && at_ < text_.size() ? text_[at_] : '\0';
}

bool TextReader::Accept(std::string_view token) {
  SkipBlanks();
  if (!ok() || text_.substr(at_, token.size()) != token) return false;
  at_ += token.size();
  return true;
}

bool TextReader::AcceptWord(std::string_view word) {
  SkipBlanks();
  const size_t after = at_ + word.size();
  if (after < text_.size() && IsWordCharacter(text_[after])) return false;
  return Accept(word);
}

void TextReader::Expect(std::string_view token) {
  if (!Accept(token)) Fail(token);
}

std::string_view TextReader::Word() {
  SkipBlanks();
  if (!ok()) return {};
  size_t end = at_;
  while (end < text_.size() && IsWordCharacter(text_[end])) ++end;
  if (end == at_ || IsDigit(text_[at_])) {
    Fail("a word");
    return {};
  }
  const std::string_view word = text_.substr(at_, end - at_);
  at_ = end;
  return word;
}

std::string TextReader::Name() { return Peek() == '"' ? Quoted() : std::string(Word()); }

std::string TextReader::Quoted() {
  SkipBlanks();
  if (!ok()) return {};
  QuotedText quoted = ReadQuoted(text_.substr(at_));
  at_ += quoted.end;
  if (quoted.expected.empty()) return std::move(quoted.text);
  Fail(quoted.expected);
  return {};
}

int64_t TextReader::Integer() {
  SkipBlanks();
  int64_t value = 0;
  if (!ok()) return 0;
  const char* begin = text_.data() + at_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (error != std::errc()) {
    Fail("an integer");
    return 0;
  }
  at_ += static_cast<size_t>(end - begin);
  return value;
}

int32_t TextReader::Integer32() {
  const size_t begin = at_;
  const int64_t value = Integer();
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
    at_ = begin;
    Fail("an integer of 32 bits");
    return 0;
  }
  return static_cast<int32_t>(value);
}

uint64_t TextReader::Hexadecimal() {
  Expect("0x");
  uint64_t value = 0;
  if (!ok()) return 0;
  const char* begin = text_.data() + at_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value, 16);
  if (error != std::errc()) {
    Fail("a hexadecimal number");
    return 0;
  }
  at_ += static_cast<size_t>(end - begin);
  return value;
}

Scalar TextReader::Literal() {
  if (Peek() == '"') return Scalar(Quoted());
  if (!ok()) return Scalar();
  size_t end = at_;
  while (end < text_.size() && (IsWordCharacter(text_[end]) || text_[end] == '+' || text_[end] == '-')) ++end;
  Result<Scalar> literal = Scalar::ParseLiteral(text_.substr(at_, end - at_));
  if (!literal.ok()) {
    Fail("a literal");
    return Scalar();
  }
  at_ = end;
  return *std::move(literal);
}

NodeId TextReader::Node() {
  if (Accept("_")) return kNoNode;
  Expect("%");
  return Integer32();
}

int64_t TextReader::Dimension() { return Accept("?") ? kUnknown : Integer(); }

ValueInfo TextReader::Info() {
  Expect(":");
  return Type();
}

ValueInfo TextReader::Type() {
  ValueInfo info;
  const auto read = [this](auto parse, auto* target, std::string_view expected) {
    SkipBlanks();
    const size_t begin = at_;
    const auto value = parse(Word());
    if (value) {
      *target = *value;
    } else {
      at_ = begin;
      Fail(expected);
    }
  };
  read(ParseDataType, &info.data_type, "a data type");
  read(ParseValueType, &info.value_type, "a value type");
  info.shape.rows = Dimension();
  Expect("x");
  info.shape.columns = Dimension();
  read(ParseFormat, &info.format, "a format");
  if (Accept("f32")) info.element_type = ElementType::kFloat32;
  if (AcceptWord("schema")) info.schema = std::make_shared<const heddle::Schema>(Schema());
  return info;
}

heddle::Distribution TextReader::Distribution() {
  using heddle::Distribution;
  if (AcceptWord("one")) {
    if (!Accept("(")) return Distribution::One();
    const Distribution one = Distribution::One(Integer32());
    Expect(")");
    return one;
  }
  if (AcceptWord("each")) return Distribution::Each();
  if (AcceptWord("partial")) return Distribution::Partial();
  Distribution distribution{.kind = Distribution::Kind::kSplit};
  if (!AcceptWord("split")) Fail("a distribution");
  if (AcceptWord(heddle::Name(Axis::kColumns)))
    distribution.split.axis = Axis::kColumns;
  else if (!AcceptWord(heddle::Name(Axis::kRows)))
    Fail("an axis");
  Expect("(");
  if (Accept(")")) return distribution;
  do {
    distribution.split.cuts.push_back(Integer());
  } while (ok() && Accept(","));
  Expect(")");
  return distribution;
}

heddle::Schema TextReader::Schema() {
  heddle::Schema schema;
  Expect("(");
  if (Accept(")")) return schema;
  do {
    SkipBlanks();
    const size_t begin = at_;
    const std::optional<ColumnType> type = ParseColumnType(Word());
    if (!type) {
      at_ = begin;
      Fail("a type of column");
      return schema;
    }
    int64_t count = 1;
    if (Accept("*")) {
      count = Integer();
      if (count < 1 || count > kMostColumnsOfRun) return Fail("a number of columns"), schema;
    }
    // Either every column has a name or none has.
    const bool is_named = Peek() != ',' && Peek() != ')';
    if (!schema.types.empty() && is_named == schema.names.empty())
      return Fail("names for all columns or for none"), schema;
    const size_t first = schema.types.size();
    schema.types.insert(schema.types.end(), static_cast<size_t>(count), *type);
    if (!is_named) continue;
    std::string name = Name();
    const bool is_counted = name == "C" && Accept("*");
    if (count > 1 && !is_counted) return Fail("C*"), schema;
    if (!is_counted)
      schema.names.push_back(std::move(name));
    else
      for (size_t i = first; i < schema.types.size(); ++i) schema.names.push_back(fmt::format("C{}", i + 1));
  } while (ok() && Accept(","));
  Expect(")");
  return schema;
}

SourcePosition TextReader::Position() {
  std::vector<CallSite> calls;  // without their positions
  std::vector<SourcePosition> places;
  while (Accept("@")) {
    SourcePosition& place = places.emplace_back();
    place.file = Quoted();
    Expect(":");
    place.line = Integer32();
    Expect(":");
    place.column = Integer32();
    if (!AcceptWord("in")) break;
    calls.push_back({Quoted(), {}});
    if (calls.size() > kMostCalls) Fail("fewer calls around a place");
  }
  if (places.size() != calls.size() + 1 && !calls.empty()) Fail("the place of a call");
  if (!ok() || places.empty()) return {};
  SourcePosition position = std::move(places.back());
  for (size_t i = calls.size(); i-- > 0;) {
    calls[i].position = std::move(position);
    position = std::move(places[i]);
    position.call = std::make_shared<const CallSite>(std::move(calls[i]));
  }
  return position;
}

std::string_view TextReader::Until(char end) {
  SkipBlanks();
  if (!ok()) return {};
  const size_t found = text_.find(end, at_);
  if (found == std::string_view::npos) {
    Fail(std::string_view(&end, 1));
    return {};
  }
  std::string_view result = text_.substr(at_, found - at_);
  at_ = found;
  while (!result.empty() && IsBlank(result.back())) result.remove_suffix(1);
  return result;
}

}  // namespace heddle
