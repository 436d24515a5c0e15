// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/programs/program.h"
#include "core/recently_used.h"
#include "engine/recursion/structure_inputs.h"
#include "ops/recursion/structure/visit_structure.h"

namespace heddle::engine {

/// The structures that recursive functions went over last, as arrays: epochs over a few batches meet them
/// again, and so do functions that go the same ways, as one and its derivative may. Thread-safe.
class StructureCache {
 public:
  /// The nodes that `function`, whose structure `program` reads in `frame`, reaches from the roots. nullptr,
  /// with `why`, where only the interpreter can tell them. Errors name nodes. `program` outlives it.
  Result<std::shared_ptr<const ops::Linearized>> Of(const Function& function,
                                                    const ops::StructureProgram& program,
                                                    const std::vector<int64_t>& roots,
                                                    const VariableTable& frame, std::string* why);

 private:
  static constexpr size_t kMostVisitors = 4;
  static constexpr size_t kMostStructures = 1024;
  static constexpr int64_t kMostStructureBytes = int64_t{256} << 20;

  struct Structure {
    const ops::StructureProgram* program = nullptr;
    StructureInputs inputs;
    std::vector<int64_t> roots;
    std::shared_ptr<const ops::Linearized> linearized;
  };

  /// What visits the nodes of `inputs`, while nobody does.
  struct Visitor {
    const ops::StructureProgram* program = nullptr;
    StructureInputs inputs;
    std::unique_ptr<ops::StructureVisitor> visitor;
  };

  std::shared_ptr<const ops::Linearized> Find(const ops::StructureProgram& program,
                                              const std::vector<int64_t>& roots,
                                              const StructureInputs& inputs);
  Result<Visitor> TakeVisitor(const ops::StructureProgram& program, const StructureInputs& inputs);
  void GiveBack(Visitor visitor);

  std::mutex mutex_;
  // Those of the matrices that were visited last.
  RecentlyUsedList<Visitor> visitors_{kMostVisitors};
  RecentlyUsedList<Structure> structures_{kMostStructures, kMostStructureBytes};
};

}  // namespace heddle::engine
