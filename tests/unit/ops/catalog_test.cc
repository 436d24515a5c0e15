// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/catalog.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/frames.h"
#include "tests/unit/ops/run_operator.h"

// Goes over all operators: what an entry of the catalog must have beside its kernel.
namespace heddle::ops {
namespace {

namespace fs = std::filesystem;

std::string ReadText(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// An operator that acts, asks the clock or a file, or only says how others are called has no value to
// compare. What is defined on scalars alone has one definition, which is its own (docs/numerics.md, R5).
bool IsFused(const Operator& op) {
  return op.name == "fused" || op.name == "fusedSeveral" || op.name == "phased";
}

bool IsRecursion(const Operator& op) { return op.name.starts_with("recursive"); }

bool NeedsReference(const Operator& op) {
  const bool has_value = (op.infer != nullptr || op.infer_several != nullptr) && !op.effect && op.pure;
  const bool on_scalars = op.kind == OperatorKind::kOther && op.evaluate != nullptr && op.name != "as.scalar";
  // The reference of a fused operator is its body (tests/unit/ops/fused), that of a recursion its calls.
  return has_value && !on_scalars && !IsFused(op) && !IsRecursion(op);
}

TEST(CatalogTest, EveryOperatorHasAReferenceKernel) {
  for (const Operator* op : AllOperators()) {
    if (NeedsReference(*op)) {
      const bool is_there = op->infer_several == nullptr ? reference::FindKernel(op->name) != nullptr
                                                         : reference::FindSeveralKernel(op->name) != nullptr;
      EXPECT_TRUE(is_there) << op->name << ": a reference kernel belongs in tests/reference and its table";
    }
  }
}

// Operators that one worker computes alone, even if the ranks have their operands by rows, and why. One that
// is neither row by row nor a reduction nor in stages belongs here, with a reason that a user would accept.
struct WholeOperator {
  std::string_view names, reason;
};
constexpr WholeOperator kWholeOperators[] = {
    {"cholesky det det_backward eigen eigen_backward inv lu qr solve sqrtMatrixJava svd",
     "a factorization (docs/distribution.md, \"Left\")"},
    {"as.declared as.double as.integer as.logical as.scalar cdf density format icdf pchisq pexp pf pnorm pt "
     "qchisq qexp qf qnorm qt tensorCells tensorDims tensorText time",
     "of scalars, or of a single cell"},
    {"phased", "made of small operators, none of whose operands is split"},
    {"lstm", "where sizes are not known when it is planned; else lstm_by_rows"},
};

TEST(CatalogTest, WhatRunsWholeIsKnown) {
  std::set<std::string_view> whole;
  for (const Operator* op : AllOperators()) {
    const bool is_operator = op->infer != nullptr || op->infer_several != nullptr;
    const bool has_form = op->row_rule != nullptr || op->staged != nullptr || op->role == Role::kRbind;
    if (is_operator && !has_form && !op->effect) whole.insert(op->name);
  }
  for (const WholeOperator& group : kWholeOperators) {
    std::istringstream names{std::string(group.names)};
    for (std::string name; names >> name;)
      EXPECT_EQ(whole.erase(name), 1U) << name << " has a distributed form: it is not " << group.reason;
  }
  for (const std::string_view name : whole)
    ADD_FAILURE() << name << " runs whole on one worker: give it a row rule, a reduction or stages";
}

// One name an input, or one for all of any number.
TEST(CatalogTest, EveryInputHasAName) {
  for (const Operator* op : AllOperators()) {
    const std::vector<OperatorParameter> parameters = ParseParameters(op->parameters);
    int inputs = 0, required = 0;
    std::set<std::string_view> names;
    for (const OperatorParameter& parameter : parameters) {
      EXPECT_TRUE(names.insert(parameter.name).second) << op->name << ": " << parameter.name;
      inputs += parameter.inputs();
      required += parameter.optional ? 0 : parameter.inputs();
    }
    if (op->infer == nullptr && op->infer_several == nullptr) {
      EXPECT_FALSE(parameters.empty()) << op->name;
    } else if (op->max_inputs < 0) {
      EXPECT_GE(inputs, op->min_inputs) << op->name;
    } else if (op->form != CallForm::kTable && op->form != CallForm::kMatrix &&
               op->form != CallForm::kSame) {  // Calls of other arguments.
      EXPECT_EQ(inputs, op->max_inputs) << op->name;
      EXPECT_LE(required, op->max_inputs) << op->name;
      EXPECT_GE(required, op->min_inputs) << op->name;
    }
  }
}

TEST(CatalogTest, NamesThatItGivesAreInTheCatalog) {
  for (const Operator* op : AllOperators()) {
    for (const std::string_view name : {op->overload, op->total, op->of_rows, op->of_columns})
      EXPECT_TRUE(name.empty() || FindOperator(name) != nullptr) << op->name << " names " << name;
    EXPECT_TRUE(op->form == CallForm::kNone || FindBuiltin(op->name) == op) << op->name;
  }
  EXPECT_EQ(FindBuiltin("avg"), FindOperator("mean"));
  EXPECT_EQ(FindBuiltin("pmin"), FindOperator("min"));
  EXPECT_EQ(FindBuiltin("+"), nullptr);
  EXPECT_EQ(FindOperator("outer"), nullptr);
  EXPECT_NE(FindBuiltin("outer"), nullptr);
}

TEST(CatalogTest, NoTwoOperatorsHaveOneRole) {
  std::map<Role, std::string_view> operators;
  for (const Operator* op : AllOperators())
    if (op->role != Role::kNone) {
      const auto [found, is_new] = operators.emplace(op->role, op->name);
      EXPECT_TRUE(is_new) << found->second << " and " << op->name;
    }
  EXPECT_EQ(operators[Role::kProduct], "%*%");
  EXPECT_EQ(operators[Role::kAssert], "assert");
  for (int role = static_cast<int>(Role::kProduct); role <= static_cast<int>(Role::kAssert); ++role)
    EXPECT_TRUE(operators.contains(static_cast<Role>(role))) << role;
  EXPECT_EQ(RoleOf({.op = "variable"}), Role::kNone);
}

TEST(CatalogTest, EveryOperatorHasALineInTheDocs) {
  const std::string page = ReadText(HEDDLE_SOURCE_DIR "/docs/architecture.md");
  std::istringstream lines(page.substr(page.find("| name | inputs |")));
  std::set<std::string> words;
  for (std::string line; std::getline(lines, line) && line.starts_with('|');) {
    // "\|" is the operator |; names stand in back quotes, several with blanks between them.
    for (size_t at = line.find("\\|"); at != std::string::npos; at = line.find("\\|"))
      line.replace(at, 2, "OR");
    std::istringstream names(line.substr(1, line.find('|', 1) - 1));
    for (std::string name; names >> name;) {
      std::erase(name, '`');
      words.insert(name == "OR" ? "|" : name);
    }
  }
  for (const Operator* op : AllOperators())
    EXPECT_TRUE(words.contains(std::string(op->name)))
        << op->name << " has no line in the table of docs/architecture.md";
}

// A test names the operator: as text in a unit test of kernels ("erf"), or as a call in a script ("erf(").
TEST(CatalogTest, EveryOperatorHasATest) {
  std::string unit_tests, scripts;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(HEDDLE_SOURCE_DIR "/tests/unit/ops"))
    if (entry.path().extension() == ".cc" && entry.path().filename() != "catalog_test.cc")
      unit_tests += ReadText(entry.path());
  for (const fs::directory_entry& entry : fs::directory_iterator(HEDDLE_SOURCE_DIR "/tests/scripts/cases"))
    if (entry.path().extension() == ".dml") scripts += ReadText(entry.path());
  for (const Operator* op : AllOperators()) {
    const std::string name(op->name);
    if (IsFused(*op)) continue;  // tests/unit/ops/fused makes them by another way than their names.
    const bool in_unit_test = unit_tests.find("\"" + name + "\"") != std::string::npos;
    const bool in_script = op->form != CallForm::kNone && scripts.find(name + "(") != std::string::npos;
    EXPECT_TRUE(in_unit_test || in_script) << name << ": no test names it";
  }
}

// Kernel and reference agree on a matrix that suits most operators: symmetric, positive definite, of
// whole positive numbers. The tests of the families look at everything else.
TEST(CatalogTest, KernelsAgreeWithTheirReferences) {
  const Matrix x = testing::Rows({{9, 2, 1, 1}, {2, 8, 1, 1}, {1, 1, 7, 3}, {1, 1, 3, 6}});
  int compared = 0;
  for (const Operator* op : AllOperators()) {
    const reference::Kernel kernel = reference::FindKernel(op->name);
    if (kernel == nullptr || op->infer == nullptr) continue;
    for (int count = std::max(1, op->min_inputs); count <= 3; ++count) {
      if (op->max_inputs >= 0 && count > op->max_inputs) break;
      testing::Invocation call(std::string(op->name), testing::Inputs(static_cast<size_t>(count), Value(x)));
      if (!call.Infer().ok()) continue;
      const std::vector<const Value*> inputs(static_cast<size_t>(count), &*call.inputs[0]);
      const Value expected = kernel(call.node, inputs);
      const Value got = call.Run();
      ASSERT_EQ(got.kind(), expected.kind()) << op->name;
      if (got.IsFrame()) {
        EXPECT_TRUE(Frame::SameCells(got.frame(), expected.frame())) << op->name;
      } else if (got.IsScalar()) {
        EXPECT_NEAR(got.scalar().AsDouble(), expected.scalar().AsDouble(), 1e-9) << op->name;
      } else {
        ASSERT_EQ(got.matrix().shape(), expected.matrix().shape()) << op->name;
        for (int64_t i = 0; i < got.matrix().rows(); ++i)
          for (int64_t j = 0; j < got.matrix().columns(); ++j) {
            const double a = got.matrix().At(i, j), b = expected.matrix().At(i, j);
            EXPECT_TRUE(std::fabs(a - b) <= 1e-9 * std::fabs(b) + 1e-9 || a == b ||
                        (std::isnan(a) && std::isnan(b)))
                << op->name << " at " << i << ", " << j << ": " << a << " and " << b;
          }
      }
      ++compared;
      break;
    }
  }
  EXPECT_GE(compared, 85);
}

void ExpectNear(const Matrix& got, const Matrix& expected) {
  ASSERT_EQ(got.shape(), expected.shape());
  for (int64_t i = 0; i < got.rows(); ++i)
    for (int64_t j = 0; j < got.columns(); ++j) {
      if (std::isnan(got.At(i, j)) && std::isnan(expected.At(i, j))) continue;
      ASSERT_NEAR(got.At(i, j), expected.At(i, j), 1e-9) << i << ", " << j;
    }
}

TEST(CatalogTest, KernelsOfSeveralResultsAgreeWithTheirReferences) {
  const Value x = testing::Rows({{9, 2, 0, 1}, {2, 8, 1, 0}, {0, 1, 7, 3}, {1, 0, 3, 6}});
  const testing::Inputs frames[] = {
      {Value(NumberedFrame(10)), Value(Scalar("{ids: true, recode: [1, 7], dummycode: [2]}"))}};
  const Value column = testing::Rows({{1}, {2}, {3}, {4}}), row = testing::Rows({{1, 2, 3, 4}});
  const Value number(Scalar(0.5)), flag(Scalar(true));
  const Value weights = testing::Rows({{1, 0, 1, 2}, {0, 1, 1, 0}, {1, 1, 0, 1}});
  const Value steps = testing::Rows({{1, 2, 3, 4}, {0, 1, 0, 1}, {1, 1, 1, 1}, {2, 0, 2, 0}});
  const Value outputs = testing::Rows({{1, 2}, {3, 4}, {5, 6}, {7, 8}});
  const testing::Inputs forms[] = {
      {x},
      {x, x},
      {x, x, Value(Scalar(3)), Value(Scalar(1))},
      {x, x, column, number, column, column},
      {x, column, column, column, column, Value(Scalar("train")), number, number},
      {steps, weights, row, column, column, flag},
      {steps, weights, row, column, column, flag, outputs, column}};
  int compared = 0;
  for (const Operator* op : AllOperators()) {
    const reference::SeveralKernel kernel = reference::FindSeveralKernel(op->name);
    if (kernel == nullptr) continue;
    SCOPED_TRACE(op->name);
    bool is_compared = false;
    for (const testing::Inputs& given : op->takes_frames ? std::span<const testing::Inputs>(frames) : forms) {
      const int count = static_cast<int>(given.size());
      if (count < op->min_inputs || count > op->max_inputs) continue;
      testing::Invocation call(std::string(op->name), given);
      if (!call.Infer().ok()) continue;
      std::vector<const Value*> inputs;
      for (const std::optional<Value>& input : given) inputs.push_back(&*input);
      const std::vector<Value> expected = kernel(call.node, inputs);
      const Result<std::vector<Value>> got = call.RunSeveralRows(0, 0, 0);
      ASSERT_TRUE(got.ok()) << got.status().ToString();
      ASSERT_EQ(got->size(), expected.size());
      for (size_t i = 0; i < got->size(); ++i) {
        ASSERT_EQ((*got)[i].kind(), expected[i].kind());
        if (expected[i].IsFrame())
          EXPECT_TRUE(Frame::SameCells((*got)[i].frame(), expected[i].frame()));
        else
          ExpectNear((*got)[i].matrix(), expected[i].matrix());
      }
      is_compared = true;
    }
    EXPECT_TRUE(is_compared) << "no arguments here suit it";
    ++compared;
  }
  EXPECT_GE(compared, 10);
}

}  // namespace
}  // namespace heddle::ops
