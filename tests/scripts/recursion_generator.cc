// SPDX-License-Identifier: Apache-2.0
#include "tests/scripts/recursion_generator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tests/scripts/recursion_structures.h"

namespace heddle {
namespace {

std::string_view Declaration(char type) {
  return type == 'd' ? "Double" : type == 'k' ? "Integer" : "Matrix[Double]";
}

constexpr bool IsMatrix(char type) { return type == 'r' || type == 'c' || type == 'm'; }

std::string Whole(char type, const std::string& name) {
  return IsMatrix(type) ? fmt::format("sum({})", name) : name;
}

constexpr const char* kHelpers =
    R"(halved = function(Matrix[Double] a, Double w) return (Matrix[Double] y) {
  y = tanh(a * w + 0.1)
  y = y - a * 0.5
}
chosen = function(Matrix[Double] a, Matrix[Double] c, Integer k) return (Matrix[Double] y) {
  if (k %% 2 == 0) y = a * c
  else { y = a + c;  y = y / 2 }
}
of_width = function(Matrix[Double] a, Double w) return (Matrix[Double] y) {
  y = a * w
  if (ncol(a) > 2) y = y - a
}
)";

constexpr const char* kRoot = "as.integer(as.scalar(R[q,1]))";

}  // namespace

void RecursionGenerator::Function() {
  width_ = choose_.PickNumber({1, 2, 3, 4, 5, 8, 9, 17});
  tokens_ = choose_.Between(2, 6);
  has_sparse_ = choose_.Chance(15);
  has_list_ = choose_.Chance(10);
  results_ = choose_.Pick({"r", "r", "r", "m", "c", "d"});
  for (size_t more = choose_.Below(4); more > 1; --more)
    results_ += choose_.Pick({"r", "m", "c", "d", "d", "k"});
  Head();
  const size_t form = choose_.Below(8);
  for (size_t i = 0; i < choose_.Below(3); ++i) Statement(0);
  for (size_t i = 0; i < results_.size(); ++i) Assign(fmt::format("o{}", i), results_[i]);
  for (size_t i = 0; i < results_.size(); ++i) {
    variables_.emplace_back(fmt::format("o{}", i), results_[i]);
    changed_.push_back(variables_.back());
  }
  if (form < 4)
    FixedChildren();
  else if (form < 7)
    ChildrenInLoop();
  else
    NestedBranches();
  indent_ = 0;
  Line("}");
}

void RecursionGenerator::Head() {
  parameters_ = {"T", "X", "E", "E2", "W", "WM", "V", "P", "Q", "b", "u", "g", "size"};
  if (has_sparse_) parameters_.emplace_back("S");
  if (has_list_) parameters_.emplace_back("L");
  std::string results;
  for (size_t i = 0; i < results_.size(); ++i)
    results += fmt::format("{}{} o{}", i > 0 ? ", " : "", Declaration(results_[i]), i);
  text_ = kHelpers;
  Line(fmt::format("f = function(Integer n, {})\n    return ({}) {{", Declared(), results));
  indent_ = 1;
  for (const char* line : {"H = ncol(b)", "tok = 1 + as.integer(as.scalar(T[n,3])) %% nrow(E)",
                           "first = as.integer(as.scalar(T[n,4]))", "last = as.integer(as.scalar(T[n,5]))",
                           "count = last - first + 1", "child = max(as.integer(as.scalar(T[n,1])), 1)"})
    Line(line);
}

// Results of the call are prefix0, prefix1, ...
void RecursionGenerator::CallOf(const std::string& node, const std::string& prefix) {
  Line(fmt::format("{} = f({})", Assigned(Outputs(prefix)), Arguments(node)));
  for (size_t i = 0; i < results_.size(); ++i)
    variables_.emplace_back(fmt::format("{}{}", prefix, i), results_[i]);
}

// Results of the node from what there is.
void RecursionGenerator::Combine() {
  for (size_t i = choose_.Below(4); i > 0; --i) Statement(0);
  for (size_t i = 0; i < results_.size(); ++i) {
    const std::string name = fmt::format("o{}", i);
    Assign(name, results_[i]);
    if (results_[i] == 'k')
      Line(fmt::format("{} = {} %% 1000", name, name));
    else
      Line(choose_.Chance(70) ? fmt::format("{} = tanh({})", name, name)
                              : fmt::format("{} = {} / (2 + abs({}))", name, name, name));
  }
}

