// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/text/double_text.h"
#include "ops/map/java_method_table.h"
#include "ops/simd/cellwise/math.h"
#include "ops/simd/cellwise/precise_math.h"
#include "ops/text/java_text.h"

// The methods of Integer, Long, Double, Boolean and Math.
namespace heddle::ops {
namespace {

using enum JavaType;

constexpr int32_t kLeastRadix = 2, kMostRadix = 36;

template <typename T>
constexpr JavaType kTypeOf = sizeof(T) == 4 ? kInteger : kLong;

// ---- Numbers from texts and texts of numbers.

// Character.digit(): -1 of what is no digit of the radix.
int32_t DigitOf(char16_t unit, int32_t radix) {
  const bool is_latin = (unit >= 'A' && unit <= 'Z') || (unit >= 'a' && unit <= 'z') ||
                        (unit >= 0xFF21 && unit <= 0xFF3A) || (unit >= 0xFF41 && unit <= 0xFF5A);
  if (!is_latin && !IsDecimalDigit(unit)) return -1;
  const int32_t value = NumericValue(unit);
  return value < radix ? value : -1;
}

template <typename T>
Result<JavaValue> ReadWhole(const JavaCall& a) {
  const JavaText& text = a.Text(0);
  const int32_t radix = a.size() > 1 ? a.Integer(1) : 10;
  if (radix < kLeastRadix || radix > kMostRadix)
    return FailedPrecondition("{} is no radix from {} to {}", radix, kLeastRadix, kMostRadix);
  const bool negative = !text.empty() && text[0] == '-';
  const size_t begin = negative || (!text.empty() && text[0] == '+') ? 1 : 0;
  bool ok = begin < text.size();
  // Below zero there is room for one more.
  T value = 0;
  for (size_t i = begin; ok && i < text.size(); ++i) {
    const int32_t digit = DigitOf(text[i], radix);
    ok = digit >= 0 && !__builtin_mul_overflow(value, T{radix}, &value) &&
         !__builtin_sub_overflow(value, T{digit}, &value);
  }
  if (!ok || (!negative && value == std::numeric_limits<T>::min()))
    return FailedPrecondition("'{}' is no integer of {} bits{}", Shown(text), sizeof(T) * 8,
                              radix == 10 ? "" : fmt::format(" with the radix {}", radix));
  return JavaValue(negative ? value : static_cast<T>(-value));
}

// Digits of a magnitude, with a minus sign or not.
JavaText DigitsOf(uint64_t magnitude, uint64_t radix, bool is_negative) {
  JavaText text;
  do {
    const auto digit = static_cast<char16_t>(magnitude % radix);
    text.push_back(static_cast<char16_t>(digit < 10 ? u'0' + digit : u'a' + digit - 10));
    magnitude /= radix;
  } while (magnitude > 0);
  if (is_negative) text.push_back(u'-');
  std::reverse(text.begin(), text.end());
  return text;
}

// toString(number, radix): 10 in place of a radix that is none.
template <typename T>
JavaText TextWithRadix(T number, int32_t radix) {
  if (radix < kLeastRadix || radix > kMostRadix) radix = 10;
  const auto bits = static_cast<uint64_t>(number);
  return DigitsOf(number < 0 ? uint64_t{0} - bits : bits, static_cast<uint64_t>(radix), number < 0);
}
// toBinaryString and its like: the bits as a number without a sign.
template <typename T, uint64_t radix>
JavaText TextOfBits(T number) {
  return DigitsOf(static_cast<std::make_unsigned_t<T>>(number), radix, false);
}

Result<JavaValue> ReadDouble(const JavaCall& a) {
  if (const std::optional<double> value = ParseDouble(ToUtf8(a.Text(0)))) return JavaValue(*value);
  return FailedPrecondition("'{}' is no number", Shown(a.Text(0)));
}

Result<JavaValue> IsTrue(const JavaCall& a) {
  const auto* const text = std::get_if<JavaText>(&a[0]);
  if (text == nullptr) return JavaValue(false);
  JavaText small = *text;
  std::transform(small.begin(), small.end(), small.begin(), LowerCase);
  return JavaValue(small == u"true");
}

// ---- What the classes of numbers have in common.

template <JavaType to>
Result<JavaValue> CastFirst(const JavaCall& a) {
  return Cast(a[0], to);
}
template <typename T>
int32_t Compared(T a, T b) {
  return a < b ? -1 : a > b ? 1 : 0;
}
// As Double.compare: -0.0 is less than 0.0, and NaN is larger than all else.
int32_t ComparedDoubles(double a, double b) {
  if (a < b) return -1;
  if (a > b) return 1;
  const auto rank = [](double x) { return std::isnan(x) ? 2 : x == 0 && std::signbit(x) ? 0 : 1; };
  return Compared(rank(a), rank(b));
}
Result<JavaValue> EqualsDouble(const JavaCall& a) {
  const auto* const other = std::get_if<double>(&a[1]);
  return JavaValue(other != nullptr && ComparedDoubles(std::get<double>(a[0]), *other) == 0);
}
int32_t HashOfInteger(int32_t x) { return x; }
int32_t HashOfLong(int64_t x) {
  return static_cast<int32_t>(x ^ static_cast<int64_t>(static_cast<uint64_t>(x) >> 32));
}
int64_t BitsOf(double x) { return std::isnan(x) ? int64_t{0x7ff8000000000000} : std::bit_cast<int64_t>(x); }
int32_t HashOfDouble(double x) { return HashOfLong(BitsOf(x)); }
int32_t HashOfBoolean(bool x) { return x ? 1231 : 1237; }
bool IsNotANumber(double x) { return std::isnan(x); }
bool IsInfinite(double x) { return std::isinf(x); }
bool IsFinite(double x) { return std::isfinite(x); }
template <typename T>
int32_t SignOfWhole(T x) {
  return x < 0 ? -1 : x > 0 ? 1 : 0;
}
template <typename T>
int32_t BitCount(T x) {
  return std::popcount(static_cast<std::make_unsigned_t<T>>(x));
}
template <typename T>
int32_t LeadingZeros(T x) {
  return std::countl_zero(static_cast<std::make_unsigned_t<T>>(x));
}
template <typename T>
int32_t TrailingZeros(T x) {
  return std::countr_zero(static_cast<std::make_unsigned_t<T>>(x));
}
bool And(bool a, bool b) { return a && b; }
bool Or(bool a, bool b) { return a || b; }
bool Differ(bool a, bool b) { return a != b; }

// ---- Math.

template <typename T>
T Absolute(T x) {
  if constexpr (std::is_same_v<T, double>)
    return std::fabs(x);
  else
    return x < 0 ? static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x)) : x;
}
// As Math.min and Math.max: NaN if one is, and -0.0 below 0.0.
template <typename T>
T Smaller(T a, T b) {
  if constexpr (std::is_same_v<T, double>) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
    if (a == 0 && b == 0) return std::signbit(a) ? a : b;
  }
  return a < b ? a : b;
}
template <typename T>
T Larger(T a, T b) {
  if constexpr (std::is_same_v<T, double>) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
    if (a == 0 && b == 0) return std::signbit(a) ? b : a;
  }
  return a > b ? a : b;
}
int64_t Rounded(double x) {
  if (std::isnan(x)) return 0;
  const double whole = std::floor(x);
  const double nearest = x - whole >= 0.5 ? whole + 1 : whole;
  if (nearest >= 0x1p63) return std::numeric_limits<int64_t>::max();
  return nearest <= -0x1p63 ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(nearest);
}

