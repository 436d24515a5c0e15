// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/script_generator.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/fuzz/expression_generator.h"
#include "tests/fuzz/hostile.h"

namespace heddle::fuzz {
namespace {

class ScriptGenerator {
 public:
  explicit ScriptGenerator(Chooser& choose)
      : choose_(choose), make_(choose, static_cast<int>(choose.PickNumber({0, 0, 10, 60}))) {}

  GeneratedScript Make() {
    GeneratedScript script;
    for (int64_t i = choose_.Between(0, 2); i > 0; --i) AddFunction();
    if (!functions_.empty() && choose_.Chance(15)) {
      script.library = std::move(text_);
      text_ = "source(\"library.dml\") as library\n";
      for (std::string& name : functions_) name = "library::" + name;
    }
    Line("X = rand(rows={}, cols={}, min=-1, max=1, seed=1)", rows_, columns_);
    scope_.matrices.push_back({"X", rows_, columns_});
    Line("v = rand(rows={}, cols=1, seed=2)", rows_);
    scope_.matrices.push_back({"v", rows_, 1});
    Line("s = 2");
    scope_.scalars.emplace_back("s");
    for (int64_t i = choose_.Between(2, 10); i > 0; --i) AddStatement(2);
    for (const MatrixVariable& matrix : scope_.matrices)
      if (choose_.Chance(50)) Line("print(sum({}))", matrix.name);
    script.text = std::move(text_);
    return script;
  }

 private:
  template <typename... Arguments>
  void Line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += indent_ + fmt::format(format, std::forward<Arguments>(arguments)...) + "\n";
  }

  int64_t Size() {
    if (choose_.Chance(4)) return 0;
    return choose_.Chance(60) ? choose_.PickNumber({rows_, columns_, 1})
                              : choose_.PickNumber({1, 2, 3, 7, 65});
  }
  std::string NewName() { return fmt::format("t{}", ++names_); }

  void AddFunction() {
    const std::string name = fmt::format("f{}", functions_.size());
    const bool recursive = choose_.Chance(20);
    Line("{} = function(matrix[double] A, double b = 2) return (matrix[double] R, double r) {{", name);
    Scope inner;
    inner.matrices.push_back({"A", 7, 3});
    inner.scalars.emplace_back("b");
    std::swap(inner, scope_);
    indent_ += "  ";
    Line("R = {}", make_.Matrix(scope_, 7, 3, 2));
    Line("r = {}", make_.Scalar(scope_, 2));
    if (recursive) Line("if (b > 0) [R, r] = {}(A + 1, b - {})", name, choose_.Pick({"1", "1", "0.5", "0"}));
    indent_.resize(indent_.size() - 2);
    std::swap(inner, scope_);
    Line("}}");
    functions_.push_back(name);
  }

  // Names that a block defines may be undefined behind it; mostly they stay inside.
  void AddBlock(int depth, const std::string& first_statement = "") {
    const Scope before = scope_;
    Line("{{");
    indent_ += "  ";
    if (!first_statement.empty()) Line("{}", first_statement);
    for (int64_t i = choose_.Between(1, 3); i > 0; --i) AddStatement(depth - 1);
    indent_.resize(indent_.size() - 2);
    Line("}}");
    if (!choose_.Chance(10)) scope_ = before;
  }

  void AddLoop(int depth) {
    const std::string name = fmt::format("i{}", ++names_);
    std::string range =
        choose_.Pick({"1:3", "3:1", "1:7", "seq(1, 6, 2)", "seq(5, 1, -2)", "1:nrow(v)", "2:2"});
    if (choose_.Chance(8)) range = HostileNumber(choose_) + ":" + HostileNumber(choose_);
    Line("{} ({} in {})", choose_.Pick({"for", "for", "parfor"}), name, range);
    scope_.scalars.push_back(name);
    AddBlock(depth);
  }

