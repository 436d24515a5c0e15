// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/process.h"

namespace heddle::testing_support {

using Files = std::map<std::string, std::string>;  ///< By path below a folder: contents.

/// All files below a folder, but for what is in its folder "cache".
Files FilesBelow(const std::string& folder);

/// Whether every n is tried, not some (HEDDLE_FAULTS_ALL=1).
bool TriesAllFaults();
/// The n of 1..most that a test tries: all, or with HEDDLE_FAULTS_PART=2/5 the second of five parts of them.
std::pair<int64_t, int64_t> PartOf(int64_t most);

/// A script that reads and writes files, and how the built binary runs it.
struct FileScript {
  std::string name;
  std::string script;
  std::vector<std::string> words;    ///< Between the binary and the script.
  std::vector<std::string> outputs;  ///< Files and folders that it makes.
  int most_tried = 60;               ///< Without HEDDLE_FAULTS_ALL: so many n, evenly.
  bool spills = false;               ///< Panels go to spill files, in the folder "spill".
};
/// One of each kind: in memory, spilled, read and written in panels, on two workers.
std::vector<FileScript> FileScripts();

/// What fails in a run (failing_calls.c).
struct Fault {
  int at = 0;                ///< The n-th call; 0: none.
  int error = 0;             ///< As what; 0: the process is killed before it.
  bool only_writes = false;  ///< Only calls that want room on the disk are counted.
  bool only_spill = false;   ///< Only calls on spill files and their folder.
  bool memory = false;       ///< Mappings of matrices are counted, in the place of calls on files.
  bool no_tmpfile = false;   ///< Files have names from the beginning.
};
struct FaultyRun {
  Finished finished;
  std::vector<std::string> calls;  ///< The log: "call N NAME PATH", "fails N NAME PATH".
  Files files;                     ///< Below the folder.

  /// The calls that failed, for messages.
  std::string Failed() const;
  /// The number of the last call of the process that made most.
  int MostCalls() const;
};

/// Those of them that spill, each tried at fewer n.
std::vector<FileScript> SpillingScripts();

/// Makes `folder` anew, with what scripts read and, where `has_older`, older files in the place of outputs.
void PrepareFolder(const std::string& folder, const FileScript& script, bool has_older);
/// The command that runs a script in a prepared folder; its log is FOLDER.log.
std::vector<std::string> WordsWithFault(const std::string& folder, const FileScript& script,
                                        const Fault& fault);
/// Starts words[0] in `folder`, without input or output. The caller waits for it.
pid_t StartProcess(const std::vector<std::string>& words, const std::string& folder);
/// Runs a script in a prepared folder.
FaultyRun RunWithFault(const std::string& folder, const FileScript& script, const Fault& fault);

}  // namespace heddle::testing_support
