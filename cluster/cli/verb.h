// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cli/arguments.h"

namespace heddle::cluster::cli {

/// One word after `heddle` (or two: "job submit") and what it does.
struct Verb {
  std::string_view name;     ///< "run", "job submit"
  std::string_view summary;  ///< One line.
  std::string_view usage;    ///< After "heddle ".
  std::vector<Option> options;
  std::string_view example;  ///< One command line.
  /// Returns the exit code of the process.
  int (*run)(const Arguments& arguments) = nullptr;
  bool takes_words = false;  ///< Else a word that is no option is a mistake.
  bool hidden = false;
};

/// All verbs, in the order of the help; each is defined in the file named after it.
std::span<const Verb* const> AllVerbs();

extern const Verb kRunVerb;        // run.cc
extern const Verb kCheckVerb;      // check.cc
extern const Verb kExplainVerb;    // explain.cc
extern const Verb kSimVerb;        // sim.cc
extern const Verb kReplVerb;       // repl.cc
extern const Verb kFmtVerb;        // fmt.cc
extern const Verb kLspVerb;        // lsp.cc
extern const Verb kInspectVerb;    // inspect.cc
extern const Verb kConvertVerb;    // convert.cc
extern const Verb kMasterVerb;     // master.cc
extern const Verb kWorkerVerb;     // worker.cc
extern const Verb kJobSubmitVerb;  // jobs/job_submit.cc
extern const Verb kJobListVerb;    // jobs/job_list.cc
extern const Verb kJobReportVerb;  // jobs/job_record.cc
extern const Verb kJobRetryVerb;   // jobs/job.cc
extern const Verb kJobDeleteVerb;
extern const Verb kJobStatusVerb;
extern const Verb kJobLogsVerb;
extern const Verb kJobWaitVerb;
extern const Verb kJobCancelVerb;
extern const Verb kAdminNodesVerb;  // admin/nodes.cc
extern const Verb kAdminDrainVerb;
extern const Verb kAdminUndrainVerb;
extern const Verb kAdminRemoveVerb;
extern const Verb kTokenCreateVerb;  // admin/admin_token.cc
extern const Verb kTokenListVerb;
extern const Verb kTokenRotateVerb;
extern const Verb kTokenRevokeVerb;
extern const Verb kLaunchSlurmVerb;  // launch/launch_slurm.cc
extern const Verb kLaunchSshVerb;    // launch/launch_ssh.cc
extern const Verb kLaunchK8sVerb;    // launch/launch_k8s.cc
extern const Verb kAdminTopVerb;     // admin/top.cc
extern const Verb kAdminCertVerb;    // admin/cert.cc
extern const Verb kAdminBackupVerb;  // admin/backup.cc
extern const Verb kAdminRestoreVerb;
extern const Verb kAdminGcVerb;      // admin/gc.cc
extern const Verb kAdminConfigVerb;  // admin/config.cc
extern const Verb kAdminDoctorVerb;  // admin/doctor.cc
extern const Verb kVerifyVerb;       // verify.cc
extern const Verb kDoctorVerb;       // installation/doctor.cc
extern const Verb kDevicesVerb;      // installation/devices.cc
extern const Verb kExamplesVerb;     // installation/examples.cc
extern const Verb kManualPageVerb;   // installation/manual_page.cc; packages are made by it
extern const Verb kVersionVerb;      // installation/version.cc
extern const Verb kCompletionVerb;   // installation/completion.cc
extern const Verb kExecutorVerb;     // process_verbs.cc; started by sim and by workers
extern const Verb kCompilerVerb;     // started by masters

/// The whole command line: finds the verb, parses its options, runs it. Usage mistakes go to stderr with exit
/// code 2; a standard output that could not be written turns success into exit code 5.
int Main(std::span<const std::string> words);

/// Options of a verb as a screen of text.
std::string Help(const Verb& verb);

}  // namespace heddle::cluster::cli
