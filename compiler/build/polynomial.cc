// SPDX-License-Identifier: Apache-2.0
#include "compiler/build/polynomial.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace heddle::compiler {

void Polynomial::Add(Monomial monomial, double coefficient) {
  const auto [term, is_new] = terms_.emplace(std::move(monomial), 0.0);
  term->second += coefficient;
  if (term->second == 0) terms_.erase(term);
}

Polynomial Polynomial::Symbol(const std::string& name) {
  Polynomial result;
  result.Add({name}, 1);
  return result;
}

Polynomial Polynomial::operator+(const Polynomial& other) const {
  Polynomial result = *this;
  for (const auto& [monomial, coefficient] : other.terms_) result.Add(monomial, coefficient);
  return result;
}

Polynomial Polynomial::operator*(const Polynomial& other) const {
  Polynomial result;
  for (const auto& [left, a] : terms_) {
    for (const auto& [right, b] : other.terms_) {
      Monomial product;
      std::merge(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(product));
      result.Add(std::move(product), a * b);
    }
  }
  return result;
}

bool Polynomial::Contains(const std::string& symbol) const {
  return std::any_of(terms_.begin(), terms_.end(), [&](const auto& term) {
    return std::find(term.first.begin(), term.first.end(), symbol) != term.first.end();
  });
}

bool Polynomial::Split(const std::string& symbol, Polynomial* coefficient, Polynomial* rest) const {
  *coefficient = Polynomial();
  *rest = Polynomial();
  for (const auto& [monomial, value] : terms_) {
    Monomial other;
    std::copy_if(monomial.begin(), monomial.end(), std::back_inserter(other),
                 [&](const auto& name) { return name != symbol; });
    if (monomial.size() - other.size() > 1) return false;
    (other.size() < monomial.size() ? coefficient : rest)->Add(std::move(other), value);
  }
  return true;
}

bool Polynomial::IsNegative() const {
  auto constant = terms_.find({});
  return constant != terms_.end() &&
         std::all_of(terms_.begin(), terms_.end(), [](const auto& term) { return term.second < 0; });
}

bool Polynomial::IsPositiveSum() const {
  return !terms_.empty() &&
         std::all_of(terms_.begin(), terms_.end(), [](const auto& term) { return term.second > 0; });
}

bool Polynomial::IsWhole() const {
  return std::all_of(terms_.begin(), terms_.end(), [](const auto& term) {
    return term.second == std::trunc(term.second) && std::abs(term.second) < 0x1p31;
  });
}

std::optional<double> Polynomial::AsConstant() const {
  if (terms_.empty()) return 0;
  if (terms_.size() > 1 || !terms_.begin()->first.empty()) return std::nullopt;
  return terms_.begin()->second;
}

void Polynomial::AddSymbols(std::set<std::string>* names) const {
  for (const auto& [monomial, coefficient] : terms_) names->insert(monomial.begin(), monomial.end());
}

}  // namespace heddle::compiler
