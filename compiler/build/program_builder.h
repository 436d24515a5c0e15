// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <set>
#include <string>

#include "compiler/build/build.h"
#include "compiler/build/function_table.h"

namespace heddle::compiler {

/// What the bodies of one program share while they are built.
class ProgramBuilder {
 public:
  ProgramBuilder(const ScriptSet& scripts, const BuildOptions& options, Diagnostics* diagnostics)
      : scripts(scripts), options(options), diagnostics(*diagnostics), functions(scripts) {}

  Program Build();

  const DmlFunction* FindFunction(int32_t file, const Expression& call) const {
    return functions.Find(file, call.name_space, call.name);
  }
  /// The function is called: it will be built too.
  void Need(const DmlFunction& function);
  /// Reports a part of DML that Heddle does not run; in functions that the script never calls that does no
  /// harm.
  void ReportUnimplemented(const std::string& file, const SourceRange& range, const std::string& what);

  const ScriptSet& scripts;
  const BuildOptions& options;
  Diagnostics& diagnostics;
  const FunctionTable functions;
  int32_t next_block_id = 0;
  int32_t next_temporary = 0;
  int64_t next_stream = 0;  ///< Number of calls of rand so far.

 private:
  void BuildNeeded();
  Function BuildFunction(const DmlFunction& function);

  Program program_;
  std::set<std::string> needed_;
  std::deque<const DmlFunction*> waiting_;
  bool reachable_ = true;  // what is built now is reached from the main script
};

}  // namespace heddle::compiler
