// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/engine/random_programs.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>
#include <vector>

#include "core/environment/random.h"

namespace heddle::engine {
namespace {

// A program of matrices whose sizes are known to it or not; every statement is right for every size.
class MatrixProgram {
 public:
  MatrixProgram(uint64_t seed, const RandomShapes& shapes) : random_(seed), shapes_(shapes) {}

  std::string Make() {
    for (int i = 0; i < 2; ++i) Draw();
    const uint64_t statements = 3 + random_.Below(7);
    for (uint64_t i = 0; i < statements; ++i) {
      AddStatement();
      if (shapes_.by_rows) EndBlock();
    }
    for (const std::string& name : names_)
      text_ += fmt::format(
          "print(nrow({0}) + \" \" + ncol({0}) + \" \" + toString(sum({0}), decimal=17) + \" \" + "
          "sum({0} * (seq(1, nrow({0})) %% 7)) + \" \" + sum(colSums({0})^2) + \" \" + sum(t({0}) %*% {0}))\n",
          name);
    return std::move(text_);
  }

 private:
  uint64_t Below(uint64_t bound) { return random_.Below(bound); }
  const std::string& Some() { return names_[Below(names_.size())]; }

  void Assign(const std::string& value) {
    const std::string name = fmt::format("v{}", names_.size());
    text_ += fmt::format("{} = {}\n", name, value);
    names_.push_back(name);
  }

  void Draw() {
    static constexpr int64_t kRows[] = {1, 3, 64, 65, 130, 500, 1000, 2001};
    static constexpr int64_t kColumns[] = {1, 2, 5, 9};
    Assign(fmt::format("round(100 * rand(rows={}, cols={}, min=-1, max=1, seed={}, sparsity={})) / 10",
                       kRows[Below(8)] * shapes_.times_rows, kColumns[Below(4)], Below(100),
                       Below(3) == 0 ? "0.2" : "1.0"));
  }

  // A matrix of so many rows and columns, with or without zeros.
  std::string Drawn(const std::string& rows, const std::string& columns) {
    return fmt::format("round(10 * rand(rows={}, cols={}, min=-1, max=1, seed={}, sparsity={}))", rows,
                       columns, Below(100), Below(3) == 0 ? "0.1" : "1.0");
  }
  // Few and many, of a product.
  std::string Rows() {
    static constexpr const char* kRows[] = {"1", "3", "20", "70", "300"};
    return kRows[Below(5)];
  }

  std::string Wide() {
    static constexpr const char* kColumns[] = {"100", "700", "2001"};
    return kColumns[Below(3)];
  }

  // A matrix with as many columns as another one has rows.
  void AssignTurned(const std::string& value) {
    Assign(shapes_.may_be_wide ? value : fmt::format("t({})", value));
  }

  void EndBlock() {
    const std::string& x = Some();
    switch (Below(3)) {
      case 0: text_ += fmt::format("if (sum({}) > 1e300) print(\"none\")\n", x); break;
      case 1: text_ += fmt::format("for (i in 1:2) {0} = {0} * 0.5 + i\n", x); break;
      default: break;
    }
  }

  uint64_t AnyStatement() {
    static constexpr uint64_t kByRows[] = {0, 1, 2, 3, 8, 9, 40, 49};
    return shapes_.by_rows && Below(15) > 0 ? kByRows[Below(std::size(kByRows))] : Below(50);
  }

