// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "core/programs/graph.h"
#include "ops/base/kernel.h"

namespace heddle::actor {

/// Kernels by operator name, for tests of the runtime without the catalog.
class TestKernels : public ops::KernelSource {
 public:
  using Kernel = std::function<Result<Value>(const ops::KernelCall& call)>;
  using SeveralKernel = std::function<Status(const ops::KernelCall& call, std::span<Value> results)>;

  TestKernels() {
    kernels_["add"] = [](const ops::KernelCall& call) -> Result<Value> {
      double sum = 0;
      for (const Value* input : call.inputs) sum += input == nullptr ? 100 : input->scalar().AsDouble();
      return Value(sum);
    };
    kernels_["fail"] = [](const ops::KernelCall&) -> Result<Value> { return FailedPrecondition("it fails"); };
  }
  void Set(std::string op, Kernel kernel) { kernels_[std::move(op)] = std::move(kernel); }
  void SetSeveral(std::string op, SeveralKernel kernel) { several_[std::move(op)] = std::move(kernel); }

  Status Run(const ops::KernelCall& call, std::span<Value> results) const override {
    if (const auto several = several_.find(call.node.op); several != several_.end())
      return several->second(call, results);
    const auto found = kernels_.find(call.node.op);
    if (found == kernels_.end()) return Internal("no kernel {}", call.node.op);
    HEDDLE_ASSIGN_OR_RETURN(results[0], found->second(call));
    return OkStatus();
  }

 private:
  std::map<std::string, Kernel> kernels_;
  std::map<std::string, SeveralKernel> several_;
};

inline NodeId AddNode(Graph& graph, std::string op, std::vector<NodeId> inputs = {}, std::string name = "") {
  Node node;
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  if (!name.empty()) node.SetAttribute("name", Scalar(name));
  node.info = ValueInfo::OfScalar(ValueType::kDouble);
  node.position = {"test.dml", graph.size() + 1, 1};
  return graph.Add(std::move(node));
}

}  // namespace heddle::actor
