// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cluster/language_server/open_documents.h"
#include "compiler/compile.h"
#include "compiler/editor/script_view.h"
#include "compiler/editor/value_infos.h"

namespace heddle::cluster {

/// What a script is checked with, beside its text and those of others.
struct CheckSettings {
  compiler::CompileOptions compile;  ///< Without script and loader.
  std::string root;                  ///< Where relative paths of scripts begin.
};

/// What the compiler found out about one text of a document.
struct CheckedDocument {
  compiler::ScriptViewPointer script;
  compiler::Diagnostics diagnostics;
  compiler::ValueInfos values;  ///< Of `script`, or of `values_script`, the last one that had any.
  compiler::ScriptViewPointer values_script;
  std::map<std::string, std::string> whole_paths;  ///< Of other files with diagnostics, by Diagnostic::file.
};

/// Compiles scripts on a thread of its own. Of the texts that a document has had meanwhile, the last one
/// alone. All functions may be called by any thread.
class Checker {
 public:
  using Report = std::function<void(const std::string& path, const OpenDocument& document,
                                    const CheckedDocument& checked)>;
  /// `report` is called on the checker's thread, for every text that was checked; twice where the passes of
  /// the compiler find more than its first stages.
  explicit Checker(Report report);
  /// Waits for the script that is being compiled.
  ~Checker();

  /// `script` is what `documents` have at its path.
  void Check(compiler::ScriptViewPointer script, const OpenDocuments& documents,
             const CheckSettings& settings);
  void Forget(const std::string& path);
  /// What is known of a document; nullptr before its first check has ended.
  std::shared_ptr<const CheckedDocument> Find(const std::string& path) const;
  /// Waits until a document with this text has been checked, `gives_up` says so or a second has passed.
  void WaitFor(const std::string& path, const std::string& text, const std::function<bool()>& gives_up) const;

 private:
  struct Job {
    compiler::ScriptViewPointer script;
    OpenDocuments documents;
    CheckSettings settings;
    bool passes = false;  // the second time, with the passes
  };
  void Run();
  void RunJob(const Job& job);

  const Report report_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<std::string, Job> jobs_;
  std::map<std::string, std::shared_ptr<const CheckedDocument>> checked_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace heddle::cluster
