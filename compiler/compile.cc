// SPDX-License-Identifier: Apache-2.0
#include "compiler/compile.h"

#include "compiler/build/build.h"
#include "compiler/optimize/parallel_loops.h"
#include "compiler/optimize/pass.h"
#include "compiler/optimize/static/static_pass.h"
#include "compiler/optimize/verify_program.h"
#include "compiler/parse/load_scripts.h"
#include "compiler/parse/print_ast.h"
#include "compiler/recursion/recognise.h"
#include "compiler/warnings/warnings.h"
#include "core/memory/counted_heap.h"

namespace heddle::compiler {
namespace {

Result<Program> Compile(std::string text, const CompileOptions& options, Diagnostics* diagnostics) {
  MemorySourceLoader no_files({});
  SourceLoader* loader = options.loader != nullptr ? options.loader : &no_files;
  ScriptLoader scripts({options.libraries, options.library_fingerprint}, loader, diagnostics);
  const Continuation* const continuation = options.continuation ? &*options.continuation : nullptr;
  scripts.LoadMain(options.script, std::move(text), /*takes_expressions=*/!IsWholeScript(continuation));
  if (options.observe_ast) options.observe_ast(PrintScript(scripts.scripts().files[0]));
  // Names are not judged in a text that does not parse: a statement left out would make others look wrong.
  if (diagnostics->HasErrors()) return diagnostics->ToStatus();

  WarnOfMistakes(scripts.scripts(), options.arguments, continuation, diagnostics);
  Program program = BuildProgram(
      &scripts, {options.arguments, options.argument_hint, loader, continuation, options.any_arguments},
      diagnostics);
  // Of a script with errors some calls have no function.
  if (!diagnostics->HasErrors()) HEDDLE_RETURN_IF_ERROR(VerifyProgram(program, "stage build"));
  OrderLoopsThatWrite(&program);
  if (options.observe) options.observe("build", program);

  PropagateShapes(&program, diagnostics);
  if (options.observe) options.observe("shapes", program);
  if (diagnostics->HasErrors()) return diagnostics->ToStatus();
  if (options.types_only) return program;

  PassOptions passes;
  passes.disabled = options.disabled_passes;
  passes.observe = options.observe;
  HEDDLE_RETURN_IF_ERROR(RunPasses(&program, passes));
  if (IsWholeScript(continuation)) WarnOfInterpreted(program, diagnostics);
  return program;
}

}  // namespace

std::vector<std::string_view> Stages() {
  std::vector<std::string_view> stages = {"build", "shapes"};
  for (const Pass& pass : Passes()) stages.push_back(pass.name);
  return stages;
}

Result<Program> CompileScript(std::string text, const CompileOptions& options, Diagnostics* diagnostics) {
  return WithinMemory("the script", [&] { return Compile(std::move(text), options, diagnostics); });
}

}  // namespace heddle::compiler
