// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/editor/script_view.h"
#include "core/programs/program.h"

namespace heddle::compiler {

/// What the compiler knows of the values of a script: types, sizes, formats. Plain data; holds nothing of the
/// program.
class ValueInfos {
 public:
  ValueInfos() = default;
  /// Those of the file `script.path` in a program that the compiler has made of it ("shapes").
  ValueInfos(const Program& program, const ScriptView& script);

  /// Of a variable where it is read or assigned; `use` is one of script.names. nullopt: nothing is known.
  std::optional<ValueInfo> Of(const ScriptView& script, const NameUse& use) const;
  /// Of the last value of a variable in the main script or a function (scope of NameUse), wherever it is.
  std::optional<ValueInfo> LastOf(int32_t scope, const std::string& name) const;

 private:
  struct Known {
    std::string op;
    std::string name;  // of a variable that is read or assigned
    ValueInfo info;
  };
  void Collect(const std::vector<Block>& blocks, const std::string& path);
  const ValueInfo* Find(const Place& place, std::string_view op, std::string_view name) const;
  std::optional<ValueInfo> OfExpression(const ScriptView& script, const Expression& expression,
                                        int depth) const;
  std::optional<ValueInfo> OfUse(const ScriptView& script, const NameUse& use, int depth) const;
  std::optional<ValueInfo> OfDefinition(const ScriptView& script, const NameUse& use, int depth) const;

  std::map<Place, std::vector<Known>> nodes_;  // by place, in the order of the program
  // What is read elsewhere and can come from this definition alone, by the place of the definition.
  std::map<Place, ValueInfo> read_;
  std::map<std::pair<int32_t, std::string>, ValueInfo> last_;
};

}  // namespace heddle::compiler
