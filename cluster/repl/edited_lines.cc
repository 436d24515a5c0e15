// SPDX-License-Identifier: Apache-2.0
// The one file that knows libedit.
#include <histedit.h>
#include <langinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>

#include "cluster/repl/history.h"
#include "cluster/repl/line_source.h"
#include "cluster/repl/prompt_signals.h"

namespace heddle::cluster {
namespace {

constexpr size_t kMostShown = 200;  // completions below the line

// Characters are those of UTF-8 whatever the environment says: scripts are.
void UseUtf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

class EditedLines : public LineSource {
 public:
  EditedLines(std::string history_path, std::function<engine::Completions(std::string_view)> complete)
      : complete_(std::move(complete)), kept_(std::move(history_path)) {
    UseUtf8();
    history_ = history_init();
    HistEvent event;
    history(history_, &event, H_SETSIZE, static_cast<int>(2 * History::kMost));
    for (const std::string& entry : kept_.entries()) history(history_, &event, H_ENTER, entry.c_str());
    editor_ = el_init("heddle", stdin, stdout, stderr);
    el_set(editor_, EL_CLIENTDATA, this);
    el_set(editor_, EL_PROMPT, Prompt);
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_HIST, history, history_);
    el_set(editor_, EL_GETCFN, ReadCharacter);
    el_set(editor_, EL_ADDFN, "heddle-complete", "complete the word", CompleteWord);
    el_set(editor_, EL_BIND, "^I", "heddle-complete", nullptr);
    el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  }
  ~EditedLines() override {
    el_end(editor_);
    history_end(history_);
  }

  Outcome Read(const std::string& prompt, std::string* line) override {
    prompt_ = prompt;
    outcome_ = Outcome::kLine;
    PromptSignals signals;
    signals_ = &signals;
    // Before the prompt is there: a Ctrl-D that answers it must not be the terminal's own end of input.
    el_set(editor_, EL_PREP_TERM, 1);
    int count = 0;
    const char* const read = el_gets(editor_, &count);
    signals_ = nullptr;
    if (outcome_ != Outcome::kLine) {
      el_reset(editor_);
      std::fputs(outcome_ == Outcome::kInterrupted ? "^C\n" : "\n", stdout);
      std::fflush(stdout);
      return outcome_;
    }
    if (read == nullptr || count <= 0) {
      std::fputs("\n", stdout);
      std::fflush(stdout);
      return Outcome::kEnd;
    }
    line->assign(read, static_cast<size_t>(count));
    if (line->ends_with('\n')) line->pop_back();
    return Outcome::kLine;
  }

  void Remember(const std::string& entry) override {
    const size_t before = kept_.entries().size();
    kept_.Add(entry);
    HistEvent event;
    if (kept_.entries().size() > before) history(history_, &event, H_ENTER, entry.c_str());
  }
  bool IsTerminal() const override { return true; }

 private:
  static EditedLines& Of(EditLine* editor) {
    void* self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    return *static_cast<EditedLines*>(self);
  }
  static char* Prompt(EditLine* editor) { return Of(editor).prompt_.data(); }

  // Of the line so far up to the cursor.
  static unsigned char CompleteWord(EditLine* editor, int) {
    EditedLines& self = Of(editor);
    const LineInfo* const line = el_line(editor);
    const std::string text(line->buffer, line->cursor);
    const engine::Completions found = self.complete_(text);
    if (found.words.empty()) return CC_REFRESH_BEEP;
    const std::string word = text.substr(found.begin), common = found.Common();
    if (common.size() > word.size()) {
      el_insertstr(editor, common.substr(word.size()).c_str());
      return CC_REFRESH;
    }
    if (found.words.size() == 1) return CC_REFRESH;
    self.Show(found.words);
    return CC_REDISPLAY;
  }

  void Show(const std::vector<std::string>& words) const {
    size_t width = 0;
    for (const std::string& word : words) width = std::max(width, word.size() + 2);
    int columns = 0;
    el_get(editor_, EL_GETTC, "co", &columns, nullptr);
    const size_t in_a_line = std::max<size_t>(1, static_cast<size_t>(std::max(columns, 40)) / width);
    std::string text = "\n";
    for (size_t i = 0; i < std::min(words.size(), kMostShown); ++i) {
      text += words[i];
      const bool is_last = (i + 1) % in_a_line == 0 || i + 1 == words.size();
      text += is_last ? "\n" : std::string(width - words[i].size(), ' ');
    }
    if (words.size() > kMostShown) text += "...\n";
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }

  // One character of the terminal; 0 where there is none, with outcome_ telling why.
  static int ReadCharacter(EditLine* editor, wchar_t* character) {
    EditedLines& self = Of(editor);
    std::mbstate_t state = {};
    while (true) {
      switch (self.signals_->Wait(STDIN_FILENO)) {
        case PromptSignals::Event::kClear: self.outcome_ = Outcome::kInterrupted; return 0;
        case PromptSignals::Event::kLeave: self.outcome_ = Outcome::kEnd; return 0;
        case PromptSignals::Event::kRedraw:
          el_set(editor, EL_PREP_TERM, 1);
          el_resize(editor);
          el_set(editor, EL_REFRESH);
          continue;
        case PromptSignals::Event::kInput: break;
      }
      char byte = 0;
      const ssize_t got = read(STDIN_FILENO, &byte, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        self.outcome_ = Outcome::kEnd;
        return 0;
      }
      const size_t used = std::mbrtowc(character, &byte, 1, &state);
      if (used == static_cast<size_t>(-2)) continue;  // more bytes follow
      if (used == static_cast<size_t>(-1)) {          // no UTF-8: left out
        state = {};
        continue;
      }
      if (byte == '\0') *character = L'\0';
      return 1;
    }
  }

  const std::function<engine::Completions(std::string_view)> complete_;
  History kept_;
  ::History* history_ = nullptr;
  EditLine* editor_ = nullptr;
  std::string prompt_;
  PromptSignals* signals_ = nullptr;  // While Read() waits.
  Outcome outcome_ = Outcome::kLine;
};

}  // namespace

std::unique_ptr<LineSource> MakeEditedLines(std::string history_path,
                                            std::function<engine::Completions(std::string_view)> complete) {
  const char* const terminal = std::getenv("TERM");
  if (terminal == nullptr || *terminal == '\0' || std::strcmp(terminal, "dumb") == 0) return nullptr;
  return std::make_unique<EditedLines>(std::move(history_path), std::move(complete));
}

}  // namespace heddle::cluster
