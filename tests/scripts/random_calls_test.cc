// SPDX-License-Identifier: Apache-2.0
// Random programs of functions that call each other: by name, by eval() of a name that is written or
// computed, with lists as arguments, with one and several results, taken and not, in branches, loops and
// parfor, printing on the way. They print the same whichever calls the compiler replaces by bodies and
// whichever pass is off, and check finds nothing wrong with them. All cells are small whole numbers, so every
// order of sums is exact.
//
// HEDDLE_CALLS_SEEDS=N runs N seeds; HEDDLE_CALLS_SEED=N begins at another one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/scripts/script_case.h"
#include "tests/support/all_plans.h"

namespace heddle {
namespace {

using testing_support::Finished;

constexpr const char* kAsWritten = "run --threads 1 --fusion off --disable-pass inline-functions";
constexpr const char* kPasses[] = {
    "propagate-constants", "fold-constants", "simplify-branches", "vectorize-loops", "hoist",
    "merge-blocks",        "rules",          "order-rules",       "order-products",  "share",
    "remove-dead",         "remove-unread",  "split-sums",        "recursion"};

// Types of values: m is a matrix of 3 x 3 cells, d a double, l a list of an m and a d.
class CallsGenerator {
 public:
  explicit CallsGenerator(uint32_t seed) : random_(seed) {}

  std::string Make() {
    text_ += "ev = function(string name, list[unknown] a) return (matrix[double] r) { r = eval(name, a) }\n";
    if (Chance(2))
      text_ +=
          "all = function(string name, matrix[double] A) return (list[unknown] r) {\n"
          "  r = evalList(name, list(A))\n}\n";
    has_all_ = text_.find("all =") != text_.npos;
    // A function that prints or calls by a computed name is compiled in other ways than one that does not.
    prints_inside_ = Chance(3);
    evals_inside_ = Chance(2);
    const int64_t functions = 2 + Below(6);
    for (int64_t i = 0; i < functions; ++i) AddFunction();
    variables_ = {{"X", 'm'}, {"s", 'd'}};
    text_ += "X = matrix(\"1 2 3 4 5 6 0 1 2\", rows=3, cols=3)\ns = 2\n";
    Statements(3 + Below(8), 0);
    for (const Signature& function : functions_)
      if (Chance(2)) CallBothWays(function);
    for (const Variable& variable : variables_) Print(variable);
    return text_;
  }

 private:
  struct Variable {
    std::string name;
    char type;
  };
  struct Signature {
    std::string name;
    std::string parameters, results;  // their types
    bool calls_itself = false;        // its last parameter counts the calls down
  };

  int64_t Below(int64_t bound) { return static_cast<int64_t>(random_() % static_cast<uint32_t>(bound)); }
  bool Chance(int64_t of) { return Below(of) == 0; }
  template <typename Values>
  const auto& One(const Values& values) {
    return values[static_cast<size_t>(Below(static_cast<int64_t>(values.size())))];
  }
  std::string Picked(std::initializer_list<const char*> values) {
    return *(values.begin() + Below(static_cast<int64_t>(values.size())));
  }

  void Line(const std::string& text) { text_ += std::string(2 * indent_, ' ') + text + "\n"; }
  std::string NewName() { return fmt::format("v{}", ++names_); }

  static std::string Declared(char type) {
    return type == 'm' ? "matrix[double]" : type == 'd' ? "double" : "list[unknown]";
  }

