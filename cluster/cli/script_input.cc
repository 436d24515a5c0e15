// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/script_input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "cluster/cli/example_files.h"
#include "cluster/cli/report.h"
#include "cluster/cli/spill_folder_option.h"
#include "compiler/parse/diagnostics.h"
#include "compiler/parse/parser.h"
#include "core/text/utf8.h"
#include "ops/io/files/files.h"

namespace heddle::cluster::cli {

std::vector<Option> ScriptOptions() {
  using Kind = Option::Kind;
  return {
      {"e", Kind::kValue, "CODE", "the script itself, instead of a file", "s"},
      {"f", Kind::kValue, "FILE", ""},
      {"json", Kind::kFlag, "", "print the outcome as one JSON object"},
      {"library", Kind::kValue, "DIR", "folder of functions written in DML; may be given again"},
      {"no-warnings", Kind::kFlag, "", "print errors only"},
      {"disable-pass", Kind::kValue, "NAME", "leave out a pass or rule of the compiler"},
      {"args", Kind::kRest, "V...", "values of $1, $2, ...; takes the rest of the line"},
      {"nvargs", Kind::kRest, "K=V...", "values of $K; takes the rest of the line"},
      {"exec", Kind::kIgnored, "MODE", ""},
      {"config", Kind::kIgnored, "FILE", ""},
  };
}

std::vector<Option> PlanOptions() {
  using Kind = Option::Kind;
  return {
      {"threads", Kind::kValue, "N", "threads of a worker's kernels (default: all cores)"},
      {"memory", Kind::kValue, "SIZE", "most memory of a process, e.g. 4G (default: what the machine has)"},
      {"min-distributed-bytes", Kind::kValue, "SIZE", "smaller matrices stay on one worker (default 8M)"},
      {"cpu", Kind::kValue, "NAME,...",
       "avx2 or avx512 kernels, workers in turn (default: the widest; same results)"},
      {"precision", Kind::kValue, "NAME",
       "cells of matrices: double or single (half the memory; rounded cells)"},
      {"fusion", Kind::kValue, "MODE", "off, all, no-redundancy or cost (default: cost; same results)"},
      {"fusion-seed", Kind::kValue, "N", "fuse at random instead, for tests"},
      {"compress", Kind::kValue, "MODE",
       "auto: what loops read is stored by groups of columns where that pays; off (default); same results"},
      {"require-streaming", Kind::kFlag, "", "refuse plans in panels in which a value is whole"},
      {"panel-bytes", Kind::kValue, "SIZE",
       "let all values pass in panels, so large a pass, whatever the memory; for tests"},
  };
}

std::vector<Option> RunOptions() {
  using Kind = Option::Kind;
  const Option options[] = {
      {"seed", Kind::kValue, "N", "of rand() without a seed"},
      {"fusion-strict", Kind::kFlag, "", "no machine code for a fused operator is an error"},
      kStatsOption,
      {"explain", Kind::kOptionalValue, "",
       "print the program and its plans before they run; recompile_hops: what is compiled, when and why"},
  };
  return JoinOptions({PlanOptions(), options, ScriptOptions()});
}

std::string WorkingDirectory() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::current_path(error);
  return error ? "" : path.string();
}

namespace {

// kNotFound, with the script that may be meant: one beside it, or an example.
Status NoScript(const std::string& name) {
  namespace fs = std::filesystem;
  const fs::path path(name);
  Status status = NotFound("cannot read script '{}': no such file", name);
  const std::string stem = path.stem().string();
  for (const ExampleFile& example : ExampleFiles())
    if (path == fs::path("examples") / example.path && path.extension() == ".dml")
      return status.WithNote(fmt::format("'heddle examples get {}' writes this example here", stem));
  std::error_code error;
  std::vector<std::string> names;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".dml") names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  const std::string nearest = compiler::SuggestName(path.filename().string(), names);
  if (nearest.empty()) return status;
  return status.WithNote(fmt::format("did you mean '{}'?", (path.parent_path() / nearest).string()));
}

}  // namespace