  void AddStatement() {
    const std::string x = Some();
    switch (AnyStatement()) {
      case 0: return Draw();
      case 1: return Assign(fmt::format("{} * 2 + 1", x));
      case 2: return Assign(fmt::format("{0} - colMeans({0})", x));
      case 3: return Assign(fmt::format("cbind({0}, rowSums({0}))", x));
      case 4: return Assign(fmt::format("rbind({0}, {0} * 3)", x));
      case 5: return Assign(fmt::format("rbind({0}[1,], {0}, colSums({0}))", x));
      case 6: return Assign(fmt::format("rev({})", x));
      case 7: return AssignTurned(fmt::format("t({})", x));
      case 8: return Assign(fmt::format("t({0}) %*% {0}", x));
      case 9: return Assign(fmt::format("{0} %*% (t({0}) %*% rowSums({0}))", x));
      case 10: return Assign(fmt::format("{0}[1:(1 + nrow({0}) %/% {1}),]", x, 2 + Below(3)));
      case 11: return Assign(fmt::format("{0}[(1 + nrow({0}) %/% {1}):nrow({0}), 1]", x, 2 + Below(3)));
      case 12:
        text_ += fmt::format("{0}[1:(1 + nrow({0}) %/% 3),] = matrix({1}, 1 + nrow({0}) %/% 3, ncol({0}))\n",
                             x, Below(9));
        return;
      case 13:
        return Assign(
            fmt::format("removeEmpty(target={0}, margin=\"rows\", select=({0}[,1] > {1}))", x, Below(6)));
      case 14: return Assign(fmt::format("removeEmpty(target={0} * ({0} > 4), margin=\"rows\")", x));
      case 15: return Assign(fmt::format("removeEmpty(target={0} * (colSums({0}) > 0), margin=\"cols\")", x));
      case 16:
        return Assign(fmt::format("order(target={}, by=1, decreasing={})", x, Below(2) ? "TRUE" : "FALSE"));
      case 17: return Assign(fmt::format("order(target={}, by=1, index.return=TRUE)", x));
      case 18: return Assign(fmt::format("cumsum({})", x));
      case 19: return Assign(fmt::format("table({0}[,1] + 11, ({0}[,1] > 0) + 1)", x));
      case 20: return Assign(fmt::format("unique({})", x));
      case 21: return Assign(fmt::format("roll({}, {})", x, Below(5)));
      case 22: return AssignTurned(fmt::format("matrix({0}, ncol({0}), nrow({0}))", x));
      case 23: return Assign(fmt::format("matrix(quantile({0}[,1], 0.3) + median({0}[,1]), 2, 2)", x));
      case 24: return Assign(fmt::format("matrix(cov({0}, {0} * {0} + 1) + moment({0}, 3), 2, 2)", x));
      case 25: return Assign(fmt::format("matrix(moment({0}, abs({0}) + 1, 2), 2, 2)", x));
      case 26: return Assign(fmt::format("cumsumprod(cbind({0}[,1], {0}[,1] / 100))", x));
      case 27:
        text_ += fmt::format("print(toString({0}, rows={1}, decimal=10))\n", x, 1 + Below(300));
        return;
      case 28: return Assign(fmt::format("matrix(mean({0}, abs({0}) + 1), 1, 2)", x));
      case 29: return Assign(fmt::format("einsum(\"ij,ik->jk\", {0}, {0})", x));
      case 30: return AssignTurned(fmt::format("einsum(\"ij,jk->ki\", {0}, t({0})[,1:1])", x));
      case 31: return Assign(fmt::format("sample(nrow({0}), nrow({0}), {1})", x, Below(90)));
      case 32: {
        const size_t at = names_.size();
        text_ += fmt::format("[f{0}, g{0}] = fft({1})\n", at, x);
        return Assign(fmt::format("round(f{0} * 10) + round(g{0} * 10)", at));
      }
      case 33:
        return Assign(fmt::format("histograms(({0}[,1] > 0) + 1, abs(round({0})) + 1, {0}[,1:1], 2, 4)", x));
      case 34: {
        const size_t at = names_.size();
        text_ += fmt::format(
            "[y{0}, m{0}, v{0}, s{0}, w{0}] = batch_norm2d({1}, matrix(2, 1, 1), matrix(1, 1, 1), "
            "matrix(0, 1, 1), matrix(1, 1, 1), \"train\", 0.1, 0.9)\n",
            at, x);
        return Assign(fmt::format("y{0} * as.scalar(w{0}) + as.scalar(m{0})", at));
      }
      case 35: {
        const size_t at = names_.size();
        text_ += fmt::format(
            "[dx{0}, dg{0}, db{0}] = batch_norm2d_backward({1}, {1} * 2, matrix(2, 1, 1), 0.1, "
            "matrix(1, 1, 1), matrix(0.5, 1, 1))\n",
            at, x);
        return Assign(fmt::format("dx{0} + as.scalar(dg{0}) / 1e6 + as.scalar(db{0}) / 1e6", at));
      }
      case 36:
      case 37: {
        // The last of them asks for what each step has left.
        const size_t at = names_.size();
        const bool asks = Below(2) == 0;
        text_ += fmt::format(
            "W{0} = (matrix(seq(1, 4 * (ncol({1}) + 1)), ncol({1}) + 1, 4) %% 7 - 3) / 10\n"
            "X{0} = cbind({1}, {1} / 2)\nZ{0} = matrix(0.1, nrow({1}), 1)\n"
            "[o{0}, c{0}, O{0}, C{0}, G{0}] = lstm(X{0}, W{0}, matrix(0.1, 1, 4), Z{0}, Z{0}, TRUE)\n"
            "[dX{0}, dW{0}, db{0}, do{0}, dc{0}] = lstm_backward(X{0}, W{0}, matrix(0.1, 1, 4), Z{0}, Z{0}, "
            "TRUE, o{0}, c{0}{2})\n",
            at, x, asks ? fmt::format(", O{0}, C{0}, G{0}", at) : "");
        if (asks) text_ += fmt::format("print(sum(O{0} * (seq(1, 2))) + sum(G{0}) + sum(dW{0}))\n", at);
        return Assign(fmt::format("dX{0} + do{0} + sum(dW{0}) + sum(db{0}) + sum(dc{0})", at));
      }
      case 38: {
        const size_t at = names_.size();
        text_ += fmt::format("[f{0}, g{0}] = fft_linearized({1})\n", at, x);
        return Assign(fmt::format("round(f{0} * 10) + round(g{0} * 10)", at));
      }
      case 39: return Assign(fmt::format("{} %*% {}", Drawn(Rows(), fmt::format("nrow({})", x)), x));
      case 40: return Assign(fmt::format("{} %*% {}", x, Drawn(fmt::format("ncol({})", x), Rows())));
      case 41: return Assign(fmt::format("(t({0}) * 2 + 1) %*% cbind({0}, {0} > 3)", x));
      case 42: {
        const std::string y = Drawn(fmt::format("ncol({})", x), "130");
        return Assign(fmt::format("({} %*% {}) %*% {}", x, y, Drawn("130", Rows())));
      }
      case 43: return Assign(fmt::format("{0} %*% t({0}[1:min(70, nrow({0})),])", x));
      // Wide ones, which ranks have by columns.
      case 44: return Assign(fmt::format("{} + 1", Drawn(Rows(), Wide())));
      case 45: return Assign(fmt::format("exp(matrix({}, {}, {}) / 9)", Below(9), Rows(), Wide()));
      case 46: return AssignTurned(fmt::format("t({0})[,(1 + nrow({0}) %/% 3):nrow({0})]", x));
      case 47: {
        // Bounds that only the run tells, of as many columns as it knows before.
        const size_t at = names_.size();
        text_ += fmt::format("T{0} = t({1})\ni{0} = 1 + as.integer(sum(T{0}[,1]) < 0) * (ncol(T{0}) %/% 2)\n",
                             at, x);
        return Assign(fmt::format("T{0}[,i{0}] + T{0}[,1]", at));
      }
      case 48: return Assign(fmt::format("t({0}) %*% {1}", x, Drawn(fmt::format("nrow({})", x), Rows())));
      case 49: return Assign(fmt::format("t({0}) %*% cbind({0}, {0} > 3)", x));
      default: return;
    }
  }