  void AddFunction() {
    Signature made;
    made.name = fmt::format("f{}", functions_.size() + 1);
    // Half of them are of the kind that the compiler may replace by their bodies wherever they are called.
    is_plain_ = Chance(2);
    made.parameters = is_plain_ ? Picked({"m", "m", "mm", "md"}) : Picked({"m", "md", "mm", "ml", "l", "dm"});
    made.results =
        is_plain_ ? Picked({"m", "m", "md", "mdm"}) : Picked({"m", "md", "dm", "d", "mdm", "ml", "ddm"});
    made.calls_itself = !is_plain_ && Chance(4);
    variables_.clear();
    std::string parameters, results;
    for (const char type : made.parameters) {
      variables_.push_back({fmt::format("p{}", variables_.size()), type});
      parameters +=
          fmt::format("{}{} {}", parameters.empty() ? "" : ", ", Declared(type), variables_.back().name);
      if (type == 'd' && made.parameters.back() == 'd' && Chance(3)) parameters += " = 3";
    }
    if (made.calls_itself) parameters += ", integer n";
    for (size_t i = 0; i < made.results.size(); ++i)
      results += fmt::format("{}{} r{}", i == 0 ? "" : ", ", Declared(made.results[i]), i);
    text_ += fmt::format("{} = function({}) return ({}) {{\n", made.name, parameters, results);
    indent_ = 1;
    if (Chance(prints_inside_ ? 2 : 6)) Line(fmt::format("print(\"{}\")", made.name));
    if (is_plain_)
      for (int64_t calls = Below(3); calls > 0; --calls) AssignSeveral();
    else
      Statements(Below(4), 1);
    for (size_t i = 0; i < made.results.size(); ++i)
      Line(fmt::format("r{} = {}", i, Expression(made.results[i], 2)));
    if (made.calls_itself) CallItself(made);
    indent_ = 0;
    is_plain_ = false;
    text_ += "}\n";
    functions_.push_back(std::move(made));
  }

  void CallItself(const Signature& made) {
    std::string targets, arguments;
    for (size_t i = 0; i < made.results.size(); ++i) targets += fmt::format("{}r{}", i == 0 ? "" : ", ", i);
    for (const char type : made.parameters) arguments += Expression(type, 1) + ", ";
    Line(fmt::format("if (n > 0) {{ [{}] = {}({}n - 1) }}", targets, made.name, arguments));
  }

  // The arguments of a call; `in_order` of eval: all of them, without names.
  std::string Arguments(const Signature& function, int depth) {
    std::string arguments;
    for (const char type : function.parameters) {
      if (!arguments.empty()) arguments += ", ";
      arguments += Expression(type, depth);
    }
    if (function.calls_itself) arguments += fmt::format(", {}", Below(3));
    return arguments;
  }

  // The name of a function, as eval() takes it.
  std::string NameOf(const Signature& function) {
    if (Chance(3)) return fmt::format("\"f\" + {}", function.name.substr(1));
    return fmt::format("\"{}\"", function.name);
  }

  // A matrix of the first result, which eval() makes one of one cell where it is a number.
  std::string Eval(const Signature& function, int depth) {
    const std::string arguments = Arguments(function, depth);
    // The only argument of eval() is a list of arguments if it is one.
    const bool in_list = Chance(2) || (function.parameters == "l" && !function.calls_itself);
    const std::string given = in_list ? fmt::format("list({})", arguments) : arguments;
    const bool takes_one_list = function.parameters == "l" && !function.calls_itself;
    const std::string call =
        in_list && !takes_one_list && Chance(2)
            ? fmt::format("ev({}, {})", NameOf(function), given)
            : fmt::format("eval({}, {})", NameOf(function), takes_one_list ? arguments : given);
    return function.results[0] == 'm' ? call : fmt::format("(as.scalar({}) + {})", call, OneOf('m'));
  }

  std::string OneOf(char type) {
    std::vector<std::string> names;
    for (const Variable& variable : variables_)
      if (variable.type == type) names.push_back(variable.name);
    if (!names.empty()) return One(names);
    if (type == 'd') return fmt::format("{}", Below(5));
    if (type == 'm') return fmt::format("matrix({}, rows=3, cols=3)", Below(4));
    return fmt::format("list({}, {})", OneOf('m'), OneOf('d'));
  }

