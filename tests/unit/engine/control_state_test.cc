// SPDX-License-Identifier: Apache-2.0
// Sessions that stop between two blocks and go on elsewhere.
#include "engine/variables/control_state.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "engine/checkpoints/checkpoint_file.h"
#include "engine/variables/variable_bytes.h"
#include "ops/panels/panel_store.h"
#include "ops/panels/spill_files.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

// Every kind of block and of value, seeds, sizes that only a run tells, cells written in place.
const char* const kScripts[] = {
    // loops in loops, branches, unseeded numbers
    "X = rand(rows=60, cols=3)\ns = 0\nfor (i in 1:3) {\n  if (i %% 2 == 1) {\n    j = 0\n"
    "    while (j < 2) { X = X + rand(rows=60, cols=3); j = j + 1 }\n  } else {\n    X[i, 2] = sum(X)\n  }\n"
    "  s = s + sum(X)\n  print(i + \" \" + s)\n}\nfor (k in seq(9, 1, -4)) { print(k) }\n"
    "print(toString(colSums(X), decimal=17))",
    // calls within calls, with variables of their own and several results
    "f = function(matrix[double] A, integer n) return (matrix[double] B, double t) {\n"
    "  B = A\n  t = 0\n  if (n > 0) {\n    [B, t] = f(A * 1.5, n - 1)\n    t = t + sum(B)\n  }\n}\n"
    "A = rand(rows=40, cols=2, seed=3)\n[C, t] = f(A, 3)\nprint(t)\nprint(sum(C))",
    // CSR, text, logical, removeEmpty
    "S = rand(rows=80, cols=5, sparsity=0.1, seed=4)\nname = \"ünï \\\"x\\\"\"\nb = TRUE\n"
    "while (b) {\n  S = removeEmpty(target=S, margin=\"rows\")\n  print(name + nrow(S))\n"
    "  b = nrow(S) > 30\n  if (b) { S = S[1:(nrow(S) - 5), ] }\n  name = name + \"'\"\n}\n"
    "print(toString(S))",
    // lists, in lists, with names and without
    "L = list(1, matrix(2, rows=3, cols=2), name=\"x\")\nM = list(a=L, b=TRUE)\nfor (i in 1:3) {\n"
    "  M = append(M, list(c=i))\n  L[1] = i * 1.5\n}\nprint(length(M) + \" \" + length(L))\n"
    "print(sum(as.matrix(L[2])) + as.scalar(L[1]))\nprint(toString(as.scalar(M[\"b\"])))",
    // a parfor whose iterations nobody may run at once, and what it leaves
    "R = matrix(0, rows=4, cols=2)\nparfor (i in 1:4, check=0) {\n  v = rand(rows=30, cols=1)\n"
    "  R[as.integer(i), 1] = sum(v)\n  R[i, 2] = max(v)\n}\nprint(toString(R, decimal=17))",
};

// Stops before every block of `program` in turn, and goes on in other sessions, of `ranks` ranks (0: as
// many).
void StopEverywhere(const Program& program, const SessionOptions& options, int64_t step, int ranks = 0) {
  SessionOptions others = options;
  if (ranks > 0) others.ranks = ranks;
  Stretch whole;
  const ScriptOutcome expected = RunProgram(program, options, &whole);
  ASSERT_TRUE(expected.status.ok()) << expected.status.ToString();
  ASSERT_GT(whole.blocks, 4);
  for (int64_t block = 0; block < whole.blocks; block += step) {
    SCOPED_TRACE(block);
    Stretch first{.end = block};
    const ScriptOutcome before = RunProgram(program, options, &first);
    ASSERT_EQ(before.status.message(), "it stands still");
    Stretch second{.begin = first.states, .begin_ranks = options.ranks};
    const ScriptOutcome after = RunProgram(program, others, &second);
    ASSERT_TRUE(after.status.ok()) << after.status.ToString();
    ASSERT_EQ(before.output + after.output, expected.output);
    ASSERT_EQ(second.blocks, whole.blocks - block) << "nothing is done twice";
  }
}

TEST(ControlStateTest, ASessionGoesOnFromEveryBlockWithTheSameBytes) {
  for (const char* script : kScripts) {
    SCOPED_TRACE(script);
    StopEverywhere(CompileOrDie(script), {}, 1);
  }
}