void RecursionGenerator::FixedChildren() {
  std::vector<std::pair<std::string, std::string>> calls;  // the condition, the node
  switch (choose_.Below(4)) {
    case 0:
    case 1:
      calls = {{"as.scalar(T[n,1]) > 0", "as.integer(as.scalar(T[n,1]))"},
               {"as.scalar(T[n,2]) > 0", "as.integer(as.scalar(T[n,2]))"}};
      break;
    case 2: calls = {{"2 * n <= size", "2 * n"}, {"2 * n + 1 <= size", "2 * n + 1"}}; break;
    default: calls = {{"n > 1", "n - 1"}}; break;
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    Line(fmt::format("if ({}) {{", calls[i].first));
    ++indent_;
    const Variables before = variables_, changed_before = changed_;
    CallOf(calls[i].second, fmt::format("c{}_", i));
    if (i + 1 == calls.size() || choose_.Chance(70))
      Combine();
    else
      Statement(0);
    variables_ = before;
    changed_ = changed_before;
    --indent_;
    Line("}");
  }
}

void RecursionGenerator::NestedBranches() {
  Line("if (as.scalar(T[n,1]) != 0) {");
  ++indent_;
  CallOf("as.integer(as.scalar(T[n,1]))", "c0_");
  const Variables before = variables_, changed_before = changed_;
  Line("if (as.scalar(T[n,2]) > 0) {");
  ++indent_;
  CallOf("as.integer(as.scalar(T[n,2]))", "c1_");
  Combine();
  --indent_;
  Line("} else {");
  variables_ = before;
  changed_ = changed_before;
  ++indent_;
  Combine();
  --indent_;
  Line("}");
  --indent_;
  Line("}");
}

void RecursionGenerator::ChildrenInLoop() {
  for (size_t i = 0; i < results_.size(); ++i) {
    const char* const zeros = results_[i] == 'r'   ? "matrix(0, 1, H)"
                              : results_[i] == 'c' ? "matrix(0, H, 1)"
                              : results_[i] == 'm' ? "matrix(0, H, H)"
                              : results_[i] == 'd' ? "0.0"
                                                   : "0";
    Line(fmt::format("s{} = {}", i, zeros));
    variables_.emplace_back(fmt::format("s{}", i), results_[i]);
  }
  const Variables before = variables_, changed_before = changed_;
  const size_t form = choose_.Below(3);
  std::string end = "}";
  if (form == 0) {
    Line("for (j in seq(first, last, 1)) {");
  } else if (form == 1) {
    Line("if (count > 0) { for (j in first:last) {");
    end = "} }";
  } else {
    Line("j = first");
    Line("while (j <= last) {");
  }
  ++indent_;
  CallOf("as.integer(as.scalar(T[j,6]))", "c");
  variables_.emplace_back("j", 'k');
  for (size_t i = choose_.Below(3); i > 0; --i) Statement(0);
  for (size_t i = 0; i < results_.size(); ++i)
    Accumulate(fmt::format("s{}", i), results_[i], fmt::format("c{}", i));
  if (form == 2) Line("j = j + 1");
  --indent_;
  variables_ = before;
  changed_ = changed_before;
  Line(end);
  Combine();
}

void RecursionGenerator::Accumulate(const std::string& total, char type, const std::string& of_child) {
  const size_t form = type == 'k' ? 3 : choose_.Below(5);
  if (form == 0) return Line(fmt::format("{0} = max({0}, {1})", total, of_child));
  if (form == 1) return Line(fmt::format("{0} = {0} * 0.5 + {1}", total, of_child));
  if (form == 2) return Line(fmt::format("{0} = {0} + {2} * {1}", total, of_child, Expression('d', 1)));
  Line(fmt::format("{0} = {0} + {1}", total, of_child));
}