  std::string Expression(char type, int depth) {
    if (depth == 0 || Chance(4)) return OneOf(type);
    if (!functions_.empty() && Chance(3)) {
      const Signature& function = One(functions_);
      if (function.results[0] == type && Chance(2))
        return fmt::format("{}({})", function.name, Arguments(function, depth - 1));
      const bool may_eval = indent_ == 0 || evals_inside_;
      if (type == 'm' && function.results[0] != 'l' && may_eval) return Eval(function, depth - 1);
    }
    if (type == 'l')
      return fmt::format("list({}, {})", Expression('m', depth - 1), Expression('d', depth - 1));
    if (type == 'd') {
      switch (Below(5)) {
        case 0: return fmt::format("(sum({}) %% 11)", Expression('m', depth - 1));
        case 1: return fmt::format("as.scalar({}[{}, {}])", OneOf('m'), 1 + Below(3), 1 + Below(3));
        case 2:
          if (!is_plain_) return fmt::format("as.scalar({}[2])", OneOf('l'));
          [[fallthrough]];
        case 3: return fmt::format("nrow({})", OneOf('m'));
        default:
          return fmt::format("(({} {} {}) %% 7)", Expression('d', depth - 1), Picked({"+", "-", "*"}),
                             Expression('d', depth - 1));
      }
    }
    switch (Below(6)) {
      case 0: return fmt::format("t({})", Expression('m', depth - 1));
      case 1: return fmt::format("(({} %*% {}) %% 7)", OneOf('m'), Expression('m', depth - 1));
      case 2:
        if (!is_plain_) return fmt::format("as.matrix({}[1])", OneOf('l'));
        [[fallthrough]];
      case 3: return fmt::format("(({} * {}) %% 5)", Expression('m', depth - 1), Expression('d', depth - 1));
      default:
        return fmt::format("(({} {} {}) %% 7)", Expression('m', depth - 1), Picked({"+", "-", "*"}),
                           Expression('m', depth - 1));
    }
  }

  void Statements(int64_t count, int depth) {
    for (int64_t i = 0; i < count; ++i) AddStatement(depth);
  }

  void AddStatement(int depth) {
    switch (Below(11)) {
      case 0: return CellsAtOnce();
      case 1:
      case 2:
      case 9: return Assign(Picked({"m", "d", "l", "m"})[0]);
      case 3:
      case 4:
      case 5: return AssignSeveral();
      case 6:
        if (indent_ == 0 || prints_inside_) Print(One(variables_));
        return;
      case 7:
        if (functions_.empty()) return;
        return CallOnly();
      case 8:
        if (depth < 2) return Branch(depth);
        return;
      default:
        if (depth < 2) return Loop(depth);
        return;
    }
  }

  void Assign(char type) {
    const std::string value = Expression(type, 3);
    // Inside of branches and loops only what is there before is assigned, so that it is one type everywhere.
    const std::string name = nested_ > 0 ? ExistingOf(type) : NewName();
    if (name.empty()) return;
    Line(fmt::format("{} = {}", name, value));
    if (nested_ == 0) variables_.push_back({name, type});
  }

  std::string ExistingOf(char type) {
    std::vector<std::string> names;
    for (const Variable& variable : variables_)
      if (variable.type == type && variable.name[0] == 'v') names.push_back(variable.name);
    return names.empty() ? "" : One(names);
  }

  void AssignSeveral() {
    if (functions_.empty() || nested_ > 0) return;
    const Signature function = One(functions_);
    const std::string arguments = Arguments(function, 1);
    if (has_all_ && (indent_ == 0 || evals_inside_) && function.parameters == "m" && !function.calls_itself &&
        Chance(4)) {
      const std::string list = NewName(), value = NewName();
      Line(fmt::format("{} = all({}, {})", list, NameOf(function), arguments));
      const char type = function.results[0];
      if (type == 'l') return;
      Line(fmt::format("{} = as.{}({}[\"r0\"])", value, type == 'm' ? "matrix" : "scalar", list));
      return variables_.push_back({value, type});
    }
    const size_t count = 1 + static_cast<size_t>(Below(static_cast<int64_t>(function.results.size())));
    std::string targets;
    std::vector<Variable> made;
    for (size_t i = 0; i < count; ++i) {
      made.push_back({NewName(), function.results[i]});
      targets += (i == 0 ? "" : ", ") + made.back().name;
    }
    Line(fmt::format("[{}] = {}({})", targets, function.name, arguments));
    variables_.insert(variables_.end(), made.begin(), made.end());
  }

  // By its name and by eval().
  void CallBothWays(const Signature& function) {
    const char type = function.results[0];
    if (type == 'l') return;
    const std::string arguments = Arguments(function, 0);
    if (function.parameters != "l" || function.calls_itself)
      Line(fmt::format("print(sum(ev({}, list({}))))", NameOf(function), arguments));
    const std::string call = fmt::format("{}({})", function.name, arguments);
    Line(type == 'm' ? fmt::format("print(sum({}))", call) : fmt::format("print({} * 1.5)", call));
  }

