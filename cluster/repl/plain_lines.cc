// SPDX-License-Identifier: Apache-2.0
// Lines without editing: of a pipe, and of a terminal that can do no more.
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "cluster/repl/line_source.h"
#include "cluster/repl/prompt_signals.h"

namespace heddle::cluster {
namespace {

// Cuts what is read into lines.
class InputBuffer {
 public:
  // Reads more; false at the end of the input.
  bool Fill() {
    char block[1 << 14];
    ssize_t got = 0;
    do {
      got = read(STDIN_FILENO, block, sizeof(block));
    } while (got < 0 && errno == EINTR);
    if (got > 0) text_.append(block, static_cast<size_t>(got));
    return got > 0;
  }
  // The next line without its end; the rest of the input when `takes_rest`.
  bool Take(std::string* line, bool takes_rest) {
    const size_t end = text_.find('\n', begin_);
    if (end == std::string::npos && (!takes_rest || begin_ == text_.size())) {
      text_.erase(0, begin_);
      begin_ = 0;
      return false;
    }
    *line = text_.substr(begin_, end - begin_);
    begin_ = end == std::string::npos ? text_.size() : end + 1;
    return true;
  }
  void Clear() {
    text_.clear();
    begin_ = 0;
  }

 private:
  std::string text_;
  size_t begin_ = 0;
};

class PipeLines : public LineSource {
 public:
  Outcome Read(const std::string&, std::string* line) override {
    if (Peek() == nullptr) return Outcome::kEnd;
    *line = std::move(next_);
    has_next_ = false;
    return Outcome::kLine;
  }
  const std::string* Peek() override {
    while (!has_next_ && !(has_next_ = buffer_.Take(&next_, is_at_end_)) && !is_at_end_)
      is_at_end_ = !buffer_.Fill();
    return has_next_ ? &next_ : nullptr;
  }
  void Remember(const std::string&) override {}
  bool IsTerminal() const override { return false; }

 private:
  InputBuffer buffer_;
  std::string next_;
  bool has_next_ = false;
  bool is_at_end_ = false;
};

class PlainLines : public LineSource {
 public:
  Outcome Read(const std::string& prompt, std::string* line) override {
    PromptSignals signals;  // Before anybody sees that input is awaited.
    std::fputs(prompt.c_str(), stdout);
    std::fflush(stdout);
    while (!buffer_.Take(line, /*takes_rest=*/false)) {
      switch (signals.Wait(STDIN_FILENO)) {
        case PromptSignals::Event::kInput:
          if (!buffer_.Fill()) return Outcome::kEnd;
          break;
        case PromptSignals::Event::kClear:
          buffer_.Clear();
          std::fputs("\n", stdout);
          return Outcome::kInterrupted;
        case PromptSignals::Event::kLeave: return Outcome::kEnd;
        case PromptSignals::Event::kRedraw: break;
      }
    }
    return Outcome::kLine;
  }
  void Remember(const std::string&) override {}
  bool IsTerminal() const override { return true; }

 private:
  InputBuffer buffer_;
};

}  // namespace

std::unique_ptr<LineSource> MakePipeLines() { return std::make_unique<PipeLines>(); }
std::unique_ptr<LineSource> MakePlainLines() { return std::make_unique<PlainLines>(); }

}  // namespace heddle::cluster
