// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <string>

#include "core/call_site.h"
#include "core/environment/random.h"
#include "core/programs/plan.h"
#include "core/programs/program.h"

// Random Graphs, Programs and Plans, legal or not, with every field set to something; and their comparison
// field by field.
namespace heddle {

/// Draws values of every type of the text forms.
class RandomValues {
 public:
  explicit RandomValues(uint64_t seed) : random_(seed) {}

  int64_t Below(int64_t bound) { return static_cast<int64_t>(random_.Below(static_cast<uint64_t>(bound))); }
  bool Sometimes() { return Below(3) == 0; }
  int64_t Number() { return static_cast<int64_t>(random_.Next() >> Below(64)); }
  int32_t Number32() { return static_cast<int32_t>(random_.Next()); }

  /// Plain words, empty strings, and strings of any bytes.
  std::string Text() {
    std::string text;
    const int64_t length = Below(8);
    const bool wild = Sometimes();
    for (int64_t i = 0; i < length; ++i)
      text.push_back(wild ? static_cast<char>(Below(256)) : "abcXYZ01_. (\"%"[Below(14)]);
    return text;
  }

  Scalar OneScalar() {
    switch (Below(4)) {
      case 0: return Scalar(std::bit_cast<double>(random_.Next()));
      case 1: return Scalar(Sometimes() ? Number() : -Number());
      case 2: return Scalar(Sometimes());
      default: return Scalar(Text());
    }
  }

  SourcePosition Position() {
    if (Sometimes()) return {};
    SourcePosition position{Text(), static_cast<int32_t>(Below(1000)), static_cast<int32_t>(Below(100))};
    if (Sometimes()) position.call = std::make_shared<const CallSite>(CallSite{Text(), Position()});
    return position;
  }

  ValueInfo Info() {
    const auto size = [this] { return Sometimes() ? kUnknown : Number(); };
    return {static_cast<DataType>(Below(6)),
            static_cast<ValueType>(Below(5)),
            {size(), size()},
            static_cast<Format>(Below(2)),
            static_cast<ElementType>(Below(2)),
            Sometimes() ? OneSchema() : nullptr};
  }

  std::shared_ptr<const Schema> OneSchema() {
    Schema schema;
    const bool is_named = Sometimes();
    for (int64_t i = Below(4); i > 0; --i) {
      schema.types.push_back(static_cast<ColumnType>(Below(kColumnTypes)));
      if (is_named) schema.names.push_back(Text());
    }
    return std::make_shared<const Schema>(std::move(schema));
  }

  heddle::Graph Graph(int64_t most = 8) {
    static constexpr const char* kOperators[] = {"%*%", "<=", "==", "t%*%", "as.scalar", "+",
                                                 "^",   "&",  "!",  "|",    "%/%",       "sum"};
    heddle::Graph graph;
    for (int64_t n = Below(most + 1); n > 0; --n) {
      Node node;
      node.op = Sometimes() ? Text() : kOperators[Below(12)];
      const auto id = [&] { return Sometimes() ? kNoNode : static_cast<NodeId>(Below(graph.size() + 1)); };
      for (int64_t i = Below(4); i > 0; --i) node.inputs.push_back(id());
      if (Sometimes())
        for (int64_t i = Below(3); i > 0; --i) node.after.push_back(id());
      for (int64_t i = Below(3); i > 0; --i) node.SetAttribute(Text(), OneScalar());
      node.info = Info();
      if (Sometimes())
        for (int64_t i = Below(3); i > 0; --i) node.results.push_back(Info());
      node.position = Position();
      graph.Add(std::move(node));
    }
    return graph;
  }

  std::vector<std::string> Texts() {
    std::vector<std::string> texts;
    for (int64_t i = Sometimes() ? Below(4) : 0; i > 0; --i) texts.push_back(Text());
    return texts;
  }