  void CallOnly() {
    const Signature function = One(functions_);
    const std::string arguments = Arguments(function, 1);
    Line(fmt::format("{}({})", function.name, arguments));
  }

  void Print(const Variable& variable) {
    if (variable.type == 'm') return Line(fmt::format("print(sum({0}) + \" \" + max({0}))", variable.name));
    if (variable.type == 'd') return Line(fmt::format("print({} + 0.5)", variable.name));
    Line(fmt::format("print(sum(as.matrix({}[1])))", variable.name));
  }

  // What a list of another level is called is not known outside.
  void Inside(int depth) {
    ++nested_;
    ++indent_;
    const size_t known = variables_.size();
    Statements(1 + Below(3), depth + 1);
    Line(prints_inside_ ? "assert(1 == 1)" : "inside = 1");
    variables_.resize(known);
    --indent_;
    --nested_;
  }

  // Iterations that may run at once, with calls in them.
  void CellsAtOnce() {
    if (nested_ > 0 || is_plain_) return;
    const std::string name = NewName();
    const std::string value = Expression('d', 2);
    Line(fmt::format("{} = matrix(0, rows=3, cols=3)", name));
    Line(fmt::format("parfor (at in 1:3) {{ {}[at, {}] = ({} + at) %% 7 }}", name, 1 + Below(3), value));
    variables_.push_back({name, 'm'});
  }

  void Branch(int depth) {
    Line(fmt::format("if (sum({}) %% {} == 0) {{", OneOf('m'), 1 + Below(3)));
    Inside(depth);
    if (Chance(2)) {
      Line("} else {");
      Inside(depth);
    }
    Line("}");
  }

  void Loop(int depth) {
    const std::string counter = fmt::format("i{}", ++names_);
    if (Chance(2)) {
      Line(fmt::format("for ({} in 1:{}) {{", counter, 1 + Below(3)));
      Inside(depth);
    } else {
      Line(fmt::format("{} = 0", counter));
      Line(fmt::format("while ({} < {}) {{", counter, Below(3)));
      Inside(depth);
      Line(fmt::format("  {0} = {0} + 1", counter));
    }
    Line("}");
  }

  std::mt19937 random_;
  std::string text_;
  std::vector<Signature> functions_;
  std::vector<Variable> variables_;
  bool has_all_ = false, prints_inside_ = false, evals_inside_ = false, is_plain_ = false;
  int names_ = 0, nested_ = 0;
  size_t indent_ = 0;
};

int64_t Setting(const char* name, int64_t usual) {
  const char* const text = std::getenv(name);
  return text == nullptr ? usual : std::atoll(text);
}

TEST(RandomCallsTest, PrintTheSameHoweverTheyAreCompiled) {
  const testing_support::TemporaryFolder folder;
  const std::string path = folder.path() + "/random.dml";
  const int64_t first = Setting("HEDDLE_CALLS_SEED", 1);
  const int64_t seeds = Setting("HEDDLE_CALLS_SEEDS", testing_support::RunsAllPlans() ? 600 : 40);
  for (int64_t seed = first; seed < first + seeds; ++seed) {
    const std::string script = CallsGenerator(static_cast<uint32_t>(seed)).Make();
    SCOPED_TRACE(testing::Message() << "replay with HEDDLE_CALLS_SEED=" << seed << " HEDDLE_CALLS_SEEDS=1\n"
                                    << script);
    testing_support::WriteText(path, script);
    const Finished expected = RunCase(kAsWritten, path);
    ASSERT_EQ(expected.code, 0) << expected.errors;
    const std::string pass = kPasses[static_cast<size_t>(seed) % std::size(kPasses)];
    for (const std::string& variant :
         {std::string("run --threads 2"), "run --threads 1 --fusion off --disable-pass " + pass,
          std::string(seed % 8 == 0 ? "sim --workers 2 --min-distributed-bytes 0" : "run --fusion all")}) {
      const Finished finished = RunCase(variant, path);
      ASSERT_EQ(finished.code, 0) << variant << "\n" << finished.errors;
      ASSERT_EQ(finished.output, expected.output) << variant;
    }
    const Finished checked = RunCase("check", path);
    ASSERT_EQ(checked.code, 0) << checked.errors;
  }
}

}  // namespace
}  // namespace heddle
