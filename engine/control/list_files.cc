// SPDX-License-Identifier: Apache-2.0
// Lists in folders: each element is read and written by the plan of a graph of its own, as a matrix of a
// script is, so that all ranks take part and see the files of one moment.
#include "ops/io/formats/list_files.h"

#include "core/hash.h"
#include "core/memory/counted_heap.h"
#include "engine/control/list_steps.h"

namespace heddle::engine {
namespace {

constexpr const char* kPath = "%list.path";
constexpr const char* kValue = "%list.0";
constexpr const char* kResult = "%list.result";

}  // namespace

Result<Variable> ListSteps::ReadList(const Block& step, const std::string& path, int depth,
                                     VariableTable* frame) {
  if (depth > kMostNestedLists) return NestedTooDeep().OnEveryRank();
  HEDDLE_ASSIGN_OR_RETURN(const Variable listed,
                          ReadFile(step, path, DataType::kList, ValueType::kUnknown, frame));
  auto list = std::make_shared<List>();
  for (const ops::ListedElement& element : ops::ParseListed(listed.value.scalar().ToText())) {
    const std::string file = path + "/" + element.file;
    HEDDLE_ASSIGN_OR_RETURN(Variable value,
                            element.data_type == DataType::kList
                                ? ReadList(step, file, depth + 1, frame)
                                : ReadFile(step, file, element.data_type, element.value_type, frame));
    HEDDLE_RETURN_IF_ERROR(WithinMemory("variables", [&] {
      return list->Add(ops::NameOfElement(element.file), std::move(value)).OnEveryRank();
    }));
  }
  return Variable::OfList(std::move(list));
}

Result<Variable> ListSteps::ReadFile(const Block& step, const std::string& path, DataType type,
                                     ValueType value_type, VariableTable* frame) {
  NodeAttributes options = {{"data_type", Scalar(std::string(Name(type)))}};
  if (type == DataType::kScalar) options.emplace_back("value_type", Scalar(std::string(Name(value_type))));
  frame->Set(kPath, Variable::OfScalar(path));
  const Status status = RunFileGraph(step, "read", options, frame);
  frame->Erase(kPath);
  HEDDLE_RETURN_IF_ERROR(status);
  return frame->Take(kResult);
}

Status ListSteps::Write(const Block& step, VariableTable* frame) {
  std::shared_ptr<List> list;
  std::string path;
  NodeAttributes options;
  for (const auto& [name, variable] : step.arguments) {
    const Variable* const found = frame->Find(variable);
    if (found == nullptr)
      return FailedPrecondition("variable '{}' has no value here", variable)
          .OnEveryRank()
          .WithNote("it is assigned only in branches or loops that did not run");
    if (name == "list") {
      list = found->list;
    } else if (!found->info.IsScalar()) {
      return FailedPrecondition("write: the {} must be a scalar, not a {}", name, Name(found->info.data_type))
          .OnEveryRank();
    } else if (name == "path") {
      path = found->value.scalar().ToText();
    } else {
      options.emplace_back(name, found->value.scalar());
    }
  }
  if (list == nullptr) return FailedPrecondition("write: the variable is no list any more").OnEveryRank();
  if (path.empty()) return NotFound("cannot write '': the path is empty").OnEveryRank();
  return WriteList(step, *list, path, options, frame);
}

Status ListSteps::WriteList(const Block& step, const List& list, const std::string& path,
                            const NodeAttributes& options, VariableTable* frame) {
  std::vector<ops::ListedElement> listed;
  for (size_t i = 0; i < list.size(); ++i) {
    const Variable& element = list.elements[i];
    listed.push_back({.file = ops::FileOfElement(i, list.names.empty() ? std::string() : list.names[i])});
    const std::string file = path + "/" + listed.back().file;
    HEDDLE_RETURN_IF_ERROR(element.list != nullptr ? WriteList(step, *element.list, file, options, frame)
                                                   : WriteFile(step, element, file, options, frame));
  }
  return WriteFile(step, Variable::OfScalar(ops::ToText(listed)), path,
                   {{"data_type", Scalar(std::string(Name(DataType::kList)))}}, frame);
}

Status ListSteps::WriteFile(const Block& step, const Variable& value, const std::string& path,
                            const NodeAttributes& options, VariableTable* frame) {
  frame->Set(kValue, value);
  frame->Set(kPath, Variable::OfScalar(path));
  const Status status = RunFileGraph(step, "write", options, frame);
  frame->Erase(kValue);
  frame->Erase(kPath);
  return status;
}

// Runs read(path), assigned to the result, or write(value, path).
Status ListSteps::RunFileGraph(const Block& step, std::string_view op, const NodeAttributes& options,
                               VariableTable* frame) {
  std::string key(op);
  for (const auto& [name, value] : options) key += fmt::format(" {}={}", name, value.ToLiteral());
  auto [found, is_new] = file_graphs_.try_emplace({step.id, key});
  Graph& graph = found->second;
  if (is_new) {
    const auto add = [&](std::string_view name, std::vector<NodeId> inputs) {
      Node node;
      node.op = name;
      node.inputs = std::move(inputs);
      node.position = step.position;
      return graph.Add(std::move(node));
    };
    const auto variable = [&](const char* name) {
      const NodeId id = add("variable", {});
      graph[id].SetAttribute("name", std::string(name));
      return id;
    };
    std::vector<NodeId> inputs;
    if (op == "write") inputs.push_back(variable(kValue));
    inputs.push_back(variable(kPath));
    const NodeId id = add(op, std::move(inputs));
    for (const auto& [name, value] : options) graph[id].SetAttribute(name, value);
    if (op == "read") {
      const NodeId result = add("assign", {id});
      graph[result].SetAttribute("name", std::string(kResult));
    }
  }
  return blocks_.Run(step.id, graph, frame, FoldHash(1, key));
}

}  // namespace heddle::engine
