// SPDX-License-Identifier: Apache-2.0
#include "cluster/language_server/checker.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

namespace heddle::cluster {
namespace {

// How long nothing must change before the passes of the compiler run: they take longer than its first stages,
// and find warnings alone.
constexpr std::chrono::milliseconds kQuiet{300};
constexpr std::chrono::milliseconds kLongestWait{1000};
constexpr std::chrono::milliseconds kTurn{10};

// A script whose arguments the editor does not know, or that only defines functions, is checked for any that
// it may be called with.
bool HasOpenArguments(const compiler::ScriptView& script, const compiler::CompileOptions& options) {
  const bool is_library = script.file.statements.empty() && !script.file.functions.empty();
  return is_library ||
         std::any_of(script.tokens.begin(), script.tokens.end(), [&](const compiler::Token& token) {
           return token.kind == compiler::Token::Kind::kParameter &&
                  !options.arguments.contains(std::string(token.text));
         });
}

}  // namespace

Checker::Checker(Report report) : report_(std::move(report)), thread_([this] { Run(); }) {}

Checker::~Checker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Checker::Check(compiler::ScriptViewPointer script, const OpenDocuments& documents,
                    const CheckSettings& settings) {
  const std::lock_guard lock(mutex_);
  const std::string path = script->path;
  jobs_[path] = {std::move(script), documents, settings, false};
  changed_.notify_all();
}

void Checker::Forget(const std::string& path) {
  const std::lock_guard lock(mutex_);
  jobs_.erase(path);
  checked_.erase(path);
}

std::shared_ptr<const CheckedDocument> Checker::Find(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = checked_.find(path);
  return found == checked_.end() ? nullptr : found->second;
}

void Checker::WaitFor(const std::string& path, const std::string& text,
                      const std::function<bool()>& gives_up) const {
  std::unique_lock lock(mutex_);
  const auto is_done = [&] {
    const auto found = checked_.find(path);
    return ends_ || (found != checked_.end() && found->second->script->text == text);
  };
  for (auto waited = std::chrono::milliseconds(0); waited < kLongestWait && !is_done(); waited += kTurn) {
    changed_.wait_for(lock, kTurn);
    lock.unlock();
    const bool ends = gives_up();
    lock.lock();
    if (ends) return;
  }
}

void Checker::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || !jobs_.empty(); });
    if (ends_) return;
    auto next = std::find_if(jobs_.begin(), jobs_.end(), [](const auto& job) { return !job.second.passes; });
    if (next == jobs_.end()) {
      const bool is_disturbed = changed_.wait_for(lock, kQuiet, [&] {
        return ends_ || jobs_.empty() ||
               std::any_of(jobs_.begin(), jobs_.end(), [](const auto& job) { return !job.second.passes; });
      });
      if (is_disturbed) continue;
      next = jobs_.begin();
    }
    const Job job = std::move(next->second);
    jobs_.erase(next);
    lock.unlock();
    RunJob(job);
    lock.lock();
  }
}

void Checker::RunJob(const Job& job) {
  const std::string& path = job.script->path;
  const auto document = job.documents.find(path);
  if (document == job.documents.end()) return;
  auto checked = std::make_shared<CheckedDocument>();
  checked->script = job.script;
  const std::shared_ptr<const CheckedDocument> before = Find(path);
  DocumentLoader loader(job.documents, job.settings.root, std::filesystem::path(path).parent_path().string());
  compiler::CompileOptions options = job.settings.compile;
  options.script = path;
  options.loader = &loader;
  options.any_arguments = HasOpenArguments(*checked->script, options);
  options.types_only = !job.passes;
  bool has_values = false;
  options.observe = [&](std::string_view stage, const Program& program) {
    if (stage != "shapes") return;
    checked->values = compiler::ValueInfos(program, *checked->script);
    checked->values_script = checked->script;
    has_values = true;
  };
  const Status status = compiler::CompileScript(job.script->text, options, &checked->diagnostics).status();
  if (!status.ok() && !checked->diagnostics.HasErrors()) checked->diagnostics.AddStatus(status);
  for (const compiler::Severity severity : {compiler::Severity::kError, compiler::Severity::kWarning})
    for (const compiler::Diagnostic* diagnostic : checked->diagnostics.Sorted(severity))
      if (diagnostic->file != path)
        checked->whole_paths[diagnostic->file] = loader.WholePath(diagnostic->file);
  if (!has_values && before != nullptr) {
    checked->values = before->values;
    checked->values_script = before->values_script;
  }
  {
    const std::lock_guard lock(mutex_);
    checked_[path] = checked;
    // Another text has come meanwhile: its check follows.
    const bool is_last = !jobs_.contains(path);
    if (is_last && !job.passes && status.ok()) {
      Job passes = job;
      passes.passes = true;
      jobs_[path] = std::move(passes);
    }
  }
  changed_.notify_all();
  const bool is_news = !job.passes || before == nullptr ||
                       checked->diagnostics.size() != before->diagnostics.size() ||
                       before->script != job.script;
  if (is_news) report_(path, document->second, *checked);
}

}  // namespace heddle::cluster
