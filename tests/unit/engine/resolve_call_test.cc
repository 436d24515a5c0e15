// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/resolve_call.h"

#include <gtest/gtest.h>

#include "engine/control/local_run.h"

namespace heddle::engine {
namespace {

// m_f and s_f, of which the type of the first argument chooses; g by its name alone.
class ResolveCallTest : public testing::Test {
 protected:
  ResolveCallTest() {
    for (const char* name : {"m_f", "s_f", "g"}) program_.functions[name].name = name;
    call_.kind = Block::Kind::kCall;
    call_.position = {"a.dml", 3, 5};
    call_.first_argument = "x";
    call_.candidates = {{"f", DataType::kMatrix, "m_f", "", false, {{"X", "x"}}},
                        {"f", DataType::kScalar, "s_f", "", false, {{"x", "x"}}},
                        {"g", DataType::kUnknown, "g", "", false, {{"a", "x"}}},
                        {"h", DataType::kUnknown, "", "a.dml:9:1: list() is missing", false, {}},
                        {"w", DataType::kUnknown, "", "w() takes 2, got 1", true, {}}};
    call_.selector = "name";
  }

  std::string Resolve(const std::string& name, const Variable& x) {
    VariableTable frame;
    frame.Set("name", Variable::OfScalar(Scalar(name)));
    frame.Set("x", x);
    const Result<ResolvedCall> resolved = ResolveCall(program_, call_, frame);
    code_ = resolved.status().code();
    return resolved.ok() ? resolved->function->name : resolved.status().ToString();
  }

  Program program_;
  Block call_;
  StatusCode code_ = StatusCode::kOk;  // Of what Resolve() did last.
};

Variable MatrixVariable() { return Variable::Placeholder(Distribution::Each(), ValueInfo::OfMatrix({3, 2})); }

TEST_F(ResolveCallTest, TheTypeOfTheFirstArgumentChoosesTheEntryPoint) {
  EXPECT_EQ(Resolve("f", MatrixVariable()), "m_f");
  EXPECT_EQ(Resolve("f", Variable::OfScalar(Scalar(1))), "s_f");
  EXPECT_EQ(Resolve("g", MatrixVariable()), "g");
  EXPECT_EQ(Resolve("g", Variable::OfScalar(Scalar(1))), "g");
}

TEST_F(ResolveCallTest, SaysWhyNothingFits) {
  call_.candidates.erase(call_.candidates.begin());
  EXPECT_EQ(Resolve("f", MatrixVariable()),
            "a.dml:3:5: no function of this name takes a matrix as its first argument");
  EXPECT_EQ(Resolve("h", MatrixVariable()), "a.dml:3:5: a.dml:9:1: list() is missing");
  EXPECT_EQ(code_, StatusCode::kUnimplemented);
  EXPECT_EQ(Resolve("w", MatrixVariable()), "a.dml:3:5: w() takes 2, got 1");
  EXPECT_EQ(code_, StatusCode::kFailedPrecondition);
  EXPECT_EQ(Resolve("k", MatrixVariable()),
            "a.dml:3:5: there is no function 'k' to call\n"
            "a function of the library must be named by a string in the script, or by one of its arguments");
}

// The same through a session: entry points that the compiler had to keep, in a program as text.
TEST(CandidatesTest, ASessionRunsTheOneThatFits) {
  const std::string text = R"(program "a.dml"
main {
  basic 0 {
    graph {
      %0 = literal() value=3 : scalar integer 0x0 dense
      %1 = assign(%0) name="x" : scalar integer 0x0 dense
    }
  }
  call 1 @ "a.dml":1:1 {
    first_argument "x"
    candidate "" matrix "m_f" "" arguments "X"="x"
    candidate "" scalar "s_f" "" arguments "x"="x"
    results "y"
  }
  basic 2 {
    graph {
      %0 = variable() name="y" : unknown unknown ?x? dense
      %1 = print(%0) : unknown unknown ?x? dense
    }
  }
}
function "m_f" {
  parameters "X" matrix double
  results "y" scalar string
  body {
    basic 3 {
      graph {
        %0 = literal() value="matrix" : scalar string 0x0 dense
        %1 = assign(%0) name="y" : scalar string 0x0 dense
      }
    }
  }
}
function "s_f" {
  parameters "x" scalar double
  results "y" scalar string
  body {
    basic 4 {
      graph {
        %0 = literal() value="scalar" : scalar string 0x0 dense
        %1 = assign(%0) name="y" : scalar string 0x0 dense
      }
    }
  }
}
)";
  const Result<Program> program = Program::Parse(text);
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  std::string printed;
  RunSurroundings surroundings;
  surroundings.directory = "/";
  surroundings.print = [&](std::string_view line) { printed += line; };
  const RunOutcome outcome = RunLocally(*program, SessionOptions(), surroundings);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  EXPECT_EQ(printed, "scalar\n");
}

}  // namespace
}  // namespace heddle::engine
