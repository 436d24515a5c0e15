// SPDX-License-Identifier: Apache-2.0
#include "ops/catalog.h"

#include <string_view>
#include <unordered_map>
#include <vector>

namespace heddle::ops {
namespace {

// Every operator family; the one list to extend.
using Family = std::span<const Operator> (*)();
constexpr Family kFamilies[] = {
    ElementwiseOperators, AggregateOperators, CumulativeOperators, MatmulOperators, ReorganizeOperators, IndexOperators,
    GenerateOperators,    SelectOperators,    SolveOperators,      ScalarOperators, TextOperators,       FileOperators,
};

struct Catalog {
  std::vector<const Operator*> all;
  std::unordered_map<std::string_view, const Operator*> by_name;
  Catalog() {
    for (Family family : kFamilies) {
      for (const Operator& op : family()) {
        HEDDLE_CHECK(by_name.emplace(op.name, &op).second, "operator names are unique");
        all.push_back(&op);
      }
    }
  }
};

const Catalog& TheCatalog() {
  static const Catalog catalog;
  return catalog;
}

class CatalogKernelSource : public KernelSource {
 public:
  Result<Value> Run(const KernelCall& call) const override {
    const Operator* op = FindOperator(call.node.op);
    if (op == nullptr || op->run == nullptr) return Internal("no kernel for operator {}", call.node.op);
    return op->run(call);
  }
};

}  // namespace

const Operator* FindOperator(std::string_view name) {
  const Catalog& catalog = TheCatalog();
  auto found = catalog.by_name.find(name);
  return found == catalog.by_name.end() ? nullptr : found->second;
}

std::span<const Operator* const> AllOperators() { return TheCatalog().all; }

Result<ValueInfo> Infer(const InferContext& context) {
  const Operator* op = FindOperator(context.node.op);
  if (op == nullptr) return Internal("unknown operator {}", context.node.op);
  const int inputs = static_cast<int>(context.inputs.size());
  if (inputs < op->min_inputs || (op->max_inputs >= 0 && inputs > op->max_inputs))
    return Internal("operator {} has {} inputs", context.node.op, inputs);
  return op->infer(context);
}

RowRule RowRuleOf(const Node& node, std::span<const ValueInfo> inputs) {
  const Operator* op = FindOperator(node.op);
  return op && op->row_rule ? op->row_rule(node, inputs) : RowRule::kWhole;
}

InputUse InputUseOf(const Node& node, std::span<const ValueInfo> inputs, int i) {
  const Operator* op = FindOperator(node.op);
  return op && op->input_use ? op->input_use(node, inputs, i) : InputUse::kWhole;
}

Cost CostOf(const Node& node, std::span<const ValueInfo> inputs) {
  const Operator* op = FindOperator(node.op);
  if (op && op->cost) return op->cost(node, inputs);
  Cost cost;
  for (const ValueInfo& input : inputs)
    if (input.IsMatrix() && input.shape.IsKnown()) cost.bytes += 8.0 * static_cast<double>(input.shape.Cells());
  if (node.info.IsMatrix() && node.info.shape.IsKnown()) cost.bytes += 8.0 * static_cast<double>(node.info.shape.Cells());
  cost.flops = cost.bytes / 8;
  return cost;
}

const KernelSource& CatalogKernels() {
  static const CatalogKernelSource source;
  return source;
}

}  // namespace heddle::ops
