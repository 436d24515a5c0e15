// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/programs/graph.h"
#include "core/programs/plan.h"
#include "core/programs/residence.h"
#include "core/values/list.h"
#include "core/values/value.h"

namespace heddle::engine {

struct Source;  // engine/variables/source.h

/// A variable of the script as one rank sees it. Every rank has the same info and distribution.
struct Variable {
  Value value;  ///< This rank's piece. Empty on ranks that hold nothing of it, of a list, of a placeholder,
                ///< and while it is growing.
  Distribution distribution = Distribution::Each();
  ValueInfo info;                          ///< Of the whole value.
  std::shared_ptr<ListOf<Variable>> list;  ///< The elements of a list, in the order of the script. Changed by
                                           ///< their only owner, else copied first.
  /// What the value can be made of again; nullptr: nothing, or nobody asks (SessionEnvironment::states).
  std::shared_ptr<const Source> source = nullptr;
  bool is_placeholder = false;  ///< What a plan that has not run yet will leave here (precompile.h).
  bool is_panels = false;       ///< On some rank its value may be panels (core/values/row_panels.h).
  Residence residence;          ///< Of the cells. Without a device, all are in the memory of the host.
  Value on_device;              ///< The copy there of a value that is on the host, too.
  bool is_growing = false;      ///< Its cells are with GrownColumns, which makes it wider.

  static Variable OfScalar(Scalar scalar);
  static Variable OfList(std::shared_ptr<ListOf<Variable>> list);
  static Variable Placeholder(Distribution distribution, const ValueInfo& info);
  /// The value from now on, in the memory of the host alone.
  void SetOnHost(Value cells);
  /// Whether `rank` holds cells of it.
  bool IsHeldBy(int rank) const { return distribution.IsHeldBy(rank); }
};

/// The variables of one function call (or of the main program).
class VariableTable {
 public:
  /// nullptr when nothing assigned it.
  const Variable* Find(std::string_view name) const;
  Variable* FindMutable(std::string_view name);
  void Set(const std::string& name, Variable variable);
  /// The same for a scalar; cheaper where the variable is one already.
  void SetScalar(const std::string& name, const Scalar& scalar);
  void Erase(std::string_view name);
  /// Finds and erases: for values the control program reads once. kInternal when missing.
  Result<Variable> Take(std::string_view name);
  const std::map<std::string, Variable, std::less<>>& variables() const { return variables_; }
  std::map<std::string, Variable, std::less<>>& variables() { return variables_; }

 private:
  std::map<std::string, Variable, std::less<>> variables_;
};

/// Brings its cells to the memory of the host alone. Errors: as DeviceCells::ToHost.
Status BringToHost(Variable* variable);

/// Whether ConvertTo would leave it as it is.
bool IsOfType(const Variable& variable, DataType data_type, ValueType value_type);
/// Converts a scalar to a declared type (language reference 1.5); other values, and kUnknown, stay as they
/// are. kFailedPrecondition for a matrix or frame where a scalar is declared, and for a string where a number
/// is; `what` names the place ("argument 'x' of 'f'").
Result<Variable> ConvertTo(const Variable& variable, DataType data_type, ValueType value_type,
                           const std::string& what);

}  // namespace heddle::engine