  std::vector<Parameter> Parameters() {
    std::vector<Parameter> parameters;
    for (int64_t i = Below(3); i > 0; --i)
      parameters.push_back({Text(), static_cast<DataType>(Below(6)), static_cast<ValueType>(Below(5)), {}});
    for (Parameter& parameter : parameters)
      if (Sometimes()) parameter.default_value = Scalar(Text());
    return parameters;
  }

  std::vector<Block> Blocks(int depth) {
    std::vector<Block> blocks;
    for (int64_t n = depth > 3 ? 0 : Below(4 - depth); n > 0; --n) {
      Block block;
      block.kind = static_cast<Block::Kind>(Below(6));
      block.id = Number32();
      block.position = Position();
      block.graph = Graph(3);
      block.body = Blocks(depth + 1);
      if (Sometimes()) block.otherwise = Blocks(depth + 1);
      block.variable = Sometimes() ? Text() : "";
      block.has_increment = Sometimes();
      block.independent = Sometimes();
      block.merged = Texts();
      block.sums = Texts();
      block.natural = Texts();
      block.upward = Texts();
      block.in_order = Text();
      block.locals = Texts();
      block.most_workers = Sometimes() ? Number32() : 0;
      block.function = Sometimes() ? Text() : "";
      for (const std::string& name : Texts()) block.arguments.emplace_back(name, Text());
      block.results = Texts();
      for (int64_t i = Below(3); i > 0; --i) {
        CallCandidate candidate{Text(), static_cast<DataType>(Below(5)), Text(), Text(), Sometimes(), {}};
        for (const std::string& name : Texts()) candidate.arguments.emplace_back(name, Text());
        block.candidates.push_back(std::move(candidate));
      }
      block.selector = Sometimes() ? Text() : "";
      block.first_argument = Sometimes() ? Text() : "";
      block.gives_list = Sometimes();
      block.dead_after = Texts();
      blocks.push_back(std::move(block));
    }
    return blocks;
  }

  heddle::Program Program() {
    heddle::Program program;
    program.script = Text();
    program.main = Blocks(0);
    for (int64_t n = Below(3); n > 0; --n) {
      const std::string key = Text();
      program.functions[key] = {Sometimes() ? Text() : key, Parameters(), Parameters(), Blocks(1),
                                Position()};
    }
    return program;
  }

  TaskId Id() {
    return Sometimes() ? TaskId{random_.Next()}
                       : TaskId::Make(uint32_t(Below(9)), uint32_t(Below(3)), uint32_t(Below(2000)));
  }

  std::vector<RegisterId> Registers() {
    std::vector<RegisterId> ids;
    for (int64_t i = Below(4); i > 0; --i)
      ids.push_back(Sometimes() ? -1 : static_cast<RegisterId>(Below(100000)));
    return ids;
  }

  std::vector<Binding> Bindings() {
    std::vector<Binding> bindings;
    for (int64_t i = Below(3); i > 0; --i)
      bindings.push_back({Text(), OneDistribution(), Info(), static_cast<NodeId>(Below(20)) - 1});
    return bindings;
  }

  Distribution OneDistribution() {
    Distribution distribution{.kind = static_cast<Distribution::Kind>(Below(4))};
    if (!distribution.IsSplit()) return distribution;
    distribution.split.axis = Sometimes() ? Axis::kColumns : Axis::kRows;
    for (int64_t i = Below(4); i > 0; --i) distribution.split.cuts.push_back(Number());
    return distribution;
  }

  std::vector<StreamDescription> Streams() {
    std::vector<StreamDescription> streams;
    for (int64_t i = Below(4); i > 0; --i)
      streams.push_back({{DeviceType::kCpu, static_cast<uint32_t>(Below(kMostDevices))},
                         static_cast<StreamKind>(Below(3)),
                         Text()});
    return streams;
  }

