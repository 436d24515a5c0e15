// SPDX-License-Identifier: Apache-2.0
#include "tests/models/model_checker.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <vector>

#include "core/status.h"
#include "tests/models/promela.h"
#include "tests/models/world.h"

namespace heddle::actor {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

bool IsProgram(const char* name) {
  return std::system(fmt::format("command -v {} >/dev/null 2>&1", name).c_str()) == 0;
}

std::string Found(const std::string& text, const char* expression) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(expression)) ? match[1].str() : "";
}

// Where a history leads to a crash, as it may without a guard.
void TellCrash(int number) {
  void* frames[40];
  dprintf(STDERR_FILENO, "\nerror: signal %d\n", number);
  backtrace_symbols_fd(frames, backtrace(frames, 40), STDERR_FILENO);
  _exit(93);
}

// In a process of its own: what SPIN made of a model, with the actors of this program.
[[noreturn]] void RunVerifier(const ModelInstance& instance, Guard without, const std::string& verifier,
                              const std::string& folder, std::vector<std::string> arguments, int seconds,
                              const std::string& report) {
  const int out = open(report.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  if (chdir(folder.c_str()) != 0) _exit(90);
  alarm(static_cast<unsigned>(seconds));
  signal(SIGSEGV, TellCrash);
  World world(instance);
  SetWorldOfModel(&world);
  world.Save(static_cast<uint8_t*>(dlsym(RTLD_DEFAULT, "heddle_state")));
  void* const library = dlopen(verifier.c_str(), RTLD_NOW);
  if (library == nullptr) {
    dprintf(STDERR_FILENO, "%s\n", dlerror());
    _exit(91);
  }
  const auto verify = reinterpret_cast<int (*)(int, char**)>(dlsym(library, "HeddleVerify"));
  if (verify == nullptr) _exit(92);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  removed_guard = without;
  verify(static_cast<int>(arguments.size()), pointers.data());
  exit(0);
}

}  // namespace

Guard removed_guard = Guard::kNone;

bool IsAsExpected(const ModelInstance& instance, const Verdict& verdict) {
  if (instance.must_stall)
    return !verdict.is_ok && verdict.why.find("invalid end state") != std::string::npos;
  if (!instance.breaks_by.empty())
    return !verdict.is_ok && verdict.why.find(instance.breaks_by) != std::string::npos;
  return verdict.is_ok;
}

ModelChecker::ModelChecker() {
  std::string pattern = std::filesystem::temp_directory_path() / "heddle_models_XXXXXX";
  HEDDLE_CHECK(mkdtemp(pattern.data()) != nullptr, "there is a folder for temporary files");
  folder_ = pattern;
}

ModelChecker::~ModelChecker() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string ModelChecker::WhatIsMissing() {
  if (!IsProgram("spin")) return "spin is not installed (deploy/install-dependencies --tests)";
  if (!IsProgram("gcc")) return "gcc is not installed";
  return "";
}

std::string ModelChecker::VerifierOf(const std::string& model, bool with_progress, std::string* error) {
  const auto found = verifiers_.find(model);
  if (found != verifiers_.end()) return found->second;
  const std::string name = fmt::format("model_{}", verifiers_.size());
  std::ofstream(folder_ + "/" + name + ".pml") << model;
  // States are stored whole (no hashing): what is said to be explored is. Sent to the compiler without
  // partial orders, which know nothing of the code that is called.
  const std::string command = fmt::format(
      "cd '{0}' && mkdir -p {1} && cd {1} && cp ../{1}.pml . && spin -a {1}.pml && "
      "gcc -O0 -w -fPIC -shared -Wl,-Bsymbolic "
      "-DNOREDUCE -DVECTORSZ=16384 -DCOLLAPSE {2} -Dmain=HeddleVerify -o verifier.so pan.c",
      folder_, name, with_progress ? "-DNFAIR=3" : "-DSAFETY");
  const std::string log = folder_ + "/" + name + ".log";
  if (std::system(fmt::format("({}) >'{}' 2>&1", command, log).c_str()) != 0) {
    *error = ReadAll(log);
    return "";
  }
  return verifiers_[model] = folder_ + "/" + name + "/verifier.so";
}

Verdict ModelChecker::Check(const ModelInstance& instance, Guard without, int seconds, bool with_progress) {
  Verdict verdict;
  std::string verifier;
  {
    const World world(instance);
    verifier = VerifierOf(PromelaOf(world, instance.name, with_progress), with_progress, &verdict.why);
  }
  if (verifier.empty()) return verdict;
  const std::string folder = std::filesystem::path(verifier).parent_path();
  std::filesystem::remove(folder + "/pan.c.trail");
  const std::string report = folder + "/report";
  std::vector<std::string> arguments{"pan", "-m200000"};
  if (with_progress) arguments.insert(arguments.end(), {"-a", "-f", "-N", "comes_to_its_end"});
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) RunVerifier(instance, without, verifier, folder, arguments, seconds, report);
  int status = 0;
  waitpid(child, &status, 0);
  verdict.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  verdict.report = ReadAll(report);
  const std::string errors = Found(verdict.report, "errors: ([0-9]+)");
  const std::string states = Found(verdict.report, "([0-9.e+]+) states, stored");
  if (!states.empty()) verdict.states = std::strtod(states.c_str(), nullptr);
  verdict.is_ok = WIFEXITED(status) && WEXITSTATUS(status) == 0 && errors == "0" &&
                  verdict.report.find("Search not completed") == std::string::npos &&
                  verdict.report.find("max search depth too small") == std::string::npos;
  if (verdict.is_ok) return verdict;
  verdict.why = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM
                    ? "not through in time"
                    : Found(verdict.report, "broken: ([^\n]*)");
  if (verdict.why.empty())
    verdict.why = Found(verdict.report, "(?:internal error at |pan:[0-9]+: |pan: |error: )([^\n]*)");
  if (verdict.why.empty()) verdict.why = verdict.report.substr(0, 400);
  return verdict;
}

std::string ModelChecker::Trail(const ModelInstance& instance, Guard without) {
  std::string error;
  const World world(instance);
  const std::string verifier = VerifierOf(PromelaOf(world, instance.name, false), false, &error);
  const std::string folder = std::filesystem::path(verifier).parent_path();
  const std::string report = folder + "/trail";
  setenv("HEDDLE_TRAIL", "1", 1);
  const pid_t child = fork();
  if (child == 0) RunVerifier(instance, without, verifier, folder, {"pan", "-r", "-n"}, 60, report);
  int status = 0;
  waitpid(child, &status, 0);
  unsetenv("HEDDLE_TRAIL");
  return ReadAll(report);
}

}  // namespace heddle::actor