  SeededRandom random_;
  const RandomShapes shapes_;
  std::string text_;
  std::vector<std::string> names_;
};

// A program of frames of three columns; every statement is right for every size and every type.
class FrameProgram {
 public:
  explicit FrameProgram(uint64_t seed) : random_(seed) {}

  std::string Make() {
    for (int i = 0; i < 2; ++i) Draw();
    const uint64_t statements = 3 + Below(6);
    for (uint64_t i = 0; i < statements; ++i) AddStatement();
    for (const std::string& name : names_)
      text_ += fmt::format(
          "print({0})\nprint(typeof({0}))\nprint(detectSchema({0}))\n"
          "[X, M] = transformencode(target={0}, spec=\"{{ids: true, recode: [1, 2, 3]}}\")\nprint(M)\n"
          "print(nrow(X) + \" \" + sum(X * (seq(1, nrow(X)) %% 7)))\n",
          name);
    return std::move(text_);
  }

 private:
  uint64_t Below(uint64_t bound) { return random_.Below(bound); }
  const std::string& Some() { return names_[Below(names_.size())]; }

  void Assign(const std::string& value) {
    const std::string name = fmt::format("f{}", names_.size());
    text_ += fmt::format("{} = {}\n", name, value);
    names_.push_back(name);
  }

  void Draw() {
    static constexpr int64_t kRows[] = {1, 3, 64, 65, 130, 500, 1000};
    static constexpr const char* kCells[] = {"round(9 * R)", "round(30 * R) / 2", "(R > 0.5) * 1", "R * 1e12",
                                             "ifelse(R > 0.8, NaN, round(3 * R))"};
    std::string columns;
    for (int j = 0; j < 3; ++j)
      columns += fmt::format("{}{}", j == 0 ? "" : ", ", kCells[Below(std::size(kCells))]);
    text_ += fmt::format("R = rand(rows={}, cols=1, seed={})\n", kRows[Below(7)], Below(100));
    Assign(fmt::format("as.frame(cbind({}))", columns));
  }

  // A frame of so many rows as `name` has, whose first column becomes a part of the result.
  void Encode(const std::string& name) {
    static constexpr const char* kSpecs[] = {
        "{ids: true, dummycode: [1], recode: [2, 3]}",
        "{ids: true, recode: [1, 3], hash: [2], K: 4, omit: [1, 2]}",
        "{ids: true, recode: [1, 2, 3], impute: [{id: 1, method: global_mode}, {id: 2, method: constant, "
        "value: none}]}",
        "{ids: true, bag_of_words: [1], hash: [2, 3], K: 5}"};
    text_ += fmt::format("s = \"{}\"\n[X, M] = transformencode(target={}, spec=s)\n", kSpecs[Below(4)], name);
    text_ += "print(nrow(X) + \" \" + ncol(X) + \" \" + sum(X * (seq(1, nrow(X)) %% 5)))\nprint(M)\n";
    text_ += fmt::format("X = transformapply(target={}, meta=M, spec=s)\nprint(sum(X^2))\n", name);
  }

