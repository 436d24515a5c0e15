// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace heddle::ops {

/// From here on a double is not every whole number.
constexpr double kExactIntegers = 0x1p53;

/// A cell of a file of text, and whether quotes stood around it.
struct Field {
  std::string_view text;  ///< Without quotes.
  bool quoted = false;
};

/// What quotes around a cell say of its type.
enum class Quotes : uint8_t {
  kNothing,  ///< All cells have them.
  /// A text that would be read as a number or boolean otherwise: in csv, where the numbers of a column have
  /// none or all of them.
  kTextsOfColumn,
  kText  ///< It is a text, whatever it looks like: jsonl.
};

/// What the cells of one column are.
struct ColumnFacts {
  std::string name;
  int64_t missing = 0;   ///< Empty fields, and cells that are missing.
  int64_t integers = 0;  ///< Whole numbers, written without a point.
  int64_t fractions = 0;
  int64_t booleans = 0;
  int64_t dates = 0;  ///< Texts like 2024-01-31 or 31.01.2024.
  int64_t texts = 0;  ///< All others.
  int64_t nan = 0;
  int64_t infinite = 0;
  int64_t zeros = 0;
  int64_t quoted_numbers = 0;
  int64_t inexact = 0;         ///< Whole numbers beyond 2^53 that a double does not hold.
  int64_t too_large = 0;       ///< Whole numbers that no INT64 is.
  int64_t zeros_in_front = 0;  ///< Numbers such as 01234, which is 1234 where it is read as a number.
  double least = std::numeric_limits<double>::infinity();
  double greatest = -std::numeric_limits<double>::infinity();
  /// The first text among numbers, or number among texts, with its row from 1.
  std::string first_text, first_number, first_inexact, first_zeros_in_front;
  int64_t row_of_text = 0, row_of_number = 0;

  void AddNumber(double number);

  int64_t numbers() const { return integers + fractions; }
  int64_t cells() const { return missing + numbers() + booleans + dates + texts; }
  bool HasTexts() const { return booleans + dates + texts > 0; }
  /// "int", "double", "boolean", "date", "text", "mixed" or "empty".
  std::string_view kind() const;
  /// The type that a schema needs: FP64, INT64, BOOLEAN or STRING.
  std::string_view schema_type() const;
  /// How many numbers are read without the zeros in front of them: none where the cells are texts.
  int64_t LostZeros() const { return schema_type() == "STRING" ? 0 : zeros_in_front; }
};

/// Whether a number can be shown as an integer: doubles have all of those up to 2^53.
bool IsExactInteger(double number);

/// The cells of one column as they come. What those in quotes are is known when all have been looked at.
class ColumnLook {
 public:
  void Add(const Field& field, int64_t row) { (field.quoted ? quoted_ : plain_).Add(field.text, row); }
  /// The facts, without a name.
  ColumnFacts Facts(Quotes quotes) const;

 private:
  struct Cells : ColumnFacts {
    void Add(std::string_view text, int64_t row);
  };
  Cells plain_, quoted_;
};

}  // namespace heddle::ops