// 34 trees are two groups: a session that goes on between the way forth and the way back, or between two
// rounds, has nothing that the first one kept.
TEST(ControlStateTest, ADerivativeOfARecursionGoesOn) {
  const Program program = CompileOrDie(
      "net = function(matrix[double] T, integer n, matrix[double] E, matrix[double] W) return (matrix[double] h) {\n"
      "  if (as.scalar(T[n,1]) == 0) h = E[as.integer(as.scalar(T[n,3])),]\n"
      "  else {\n"
      "    a = net(T, as.integer(as.scalar(T[n,1])), E, W)\n    b = net(T, as.integer(as.scalar(T[n,2])), E, W)\n"
      "    h = tanh((a + b) %*% W)\n  }\n}\n"
      "loss = function(matrix[double] T, matrix[double] R, matrix[double] E, matrix[double] W) return (double s) {\n"
      "  s = 0.0\n"
      "  for (i in 1:nrow(R)) {\n    h = net(T, as.integer(as.scalar(R[i,1])), E, W)\n    s = s + sum(h ^ 2)\n  }\n}\n"
      "i = seq(1, 40)\n"
      "T = cbind((i > 3) * (i %% 3 + 1), (i > 3) * pmax(i - 7, 1), i %% 5 + 1)\n"
      "R = 41 - seq(1, 34)\n"
      "E = rand(rows=5, cols=9, min=-1, max=1, seed=1)\nW = rand(rows=9, cols=9, min=-1, max=1, seed=2)\n"
      "[s, dE, dW] = gradient(\"loss\", [\"E\", \"W\"], T, R, E, W)\n"
      "print(toString(rbind(dE, dW), decimal=17))");
  StopEverywhere(program, {}, 13);
  StopEverywhere(program, SplitOver(2), 41);
}

TEST(ControlStateTest, SeveralRanksGoOnTogether) {
  for (const char* script : kScripts) {
    SCOPED_TRACE(script);
    StopEverywhere(CompileOrDie(script), SplitOver(3), 3);
  }
}

TEST(ControlStateTest, OtherNumbersOfRanksGoOn) {
  for (const char* script : kScripts) {
    SCOPED_TRACE(script);
    const Program program = CompileOrDie(script);
    StopEverywhere(program, SplitOver(3), 5, 1);
    StopEverywhere(program, SplitOver(3), 4, 2);
    StopEverywhere(program, SplitOver(1), 5, 2);
    StopEverywhere(program, SplitOver(2), 6, 5);
  }
}

TEST(ControlStateTest, FilesAreWrittenOnce) {
  const std::string path = testing::TempDir() + "/control_state.csv";
  const auto text = [&] {
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
  };
  const Program program = CompileOrDie(
      "X = rand(rows=5, cols=2, seed=1)\nfor (i in 1:3) { X = X + i; print(sum(X)) }\n"
      "write(X, \"control_state.csv\", format=\"csv\")\nif (sum(X) > 0) { print(\"written\") }\n"
      "Y = read(\"control_state.csv\")\nprint(sum(Y - X))");
  Stretch whole;
  ASSERT_TRUE(RunProgram(program, {}, &whole).status.ok());
  const std::string expected = text();
  for (int64_t block = 0; block < whole.blocks; ++block) {
    std::remove(path.c_str());
    Stretch first{.end = block};
    RunProgram(program, {}, &first);
    Stretch second{.begin = first.states};
    const ScriptOutcome after = RunProgram(program, {}, &second);
    ASSERT_TRUE(after.status.ok()) << block << after.status.ToString();
    EXPECT_EQ(text(), expected) << block;
  }
}