template <typename T>
T Sum(T a, T b) {
  if constexpr (std::is_same_v<T, double>)
    return a + b;
  else
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
}

double Floor(double x) { return std::floor(x); }
double Ceil(double x) { return std::ceil(x); }
double Rint(double x) { return std::nearbyint(x); }
double Sqrt(double x) { return std::sqrt(x); }
// That of doubles errs by more than Java's.
double CubeRoot(double x) { return static_cast<double>(std::cbrt(static_cast<long double>(x))); }
double SignOf(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; }
double ToRadians(double x) { return x * 0.017453292519943295; }
double ToDegrees(double x) { return x * 57.29577951308232; }
double LogOf(double x) { return std::isnormal(x) && x > 0 ? PreciseLog(x) : std::log(x); }
double ExpOf(double x) { return std::fabs(x) < 700 ? PreciseExp(x) : Exp(x); }
double SineOf(double x) {
  if (x == 0) return x;
  if (!(x > 0 && x < 7)) return x < 0 && x > -7 ? -SineOf(-x) : Sin(x);
  double sine = 0, cosine = 0;
  PreciseSineCosine(x, &sine, &cosine);
  return sine;
}
double CosineOf(double x) {
  if (!(std::fabs(x) < 7)) return Cos(x);
  double sine = 0, cosine = 0;
  PreciseSineCosine(std::fabs(x), &sine, &cosine);
  return cosine;
}
double LogOfBase10(double x) { return std::log10(x); }
double LogOfOneAnd(double x) { return std::log1p(x); }
double ExpWithoutOne(double x) { return std::expm1(x); }
double Hypotenuse(double x, double y) { return std::hypot(x, y); }
double AngleOf(double y, double x) { return std::atan2(y, x); }
double WithSign(double x, double sign) { return std::copysign(x, sign); }
// Where Java differs from C: 1 to the power of NaN, and -1 and 1 to that of infinity, are NaN.
double PowerOf(double x, double y) {
  if (y == 0) return 1;
  if (std::isnan(y) || (std::fabs(x) == 1 && std::isinf(y))) return std::numeric_limits<double>::quiet_NaN();
  return std::pow(x, y);
}

