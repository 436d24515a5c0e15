// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cli/arguments.h"
#include "core/status.h"

// `heddle launch`: a cluster for one job on what a site has. Each verb fills in a shell script of
// deploy/launch and hands it to the program that owns the place: sbatch, or bash, which calls ssh or kubectl.
// --dry-run prints the script instead. Secrets are made by the script when it runs, so that it holds none.
namespace heddle::cluster::cli {

/// Options of all these verbs: what the job is, how large workers are, --dry-run.
std::vector<Option> LaunchOptions();

/// Of verbs that start this program on other machines.
inline constexpr Option kRemoteHeddleOption = {"heddle", Option::Kind::kValue, "PATH",
                                               "this program there (default: where it is here)"};

/// What the options ask for.
struct LaunchRequest {
  int workers = 0;  ///< 0: not given.
  int threads = 0;  ///< Of a worker; 0: what it has.
  int64_t memory_bytes = 0;
  std::string here;              ///< Path of this program.
  std::string heddle;            ///< The program on other machines.
  std::string script;            ///< Path; "" for -e CODE and without a job.
  std::vector<std::string> job;  ///< Words for `job submit`: the script and its parameters; empty: none.

  /// Of `heddle worker`: --threads and --memory.
  std::vector<std::string> WorkerOptions() const;
};
/// kUsage, and kNotFound for a script that cannot be read.
Result<LaunchRequest> ReadLaunch(const Arguments& arguments);

/// A word as shells take it, with quotes where it needs them; and words with blanks between.
std::string ShellWord(std::string_view word);
std::string ShellWords(const std::vector<std::string>& words);

/// The text of deploy/launch/`path` with every @NAME@ of `places` replaced, once; @cluster_of_job@ is
/// cluster_of_job.sh.
std::string FillIn(std::string_view path, std::map<std::string, std::string> places);

/// --dry-run: prints `text`. Else this process becomes `words`, with `input` as its standard input unless
/// that is empty; returns only if that fails: kUnavailable says why.
int Launch(const Arguments& arguments, const std::string& text, const std::vector<std::string>& words,
           const std::string& input = "");

}  // namespace heddle::cluster::cli
