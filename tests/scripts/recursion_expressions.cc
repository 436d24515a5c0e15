// SPDX-License-Identifier: Apache-2.0
// Expressions and statements of a generated recursion, from patterns.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "tests/scripts/recursion_generator.h"

namespace heddle {
namespace {

// What an expression of a type may be. In braces stand parts: a type is an expression of it, "$r" a variable
// that a statement before gives a row, others are named in Part. Behind a '|': 2 where rows have two cells or
// more, ! where values need no derivative, ? rarely (batches leave much of it to the interpreter).
struct Form {
  char type;
  std::string_view pattern;
};

constexpr Form kForms[] = {
    {'r', "({r} {+} {r})"},
    {'r', "({r} {+} {r})"},
    {'r', "{f}({r})"},
    {'r', "{f}({r})"},
    {'r', "({r} %*% W)"},
    {'r', "({r} %*% W)"},
    {'r', "({r} %*% {m})"},
    {'r', "({r} {+} {d})"},
    {'r', "t({c})"},
    {'r', "cbind({$r}[,2:H], {$r}[,1])|2"},
    {'r', "(cbind({r}, {r}) %*% V)"},
    {'r', "{max}({r}, {r})"},
    {'r', "max({r}, 0)"},
    {'r', "min({r}, {d})"},
    {'r', "ifelse({r} > 0, {r}, {r})"},
    {'r', "ifelse({r} <= {r}, {r}, 0.5)"},
    {'r', "{colSums}({m})"},
    {'r', "colMaxs({m})|!"},
    {'r', "(matrix({d}, 1, H) + {r})"},
    {'r', "{$m}[{cell},]"},
    {'r', "(-{r})"},
    {'r', "({r} / (1 + abs({r})))"},
    {'r', "({r} ^ 2)"},
    {'r', "(exp(tanh({$r})) / sum(exp(tanh({$r}))))"},
    {'r', "E[1 + n %% nrow(E),]"},
    {'r', "E[1 + {k} %% nrow(E),]"},
    {'r', "X[max(n - 1, 1),]"},
    {'r', "X[child,]"},
    {'r', "halved({r}, {d})"},
    {'r', "chosen({$r}, {$r}, tok)"},
    {'r', "chosen({r}, {r}, tok)"},
    {'r', "of_width({r}, {d})|?"},
    {'r', "t(W %*% t({r}))"},
    {'r', "t({m} %*% t({r}))"},
    {'r', "{round}({r})|!"},
    {'r', "({r} {>} {r})|!"},
    {'r', "({r} {%%} {d})|!"},
    {'r', "({k} * {r})"},
    {'r', "({r} / (1 + count))"},
    {'r', "(t({c}) %*% {m})"},
    {'r', "({r} %*% P %*% t(P))"},
    {'r', "({r} %*% Q)|?"},
    {'r', "({r} * ({r} > 0))"},
    {'r', "sqrt(1 + {r} ^ 2)"},
    {'r', "log(1 + abs({r}))"},
    {'r', "matrix({c}, 1, H)"},
    {'c', "t({r})"},
    {'c', "t({r})"},
    {'c', "(W %*% {c})"},
    {'c', "({m} %*% {c})"},
    {'c', "{rowSums}({m})"},
    {'c', "rowIndexMax({m})|!"},
    {'c', "({c} {+} {c})"},
    {'c', "({c} * {d})"},
    {'c', "{$m}[,{cell}]"},
    {'c', "tanh({c})"},
    {'m', "({c} %*% {r})"},
    {'m', "({c} %*% {r})"},
    {'m', "({m} %*% {m})"},
    {'m', "({m} %*% W)"},
    {'m', "t({m})"},
    {'m', "({m} {+} {m})"},
    {'m', "({m} {+} {r})"},
    {'m', "({m} {+} {c})"},
    {'m', "({m} * {d})"},
    {'m', "tanh({m})"},
    {'m', "(WM %*% rbind({m}, {m}))"},
    {'m', "(cbind({m}, {m}) %*% V)"},
    {'m', "diag({c})|?"},
    {'m', "max({m}, 0)"},
    {'m', "max({m}, {m})"},
    {'m', "rbind({$m}[2:H,], {$m}[1:1,])|2"},
    {'m', "({m} / (1 + abs({m})))"},
    {'d', "{sum}({r})"},
    {'d', "sum({m})"},
    {'d', "sum({c})"},
    {'d', "{max}({r})|!"},
    {'d', "sd({r})|!2"},
    {'d', "as.scalar({$r}[1,{cell}])"},
    {'d', "as.scalar({$r}[1,{cell}])"},
    {'d', "as.scalar({r} %*% t({r}))"},
    {'d', "({d} {+} {d})"},
    {'d', "({d} {+} {d})"},
    {'d', "({d} {+} {k})"},
    {'d', "({d} / (1 + abs({d})))"},
    {'d', "exp(-abs({d}))"},
    {'d', "{f}({d})"},
    {'d', "trace({m})"},
    {'d', "{max}({d}, {d})"},
    {'d', "ifelse({d} > 0, {d}, {d})"},
    {'d', "log(1 + {d} ^ 2)"},
    {'d', "sum({r} ^ 2)"},
    {'d', "sum({r} * {r})"},
    {'d', "log(sum(exp(tanh({r}))))"},
    {'d', "({d} {%%} 2)|!"},
    {'d', "({d} {>} {d})|!"},
    {'d', "{round}({d})|!"},
    {'k', "({k} + {k})"},
    {'k', "({k} * {k})"},
    {'k', "({k} %% {2})"},
    {'k', "({k} %/% {2})"},
    {'k', "{max}({k}, {k})"},
    {'k', "abs({k})"},
    {'b', "as.scalar(T[n,7]) == {0}"},
    {'b', "n %% 2 == 0"},
    {'b', "tok > {0}"},
    {'b', "{k} {>} {k}"},
    {'b', "({b}) & ({b})"},
    {'b', "({b}) | ({b})"},
    {'b', "!({b})"},
    {'b', "as.scalar(T[n,8]) > 0.5"},
    {'b', "g > 0.3"},
    {'b', "count > {0}"},
};

constexpr Form kLeaves[] = {
    {'r', "b"},
    {'r', "X[n,]"},
    {'r', "E[tok,]"},
    {'c', "u"},
    {'c', "t(b)"},
    {'c', "t(E[tok,])"},
    {'m', "W"},
    {'m', "matrix(E2[tok,], H, H)"},
    {'m', "(u %*% b)"},
    {'d', "g"},
    {'d', "0.5"},
    {'d', "-1.25"},
    {'d', "2"},
    {'d', "as.scalar(T[n,8])"},
    {'d', "as.scalar(T[n,7])"},
    {'d', "as.scalar(b[1,1])"},
    {'k', "n"},
    {'k', "tok"},
    {'k', "{0}"},
    {'k', "nrow(E)"},
    {'k', "count"},
    {'b', "tok > 1"},
};

}  // namespace

std::string RecursionGenerator::Expression(char type, int depth) {
  std::vector<std::string_view> forms;
  if (depth > 0 && !choose_.Chance(12)) {
    for (const Form& form : kForms) {
      if (form.type != type) continue;
      const size_t bar = form.pattern.rfind('|');
      // A condition has "|" with blanks around it.
      const std::string_view needs = bar == std::string_view::npos || form.pattern[bar + 1] == ' '
                                         ? std::string_view()
                                         : form.pattern.substr(bar + 1);
      if (needs.find('2') != needs.npos && width_ < 2) continue;
      if (needs.find('!') != needs.npos && is_smooth_) continue;
      if (needs.find('?') != needs.npos && !choose_.Chance(10)) continue;
      forms.push_back(needs.empty() ? form.pattern : form.pattern.substr(0, bar));
    }
    return Fill(choose_.Pick(forms), depth);
  }
  std::vector<std::string> known;
  for (const auto& [name, of_type] : variables_)
    if (of_type == type) known.push_back(name);
  if (!known.empty() && choose_.Chance(75)) return choose_.Pick(known);
  for (const Form& form : kLeaves)
    if (form.type == type) forms.push_back(form.pattern);
  if (type == 'r' && has_sparse_) forms.push_back("S[n,]");
  if (type == 'r' && has_list_) forms.push_back("as.matrix(L[\"b\"])");
  if (type == 'm' && has_list_) forms.push_back("as.matrix(L[\"W\"])");
  return Fill(choose_.Pick(forms), depth);
}

std::string RecursionGenerator::Fill(std::string_view pattern, int depth) {
  std::string text, variable;
  for (size_t at = 0; at < pattern.size();) {
    const size_t open = std::min(pattern.find('{', at), pattern.size());
    text += pattern.substr(at, open - at);
    if (open == pattern.size()) break;
    const size_t close = pattern.find('}', open);
    const std::string_view name = pattern.substr(open + 1, close - open - 1);
    at = close + 1;
    if (name[0] != '$') {
      text += Part(name, depth);
      continue;
    }
    // All in a pattern are one variable.
    if (variable.empty()) {
      const std::string value = Expression(name[1], depth - 1);
      variable = NewName();
      Line(fmt::format("{} = {}", variable, value));
    }
    text += variable;
  }
  return text;
}

std::string RecursionGenerator::Part(std::string_view name, int depth) {
  if (name.size() == 1 && std::string_view("rcmdkb").find(name[0]) != std::string_view::npos)
    return Expression(name[0], depth - 1);
  if (name == "+") return choose_.Pick({"+", "-", "*"});
  if (name == "f") return choose_.Pick({"tanh", "sigmoid", "tanh", "sin", "cos", "abs"});
  if (name == "max") return choose_.Pick({"max", "min"});
  if (name == "sum") return choose_.Pick({"sum", "mean"});
  if (name == "colSums") return choose_.Pick({"colSums", "colMeans"});
  if (name == "rowSums") return choose_.Pick({"rowSums", "rowMeans"});
  if (name == "round") return choose_.Pick({"round", "sign", "floor", "ceil"});
  if (name == ">") return choose_.Pick({">", "<", "==", "!=", ">="});
  if (name == "%%") return choose_.Pick({"%%", "%/%"});
  if (name == "0") return fmt::format("{}", choose_.Below(4));
  if (name == "2") return fmt::format("{}", 2 + choose_.Below(4));
  // A column.
  return choose_.Chance(25) ? fmt::format("{}", choose_.Between(1, width_))
                            : choose_.Pick({"1", "H", "1 + n %% H", "1 + tok %% H"});
}

std::string RecursionGenerator::NewName() { return fmt::format("v{}", ++names_); }

void RecursionGenerator::Line(const std::string& text) {
  text_ += std::string(2 * indent_, ' ') + text + "\n";
}

void RecursionGenerator::Assign(const std::string& name, char type) {
  std::string value = Expression(type, static_cast<int>(choose_.Between(1, 3)));
  if (type != 'k' && choose_.Chance(50)) value = fmt::format("tanh({})", value);
  Line(fmt::format("{} = {}", name, value));
}

// A variable that there is gets another value.
void RecursionGenerator::Change() {
  const auto& [name, type] = choose_.Pick(changed_);
  Assign(name, type);
}

void RecursionGenerator::Statement(int depth) {
  const size_t form = choose_.Below(14);
  if (depth < 3 && form >= 9 && form < 11) return Branch(depth);
  if (!changed_.empty() && form >= 7 && form < 9) return Change();
  if (!changed_.empty() && depth < 3 && form == 11) {
    const std::string counter = NewName();
    Line(fmt::format("for ({} in 1:{}) {{", counter,
                     choose_.Pick({"2", "3", "(1 + n %% 2)", "(1 + count)", "H"})));
    const Variables before = variables_;
    variables_.emplace_back(counter, 'k');
    ++indent_;
    Change();
    const auto& [name, type] = choose_.Pick(changed_);
    if (choose_.Chance(40))
      Line(fmt::format("if ({} %% 2 == 1) {} = {} {}", counter, name, name, type == 'k' ? "+ 1" : "* 0.5"));
    --indent_;
    variables_ = before;
    return Line("}");
  }
  if (form == 12) {
    const std::string row = NewName();
    Line(fmt::format("{} = {}", row, Expression('r', 1)));
    Line(fmt::format("{}[1,{}] = {}", row, Part("cell", 0), Expression('d', 2)));
    variables_.emplace_back(row, 'r');
    return;
  }
  if (form == 13) {
    const std::string matrix = NewName();
    Line(fmt::format("{} = {}", matrix, Expression('m', 1)));
    Line(fmt::format("{}[{},] = {}", matrix, Part("cell", 0), Expression('r', 2)));
    variables_.emplace_back(matrix, 'm');
    return;
  }
  const char type = choose_.Pick({"r", "r", "r", "r", "m", "c", "d", "d", "k"})[0];
  const std::string name = NewName();
  Assign(name, type);
  variables_.emplace_back(name, type);
  changed_.emplace_back(name, type);
}

void RecursionGenerator::Branch(int depth) {
  Line(fmt::format("if ({}) {{", Expression('b', 2)));
  Within(depth);
  if (choose_.Chance(50)) {
    Line("} else {");
    Within(depth);
  }
  Line("}");
}

// What a branch assigns first is read there alone.
void RecursionGenerator::Within(int depth) {
  const Variables before = variables_, changed_before = changed_;
  ++indent_;
  for (int64_t statements = choose_.Between(1, 2); statements > 0; --statements)
    if (!changed_.empty() && choose_.Chance(80))
      Change();
    else
      Statement(depth + 1);
  --indent_;
  variables_ = before;
  changed_ = changed_before;
}

}  // namespace heddle