template <typename T, bool is_modulus>
Result<JavaValue> FloorDivide(const JavaCall& a) {
  const T x = std::get<T>(a[0]), y = std::get<T>(a[1]);
  if (y == 0) return FailedPrecondition("division by zero");
  if (y == -1)
    return JavaValue(is_modulus ? T{0} : static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x)));
  const bool rounds_down = x % y != 0 && (x < 0) != (y < 0);
  if (is_modulus) return JavaValue(static_cast<T>(rounds_down ? x % y + y : x % y));
  return JavaValue(static_cast<T>(rounds_down ? x / y - 1 : x / y));
}

// addExact and its relatives: an error in place of a number that wraps around.
template <typename T, char op>
Result<JavaValue> Exactly(const JavaCall& a) {
  const T x = std::get<T>(a[0]), y = std::get<T>(a[1]);
  T result = 0;
  const bool overflows = op == '+'   ? __builtin_add_overflow(x, y, &result)
                         : op == '-' ? __builtin_sub_overflow(x, y, &result)
                                     : __builtin_mul_overflow(x, y, &result);
  if (overflows) return FailedPrecondition("{} {} {} is no integer of {} bits", x, op, y, sizeof(T) * 8);
  return JavaValue(result);
}
template <typename T>
Result<JavaValue> NegateExactly(const JavaCall& a) {
  const T x = std::get<T>(a[0]);
  if (x == std::numeric_limits<T>::min())
    return FailedPrecondition("-({}) is no integer of {} bits", x, sizeof(T) * 8);
  return JavaValue(static_cast<T>(-x));
}
Result<JavaValue> ToIntegerExactly(const JavaCall& a) {
  const int64_t x = std::get<int64_t>(a[0]);
  if (x != static_cast<int32_t>(x)) return FailedPrecondition("{} is no integer of 32 bits", x);
  return JavaValue(static_cast<int32_t>(x));
}

