// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/parse/source_range.h"
#include "core/status.h"

namespace heddle::compiler {

enum class Severity : uint8_t { kError, kWarning };

/// One thing to tell the user about a place in a script.
struct Diagnostic {
  Severity severity = Severity::kError;
  std::string file;
  SourceRange range;               ///< An empty range is shown as one caret; line 0: no place known.
  std::string message;             ///< What is wrong: fixed words first, values last; no full stop.
  std::vector<std::string> notes;  ///< Why, and what to do next; one line each.
  std::string suggestion;          ///< A name: shown as "did you mean 'name'?".
  bool is_missing = false;         ///< The script is right, but needs a part of DML that is not there.
};

/// Collects what is wrong with a set of script files, so that a user sees all of it at once. Not thread-safe.
class Diagnostics {
 public:
  static constexpr size_t kMostShown = 20;
  static constexpr size_t kMostLines = 12;  ///< Of one diagnostic.

  /// Makes the text of a file known for code frames. The order of these calls is the order files are reported
  /// in.
  void AddSource(const std::string& file, std::string text);

  /// The reference stays valid; use it to add notes and a suggestion.
  Diagnostic& Error(const std::string& file, const SourceRange& range, std::string message);
  Diagnostic& Warning(const std::string& file, const SourceRange& range, std::string message);
  /// Takes over message, position and notes of a failure; a failure without a position keeps its text.
  void AddStatus(const Status& status);
  /// All that was reported so far; what is reported next has this number.
  size_t size() const { return diagnostics_.size(); }
  /// Adds notes to all that was reported from number `first` on.
  void AddNotes(size_t first, const std::vector<std::string>& notes);
  /// Forgets all that was reported from number `first` on. Returns the first error among it with its place;
  /// "" if there was none.
  std::string TakeErrors(size_t first);

  bool HasErrors() const { return errors_ > 0; }
  size_t errors() const { return errors_; }
  size_t warnings() const { return diagnostics_.size() - errors_; }

  /// In the order of files and positions, without repetitions; errors or warnings only.
  std::vector<const Diagnostic*> Sorted(Severity severity) const;

  /// "file:line:column: error: message", code frame, notes, "did you mean 'name'?". Lines end in "\n".
  std::string Render(const Diagnostic& diagnostic) const;
  /// All of one severity, at most kMostShown, then how many more there are. "" if there are none.
  std::string RenderAll(Severity severity) const;

  /// Ok without errors, else kInvalidArgument whose message is RenderAll(kError) without the last line end.
  /// The status has no position of its own: the message starts with it.
  Status ToStatus() const;

 private:
  struct Source {
    size_t order = 0;
    std::string text;
  };
  size_t OrderOf(const std::string& file) const;

  std::deque<Diagnostic> diagnostics_;
  std::map<std::string, Source> sources_;
  size_t errors_ = 0;
};

/// The candidate nearest to a misspelt name, or "" when none is near enough. Distance: Damerau-Levenshtein
/// (insert, delete, replace, swap neighbours), at most 1 up to 5 letters, 2 up to 9, else 3; letter case
/// alone always counts as near. Ties go to the candidate
/// that begins like the name, then to the earlier one.
std::string SuggestName(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace heddle::compiler
