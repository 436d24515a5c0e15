// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/build/build.h"
#include "compiler/build/function_table.h"
#include "compiler/build/paramserv.h"
#include "compiler/gradient/gradient.h"

namespace heddle::compiler {

class BodyBuilder;

/// What the bodies of one program share while they are built.
class ProgramBuilder {
 public:
  ProgramBuilder(ScriptLoader* loader, const BuildOptions& options, Diagnostics* diagnostics)
      : scripts(loader->scripts()), loader(*loader), options(options), diagnostics(*diagnostics) {
    functions.Add(scripts);
  }

  Program Build();

  /// What a call in a file means, by its name; nullptr when it is no function written in DML. Loads the file
  /// of a function of the library.
  const Callee* FindCallee(int32_t file, const Expression& call);
  /// The same for a name in a text, as eval() has it: "f", "ns::f", or "<file>::f" for a file that
  /// is loaded, by the path of a source().
  const Callee* FindCalleeNamed(int32_t file, const std::string& name, const SourcePosition& call);
  /// The function of the user that a name in a text means, also one of the main script; nullptr when none.
  const DmlFunction* FindUserFunction(int32_t file, const std::string& name, const SourcePosition& call);
  /// The script that is paramserv() with these functions, which is added when it is asked for first.
  const DmlFunction* FindParamserv(const ParamservFunctions& functions);
  /// The function is called: it will be built too.
  void Need(const DmlFunction& function, const SourcePosition& call);
  /// What eval() of a list calls for the function: itself, or one that computes defaults first.
  const DmlFunction& ForList(const DmlFunction& function);
  /// An eval() whose name is known at run time only; its block gets candidates in the end.
  struct EvalSite {
    int32_t block = 0;  ///< Its id.
    int32_t file = 0;
    SourcePosition position;
    std::vector<std::string> arguments;  ///< Variables, in the order of the parameters.
    DataType first_argument = DataType::kUnknown;
  };
  void NeedByName(EvalSite site);
  /// The function that gradient() calls is asked for.
  void NeedGradient(GradientRequest request);
  /// Reports a part of DML that Heddle does not run, with what to write instead; in functions that the script
  /// never calls that does no harm.
  void ReportUnimplemented(const std::string& file, const SourceRange& range, const std::string& what,
                           std::string_view instead = {});
  /// Reports a call of a function of DML's library where there is no such file.
  void ReportMissingLibrary(const std::string& file, const Expression& call);
  /// Whether the file is of the library that is part of Heddle.
  bool IsHeddles(int32_t file) const;

  const ScriptSet& scripts;
  ScriptLoader& loader;
  const BuildOptions& options;
  Diagnostics& diagnostics;
  FunctionTable functions;
  int32_t next_block_id = 0;
  int32_t next_temporary = 0;
  int64_t next_stream = 0;  ///< Number of calls of rand so far.

 private:
  // The call that made a function needed.
  struct FirstCall {
    SourcePosition position;
    const DmlFunction* caller = nullptr;  // nullptr: the main script
  };

  struct EvalCandidate {
    std::string name;
    DataType first_argument = DataType::kUnknown;
    const DmlFunction* function = nullptr;
  };

  void BuildNeeded();
  void BuildGradients();
  // The variables that live on behind the main script; an error for an output that nothing assigns.
  std::vector<std::string> KeptOf(const BodyBuilder& main, const Continuation& continuation);
  // --- eval_candidates.cc
  void BuildCandidates();
  std::set<std::string> NamesInTexts();
  std::vector<EvalCandidate> CandidatesOf(const EvalSite& site, const std::set<std::string>& names);
  const DmlFunction& CalledBy(const EvalSite& site, const DmlFunction& function);
  CallCandidate CandidateFor(const EvalSite& site, const EvalCandidate& candidate);
  std::string WhyNot(const DmlFunction& function) const;
  void KeepReached();

  Function BuildFunction(const DmlFunction& function);
  const DmlFunction* FindInFileNamed(const std::string& path, const std::string& name) const;
  void FindInLibrary(const std::string& name, bool from_library, const SourcePosition& call, Callee* callee);
  std::vector<std::string> WayTo(const DmlFunction& function) const;

  Program program_;
  std::map<const DmlFunction*, FirstCall> needed_;
  std::map<int32_t, std::map<std::string, Callee, std::less<>>> callees_;  // by file and name in it
  std::map<ParamservFunctions, const DmlFunction*> paramservs_;
  std::map<const DmlFunction*, DmlFunction> for_lists_;  // by the function that is called
  std::deque<const DmlFunction*> waiting_;
  const DmlFunction* current_ = nullptr;  // what is built now; nullptr: the main script
  bool reachable_ = true;                 // what is built now is reached from the main script
  bool is_certain_ = true;                // and not only by an eval() that may call anything
  std::vector<EvalSite> eval_sites_;
  std::vector<GradientRequest> gradients_;                          // not made yet
  bool has_gradients_ = false;                                      // of any that was asked for
  std::map<std::string, std::vector<std::string>> names_in_files_;  // By the path that a text names.
  std::map<std::string, std::string> missing_parts_;  // of DML, in functions that only eval() reaches: by key
};

}  // namespace heddle::compiler