// The methods of Integer and Long, for their type T.
template <typename T>
void AddWhole(std::string_view owner, std::string_view parse, std::vector<JavaMethod>* table) {
  constexpr JavaType type = kTypeOf<T>;
  const JavaMethod methods[] = {
      Boxed({owner, false, "valueOf", {type}, type, FirstOf}),
      Boxed({owner, false, "valueOf", {kString}, type, ReadWhole<T>}),
      Boxed({owner, false, "valueOf", {kString, kInteger}, type, ReadWhole<T>}),
      {owner, false, parse, {kString}, type, ReadWhole<T>},
      {owner, false, parse, {kString, kInteger}, type, ReadWhole<T>},
      {owner, false, "toString", {type}, kString, TextOfFirst},
      {owner, false, "toString", {type, kInteger}, kString, OfTwo<T, TextWithRadix<T>, int32_t>},
      {owner, false, "toBinaryString", {type}, kString, OfOne<T, TextOfBits<T, 2>>},
      {owner, false, "toOctalString", {type}, kString, OfOne<T, TextOfBits<T, 8>>},
      {owner, false, "toHexString", {type}, kString, OfOne<T, TextOfBits<T, 16>>},
      {owner, false, "compare", {type, type}, kInteger, OfTwo<T, Compared<T>>},
      {owner, false, "sum", {type, type}, type, OfTwo<T, Sum<T>>},
      {owner, false, "min", {type, type}, type, OfTwo<T, Smaller<T>>},
      {owner, false, "max", {type, type}, type, OfTwo<T, Larger<T>>},
      {owner, false, "signum", {type}, kInteger, OfOne<T, SignOfWhole<T>>},
      {owner, false, "bitCount", {type}, kInteger, OfOne<T, BitCount<T>>},
      {owner, false, "numberOfLeadingZeros", {type}, kInteger, OfOne<T, LeadingZeros<T>>},
      {owner, false, "numberOfTrailingZeros", {type}, kInteger, OfOne<T, TrailingZeros<T>>},
      {owner, true, "compareTo", {type, type}, kInteger, OfTwo<T, Compared<T>>},
      {owner, true, "equals", {type, kAny}, kBoolean, AreEqual},
  };
  table->insert(table->end(), std::begin(methods), std::end(methods));
}

// What all numbers that are objects have.
void AddConversions(std::string_view owner, JavaType type, std::vector<JavaMethod>* table) {
  const JavaMethod methods[] = {
      {owner, true, "toString", {type}, kString, TextOfFirst},
      {owner, true, "intValue", {type}, kInteger, CastFirst<kInteger>},
      {owner, true, "longValue", {type}, kLong, CastFirst<kLong>},
      {owner, true, "doubleValue", {type}, kDouble, CastFirst<kDouble>},
  };
  table->insert(table->end(), std::begin(methods), std::end(methods));
}

// Math's methods of one kind of whole numbers.
template <typename T>
void AddWholeMath(std::vector<JavaMethod>* table) {
  constexpr JavaType type = kTypeOf<T>;
  const JavaMethod methods[] = {
      {"Math", false, "abs", {type}, type, OfOne<T, Absolute<T>>},
      {"Math", false, "min", {type, type}, type, OfTwo<T, Smaller<T>>},
      {"Math", false, "max", {type, type}, type, OfTwo<T, Larger<T>>},
      {"Math", false, "floorDiv", {type, type}, type, FloorDivide<T, false>},
      {"Math", false, "floorMod", {type, type}, type, FloorDivide<T, true>},
      {"Math", false, "addExact", {type, type}, type, Exactly<T, '+'>},
      {"Math", false, "subtractExact", {type, type}, type, Exactly<T, '-'>},
      {"Math", false, "multiplyExact", {type, type}, type, Exactly<T, '*'>},
      {"Math", false, "negateExact", {type}, type, NegateExactly<T>},
  };
  table->insert(table->end(), std::begin(methods), std::end(methods));
}

