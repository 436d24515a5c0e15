// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/programs/program.h"
#include "engine/blocks/block_runner.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

/// Runs the steps on lists of the control program, on every rank alike: elements are variables, so a step
/// moves handles and touches no cell of a matrix. What needs cells (the text of an element, a list bound to
/// one matrix) becomes the graph of a block like any other.
class ListSteps {
 public:
  /// `blocks` outlives the steps.
  explicit ListSteps(BlockRunner* blocks) : blocks_(*blocks) {}

  /// Reads and sets variables of `frame`. Errors carry the place of the step.
  Status Run(const Block& step, VariableTable* frame);

 private:
  using List = ListOf<Variable>;
  using NodeAttributes = std::vector<std::pair<std::string, Scalar>>;

  Status RunStep(const Block& step, VariableTable* frame);
  Result<Variable> Evaluate(const Block& step, VariableTable* frame);
  Status Remove(const Block& step, VariableTable* frame);
  Result<Variable> Make(const Block& step, const VariableTable& frame);
  Result<Variable> As(const Block& step, VariableTable* frame);
  Result<Variable> Bind(const Block& step, VariableTable* frame);
  Result<Variable> SumOf(const Block& step, const Variable& a, const Variable& b, VariableTable* frame);
  Result<Variable> ZerosOf(const Block& step, const Variable& value, VariableTable* frame);
  Result<Variable> Appended(const Block& step, const VariableTable& frame) const;
  Result<Variable> Inserted(const Block& step, VariableTable* frame);
  Result<Variable> PartsOf(const Block& step, VariableTable* frame);
  const Graph& PartGraph(const Block& step);
  Status AppendText(const Block& step, const Variable& value, VariableTable* frame, std::string* text);
  Result<Variable> Apply(const Block& step, const Graph& graph, const std::vector<Variable>& inputs,
                         VariableTable* frame);
  const Graph& GraphFor(const Block& step, std::string_view op, size_t inputs, bool as_matrices);
  // list_files.cc
  Result<Variable> ReadList(const Block& step, const std::string& path, int depth, VariableTable* frame);
  Result<Variable> ReadFile(const Block& step, const std::string& path, DataType type, ValueType value_type,
                            VariableTable* frame);
  Status Write(const Block& step, VariableTable* frame);
  Status WriteList(const Block& step, const List& list, const std::string& path,
                   const NodeAttributes& options, VariableTable* frame);
  Status WriteFile(const Block& step, const Variable& value, const std::string& path,
                   const NodeAttributes& options, VariableTable* frame);
  Status RunFileGraph(const Block& step, std::string_view op, const NodeAttributes& options,
                      VariableTable* frame);

  BlockRunner& blocks_;
  // Of the steps that need cells, by block and number of inputs; at places that stay.
  std::map<std::pair<int32_t, size_t>, Graph> graphs_;
  // Of those that read and write files, by block and text of operator and options.
  std::map<std::pair<int32_t, std::string>, Graph> file_graphs_;
};

}  // namespace heddle::engine