void RecursionGenerator::Data(bool is_first) {
  const RandomStructure structure(choose_);
  if (!is_first) width_ = choose_.PickNumber({width_, width_, width_ + 2, width_ + 8});
  const int64_t rows = structure.rows();
  Line(fmt::format("H = {}", width_));
  Line("T = " + structure.Matrix(choose_, tokens_));
  Line("R = " + structure.Roots());
  const auto random = [&](const char* name, const std::string& height, const char* width, int seed,
                          const char* more = "") {
    Line(fmt::format("{} = rand(rows={}, cols={}, min=-1, max=1, seed={}{})", name, height, width, seed,
                     more));
  };
  const std::string nodes = fmt::format("{}", rows), tokens = fmt::format("{}", tokens_);
  random("X", nodes, "H", 1);
  random("E", tokens, "H", 2);
  random("E2", tokens, "H*H", 3);
  random("W", "H", "H", 4);
  random("WM", "H", "2*H", 5);
  random("V", "2*H", "H", 6);
  random("P", "H", "7", 7);
  random("Q", "H", "H", 8, ", sparsity=0.3");
  random("b", "1", "H", 9);
  random("u", "H", "1", 10);
  if (has_sparse_) random("S", nodes, "H", 11, ", sparsity=0.2");
  if (has_list_) Line("L = list(W=W * 0.75, b=b * 1.5)");
  Line(fmt::format("g = {}", choose_.Pick({"0.25", "0.5", "-0.75"})));
  Line(fmt::format("size = {}", structure.children.size()));
}

void RecursionGenerator::Caller(size_t form) {
  const Names outputs = Outputs("a");
  std::string sum, print;
  for (size_t i = 0; i < outputs.size(); ++i) {
    sum += (i > 0 ? " + " : "") + Whole(results_[i], outputs[i]);
    print += IsMatrix(results_[i])
                 ? fmt::format("print(toString({}, rows=100, cols=100, decimal=17));  ", outputs[i])
                 : fmt::format("print({});  ", outputs[i]);
  }
  const std::string call = fmt::format("{} = f({})", Assigned(outputs), Arguments(kRoot));
  switch (form) {
    case 0: return Line(fmt::format("q = 1;  {};  {}", call, print));
    case 1: return Line(fmt::format("for (q in 1:nrow(R)) {{ {};  {} }}", call, print));
    case 2: {
      const Names own = Outputs("p");
      Line(fmt::format("Z = matrix(0, nrow(R), {})", own.size()));
      std::string cells;
      for (size_t i = 0; i < own.size(); ++i)
        cells += fmt::format("Z[q,{}] = {};  ", i + 1, Whole(results_[i], own[i]));
      Line(fmt::format("parfor (q in 1:nrow(R)) {{ {} = f({});  {} }}", Assigned(own), Arguments(kRoot),
                       cells));
      return Line("print(toString(Z, rows=100, decimal=17))");
    }
    case 3:
      Line(fmt::format("around = function(Matrix[Double] R, {}) return (Double z) {{", Declared()));
      Line(fmt::format("  z = 0.0;  for (q in 1:nrow(R)) {{ {};  z = z * 0.5 + {} }}\n}}", call, sum));
      Line(fmt::format("for (m in 1:3) {{ print(around(R, {}));  W = W * 0.9;  g = g + 0.125 }}",
                       fmt::join(parameters_, ", ")));
      return;
    default:
      Line("for (m in 1:3) {");
      Line(fmt::format("  for (q in 1:nrow(R)) {{ {};  print({});{} }}", call, sum,
                       choose_.Chance(30) ? "  b = b * 0.75" : ""));
      Line("  W = W * 0.5 + 0.1");
      if (choose_.Chance(40)) Line("  T[1,8] = matrix(m, 1, 1)");
      Line("}");
  }
}

std::string RecursionGenerator::Calls() {
  is_smooth_ = false;
  Function();
  Data(/*is_first=*/true);
  const size_t form = choose_.Below(5);
  Caller(form);
  if (choose_.Chance(35)) Data(/*is_first=*/false);
  Caller((form + 1 + choose_.Below(4)) % 5);
  return text_;
}