TEST(ControlStateTest, AStateOfAnotherProgramIsRefused) {
  const std::string text = "x = 1\nwhile (x < 5) { x = x + 1 }\nprint(x)";
  Stretch first{.end = 3};
  RunProgram(CompileOrDie(text), {}, &first);
  Stretch second{.begin = first.states};
  const ScriptOutcome outcome = RunProgram(CompileOrDie(text + "\nprint(1)"), {}, &second);
  EXPECT_EQ(outcome.status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(outcome.status.message(),
            "a state of the control program cannot be resumed here: it is one of another program");
}

// A state that says of itself that it is of this program, and does not fit it.
TEST(ControlStateTest, EveryPartMustFitTheProgram) {
  const Program program =
      CompileOrDie("n = 0\nX = rand(rows=3, cols=2)\nwhile (n < 3) {\n  n = n + sum(X)\n  X = X + 1\n}");
  Stretch first{.end = 3};
  RunProgram(program, {}, &first);
  const std::unique_ptr<ops::SpillFiles> files = ops::MakeSpillFiles("");
  const std::unique_ptr<ops::PanelStore> panels = ops::MakePanelStore(*files);
  const auto fault = [&](const std::function<void(ControlState&)>& change) {
    Result<ControlState> state = ReadCheckpoint(Stretch::kCheckpoint, 1, 0, 1, *first.states, *panels);
    EXPECT_TRUE(state.ok() && !state->stack.empty() && !state->frames.empty());
    change(*state);
    Stretch second{.begin = std::make_shared<MemoryCheckpoints>()};
    EXPECT_TRUE(
        WriteCheckpoint(*state, 0, Stretch::kCheckpoint, *second.begin, /*piece_bytes=*/1 << 20).ok());
    const Status status = RunProgram(program, {}, &second).status;
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status.ToString();
    return status.message();
  };
  const std::string start = "a state of the control program cannot be resumed here: ";
  EXPECT_EQ(fault([](ControlState& state) { state.stack.back().owner = 999; }),
            start + "the program has no such block");
  EXPECT_EQ(fault([](ControlState& state) {
              state.stack.push_back({.kind = ControlState::Activation::Kind::kCall, .function = "g"});
            }),
            start + "the program has no such function");
  EXPECT_EQ(fault([](ControlState& state) { state.stack.back().next = 999; }),
            start + "a list of blocks is too short");
  EXPECT_EQ(fault([](ControlState& state) { state.seeds.emplace_back(); }),
            start + "loops and their seeds do not match");
  EXPECT_EQ(fault([](ControlState& state) { state.frames.emplace_back(); }),
            start + "calls and their variables do not match");
  EXPECT_EQ(fault([](ControlState& state) {
              Variable& x = *state.frames[0].FindMutable("X");
              x.info = ValueInfo::OfFrame(3, nullptr);
            }),
            start + "a variable is not what it says");
}

TEST(ControlStateTest, TextsThatAreNoStatesAreDataLoss) {
  ControlState state;
  state.seeds.push_back({});
  state.stack.push_back({});
  const std::string text = state.ToText();
  ASSERT_TRUE(ControlState::ParseText(text).ok());
  const auto fault = [&](const std::string& word, const std::string& other) {
    std::string damaged = text;
    const Status status =
        ControlState::ParseText(damaged.replace(damaged.find(word), word.size(), other)).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    return status.message();
  };
  EXPECT_NE(fault("in sequence", "in disorder").find("expected a kind of step, found \"disorder"),
            std::string::npos);
  EXPECT_NE((fault("next 0", "next 0 Frame")).find("expected a line of a control state, found \"Frame"),
            std::string::npos);
}

TEST(ControlStateTest, CutAndDamagedBytesAreDataLoss) {
  Stretch first{.end = 3};
  RunProgram(
      CompileOrDie(
          "X = rand(rows=300, cols=1)\nX = X + sum(X)\ns = 1\nwhile (s < 3) { s = s + 1 }\nprint(sum(X))"),
      SplitOver(2), &first);
  const std::unique_ptr<ops::SpillFiles> files = ops::MakeSpillFiles("");
  const std::unique_ptr<ops::PanelStore> panels = ops::MakePanelStore(*files);
  const auto read = [&](int rank) {
    return ReadCheckpoint(Stretch::kCheckpoint, 2, rank, 2, *first.states, *panels).status();
  };
  ASSERT_TRUE(read(0).ok());
  for (const int rank : {0, 1}) {
    const std::string name = CheckpointObject(Stretch::kCheckpoint, rank);
    const std::string bytes = first.states->objects().at(name);
    EXPECT_TRUE(bytes.starts_with("heddle checkpoint 1\n"));
    for (size_t size = 0; size < bytes.size(); size += 7) {
      first.states->Set(name, bytes.substr(0, size));
      EXPECT_EQ(read(rank).message(), fmt::format("'{}' is no checkpoint, or is cut off", name)) << size;
    }
    // Not all bytes are of values that this rank reads: those of a part without rows are for others.
    int harmless = 0, told = 0;
    for (size_t at = 0; at < bytes.size(); at += 3) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
      first.states->Set(name, damaged);
      const Status status = read(rank);
      if (status.ok()) ++harmless;
      if (status.message() == fmt::format("the checkpoint '{}' is damaged", name)) ++told;
      EXPECT_TRUE(status.ok() || status.code() == StatusCode::kDataLoss) << at << " " << status.ToString();
    }
    EXPECT_LT(harmless, 70) << rank;
    EXPECT_GT(told, 100) << rank;
    first.states->Set(name, bytes);
  }
  const std::atomic<bool> given_up = true;
  EXPECT_EQ(
      WriteCheckpoint({}, 0, "test/2-1", *first.states, /*piece_bytes=*/1, &given_up).status().message(),
      "the checkpoint is not needed any more");
  EXPECT_FALSE(first.states->objects().contains("test/2-1/rank-0"));
  ASSERT_TRUE(read(0).ok());
  EXPECT_TRUE(first.states->RemoveAll(Stretch::kCheckpoint).ok());
  EXPECT_EQ(read(0).code(), StatusCode::kNotFound);
}