  heddle::Plan Plan() {
    heddle::Plan plan;
    plan.key = random_.Next();
    plan.ranks = Number32();
    plan.streams = Streams();
    plan.graph = Graph();
    for (int64_t n = Below(6); n > 0; --n) {
      Task task;
      task.id = Id();
      task.kind = static_cast<TaskKind>(Below(8));
      task.node = static_cast<NodeId>(Below(10)) - 1;
      task.phase = Sometimes() ? static_cast<Phase>(Below(7)) : Phase::kWhole;
      task.consumed = Registers();
      task.produced = Registers();
      task.control_in = Registers();
      if (Sometimes()) task.axis = Axis::kColumns;
      for (int64_t* field :
           {&task.row_begin, &task.row_end, &task.total_rows, &task.count, &task.rate, &task.cost_ns})
        if (Sometimes()) *field = Number();
      plan.tasks.push_back(std::move(task));
    }
    for (int64_t n = Below(6); n > 0; --n) {
      Register reg;
      reg.id = Number32();
      reg.producer = Id();
      for (int64_t i = Below(4); i > 0; --i) reg.consumers.push_back(Id());
      reg.slots = Sometimes() ? Number32() : 1;
      reg.control = Sometimes();
      reg.bytes = Sometimes() ? Number() : 0;
      reg.info = Info();
      plan.registers.push_back(std::move(reg));
    }
    plan.live_in = Bindings();
    plan.live_out = Bindings();
    for (int64_t n = Below(4); n > 0; --n) plan.peak_bytes.push_back(Number());
    for (int64_t n = Below(4); n > 0; --n) plan.pool_bytes.push_back(Number());
    return plan;
  }

 private:
  SeededRandom random_;
};

inline void ExpectSame(const Scalar& a, const Scalar& b) {
  ASSERT_EQ(a.type(), b.type());
  if (a.IsDouble() && a.AsDouble() != a.AsDouble()) {
    EXPECT_TRUE(b.AsDouble() != b.AsDouble());
  } else if (a.IsDouble()) {
    EXPECT_EQ(std::bit_cast<uint64_t>(a.AsDouble()), std::bit_cast<uint64_t>(b.AsDouble()));
  } else {
    EXPECT_EQ(a, b);
  }
}

inline void ExpectSame(const Graph& a, const Graph& b) {
  ASSERT_EQ(a.size(), b.size());
  for (NodeId id = 0; id < a.size(); ++id) {
    EXPECT_EQ(a[id].op, b[id].op);
    EXPECT_EQ(a[id].inputs, b[id].inputs);
    EXPECT_EQ(a[id].after, b[id].after);
    EXPECT_EQ(a[id].info, b[id].info);
    EXPECT_EQ(a[id].results, b[id].results);
    EXPECT_EQ(a[id].position, b[id].position);
    ASSERT_EQ(a[id].attributes.size(), b[id].attributes.size());
    for (size_t i = 0; i < a[id].attributes.size(); ++i) {
      EXPECT_EQ(a[id].attributes[i].first, b[id].attributes[i].first);
      ExpectSame(a[id].attributes[i].second, b[id].attributes[i].second);
    }
  }
}

inline void ExpectSame(const std::vector<Block>& a, const std::vector<Block>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].kind, b[i].kind);
    EXPECT_EQ(a[i].id, b[i].id);
    EXPECT_EQ(a[i].position, b[i].position);
    ExpectSame(a[i].graph, b[i].graph);
    ExpectSame(a[i].body, b[i].body);
    ExpectSame(a[i].otherwise, b[i].otherwise);
    EXPECT_EQ(a[i].variable, b[i].variable);
    EXPECT_EQ(a[i].has_increment, b[i].has_increment);
    EXPECT_EQ(a[i].independent, b[i].independent);
    EXPECT_EQ(a[i].merged, b[i].merged);
    EXPECT_EQ(a[i].sums, b[i].sums);
    EXPECT_EQ(a[i].natural, b[i].natural);
    EXPECT_EQ(a[i].upward, b[i].upward);
    EXPECT_EQ(a[i].in_order, b[i].in_order);
    EXPECT_EQ(a[i].locals, b[i].locals);
    EXPECT_EQ(a[i].most_workers, b[i].most_workers);
    EXPECT_EQ(a[i].function, b[i].function);
    EXPECT_EQ(a[i].arguments, b[i].arguments);
    EXPECT_EQ(a[i].results, b[i].results);
    EXPECT_EQ(a[i].candidates, b[i].candidates);
    EXPECT_EQ(a[i].selector, b[i].selector);
    EXPECT_EQ(a[i].first_argument, b[i].first_argument);
    EXPECT_EQ(a[i].gives_list, b[i].gives_list);
    EXPECT_EQ(a[i].dead_after, b[i].dead_after);
  }
}