// The function, and what may be differentiated by.
RecursionGenerator::Names RecursionGenerator::Loss() {
  std::string terms;
  for (size_t i = 0; i < results_.size(); ++i) {
    const std::string name = fmt::format("a{}", i);
    const std::string form =
        IsMatrix(results_[i])
            ? choose_.Pick({"sum({0} ^ 2)", "sum({0})", "log(sum(exp({0})))", "as.scalar({0}[1,1])"})
        : results_[i] == 'd' ? choose_.Pick({"{0}", "{0} ^ 2", "tanh({0})"})
                             : "0.0 * {0}";
    terms += (i > 0 ? " + " : "") + fmt::format(fmt::runtime(form), name);
  }
  Line(fmt::format("loss = function(Matrix[Double] R, {}) return (Double z) {{", Declared()));
  const std::string call = fmt::format("{} = f({})", Assigned(Outputs("a")), Arguments(kRoot));
  const char* const forms[] = {
      "  q = 1;  {0};  z = {1}", "  z = 0.0;  for (q in 1:nrow(R)) {{ {0};  z = z + {1} }}",
      "  z = 0.0;  for (q in 1:nrow(R)) {{ {0};  z = z * 0.5 + q * ({1}) }}",
      "  z = 0.0;  q = 1;  while (q <= nrow(R)) {{ {0};  z = z + {1};  q = q + 1 }}",
      "  z = 0.0;  for (q in 1:nrow(R)) {{\n    {0}\n    if (q %% 2 == 0) z = z + {1}\n"
      "    else z = z - 0.5 * ({1})\n  }}"};
  Line(fmt::format(fmt::runtime(forms[choose_.Below(5)]), call, terms));
  Line("}");
  Names by;
  for (const char* parameter : {"X", "E", "E2", "W", "WM", "V", "P", "b", "u", "g"})
    if (choose_.Chance(60)) by.emplace_back(parameter);
  if (has_list_ && choose_.Chance(60)) by.emplace_back("L");
  if (by.empty()) by.emplace_back("W");
  return by;
}

std::string RecursionGenerator::Gradient() {
  is_smooth_ = true;
  Function();
  Data(/*is_first=*/true);
  const Names by = Loss();
  const std::string arguments = fmt::format("{}", fmt::join(parameters_, ", "));
  Line(fmt::format("[z, d{}] = gradient(\"loss\", [\"{}\"], R, {})", fmt::join(by, ", d"),
                   fmt::join(by, "\", \""), arguments));
  Line("print(z)");
  for (const std::string& name : by) {
    const Names values =
        name == "L" ? Names{"as.matrix(dL[\"W\"])", "as.matrix(dL[\"b\"])"} : Names{"d" + name};
    for (const std::string& value : values)
      Line(name == "g" ? "print(dg)"
                       : fmt::format("print(toString({}, rows=1000, cols=1000, decimal=17))", value));
  }
  for (const std::string& name : by) {
    if (name == "L") continue;
    const auto moved = [&](const char* step) {
      Names given = parameters_;
      std::replace(given.begin(), given.end(), name,
                   name == "g" ? fmt::format("g + {}", step) : fmt::format("{} + D * ({})", name, step));
      return fmt::format("loss(R, {})", fmt::join(given, ", "));
    };
    if (name != "g")
      Line(fmt::format("D = rand(rows=nrow({0}), cols=ncol({0}), min=-1, max=1, seed=99)", name));
    Line(fmt::format("up = {};  down = {};  print(\"quotient {} \" + ((up - down) / 2e-6) + \" \" + {})",
                     moved("1e-6"), moved("-1e-6"), name,
                     name == "g" ? "dg" : fmt::format("sum(D * d{})", name)));
  }
  return text_;
}

RecursionGenerator::Names RecursionGenerator::Outputs(const std::string& prefix) const {
  Names names;
  for (size_t i = 0; i < results_.size(); ++i) names.push_back(fmt::format("{}{}", prefix, i));
  return names;
}

std::string RecursionGenerator::Assigned(const Names& names) const {
  return names.size() == 1 ? names[0] : fmt::format("[{}]", fmt::join(names, ", "));
}

std::string RecursionGenerator::Arguments(const std::string& node) const {
  return fmt::format("{}, {}", node, fmt::join(parameters_, ", "));
}

std::string RecursionGenerator::Declared() const {
  Names declared;
  for (const std::string& name : parameters_)
    declared.push_back((name == "g"      ? "Double "
                        : name == "size" ? "Integer "
                        : name == "L"    ? "List[unknown] "
                                         : "Matrix[Double] ") +
                       name);
  return fmt::format("{}", fmt::join(declared, ", "));
}

}  // namespace heddle
