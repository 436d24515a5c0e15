// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include <optional>
#include <string>

#include "ops/device/print/printer.h"

// The interface of ops/simd/vector.h once more, where every function prints the OpenCL C of what its namesake
// does with one lane: a work-item has one cell at a time. ops/simd/vector.h includes this file
// (HEDDLE_SIMD_VECTOR_HEADER) in the files of this folder that need it, so that the operators and functions
// of ops/simd/cellwise/cell_operators.h become printers of themselves: one source, the same bits. Contraction
// is off in all that is printed, and add, subtract, multiply, divide, fma and sqrt of doubles are correctly
// rounded there (OpenCL C 1.2, section 7.4).
#define HEDDLE_SIMD_NAMESPACE printed
#define HEDDLE_SIMD_SINGLE_HEADER "ops/device/print/printed_single.h"
#define HEDDLE_SIMD_INLINE [[maybe_unused]] static inline
#define HEDDLE_SIMD_HAS_TRIGONOMETRY 1

namespace heddle::ops::printed {

constexpr int64_t kLanes = 8;

/// Values by their names.
struct Vector {
  std::string name;
  std::optional<double> constant = std::nullopt;  ///< Of literals.
};                                                ///< A double.
struct Mask {
  std::string name;
  bool is_true = false;  ///< Known to hold.
};                       ///< An int, 0 or 1.
struct Integers {
  std::string name;
};  ///< A ulong.

inline Vector DefineDouble(const std::string& expression) {
  return {Printer::Current().Define("double", expression)};
}
inline Mask DefineMask(const std::string& expression) {
  return {Printer::Current().Define("int", expression)};
}
inline Integers DefineIntegers(const std::string& expression) {
  return {Printer::Current().Define("ulong", expression)};
}

/// "as_double(x)"; "(double8)(x)".
inline std::string Converted(const char* to, const std::string& x) {
  return Printer::Current().Widened(to) + "(" + x + ")";
}
inline std::string OfEachLane(const char* type, const std::string& x) {
  const std::string widened = Printer::Current().Widened(type);
  return widened == type ? x : "(" + widened + ")(" + x + ")";
}
inline Vector Broadcast(double x) { return {OfEachLane("double", LiteralOf(x)), x}; }
inline Vector Zero() { return Broadcast(0.0); }
inline Integers BroadcastInteger(int64_t x) {
  return {OfEachLane("ulong", std::to_string(static_cast<uint64_t>(x)) + "UL")};
}
inline Integers BitsOf(const Vector& a) { return DefineIntegers(Converted("as_ulong", a.name)); }
inline Vector OfBits(const Integers& a) { return DefineDouble(Converted("as_double", a.name)); }

#define HEDDLE_PRINT_BINARY(Type, Operand, Define, Name, symbol) \
  inline Type Name(const Operand& a, const Operand& b) { return Define(a.name + " " #symbol " " + b.name); }
HEDDLE_PRINT_BINARY(Vector, Vector, DefineDouble, operator+, +)
HEDDLE_PRINT_BINARY(Vector, Vector, DefineDouble, operator-, -)
HEDDLE_PRINT_BINARY(Vector, Vector, DefineDouble, operator*, *)
HEDDLE_PRINT_BINARY(Vector, Vector, DefineDouble, operator/, /)
HEDDLE_PRINT_BINARY(Integers, Integers, DefineIntegers, operator+, +)
HEDDLE_PRINT_BINARY(Integers, Integers, DefineIntegers, operator-, -)
HEDDLE_PRINT_BINARY(Integers, Integers, DefineIntegers, operator&, &)
HEDDLE_PRINT_BINARY(Integers, Integers, DefineIntegers, operator|, |)
HEDDLE_PRINT_BINARY(Integers, Integers, DefineIntegers, operator^, ^)
HEDDLE_PRINT_BINARY(Mask, Mask, DefineMask, Both, &)
HEDDLE_PRINT_BINARY(Mask, Mask, DefineMask, Either, |)
HEDDLE_PRINT_BINARY(Mask, Mask, DefineMask, Differ, ^)
HEDDLE_PRINT_BINARY(Mask, Vector, DefineMask, Less, <)
HEDDLE_PRINT_BINARY(Mask, Vector, DefineMask, LessEqual, <=)
HEDDLE_PRINT_BINARY(Mask, Vector, DefineMask, Greater, >)
HEDDLE_PRINT_BINARY(Mask, Vector, DefineMask, GreaterEqual, >=)
HEDDLE_PRINT_BINARY(Mask, Integers, DefineMask, EqualIntegers, ==)
#undef HEDDLE_PRINT_BINARY
inline Mask Equal(const Vector& a, const Vector& b) {
  Mask mask = DefineMask(a.name + " == " + b.name);
  mask.is_true = a.constant && b.constant && *a.constant == *b.constant;
  return mask;
}
inline Mask NotEqual(const Vector& a, const Vector& b) { return DefineMask(a.name + " != " + b.name); }
inline Mask Unordered(const Vector& a, const Vector& b) {
  // Not isunordered(a, b), of which POCL makes a dozen instructions for vectors.
  return Either(NotEqual(a, a), NotEqual(b, b));
}

inline Vector Select(const Mask& mask, const Vector& a, const Vector& b) {
  return DefineDouble(mask.name + " ? " + a.name + " : " + b.name);
}
inline Vector KeepWhere(const Mask& mask, const Vector& a) { return Select(mask, a, Zero()); }
/// x86 min/max: b where a and b are unordered or equal.
inline Vector Min(const Vector& a, const Vector& b) { return Select(Less(a, b), a, b); }
inline Vector Max(const Vector& a, const Vector& b) { return Select(Greater(a, b), a, b); }

inline Vector And(const Vector& a, const Vector& b) { return OfBits(BitsOf(a) & BitsOf(b)); }
inline Vector Or(const Vector& a, const Vector& b) { return OfBits(BitsOf(a) | BitsOf(b)); }
inline Vector Xor(const Vector& a, const Vector& b) { return OfBits(BitsOf(a) ^ BitsOf(b)); }
inline Vector AndNot(const Vector& a, const Vector& b) {
  return OfBits((BitsOf(a) ^ BroadcastInteger(-1)) & BitsOf(b));
}
template <int kBits>
Integers ShiftLeft(const Integers& a) {
  return DefineIntegers(a.name + " << " + std::to_string(kBits));
}
template <int kBits>
Integers ShiftRight(const Integers& a) {
  return DefineIntegers(a.name + " >> " + std::to_string(kBits));
}

inline Vector PrintCall(const char* function, const Vector& a) {
  return DefineDouble(std::string(function) + "(" + a.name + ")");
}
inline Vector Sqrt(const Vector& a) { return PrintCall("sqrt", a); }
inline Vector Floor(const Vector& a) { return PrintCall("floor", a); }
inline Vector Ceil(const Vector& a) { return PrintCall("ceil", a); }
inline Vector RoundEven(const Vector& a) { return PrintCall("rint", a); }
/// Rounded to a float, as a double.
inline Vector ToSingle(const Vector& a) { return DefineDouble("(double)convert_float_rte(" + a.name + ")"); }

/// a * b + c, one rounding.
inline Vector Fma(const Vector& a, const Vector& b, const Vector& c) {
  return DefineDouble("fma(" + a.name + ", " + b.name + ", " + c.name + ")");
}
/// a * b - c, one rounding.
inline Vector Fms(const Vector& a, const Vector& b, const Vector& c) {
  return DefineDouble("fma(" + a.name + ", " + b.name + ", -" + c.name + ")");
}
/// c - a * b, one rounding.
inline Vector Fnma(const Vector& a, const Vector& b, const Vector& c) {
  return DefineDouble("fma(-" + a.name + ", " + b.name + ", " + c.name + ")");
}

inline bool HasExponents() { return false; }
inline Vector ScaleExponent(const Vector&, const Vector&) { __builtin_unreachable(); }
inline Vector ExponentOf(const Vector&) { __builtin_unreachable(); }
inline Vector MantissaOf(const Vector&) { __builtin_unreachable(); }
inline Vector FixSpecials(const Vector&, const Vector&, int64_t) { __builtin_unreachable(); }

/// True if that is known now: constants only.
inline bool All(const Mask& mask) { return mask.is_true; }

// Doubles as 64-bit integers; functions of print/prelude.h.
inline Vector PrintCall(const char* function, const Vector& a, const Vector& b) {
  return DefineDouble(std::string(function) + "(" + a.name + ", " + b.name + ")");
}
inline Vector IntegerAnd(const Vector& a, const Vector& b) { return PrintCall("heddle_bit_and", a, b); }
inline Vector IntegerOr(const Vector& a, const Vector& b) { return PrintCall("heddle_bit_or", a, b); }
inline Vector IntegerExclusiveOr(const Vector& a, const Vector& b) {
  return PrintCall("heddle_bit_xor", a, b);
}
inline Vector IntegerShiftLeft(const Vector& a, const Vector& b) {
  return PrintCall("heddle_shift_left", a, b);
}
inline Vector IntegerShiftRight(const Vector& a, const Vector& b) {
  return PrintCall("heddle_shift_right", a, b);
}

/// Where x does not fit, what ReduceLargeAngle makes of it (ops/simd/cellwise/reduce_angle.h).
inline void ReduceLargeLanes(const Mask& fits, const Vector& x, Vector* quadrant, Vector* high, Vector* low) {
  Printer& printer = Printer::Current();
  const auto variable = [&](const Vector& start) {
    const std::string name = printer.NewName();
    printer.Line("double " + name + " = " + start.name + ";");
    return Vector{name};
  };
  *quadrant = variable(*quadrant);
  *high = variable(*high);
  *low = variable(*low);
  printer.Line("if (!" + fits.name + ") " + quadrant->name + " = heddle_reduce_angle(" + x.name + ", &" +
               high->name + ", &" + low->name + ");");
}

}  // namespace heddle::ops::printed