Result<std::string> ReadScriptFile(const std::string& name) {
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(WorkingDirectory());
  if (files->IsDirectory(name)) return DataLoss("cannot read script '{}': it is a directory", name);
  // A script is read once, so it may come out of a pipe.
  std::error_code error;
  if (!std::filesystem::is_regular_file(name, error)) {
    Result<std::string> text = compiler::FileSourceLoader(WorkingDirectory()).Load(name);
    if (!text.ok() && text.status().code() == StatusCode::kNotFound) return NoScript(name);
    return text;
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<ops::InputFile> file, files->Open(name));
  // What is longer than a script may be is refused by its length alone.
  ops::CountedBytes buffer;
  const auto most = static_cast<int64_t>(compiler::kMostScriptBytes) + 1;
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view text, file->Read(0, std::min(file->size(), most), &buffer));
  return std::string(text);
}

Result<std::string> ReadStandardInput() {
  std::string text;
  std::array<char, 1 << 16> block;
  // What is longer than a script may be is refused by its length alone.
  while (text.size() <= compiler::kMostScriptBytes) {
    const size_t got = std::fread(block.data(), 1, block.size(), stdin);
    if (got == 0) break;
    text.append(block.data(), got);
  }
  if (std::ferror(stdin) != 0)
    return NotFound("cannot read the script from standard input: {}", std::strerror(errno));
  return text;
}

Result<engine::Script> ReadScript(const Arguments& arguments) {
  engine::Script script;
  HEDDLE_ASSIGN_OR_RETURN(script.parameters, ScriptParameters(arguments));
  std::vector<std::string> names = arguments.positional();
  if (const auto file = arguments.Value("f")) names.push_back(*file);
  if (arguments.rest("e").size() > 1) return Usage("-e is given twice; one script is enough");
  if (const auto code = arguments.Value("e")) {
    if (!names.empty())
      return Usage("-e CODE and the script '{}' were given; one of them is enough", names[0]);
    script.name = "-e";
    script.text = *code;
    return script;
  }
  if (names.empty()) return Usage("no script: give a file, -e CODE, or - for standard input");
  if (names.size() > 1)
    return Usage("two scripts, '{}' and '{}'; script parameters go behind -args or -nvargs", names[0],
                 names[1]);
  script.name = names[0];
  if (script.name.empty()) return Usage("the name of the script is empty");
  if (script.name == "-") {
    HEDDLE_ASSIGN_OR_RETURN(script.text, ReadStandardInput());
    return script;
  }
  HEDDLE_ASSIGN_OR_RETURN(script.text, ReadScriptFile(script.name));
  return script;
}

Result<Program> Compile(const engine::Engine& engine, const engine::Script& script,
                        const Arguments& arguments, compiler::Diagnostics* diagnostics) {
  Result<Program> program = engine.Compile(script, diagnostics);
  // Warnings of a script with errors are mostly about what the errors left out.
  if (program.ok() && !arguments.Has("json") && !arguments.Has("no-warnings"))
    std::fputs(EscapeForTerminal(diagnostics->RenderAll(compiler::Severity::kWarning)).c_str(), stderr);
  return program;
}

namespace {

// "33,8": microseconds of a message, GB/s.
Result<ops::LinkRates> ParseLinks(const std::string& text) {
  ops::LinkRates links;
  double message_us = 0;
  const char* const end = text.data() + text.size();
  const auto [comma, message_error] = std::from_chars(text.data(), end, message_us);
  if (message_error == std::errc() && comma != end && *comma == ',') {
    const auto [rest, rate_error] = std::from_chars(comma + 1, end, links.bytes_per_ns);
    links.message_ns = message_us * 1e3;
    links.measured = true;
    if (rate_error == std::errc() && rest == end && ops::ArePlausible(links)) return links;
  }
  return Usage("--links takes microseconds and GB/s, such as 33,8, not '{}'", text);
}

Status ReadFusion(const Arguments& arguments, engine::SessionOptions* options) {
  options->fusion = arguments.Value("fusion").value_or(options->fusion);
  options->fusion_strict = arguments.Has("fusion-strict");
  if (!arguments.Has("fusion-seed")) return OkStatus();
  if (arguments.Has("fusion")) return Usage("--fusion and --fusion-seed exclude each other");
  HEDDLE_ASSIGN_OR_RETURN(const int64_t seed, arguments.Integer("fusion-seed", 0, 0, INT64_MAX));
  options->fusion = fmt::format("random:{}", seed);
  return OkStatus();
}

// The engine calls an option by its name alone.
Status AsOption(const Status& status) {
  Status named(status.code(), "--" + status.message());
  for (const std::string& note : status.notes()) named = named.WithNote(note);
  return named;
}

}  // namespace