  void AddWhile(int depth) {
    const std::string name = fmt::format("k{}", ++names_);
    Line("{} = 0", name);
    Line("while ({} < {} & {})", name, choose_.Between(0, 4),
         choose_.Pick({"TRUE", "s < 1e6", "sum(v) > -1e9"}));
    AddBlock(depth, fmt::format("{0} = {0} + 1", name));
  }

  void AddCells() {
    const MatrixVariable to = choose_.Pick(scope_.matrices);
    if (choose_.Chance(15)) {
      Line("{}[{}, {}] = {}", to.name, HostileNumber(choose_), choose_.Pick({"1", "", "1:2"}),
           make_.Scalar(scope_, 1));
      return;
    }
    const int64_t row = choose_.Between(1, to.rows), last = choose_.Between(row, to.rows);
    const int64_t column = choose_.Between(1, to.columns);
    switch (choose_.Below(4)) {
      case 0: Line("{}[{}, {}] = {}", to.name, row, column, make_.Scalar(scope_, 2)); break;
      case 1: Line("{}[{}, ] = {}", to.name, row, make_.Matrix(scope_, 1, to.columns, 2)); break;
      case 2: Line("{}[, {}] = {}", to.name, column, make_.Matrix(scope_, to.rows, 1, 2)); break;
      default:
        Line("{}[{}:{}, {}] = {}", to.name, row, last, column, make_.Matrix(scope_, last - row + 1, 1, 2));
    }
  }

  void AddFile() {
    if (choose_.Chance(15)) {
      const std::string name = NewName();
      Line("write({}, \"scalar\")", choose_.Pick(scope_.scalars));
      Line("{} = read(\"scalar\", data_type=\"scalar\"{})", name,
           choose_.Pick({"", ", value_type=\"double\"", ", value_type=\"int\"", ", value_type=\"string\""}));
      Line("print({})", name);
      return;
    }
    const MatrixVariable from = choose_.Pick(scope_.matrices);
    const std::string format = choose_.Pick({"csv", "text", "mm", "libsvm"});
    const std::string path = fmt::format("out{}.{}", choose_.Below(2), format);
    Line("write({}, \"{}\", format=\"{}\"{})", from.name, path, format,
         format == "csv" ? choose_.Pick({"", ", header=TRUE", ", sep=\";\"", ", sparse=TRUE"}) : "");
    if (choose_.Chance(70)) {
      const std::string name = NewName();
      Line("{} = read(\"{}\"{})", name, path,
           choose_.Pick({"", "", ", format=\"csv\"", ", format=\"text\""}));
      scope_.matrices.push_back({name, from.rows, from.columns});
    }
  }

  void AddCall() {
    if (functions_.empty()) return Line("print({})", make_.AnyCall(scope_));
    const std::string result = NewName(), scalar = NewName();
    Line("[{}, {}] = {}({}, {})", result, scalar, choose_.Pick(functions_), make_.Matrix(scope_, 7, 3, 1),
         make_.Scalar(scope_, 1));
    scope_.matrices.push_back({result, 7, 3});
    scope_.scalars.push_back(scalar);
  }

  void AddSquare() {
    const std::string a = make_.Matrix(scope_, 3, 3, 1);
    const std::string regular = fmt::format("t({0}) %*% {0} + diag(matrix(2, 3, 1))", a);
    const std::string name = NewName();
    Line("{} = {}", name, regular);
    Line("{0} = {1}({0})", name, choose_.Pick({"inv", "cholesky"}));
    if (choose_.Chance(50)) Line("print(sum(solve({}, {})))", regular, make_.Matrix(scope_, 3, 1, 1));
    Line("print({}({}))", choose_.Pick({"trace", "det", "sum"}), name);
    scope_.matrices.push_back({name, 3, 3});
    if (choose_.Chance(50)) AddResults(regular);
  }

