// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/script_input.h"

#include <unistd.h>

#include <cstdio>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "cluster/cli/report.h"
#include "compiler/compile.h"
#include "compiler/optimize/pass.h"
#include "ops/cpu.h"
#include "ops/formats/files.h"

namespace heddle::cluster::cli {

std::vector<Option> ScriptOptions() {
  using Kind = Option::Kind;
  return {
      {"e", Kind::kValue, "CODE", "the script itself, instead of a file", "s"},
      {"f", Kind::kValue, "FILE", ""},
      {"json", Kind::kFlag, "", "print the outcome as one JSON object"},
      {"disable-pass", Kind::kValue, "NAME", "leave out a pass of the compiler (see heddle explain)"},
      {"args", Kind::kRest, "V...", "values of $1, $2, ...; takes the rest of the line"},
      {"nvargs", Kind::kRest, "K=V...", "values of $K; takes the rest of the line"},
      {"exec", Kind::kIgnored, "MODE", ""},
      {"config", Kind::kIgnored, "FILE", ""},
  };
}

std::vector<Option> RunOptions() {
  using Kind = Option::Kind;
  std::vector<Option> options = {
      {"threads", Kind::kValue, "N", "threads of a worker's kernels (default: all cores)"},
      {"memory", Kind::kValue, "SIZE", "most matrix memory of a worker, e.g. 4G"},
      {"min-distributed-bytes", Kind::kValue, "SIZE", "smaller matrices stay on one worker (default 8M)"},
      {"seed", Kind::kValue, "N", "of rand() without a seed"},
      {"cpu", Kind::kValue, "NAME", "avx2 or avx512 kernels (default: the widest; same results)"},
      {"stats", Kind::kOptionalValue, "", "print what was done, by operator"},
      {"explain", Kind::kOptionalValue, "", "print the program and its plans before they run"},
  };
  for (const Option& option : ScriptOptions()) options.push_back(option);
  return options;
}

std::string WorkingDirectory() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::current_path(error);
  return error ? "/" : path.string();
}

Result<ScriptInput> ReadScript(const Arguments& arguments) {
  ScriptInput script;
  HEDDLE_ASSIGN_OR_RETURN(script.parameters, ScriptParameters(arguments));
  std::vector<std::string> names = arguments.positional();
  if (const auto file = arguments.Value("f")) names.push_back(*file);
  if (const auto code = arguments.Value("e")) {
    if (!names.empty()) return Usage("-e CODE and the script '{}' were given; one of them is enough", names[0]);
    script.name = "-e";
    script.text = *code;
    return script;
  }
  if (names.empty()) return Usage("no script: give a file, -e CODE, or - for standard input");
  if (names.size() > 1)
    return Usage("two scripts, '{}' and '{}'; script parameters go behind -args or -nvargs", names[0], names[1]);
  script.name = names[0];
  if (script.name == "-") {
    char block[1 << 16];
    while (const size_t got = std::fread(block, 1, sizeof(block), stdin)) script.text.append(block, got);
    return script;
  }
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(WorkingDirectory());
  if (files->IsDirectory(script.name)) return NotFound("cannot read script '{}': it is a directory", script.name);
  const Result<std::unique_ptr<ops::InputFile>> file = files->Open(script.name);
  if (!file.ok()) {
    if (file.status().code() == StatusCode::kNotFound) return NotFound("cannot read script '{}': no such file", script.name);
    return file.status();
  }
  script.text = std::string((*file)->bytes());
  return script;
}

Result<Program> Compile(const ScriptInput& script, const Arguments& arguments) {
  compiler::FileSourceLoader loader(WorkingDirectory());
  compiler::CompileOptions options;
  options.script = script.name;
  options.arguments = script.parameters;
  options.loader = &loader;
  for (const std::string& pass : arguments.rest("disable-pass")) options.disabled_passes.insert(pass);
  compiler::Diagnostics diagnostics;
  Result<Program> program = compiler::CompileScript(script.text, options, &diagnostics);
  // Warnings of a script with errors are mostly about what the errors left out.
  if (program.ok() && !arguments.Has("json")) std::fputs(diagnostics.RenderAll(compiler::Severity::kWarning).c_str(), stderr);
  return program;
}

Result<SessionOptions> ReadSessionOptions(const Arguments& arguments) {
  SessionOptions options;
  const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t threads, arguments.Integer("threads", cores, 1, 4096));
  options.threads = static_cast<int>(threads);
  HEDDLE_ASSIGN_OR_RETURN(options.memory_bytes, arguments.Bytes("memory", 0));
  HEDDLE_ASSIGN_OR_RETURN(options.min_distributed_bytes, arguments.Bytes("min-distributed-bytes", options.min_distributed_bytes));
  HEDDLE_ASSIGN_OR_RETURN(options.seed, arguments.Integer("seed", -1, -1, INT64_MAX));
  std::vector<std::string> passes;
  for (const compiler::Pass& pass : compiler::GraphPasses()) passes.emplace_back(pass.name);
  for (const std::string& pass : arguments.rest("disable-pass")) {
    if (std::find(passes.begin(), passes.end(), pass) == passes.end())
      return Usage("--disable-pass: '{}' is no pass; the passes are {}", pass, fmt::join(passes, ", "));
    options.disabled_passes.push_back(pass);
  }
  if (const auto cpu = arguments.Value("cpu")) {
    options.cpu = *cpu;
    if (Status status = ops::ForceCpu(*cpu); !status.ok()) return Usage("--cpu: {}", status.message());
  }
  return options;
}

}  // namespace heddle::cluster::cli
