// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/values/frame.h"

// What a text could be a cell of.
namespace heddle::ops {

/// The first of BOOLEAN (0, 1, t, f, true, false), INT32, INT64, FP32, FP64, CHARACTER (one letter) and
/// STRING, from `least` on, that a cell of this text fits; nullopt for the empty text. FP32 fits a number
/// that a float is (IsSingle).
std::optional<ColumnType> TypeOfText(std::string_view text, ColumnType least = ColumnType::kBoolean);

/// The text as the checks of types see it: without blanks around it and quotation marks, in small letters.
std::string Plain(std::string_view text);

/// detectSchema: what all cells of a column fit, STRING for a column without any. The type depends on the
/// order of the cells ("a", "5" are characters, "5", "a" texts): a part of a column tells for each type that
/// the cells in front of it may have to which type its own lead.
class DetectedCells {
 public:
  /// Of a column, or of a part of one that others stand in front of.
  static DetectedCells Of(const Frame& frame, int64_t column, bool is_part);
  /// The part behind this one.
  void Append(const DetectedCells& next);

  ColumnType type() const;
  /// The name of the type in a schema: with the mark "·n" where texts of another type than STRING leave cells
  /// empty.
  std::string NameInSchema() const;

  /// As numbers that travel, and back.
  static constexpr int kNumbers = kColumnTypes + 1 + 4;
  void Write(double* numbers) const;
  static DetectedCells Read(const double* numbers);

 private:
  using State = std::optional<ColumnType>;  // No cell yet, or what all cells so far fit.
  static constexpr size_t kStates = kColumnTypes + 1;
  static size_t PlaceOf(State state) { return state ? static_cast<size_t>(*state) + 1 : 0; }
  static State StateAt(size_t place);
  bool AreAllTexts() const;
  void Read(const std::string& text, bool is_part);

  std::array<State, kStates> leads_to_;  // From each state; of a whole column only the first counts.
  std::optional<ColumnType> own_;        // Of a column whose cells are not looked at.
  bool are_single_ = true, has_letters_ = false, has_empty_ = false;
};

/// A name of a type in a schema as it is, and whether it had that mark.
struct TypeName {
  std::string name;
  bool may_be_empty = false;
};
TypeName TypeInSchema(const Frame& schema, int64_t column);

}  // namespace heddle::ops