inline void ExpectSame(const std::vector<Parameter>& a, const std::vector<Parameter>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(a[i].data_type, b[i].data_type);
    EXPECT_EQ(a[i].value_type, b[i].value_type);
    EXPECT_EQ(a[i].default_value, b[i].default_value);
  }
}

inline void ExpectSame(const Program& a, const Program& b) {
  EXPECT_EQ(a.script, b.script);
  ExpectSame(a.main, b.main);
  ASSERT_EQ(a.functions.size(), b.functions.size());
  for (const auto& [key, function] : a.functions) {
    ASSERT_TRUE(b.functions.contains(key));
    const Function& other = b.functions.at(key);
    EXPECT_EQ(function.name, other.name);
    ExpectSame(function.parameters, other.parameters);
    ExpectSame(function.results, other.results);
    ExpectSame(function.body, other.body);
    EXPECT_EQ(function.position, other.position);
  }
}

inline void ExpectSame(const std::vector<Binding>& a, const std::vector<Binding>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].variable, b[i].variable);
    EXPECT_EQ(a[i].distribution, b[i].distribution);
    EXPECT_EQ(a[i].info, b[i].info);
    EXPECT_EQ(a[i].node, b[i].node);
  }
}

inline void ExpectSame(const Plan& a, const Plan& b) {
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.ranks, b.ranks);
  EXPECT_EQ(a.streams, b.streams);
  ExpectSame(a.graph, b.graph);
  ASSERT_EQ(a.tasks.size(), b.tasks.size());
  for (size_t i = 0; i < a.tasks.size(); ++i) {
    const Task& x = a.tasks[i];
    const Task& y = b.tasks[i];
    EXPECT_EQ(x.id, y.id);
    EXPECT_EQ(x.kind, y.kind);
    EXPECT_EQ(x.node, y.node);
    EXPECT_EQ(x.phase, y.phase);
    EXPECT_EQ(x.consumed, y.consumed);
    EXPECT_EQ(x.produced, y.produced);
    EXPECT_EQ(x.control_in, y.control_in);
    EXPECT_EQ(x.axis, y.axis);
    EXPECT_EQ(x.row_begin, y.row_begin);
    EXPECT_EQ(x.row_end, y.row_end);
    EXPECT_EQ(x.total_rows, y.total_rows);
    EXPECT_EQ(x.count, y.count);
    EXPECT_EQ(x.rate, y.rate);
    EXPECT_EQ(x.cost_ns, y.cost_ns);
  }
  ASSERT_EQ(a.registers.size(), b.registers.size());
  for (size_t i = 0; i < a.registers.size(); ++i) {
    const Register& x = a.registers[i];
    const Register& y = b.registers[i];
    EXPECT_EQ(x.id, y.id);
    EXPECT_EQ(x.producer, y.producer);
    EXPECT_EQ(x.consumers, y.consumers);
    EXPECT_EQ(x.slots, y.slots);
    EXPECT_EQ(x.control, y.control);
    EXPECT_EQ(x.bytes, y.bytes);
    EXPECT_EQ(x.info, y.info);
  }
  ExpectSame(a.live_in, b.live_in);
  ExpectSame(a.live_out, b.live_out);
  EXPECT_EQ(a.peak_bytes, b.peak_bytes);
  EXPECT_EQ(a.pool_bytes, b.pool_bytes);
}

}  // namespace heddle