// What a file or a generator gives is not in a checkpoint, and is made again.
TEST(ControlStateTest, SourcesAreMadeAgain) {
  const Program program = CompileOrDie(
      "X = rand(rows=3000, cols=20, seed=1)\nwrite(X, \"source_out.csv\", format=\"csv\")\n"
      "F = read(\"source_in.csv\", format=\"csv\", rows=500, cols=4)\nL = list(F, X)\nG = F\ns = 0\n"
      "for (i in 1:3) { s = s + sum(X) * i + sum(G); X[i, 1] = i; print(s) }\n"
      "print(sum(as.matrix(L[1])) + sum(as.matrix(L[2])) + sum(X))");
  const std::string path = testing::TempDir() + "/source_in.csv";
  const auto write = [&](int shift) {
    std::ofstream out(path);
    for (int i = 0; i < 500; ++i) out << i << ",2.5,3," << i % 7 + shift << "\n";
  };
  write(0);
  StopEverywhere(program, {}, 2);
  StopEverywhere(program, SplitOver(3), 3, 2);
  Stretch whole;
  ASSERT_TRUE(RunProgram(program, {}, &whole).status.ok());
  bool is_small = false;
  for (int64_t block = 0; block < whole.blocks; ++block) {
    Stretch first{.end = block};
    RunProgram(program, {}, &first);
    const std::string bytes = first.states->objects().begin()->second;
    is_small |= bytes.size() < 4000 && bytes.find("\"L\"") != std::string::npos;
  }
  EXPECT_TRUE(is_small) << "X and what is in L have sources before X is changed";
  // A file that has changed since.
  Stretch first{.end = whole.blocks - 3};
  RunProgram(program, {}, &first);
  write(1);
  Stretch second{.begin = first.states};
  const Status status = RunProgram(program, {}, &second).status;
  EXPECT_EQ(status.code(), StatusCode::kAborted) << status.ToString();
  EXPECT_NE(status.message().find("'source_in.csv' has changed since it was read: it was "),
            std::string::npos);
}

// A file that the program may write is no source.
TEST(ControlStateTest, WrittenFilesAreNoSources) {
  const std::string path = testing::TempDir() + "/no_source.csv";
  const Program program = CompileOrDie(
      "X = read(\"no_source.csv\", format=\"csv\", rows=3, cols=1)\nfor (i in 1:2) { print(sum(X) + i) }\n"
      "write(X + 1, \"no_source.csv\", format=\"csv\")\nfor (i in 1:2) { print(sum(X) + i) }");
  const auto write = [&] { std::ofstream(path) << "1\n2\n3\n"; };
  write();
  Stretch whole;
  const ScriptOutcome expected = RunProgram(program, {}, &whole);
  ASSERT_TRUE(expected.status.ok());
  for (int64_t block = 2; block < whole.blocks; ++block) {
    write();
    Stretch first{.end = block};
    const ScriptOutcome before = RunProgram(program, {}, &first);
    Stretch second{.begin = first.states};
    const ScriptOutcome after = RunProgram(program, {}, &second);
    ASSERT_TRUE(after.status.ok()) << after.status.ToString();
    EXPECT_EQ(before.output + after.output, expected.output) << block;
  }
}

TEST(VariableBytesTest, CutAndLongBytesAreDataLoss) {
  const std::string bytes = EncodeVariable(Variable::OfScalar(Scalar(1.5)));
  ASSERT_TRUE(DecodeVariable(bytes).ok());
  const auto fault = [](const std::string& damaged) {
    const Status status = DecodeVariable(damaged).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    return status.message();
  };
  EXPECT_EQ(fault(""), "a variable is cut off");
  EXPECT_EQ(fault(bytes.substr(0, bytes.find('\n') + 3)), "a variable is cut off");
  EXPECT_EQ(fault(bytes.substr(0, bytes.size() - 1)), "the value of a variable is cut off");
  EXPECT_EQ(fault(bytes + "x"), "bytes are left behind a variable");
}

}  // namespace
}  // namespace heddle::engine
