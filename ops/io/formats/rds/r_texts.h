// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ops/io/formats/rds/r_bytes.h"
#include "ops/io/formats/rds/r_file.h"

namespace heddle::ops {

/// The texts of a vector of R, one after the other, as UTF-8.
class RTexts {
 public:
  /// From text `first` on. `what` is the vector in messages: "column 'a'".
  static Result<RTexts> From(const RFile& file, const RObject& vector, int64_t first, std::string what);

  /// The next text, valid until the next call. kDataLoss where nobody knows how it is encoded.
  Status Next(std::string_view* text, bool* is_missing);

 private:
  RTexts(const RFile& file, const RObject& vector, int64_t first, std::string what);
  Status NextOfNumbers(std::string_view* text, bool* is_missing);

  const RFile& file_;
  const RObject& vector_;
  int64_t at_;
  std::string what_;
  RBytes bytes_;
  std::string room_;
  // Of kNumbersAsTexts: numbers from number_begin_ on, and which of them are missing.
  std::vector<double> numbers_;
  std::vector<int64_t> missing_;
  int64_t numbers_begin_ = 0;
  double favours_fixed_ = 0;  // How many characters longer than 1e+05 a number in digits may be (scipen).
};

/// All texts of a short vector, as names and classes are; those that are missing are "". None where `vector`
/// is nullptr or holds no texts.
Result<std::vector<std::string>> TextsOf(const RFile& file, const RObject* vector);

/// The classes of an object: of those that do not say any, none.
Result<std::vector<std::string>> ClassesOf(const RFile& file, const RObject& object);

/// A number as R's as.character() has it: up to 15 digits.
void AppendRNumber(double number, double favours_fixed, std::string* text);

}  // namespace heddle::ops