  // Bins and means of columns of numbers.
  void Bin(const std::string& name) {
    const std::string codes = Codes(name);
    text_ += fmt::format(
        "s = \"{{ids: true, bin: [{{id: 1, method: equi-height, numbins: {}}}, {{id: 2, method: equi-width, "
        "numbins: 3}}], impute: [{{id: 3, method: global_mean}}]}}\"\n"
        "[X, M] = transformencode(target=as.frame({} / 3), spec=s)\n"
        "print(sum(X * (seq(1, nrow(X)) %% 5)))\nprint(M)\n",
        2 + Below(9), codes);
  }

  void AddStatement() {
    const std::string x = Some();
    switch (Below(23)) {
      case 0: return Draw();
      case 1: return Encode(x);
      case 2: return Assign(fmt::format("rbind({}, {})", x, Some()));
      case 3: return Assign(fmt::format("cbind({0}[,1:2], map({0}[,3], \"x -> x + x.length()\"))", x));
      case 4: return Assign(fmt::format("map({}, \"x -> x.equals(\\\"1\\\") ? null : x\")", x));
      case 5: return Assign(fmt::format("map({}, \"x -> new String[]{{x[2], x[0], x[1]}}\", margin=1)", x));
      case 6:
        return Assign(
            fmt::format("map({}, \"UtilFunctions.syntacticalPatternDiscovery(0.3, other)\")", Texts(x)));
      case 7: return Assign(fmt::format("applySchema({0}, detectSchema({0}))", x));
      case 8: return Assign(fmt::format("dropInvalidType({}, frame(\"FP64\", rows=1, cols=3))", x));
      case 9: return Assign(fmt::format("dropInvalidLength({}, matrix(\"1 3 -1\", 1, 3))", x));
      case 10:
        return Assign(fmt::format("replace(target={}, pattern=\"{}\", replacement=\"8\")", x, Below(3)));
      case 11: return Assign(fmt::format("{0}[1:(1 + nrow({0}) %/% {1}),]", x, 2 + Below(3)));
      case 12: return Assign(fmt::format("{0}[(1 + nrow({0}) %/% 2):nrow({0}), ]", x));
      case 13:
        text_ += fmt::format("{0}[1:(1 + nrow({0}) %/% 3), 2] = {0}[1:(1 + nrow({0}) %/% 3), 2]\n", x);
        return;
      case 14:
        return Assign(
            fmt::format("removeEmpty(target={0}, margin=\"rows\", select=(seq(1, nrow({0})) %% {1} != 0))", x,
                        2 + Below(4)));
      case 15: return Assign(fmt::format("removeEmpty(target={}, margin=\"rows\")", x));
      case 16: return Assign(fmt::format("({0} == {0})", x));
      case 17:
        return Assign(
            fmt::format("valueSwap({}, frame([\"INT32\", \"FP64\", \"STRING\"], rows=1, cols=3))", Texts(x)));
      case 18:
        text_ += fmt::format(
            "print(tokenize(target={0}, spec=\"{{algo: split, out: count, id_cols: [1], tokenize_col: 3}}\", "
            "max_tokens=2))\n",
            x);
        return;
      case 19: return Assign(fmt::format("as.frame({})", Codes(x)));
      case 20:
        text_ += fmt::format("print(toString({0}, rows={1}, cols=2))\nprint(colnames({0}))\n", x, Below(9));
        return;
      case 21: return Bin(x);
      case 22: return Assign(fmt::format("map({}, \"x -> x.equals(\\\"2\\\") ? \\\"\\\" : x\")", x));
      default: return;
    }
  }

  // The frame with columns of texts alone.
  static std::string Texts(const std::string& name) { return fmt::format("map({}, \"x -> x\")", name); }
  // Its cells as codes, three columns.
  std::string Codes(const std::string& name) {
    text_ +=
        fmt::format("[X, M] = transformencode(target={}, spec=\"{{ids: true, recode: [1, 2, 3]}}\")\n", name);
    return "replace(target=X, pattern=NaN, replacement=-1)";
  }

  SeededRandom random_;
  std::string text_;
  std::vector<std::string> names_;
};

}  // namespace

std::string RandomMatrixProgram(uint64_t seed, const RandomShapes& shapes) {
  return MatrixProgram(seed, shapes).Make();
}
std::string RandomFrameProgram(uint64_t seed) { return FrameProgram(seed).Make(); }

}  // namespace heddle::engine
