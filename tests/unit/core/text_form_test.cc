// SPDX-License-Identifier: Apache-2.0
// Graph, Program and Plan travel as text: parse(print(x)) == x.
#include <gtest/gtest.h>

#include "core/programs/fused_operator.h"
#include "core/programs/phased_operator.h"
#include "core/programs/text_format.h"
#include "core/text/quoted.h"
#include "tests/unit/core/random_values.h"

// Left-out members have their defaults.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace heddle {
namespace {

template <typename T>
void ExpectSurvivesText(const T& value, uint64_t seed) {
  const std::string text = value.ToText();
  SCOPED_TRACE(testing::Message() << "replay with seed " << seed << "\n" << text);
  const Result<T> parsed = T::Parse(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  ExpectSame(value, *parsed);
  EXPECT_EQ(parsed->ToText(), text);
}

TEST(TextFormTest, ARandomGraphSurvives) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    ExpectSurvivesText(RandomValues(seed).Graph(), seed);
    if (HasFailure()) break;
  }
}

TEST(TextFormTest, ARandomProgramSurvives) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    ExpectSurvivesText(RandomValues(seed).Program(), seed);
    if (HasFailure()) break;
  }
}

TEST(TextFormTest, ARandomPlanSurvives) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    ExpectSurvivesText(RandomValues(seed).Plan(), seed);
    if (HasFailure()) break;
  }
}

// exp(x) fused, alone and as the only operator of "phased".
Graph FusedAndPhased() {
  const ValueInfo info = ValueInfo::OfMatrix({4, 2});
  FusedOperator fused{.roots = {1}};
  Node input{.op = "variable", .info = info};
  input.SetAttribute("name", "0");
  fused.body.Add(input);
  fused.body.Add({.op = "exp", .inputs = {0}, .info = info, .position = {"a \"b\".dml", 1, 2}});
  Graph graph;
  graph.Add(input);
  Node node{.op = "fused", .inputs = {0}, .info = info};
  node.fused = std::make_shared<const FusedOperator>(fused);
  graph.Add(node);
  PhasedOperator phased{{}, {1}};
  phased.body.Add(input);
  phased.body.Add(node);
  node = {.op = "phased", .inputs = {1}, .info = ValueInfo::OfTuple(), .results = {info}};
  node.phased = std::make_shared<const PhasedOperator>(phased);
  graph.Add(node);
  return graph;
}

TEST(TextFormTest, OperatorsInsideOfNodesAreReadWithTheGraph) {
  const Graph graph = FusedAndPhased();
  ASSERT_TRUE(Verify(graph).ok()) << Verify(graph).ToString();
  const Result<Graph> parsed = Graph::Parse(graph.ToText());
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_TRUE(Verify(*parsed).ok()) << Verify(*parsed).ToString();
  EXPECT_EQ(parsed->ToText(), graph.ToText());
  EXPECT_TRUE((*parsed)[1].attributes.empty());
  ASSERT_NE((*parsed)[1].fused, nullptr);
  EXPECT_EQ((*parsed)[1].fused->body[1].position.file, "a \"b\".dml");
  ASSERT_NE((*parsed)[2].phased, nullptr);
  ASSERT_NE((*parsed)[2].phased->body[1].fused, nullptr);
  EXPECT_EQ((*parsed)[2].phased->body[1].fused->ToText(), graph[1].fused->ToText());
}

