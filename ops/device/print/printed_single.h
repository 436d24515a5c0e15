// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ops/device/print/printed_vector.h"

// The interface of ops/simd/single_vector.h once more, where every function prints the OpenCL C of what its
// namesake does with one lane.
namespace heddle::ops::printed {

struct Singles {
  std::string name;
};  ///< A float.
struct SingleMask {
  std::string name;
};
struct SingleIntegers {
  std::string name;
};  ///< A uint.

inline Singles DefineFloat(const std::string& expression) {
  return {Printer::Current().Define("float", expression)};
}
inline SingleIntegers DefineSmall(const std::string& expression) {
  return {Printer::Current().Define("uint", expression)};
}

inline Singles Narrow(const Vector& a) { return DefineFloat("convert_float_rte(" + a.name + ")"); }
inline Vector Widen(const Singles& a) { return DefineDouble("(double)" + a.name); }
inline Singles BroadcastSingle(float x) { return {LiteralOf(x)}; }
inline SingleIntegers BroadcastSingleInteger(int32_t x) {
  return {std::to_string(static_cast<uint32_t>(x)) + "U"};
}
inline SingleIntegers BitsOf(const Singles& a) { return DefineSmall("as_uint(" + a.name + ")"); }
inline Singles OfBits(const SingleIntegers& a) { return DefineFloat("as_float(" + a.name + ")"); }

#define HEDDLE_PRINT_SINGLE(Type, Define, Name, symbol) \
  inline Type Name(const Type& a, const Type& b) { return Define(a.name + " " #symbol " " + b.name); }
HEDDLE_PRINT_SINGLE(Singles, DefineFloat, operator+, +)
HEDDLE_PRINT_SINGLE(Singles, DefineFloat, operator-, -)
HEDDLE_PRINT_SINGLE(Singles, DefineFloat, operator*, *)
HEDDLE_PRINT_SINGLE(Singles, DefineFloat, operator/, /)
HEDDLE_PRINT_SINGLE(SingleIntegers, DefineSmall, operator+, +)
HEDDLE_PRINT_SINGLE(SingleIntegers, DefineSmall, operator-, -)
HEDDLE_PRINT_SINGLE(SingleIntegers, DefineSmall, operator&, &)
HEDDLE_PRINT_SINGLE(SingleIntegers, DefineSmall, operator|, |)
#undef HEDDLE_PRINT_SINGLE

inline SingleMask Less(const Singles& a, const Singles& b) {
  return {Printer::Current().Define("int", a.name + " < " + b.name)};
}
inline SingleMask Equal(const Singles& a, const Singles& b) {
  return {Printer::Current().Define("int", a.name + " == " + b.name)};
}
inline Singles Select(const SingleMask& mask, const Singles& a, const Singles& b) {
  return DefineFloat(mask.name + " ? " + a.name + " : " + b.name);
}
/// x86 min/max: b where a and b are unordered or equal.
inline Singles Min(const Singles& a, const Singles& b) { return Select(Less(a, b), a, b); }
inline Singles Max(const Singles& a, const Singles& b) { return Select(Less(b, a), a, b); }
/// a * b + c and c - a * b, one rounding.
inline Singles Fma(const Singles& a, const Singles& b, const Singles& c) {
  return DefineFloat("fma(" + a.name + ", " + b.name + ", " + c.name + ")");
}
inline Singles Fnma(const Singles& a, const Singles& b, const Singles& c) {
  return DefineFloat("fma(-" + a.name + ", " + b.name + ", " + c.name + ")");
}
template <int kBits>
SingleIntegers ShiftLeft(const SingleIntegers& a) {
  return DefineSmall(a.name + " << " + std::to_string(kBits));
}
/// Copies of the sign come in.
template <int kBits>
SingleIntegers ShiftRightSigned(const SingleIntegers& a) {
  return DefineSmall("(uint)((int)" + a.name + " >> " + std::to_string(kBits) + ")");
}
/// Rounded to nearest; exact below 2^24.
inline Singles ToSingles(const SingleIntegers& a) {
  return DefineFloat("convert_float_rte((int)" + a.name + ")");
}

}  // namespace heddle::ops::printed