Result<int> ReadWorkers(const Arguments& arguments) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t workers, arguments.Integer("workers", 1, 1, 256));
  return static_cast<int>(workers);
}

Result<engine::EngineOptions> ReadEngineOptions(const Arguments& arguments, int ranks) {
  engine::EngineOptions options;
  options.directory = WorkingDirectory();
  options.libraries = arguments.rest("library");
  engine::SessionOptions& session = options.session;
  session.ranks = ranks;
  HEDDLE_ASSIGN_OR_RETURN(session.threads, ReadThreads(arguments));
  HEDDLE_ASSIGN_OR_RETURN(session.memory_bytes, arguments.Bytes("memory", 0));
  HEDDLE_ASSIGN_OR_RETURN(session.spill_folder, ReadSpillFolder(arguments));
  session.require_streaming = arguments.Has("require-streaming");
  HEDDLE_ASSIGN_OR_RETURN(session.panel_bytes, arguments.Bytes("panel-bytes", 0));
  HEDDLE_ASSIGN_OR_RETURN(session.min_distributed_bytes,
                          arguments.Bytes("min-distributed-bytes", session.min_distributed_bytes));
  HEDDLE_ASSIGN_OR_RETURN(session.seed, arguments.Integer("seed", -1, -1, INT64_MAX));
  session.disabled_passes = arguments.rest("disable-pass");
  if (Status status = engine::SetCompression(arguments.Value("compress").value_or("off"), &session);
      !status.ok())
    return AsOption(status);
  session.cpu = arguments.Value("cpu").value_or("");
  session.devices = arguments.Value("devices").value_or("cpu");
  if (Status status = engine::CheckDevices(session.devices); !status.ok()) return AsOption(status);
  HEDDLE_RETURN_IF_ERROR(ReadFusion(arguments, &session));
  const std::string precision = arguments.Value("precision").value_or("double");
  if (precision != "double" && precision != "single")
    return Usage("--precision takes double or single, not '{}'", precision);
  if (precision == "single") session.element_type = ElementType::kFloat32;
  session.times_operators = arguments.Has("stats");
  if (const auto links = arguments.Value("links")) {
    HEDDLE_ASSIGN_OR_RETURN(session.constants.links, ParseLinks(*links));
  }
  if (arguments.Has("report") || arguments.Has("trace")) session.recorded_events = engine::kRecordedEvents;
  Result<engine::EngineOptions> completed = engine::CompleteOptions(std::move(options));
  return completed.ok() ? std::move(completed) : AsOption(completed.status());
}

Result<std::unique_ptr<engine::Engine>> MakeEngine(const Arguments& arguments, int ranks) {
  HEDDLE_ASSIGN_OR_RETURN(engine::EngineOptions options, ReadEngineOptions(arguments, ranks));
  // Of this machine, which runs the script.
  if (Status status = engine::SetDevices(std::string(options.session.devices), &options.session);
      !status.ok())
    return AsOption(status);
  options.warn = [](std::string_view text) { Warn(fmt::format("--{}", text)); };
  Result<std::unique_ptr<engine::Engine>> made = engine::Engine::Create(std::move(options));
  return made.ok() ? std::move(made) : AsOption(made.status());
}

}  // namespace heddle::cluster::cli