TEST(TextFormTest, OperatorsInsideOfNodesAreVerified) {
  const auto error = [](std::string_view op, std::string_view operators) {
    std::string text = fmt::format("%0 = {}() operator=", op);
    AppendQuoted(operators, &text);
    return Graph::Parse(text + " : matrix double 4x2 dense\n").status().ToString();
  };
  const auto has = [](const std::string& text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(error("fused", "cell driver=0 roots=(%7)\n"), "a root is not in the body");
  has(error("fusedSeveral", "cell driver=0"), "fused operator text");
  has(error("phased", "phased roots=(%0)\n"), "a root is not in the body");
  has(error("phased", "cell"), "operator of phases text");
  has(error("fused", ""), "a template");
}

TEST(TextFormTest, TheColumnsOfAFrameAreNamedWhereTheyAreKnown) {
  std::string text;
  AppendInfo(ValueInfo::OfFrame(7, nullptr), &text);
  EXPECT_EQ(text, " : frame unknown 7x? dense");
  text.clear();
  AppendInfo(ValueInfo::OfFrame(7, std::make_shared<const Schema>(
                                       Schema{{ColumnType::kString, ColumnType::kFloat64}, {"a b", "c"}})),
             &text);
  EXPECT_EQ(text, " : frame unknown 7x2 dense schema(STRING \"a b\", FP64 c)");
}

TEST(TextFormTest, LongRunsOfColumnsAreToldOnce) {
  Schema schema;
  schema.types.assign(1000000, ColumnType::kString);
  EXPECT_EQ(schema.ToText(), "STRING*1000000");
  for (int i = 1; i <= 1000000; ++i) schema.names.push_back(fmt::format("C{}", i));
  EXPECT_EQ(schema.ToText(), "STRING*1000000 C*");
  schema.types.resize(40);
  schema.names.resize(40);
  schema.names[2] = "x";
  schema.types[39] = ColumnType::kFloat64;
  const std::string text = "STRING C1, STRING C2, STRING x, STRING*36 C*, FP64 C40";
  EXPECT_EQ(schema.ToText(), text);
  const auto parsed = [](const std::string& schema_text) {
    return Graph::Parse("%0 = f() : frame unknown 1x40 dense schema(" + schema_text + ")\n");
  };
  const Result<Graph> graph = parsed(text);
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  EXPECT_EQ(*graph->nodes[0].info.schema, schema);
  EXPECT_EQ(parsed("FP64*40")->nodes[0].info.schema->names, std::vector<std::string>());
  for (const char* const wrong : {"FP64*0", "FP64*99999999999999", "FP64*3 x", "FP64*3 C", "FP64*-1"})
    EXPECT_FALSE(parsed(wrong).ok()) << wrong;
}

TEST(TextFormTest, AMalformedSchemaIsRefused) {
  const auto error = [](std::string_view schema) {
    return Graph::Parse("%0 = f() : frame unknown 1x2 dense schema" + std::string(schema) + "\n")
        .status()
        .message();
  };
  EXPECT_EQ(error("(STRING, FP65)"),
            "graph text, line 1, column 51: expected a type of column, found \"FP65)\"");
  EXPECT_EQ(error("(STRING a, FP64)"),
            "graph text, line 1, column 57: expected names for all columns or for none, found \")\"");
  EXPECT_EQ(error("(STRING"), "graph text, line 2, column 1: expected a word, found \"\"");
}

TEST(TextFormTest, APlanListsTheStreamsOfARankAndTheCutsOfItsVariables) {
  Plan plan;
  plan.key = 1;
  plan.ranks = 2;
  plan.live_in.push_back({"X", Distribution::SplitRows(1000, 2), ValueInfo::OfMatrix({1000, 3}), 0});
  plan.live_out.push_back({"y", Distribution::Each(), ValueInfo::OfScalar(ValueType::kDouble), 1});
  EXPECT_EQ(plan.ToText(), R"(plan 0x1 ranks 2
stream cpu 0 compute "compute"
stream cpu 0 host "host"
stream cpu 0 network "network"
graph {
}
live_in "X" split rows(0, 512, 1000) %0 : matrix double 1000x3 dense
live_out "y" each %1 : scalar double 0x0 dense
)");
}

// Ranks make room on their devices by what the plan says, not by what each of them has.
TEST(TextFormTest, APlanSaysWhatRoomItLeavesOnItsDevice) {
  Plan plan;
  EXPECT_EQ(plan.ToText().find("device_room"), std::string::npos);
  EXPECT_EQ(Plan::Parse(plan.ToText())->device_room.bytes, INT64_MAX);
  plan.device_room = {.bytes = -5, .is_host = true, .of_host = 7};
  const Result<Plan> parsed = Plan::Parse(plan.ToText());
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(parsed->device_room.bytes, -5);
  EXPECT_TRUE(parsed->device_room.is_host);
  EXPECT_EQ(parsed->device_room.of_host, 7);
}

TEST(TextFormTest, ATaskIdHoldsItsDevice) {
  const Device last{DeviceType::kCpu, kMostDevices - 1};
  const TaskId id = TaskId::Make(0xffff, last, kMostStreams - 1, 0x1fffff);
  EXPECT_EQ(id.rank(), 0xffffu);
  EXPECT_EQ(id.device(), last);
  EXPECT_EQ(id.stream(), kMostStreams - 1);
  EXPECT_EQ(id.index(), 0x1fffffu);
  EXPECT_EQ(TaskId::Make(3, 2, 7).device(), Device());
  EXPECT_NE(TaskId::Make(3, last, 2, 7), TaskId::Make(3, 2, 7));
}

TEST(TextFormTest, AGraphReadsAsDocumented) {
  Graph graph;
  Node x{.op = "variable", .info = ValueInfo::OfMatrix({kUnknown, 3}, Format::kSparse)};
  x.SetAttribute("name", "x");
  graph.Add(std::move(x));
  Node product{.op = "t%*%", .inputs = {0, 0}, .info = ValueInfo::OfMatrix({3, 3})};
  graph.Add(std::move(product));
  Node sum{
      .op = "sum", .inputs = {1, kNoNode}, .after = {0}, .info = ValueInfo::OfScalar(ValueType::kDouble)};
  sum.SetAttribute("scale", 1.5);
  sum.position = {"glm.dml", 12, 9};
  graph.Add(std::move(sum));
  EXPECT_EQ(graph.ToText(),
            "%0 = variable() name=\"x\" : matrix double ?x3 sparse\n"
            "%1 = t%*%(%0, %0) : matrix double 3x3 dense\n"
            "%2 = sum(%1, _) after(%0) scale=0x1.8p+0 : scalar double 0x0 dense @ \"glm.dml\":12:9\n");
}

TEST(TextFormTest, ResultsOfATupleStandBehindItsInfo) {
  Graph graph;
  Node eigen{.op = "eigen", .info = ValueInfo::OfTuple()};
  eigen.results = {ValueInfo::OfMatrix({3, 1}), ValueInfo::OfMatrix({3, kUnknown})};
  eigen.position = {"pca.dml", 2, 10};
  graph.Add(std::move(eigen));
  graph.Add(ResultOf(graph, 0, 1));
  EXPECT_EQ(
      graph.ToText(),
      "%0 = eigen() : tuple unknown 0x0 dense results(matrix double 3x1 dense, matrix double 3x? dense) "
      "@ \"pca.dml\":2:10\n"
      "%1 = result(%0) index=1 : matrix double 3x? dense @ \"pca.dml\":2:10\n");
  ExpectSurvivesText(graph, 0);
}

TEST(TextFormTest, AProgramReadsAsBlocks) {
  Program program;
  program.script = "main.dml";
  Block loop{.kind = Block::Kind::kFor, .id = 2, .position = {"main.dml", 3, 1}};
  loop.variable = "i";
  loop.body.push_back({.kind = Block::Kind::kCall, .id = 3});
  loop.body[0].function = "f";
  loop.body[0].arguments = {{"p", "x"}};
  loop.body[0].results = {"y", ""};
  loop.dead_after = {"x"};
  program.main.push_back(std::move(loop));
  program.functions["f"] = {"f", {{"p", DataType::kMatrix, ValueType::kDouble}}, {}, {}, {}};
  EXPECT_EQ(program.ToText(), R"(program "main.dml"
main {
  for 2 @ "main.dml":3:1 {
    variable "i"
    body {
      call 3 {
        function "f"
        arguments "p"="x"
        results "y" ""
      }
    }
    dead_after "x"
  }
}
function "f" {
  parameters "p" matrix double
}
)");
}

TEST(TextFormTest, AStepOnListsNamesItsOperation) {
  Program program;
  program.script = "main.dml";
  Block step{.kind = Block::Kind::kList, .id = 1, .position = {"main.dml", 2, 1}};
  step.operation = ListOperation::kAsScalar;
  step.arguments = {{"list", "l"}};
  step.results = {"x"};
  program.main.push_back(std::move(step));
  const std::string text = program.ToText();
  EXPECT_EQ(text, R"(program "main.dml"
main {
  list 1 @ "main.dml":2:1 {
    operation "as.scalar"
    arguments "list"="l"
    results "x"
  }
}
)");
  const Result<Program> parsed = Program::Parse(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(parsed->main[0].operation, ListOperation::kAsScalar);
  EXPECT_EQ(parsed->ToText(), text);
}

TEST(TextFormTest, AFunctionOfADerivativeNamesItsPartnerAndItsAdjoints) {
  Program program;
  program.script = "main.dml";
  program.functions["backward f"].name = "gradient of f";
  program.functions["backward f"].derivative = {
      DerivativeRole::Kind::kBackward, "forward f", {"%d.h", "", "%d.c"}};
  const std::string text = program.ToText();
  EXPECT_EQ(text, R"(program "main.dml"
function "backward f" named "gradient of f" {
  derivative backward "forward f"
  adjoints "%d.h" "" "%d.c"
}
)");
  const Result<Program> parsed = Program::Parse(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  const DerivativeRole& derivative = parsed->functions.at("backward f").derivative;
  EXPECT_EQ(derivative.kind, DerivativeRole::Kind::kBackward);
  EXPECT_EQ(derivative.partner, "forward f");
  EXPECT_EQ(derivative.adjoints, (std::vector<std::string>{"%d.h", "", "%d.c"}));
  EXPECT_EQ(parsed->ToText(), text);
  EXPECT_FALSE(Program::Parse("program \"a\" function \"f\" { derivative sideways \"g\" }").ok());
}

TEST(TextFormTest, AnUnknownOperationOnListsIsRefused) {
  const Result<Program> parsed =
      Program::Parse("program \"x\" main { list 1 { operation \"sort\" results \"y\" } }");
  ASSERT_FALSE(parsed.ok());
  EXPECT_NE(parsed.status().message().find("expected an operation on lists before this"), std::string::npos)
      << parsed.status().message();
}

TEST(TextFormTest, BlanksMeanNothing) {
  const Result<Graph> graph =
      Graph::Parse("\n  %0=sum ( ) \n :scalar  double 0 x 0 dense %1 = t(%0):matrix double ?x? dense");
  ASSERT_TRUE(graph.ok()) << graph.status().ToString();
  EXPECT_EQ(graph->size(), 2);
  EXPECT_EQ((*graph)[0].op, "sum");
  EXPECT_EQ((*graph)[1].inputs, std::vector<NodeId>{0});
}

TEST(TextFormTest, AnErrorNamesItsPlace) {
  const Result<Graph> graph =
      Graph::Parse("%0 = sum() : scalar double 0x0 dense\n%1 = t(%0 : matrix double 1x1 dense\n");
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(graph.status().message(),
            "graph text, line 2, column 11: expected ), found \": matrix double 1x1 \"");
}

TEST(TextFormTest, MalformedTextsAreErrors) {
  for (const char* text : {"x", "%1 = t() : matrix double 1x1 dense", "%0 = t(", "%0 = t() : matrix",
                           "%0 = t() : matrix double 1x1 heap", "%0 = t() : matrix double 1y1 dense",
                           "%0 = t() a= : matrix double 1x1 dense", "%0 = t() \"a : matrix double 1x1 dense",
                           "%0 = t(%99999999999) : matrix double 1x1 dense",
                           "%0 = t() : matrix double 1x1 dense @ file:1:1", "%0"})
    EXPECT_FALSE(Graph::Parse(text).ok()) << text;
  for (const char* text :
       {"", "program", "program \"a\" main {", "program \"a\" main { loop 1 { } }",
        "program \"a\" main { basic 1 { } } }", "program \"a\" function \"f\" { } function \"f\" { }"})
    EXPECT_FALSE(Program::Parse(text).ok()) << text;
  for (const char* text :
       {"", "plan 1 ranks 1 graph { }", "plan 0x1 ranks 1 graph { } task 0:0:9999999 sink",
        "plan 0x1 ranks 1 graph { } task 0:0:1 dance", "plan 0x1 ranks 1 graph { } task 0:0:-1 sink",
        "plan 0x1 ranks 1 graph { } task 0:0:1 compute phase \"waltz\"",
        "plan 0x1 ranks 1 graph { } live_in \"x\" here %0 : matrix double 1x1 dense"})
    EXPECT_FALSE(Plan::Parse(text).ok()) << text;
}

// Each says what is expected, where, and what is there.
TEST(TextFormTest, MalformedTextsSayWhatIsExpected) {
  const auto expects = [](const Status& status, const std::string& what) {
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << what;
    EXPECT_NE(status.message().find(": expected " + what + ", found \""), std::string::npos)
        << status.message();
  };
  const std::string node = "%0 = t() : matrix double 1x1 dense";
  expects(Graph::Parse("%1 = t() : matrix double 1x1 dense").status(), "nodes numbered from %0");
  expects(Graph::Parse("%0 = t(%99999999999) : matrix double 1x1 dense").status(), "an integer of 32 bits");
  std::string calls = node;
  for (int i = 0; i < 5000; ++i) calls += " @ \"f\":1:1 in \"g\"";
  expects(Graph::Parse(calls).status(), "fewer calls around a place");
  expects(Graph::Parse(node + " @ \"f\":1:1 in \"g\"").status(), "the place of a call");

  const std::string plan = "plan 0x1 ranks 1 ";
  expects(Plan::Parse("plan 0xg ranks 1 graph { }").status(), "a hexadecimal number");
  expects(Plan::Parse(plan + "stream tube 0 compute \"c\" graph { }").status(), "a type of device");
  expects(Plan::Parse(plan + "stream cpu 999999 compute \"c\" graph { }").status(), "the index of a device");
  expects(Plan::Parse(plan + "stream cpu 0 dance \"c\" graph { }").status(), "a kind of stream");
  expects(Plan::Parse(plan + "graph { } task 0:0:1 compute phase \"waltz\"").status(), "a phase of a task");
  expects(Plan::Parse(plan + "graph { } dance").status(), "a line of a plan");

  const auto body = [](const std::string& text) {
    return Program::Parse("program \"a\" main { " + text + " }").status();
  };
  const auto function = [](const std::string& text) {
    return Program::Parse("program \"a\" main { } function \"f\" { " + text + " }").status();
  };
  expects(body("loop 1 { }"), "a kind of block");
  expects(body("call 1 { candidate \"f\" cube \"g\" \"\" }"), "a data type before this");
  std::string nested;
  for (int i = 0; i < 100'000; ++i) nested += "if 1 { body { ";
  expects(body(nested), "less nesting");
  expects(function("parameters \"x\" cube double"), "a data type before this");
  expects(function("parameters \"x\" matrix complex"), "a value type before this");
  expects(Program::Parse("program \"a\" main { } function \"f\" { } function \"f\" { }").status(),
          "each function once");
}

TEST(TextFormTest, CutAndDamagedTextsNeverCrash) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    RandomValues values(seed);
    std::string text = seed % 3 == 0   ? values.Graph().ToText()
                       : seed % 3 == 1 ? values.Program().ToText()
                                       : values.Plan().ToText();
    for (int i = 0; i < 50 && !text.empty(); ++i) {
      std::string damaged = text;
      if (values.Sometimes())
        damaged.resize(static_cast<size_t>(values.Below(static_cast<int64_t>(text.size()))));
      else
        damaged[static_cast<size_t>(values.Below(static_cast<int64_t>(text.size())))] =
            static_cast<char>(values.Below(256));
      // Any outcome but a crash or an endless loop; what parses must print.
      if (const auto graph = Graph::Parse(damaged); graph.ok()) (void)graph->ToText();
      if (const auto program = Program::Parse(damaged); program.ok()) (void)program->ToText();
      if (const auto plan = Plan::Parse(damaged); plan.ok()) (void)plan->ToText();
    }
  }
}

TEST(TextFormTest, DeepNestingIsAnErrorNotAnOverflow) {
  std::string text = "program \"a\" main {";
  for (int i = 0; i < 100000; ++i) text += "if 1 { body {";
  EXPECT_FALSE(Program::Parse(text).ok());
}

}  // namespace
}  // namespace heddle