  // Calls of several results; some results are not read.
  void AddResults(const std::string& regular) {
    const std::string first = NewName(), second = NewName(), third = NewName();
    const int64_t rows = Size(), columns = Size();
    switch (choose_.Below(4)) {
      case 0: Line("[{}, {}] = eigen({})", first, second, regular); break;
      case 1: Line("[{}, {}] = qr({})", first, second, make_.Matrix(scope_, rows, columns, 1)); break;
      case 2: Line("[{}, {}, {}] = lu({})", first, second, third, regular); break;
      default: Line("[{}, {}, {}] = svd({})", first, second, third, make_.Matrix(scope_, rows, columns, 1));
    }
    Line("print(sum(abs({})))", choose_.Chance(50) ? first : second);
  }

  void AddAssignment() {
    const std::string name =
        choose_.Chance(25) && !scope_.matrices.empty() ? choose_.Pick(scope_.matrices).name : NewName();
    const int64_t rows = Size(), columns = Size();
    Line("{} = {}", name, make_.Matrix(scope_, rows, columns, 3));
    std::erase_if(scope_.matrices, [&](const MatrixVariable& matrix) { return matrix.name == name; });
    scope_.matrices.push_back({name, rows, columns});
  }

  // Results whose shape is known only when they are there.
  void AddDynamic() {
    const std::string name = NewName();
    switch (choose_.Below(3)) {
      case 0:
        Line("{} = removeEmpty(target={}, margin=\"{}\")", name, make_.Matrix(scope_, Size(), Size(), 2),
             choose_.Pick({"rows", "cols"}));
        break;
      case 1: {
        const int64_t rows = std::max<int64_t>(1, Size());
        Line("{} = table({} + 3, abs(round({})) + 1)", name, fmt::format("seq(1, {})", rows),
             make_.Matrix(scope_, rows, 1, 1));
        break;
      }
      default: Line("{} = X[1:as.integer(min(nrow(X), max(1, {}))), ]", name, make_.Scalar(scope_, 1));
    }
    Line("print(nrow({0}) + \" \" + ncol({0}) + \" \" + sum({0}))", name);
  }

  void AddStatement(int depth) {
    switch (choose_.Below(depth > 0 ? 17 : 13)) {
      case 0:
      case 1:
      case 2: return AddAssignment();
      case 3: {
        const std::string name = choose_.Chance(30) ? "s" : NewName();
        Line("{} {} {}", name, choose_.Chance(10) && name == "s" ? "+=" : "=", make_.Scalar(scope_, 3));
        scope_.scalars.push_back(name);
        return;
      }
      case 4: return Line("print({})", make_.Text(scope_, 3));
      case 5: return AddCells();
      case 6: return AddFile();
      case 7: return AddCall();
      case 8: return AddSquare();
      case 9: return AddDynamic();
      case 10:
        if (choose_.Chance(70)) return Line("print(sum({}))", make_.Matrix(scope_, Size(), Size(), 3));
        return Line("{} = {}", NewName(), make_.AnyCall(scope_));
      case 11:
        if (choose_.Chance(15)) return Line("print({})", make_.Deep(scope_));
        if (choose_.Chance(40)) return Line("{}", make_.AnyCall(scope_));
        return Line("print(\"%d %s\", {}, {})", make_.Scalar(scope_, 1), make_.Text(scope_, 1));
      case 12: {
        const std::string name = NewName();
        Line("{} = {}", name, make_.Text(scope_, 2));
        scope_.texts.push_back(name);
        return;
      }
      case 13: return AddLoop(depth);
      case 14: return AddWhile(depth);
      default:
        Line("if ({})", make_.Condition(scope_, 2));
        AddBlock(depth);
        if (choose_.Chance(50)) {
          Line("else");
          AddBlock(depth);
        }
    }
  }

  Chooser& choose_;
  ExpressionGenerator make_;
  const int64_t rows_ = choose_.PickNumber({1, 2, 7, 65, 300, 1003});
  const int64_t columns_ = choose_.PickNumber({1, 2, 3, 5, 17, 40});
  std::string text_, indent_;
  Scope scope_;
  std::vector<std::string> functions_;
  int names_ = 0;
};

}  // namespace

GeneratedScript GenerateScript(Chooser& choose) { return ScriptGenerator(choose).Make(); }

}  // namespace heddle::fuzz
