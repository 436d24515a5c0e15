// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace heddle::ops {

/// A field of a file of text: what stands between two separators, and whether quotes stood around it.
struct Field {
  std::string_view text;  ///< Without quotes, and without blanks around it.
  bool quoted = false;
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
  int64_t inexact = 0;  ///< Whole numbers beyond 2^53 that a double does not hold.
  double least = std::numeric_limits<double>::infinity();
  double greatest = -std::numeric_limits<double>::infinity();
  /// The first text among numbers, or number among texts, with its row from 1.
  std::string first_text, first_number, first_inexact;
  int64_t row_of_text = 0, row_of_number = 0;

  void Add(const Field& field, int64_t row);
  void AddNumber(double number);

  int64_t numbers() const { return integers + fractions; }
  int64_t cells() const { return missing + numbers() + booleans + dates + texts; }
  bool HasTexts() const { return booleans + dates + texts > 0; }
  /// "int", "double", "boolean", "date", "text", "mixed" or "empty".
  std::string_view kind() const;
  /// The type that a schema needs: FP64, INT64, BOOLEAN or STRING.
  std::string_view schema_type() const;
};

/// Cuts a line at a separator outside of quotes.
class FieldReader {
 public:
  FieldReader(std::string_view line, std::string_view separator, bool any_blanks)
      : rest_(line), separator_(separator), any_blanks_(any_blanks) {}
  bool Next(Field* field);
  /// True if a field had a separator within quotes.
  bool met_separator_in_quotes() const { return met_separator_in_quotes_; }

 private:
  std::string_view rest_;
  const std::string_view separator_;
  const bool any_blanks_;
  bool more_ = true;
  bool met_separator_in_quotes_ = false;
};

}  // namespace heddle::ops
