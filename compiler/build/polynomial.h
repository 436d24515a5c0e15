// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace heddle::compiler {

/// A polynomial in named symbols, as index expressions are: 2*i*k - k + 1.
class Polynomial {
 public:
  using Monomial = std::vector<std::string>;  ///< Sorted symbols; empty for the constant.

  Polynomial() = default;
  explicit Polynomial(double constant) { Add({}, constant); }
  static Polynomial Symbol(const std::string& name);

  Polynomial operator+(const Polynomial& other) const;
  Polynomial operator-(const Polynomial& other) const { return *this + other * Polynomial(-1); }
  Polynomial operator*(const Polynomial& other) const;
  bool operator==(const Polynomial&) const = default;

  bool IsZero() const { return terms_.empty(); }
  bool Contains(const std::string& symbol) const;
  /// this = coefficient * symbol + rest; false if the symbol stands in a higher power.
  bool Split(const std::string& symbol, Polynomial* coefficient, Polynomial* rest) const;
  /// Negative whatever natural numbers its symbols are.
  bool IsNegative() const;
  /// No coefficient is negative, and not zero.
  bool IsPositiveSum() const;
  /// All coefficients are whole numbers, small enough to be computed with exactly.
  bool IsWhole() const;
  /// Its value, when no symbol stands in it.
  std::optional<double> AsConstant() const;
  /// Adds its symbols to `names`.
  void AddSymbols(std::set<std::string>* names) const;

 private:
  void Add(Monomial monomial, double coefficient);

  std::map<Monomial, double> terms_;  // no zero coefficients
};

}  // namespace heddle::compiler