std::vector<JavaMethod> MakeTable() {
  std::vector<JavaMethod> table = {
      Boxed({"Double", false, "valueOf", {kDouble}, kDouble, FirstOf}),
      Boxed({"Double", false, "valueOf", {kString}, kDouble, ReadDouble}),
      {"Double", false, "parseDouble", {kString}, kDouble, ReadDouble},
      {"Double", false, "toString", {kDouble}, kString, TextOfFirst},
      {"Double", false, "compare", {kDouble, kDouble}, kInteger, OfTwo<double, ComparedDoubles>},
      {"Double", false, "isNaN", {kDouble}, kBoolean, OfOne<double, IsNotANumber>},
      {"Double", false, "isInfinite", {kDouble}, kBoolean, OfOne<double, IsInfinite>},
      {"Double", false, "isFinite", {kDouble}, kBoolean, OfOne<double, IsFinite>},
      {"Double", false, "sum", {kDouble, kDouble}, kDouble, OfTwo<double, Sum<double>>},
      {"Double", false, "min", {kDouble, kDouble}, kDouble, OfTwo<double, Smaller<double>>},
      {"Double", false, "max", {kDouble, kDouble}, kDouble, OfTwo<double, Larger<double>>},
      {"Double", false, "hashCode", {kDouble}, kInteger, OfOne<double, HashOfDouble>},
      {"Double", false, "doubleToLongBits", {kDouble}, kLong, OfOne<double, BitsOf>},
      {"Double", true, "isNaN", {kDouble}, kBoolean, OfOne<double, IsNotANumber>},
      {"Double", true, "isInfinite", {kDouble}, kBoolean, OfOne<double, IsInfinite>},
      {"Double", true, "compareTo", {kDouble, kDouble}, kInteger, OfTwo<double, ComparedDoubles>},
      {"Double", true, "equals", {kDouble, kAny}, kBoolean, EqualsDouble},
      {"Double", true, "hashCode", {kDouble}, kInteger, OfOne<double, HashOfDouble>},
      {"Integer", false, "hashCode", {kInteger}, kInteger, OfOne<int32_t, HashOfInteger>},
      {"Integer", true, "hashCode", {kInteger}, kInteger, OfOne<int32_t, HashOfInteger>},
      {"Long", false, "hashCode", {kLong}, kInteger, OfOne<int64_t, HashOfLong>},
      {"Long", true, "hashCode", {kLong}, kInteger, OfOne<int64_t, HashOfLong>},
      Boxed({"Boolean", false, "valueOf", {kBoolean}, kBoolean, FirstOf}),
      Boxed({"Boolean", false, "valueOf", {kString}, kBoolean, IsTrue}),
      {"Boolean", false, "parseBoolean", {kString}, kBoolean, IsTrue},
      {"Boolean", false, "toString", {kBoolean}, kString, TextOfFirst},
      {"Boolean", false, "logicalAnd", {kBoolean, kBoolean}, kBoolean, OfTwo<bool, And>},
      {"Boolean", false, "logicalOr", {kBoolean, kBoolean}, kBoolean, OfTwo<bool, Or>},
      {"Boolean", false, "logicalXor", {kBoolean, kBoolean}, kBoolean, OfTwo<bool, Differ>},
      {"Boolean", false, "compare", {kBoolean, kBoolean}, kInteger, OfTwo<bool, Compared<bool>>},
      {"Boolean", true, "toString", {kBoolean}, kString, TextOfFirst},
      {"Boolean", true, "booleanValue", {kBoolean}, kBoolean, FirstOf},
      {"Boolean", true, "equals", {kBoolean, kAny}, kBoolean, AreEqual},
      {"Boolean", true, "hashCode", {kBoolean}, kInteger, OfOne<bool, HashOfBoolean>},
      {"Math", false, "toIntExact", {kLong}, kInteger, ToIntegerExactly},
  };
  AddWhole<int32_t>("Integer", "parseInt", &table);
  AddWhole<int64_t>("Long", "parseLong", &table);
  AddConversions("Integer", kInteger, &table);
  AddConversions("Long", kLong, &table);
  AddConversions("Double", kDouble, &table);
  AddWholeMath<int32_t>(&table);
  AddWholeMath<int64_t>(&table);
  const JavaMethod of_doubles[] = {
      {"Math", false, "abs", {kDouble}, kDouble, OfOne<double, Absolute<double>>},
      {"Math", false, "min", {kDouble, kDouble}, kDouble, OfTwo<double, Smaller<double>>},
      {"Math", false, "max", {kDouble, kDouble}, kDouble, OfTwo<double, Larger<double>>},
      {"Math", false, "signum", {kDouble}, kDouble, OfOne<double, SignOf>},
      {"Math", false, "copySign", {kDouble, kDouble}, kDouble, OfTwo<double, WithSign>},
      {"Math", false, "floor", {kDouble}, kDouble, OfOne<double, Floor>},
      {"Math", false, "ceil", {kDouble}, kDouble, OfOne<double, Ceil>},
      {"Math", false, "rint", {kDouble}, kDouble, OfOne<double, Rint>},
      {"Math", false, "round", {kDouble}, kLong, OfOne<double, Rounded>},
      {"Math", false, "sqrt", {kDouble}, kDouble, OfOne<double, Sqrt>},
      {"Math", false, "cbrt", {kDouble}, kDouble, OfOne<double, CubeRoot>},
      {"Math", false, "pow", {kDouble, kDouble}, kDouble, OfTwo<double, PowerOf>},
      {"Math", false, "exp", {kDouble}, kDouble, OfOne<double, ExpOf>},
      {"Math", false, "expm1", {kDouble}, kDouble, OfOne<double, ExpWithoutOne>},
      {"Math", false, "log", {kDouble}, kDouble, OfOne<double, LogOf>},
      {"Math", false, "log10", {kDouble}, kDouble, OfOne<double, LogOfBase10>},
      {"Math", false, "log1p", {kDouble}, kDouble, OfOne<double, LogOfOneAnd>},
      {"Math", false, "hypot", {kDouble, kDouble}, kDouble, OfTwo<double, Hypotenuse>},
      {"Math", false, "sin", {kDouble}, kDouble, OfOne<double, SineOf>},
      {"Math", false, "cos", {kDouble}, kDouble, OfOne<double, CosineOf>},
      {"Math", false, "tan", {kDouble}, kDouble, OfOne<double, Tan>},
      {"Math", false, "asin", {kDouble}, kDouble, OfOne<double, Asin>},
      {"Math", false, "acos", {kDouble}, kDouble, OfOne<double, Acos>},
      {"Math", false, "atan", {kDouble}, kDouble, OfOne<double, Atan>},
      {"Math", false, "atan2", {kDouble, kDouble}, kDouble, OfTwo<double, AngleOf>},
      {"Math", false, "sinh", {kDouble}, kDouble, OfOne<double, Sinh>},
      {"Math", false, "cosh", {kDouble}, kDouble, OfOne<double, Cosh>},
      {"Math", false, "tanh", {kDouble}, kDouble, OfOne<double, Tanh>},
      {"Math", false, "toRadians", {kDouble}, kDouble, OfOne<double, ToRadians>},
      {"Math", false, "toDegrees", {kDouble}, kDouble, OfOne<double, ToDegrees>},
  };
  table.insert(table.end(), std::begin(of_doubles), std::end(of_doubles));
  return table;
}

}  // namespace

std::span<const JavaMethod> JavaNumberMethods() {
  static const auto* const table = new std::vector<JavaMethod>(MakeTable());
  return *table;
}

}  // namespace heddle::ops
