// SPDX-License-Identifier: Apache-2.0
#include "compiler/editor/format_script.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/editor/format_lines.h"
#include "compiler/editor/script_layout.h"
#include "compiler/parse/lexer.h"
#include "compiler/parse/parser.h"
#include "compiler/parse/print_ast.h"

namespace heddle::compiler {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// A comment between two tokens; or a full stop that ends a line and means nothing.
struct Comment {
  std::string_view text;
  int32_t lines_before = 0;  // line ends between it and what is before it
  bool ends_line = false;    // nothing else is on its line behind it
};

// What is between two tokens.
struct Gap {
  std::vector<Comment> comments;
  int32_t lines_before = 0;  // line ends before the token behind it
};

Gap ReadGap(std::string_view text) {
  Gap gap;
  for (size_t at = 0; at < text.size();) {
    if (IsBlank(text[at])) {
      if (text[at] == '\n') ++gap.lines_before;
      ++at;
      continue;
    }
    size_t end = at + 1;
    if (text[at] == '#') end = std::min(text.find('\n', at), text.size());
    if (text[at] == '/') end = std::min(text.find("*/", at + 2), text.size() - 2) + 2;
    Comment& comment = gap.comments.emplace_back();
    comment.text = text.substr(at, end - at);
    while (IsBlank(comment.text.back())) comment.text.remove_suffix(1);
    comment.lines_before = std::exchange(gap.lines_before, 0);
    const size_t next = text.find_first_not_of(" \t\r", end);
    comment.ends_line = next == std::string_view::npos ? false : text[next] == '\n';
    at = end;
  }
  return gap;
}

// Puts tokens and comments on lines.
class Lines {
 public:
  Lines(std::string_view text, const std::vector<Token>& tokens, const std::vector<TokenLayout>& layout)
      : text_(text), tokens_(tokens), layout_(layout) {}

  std::vector<FormattedLine> Run() {
    size_t begin = text_.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const Gap gap = ReadGap(text_.substr(begin, tokens_[i].offset - begin));
      for (size_t c = 0; c < gap.comments.size(); ++c)
        AddComment(gap.comments[c], i, c + 1 == gap.comments.size());
      begin = tokens_[i].end_offset;
      if (tokens_[i].kind != Token::Kind::kEnd) AddToken(i, gap.lines_before);
    }
    return std::move(lines_);
  }

 private:
  // An empty line stays between statements alone, and only one.
  bool KeepsEmptyLine(int32_t lines_before, size_t token) const {
    if (lines_before < 2 || lines_.empty() || is_behind_brace_) return false;
    const Token& next = tokens_[token];
    return layout_[token].begins_statement || next.Is("}") || next.Is("else") ||
           next.kind == Token::Kind::kEnd;
  }

  void BeginLine(int32_t indent, int32_t lines_before, size_t token) {
    FormattedLine line;
    line.indent = indent;
    line.blank_before = KeepsEmptyLine(lines_before, token);
    lines_.push_back(std::move(line));
    ended_ = false;
  }

  // A comment before a token.
  void AddComment(const Comment& comment, size_t token, bool is_last) {
    const bool is_stop = comment.text == ".";
    const bool is_behind_all = is_last && layout_[token].line_break == TokenLayout::Break::kAlways;
    const bool ends_line = comment.ends_line || is_stop || is_behind_all || comment.text.starts_with('#');
    const bool is_alone = (comment.lines_before > 0 || lines_.empty() || ended_) && !is_stop;
    if (is_alone) {
      BeginLine(layout_[token].comment_indent, comment.lines_before, token);
      is_behind_brace_ = false;
    }
    if (!is_alone && ends_line && !is_stop) {
      lines_.back().comment = comment.text;
    } else {
      lines_.back().pieces.push_back({.text = comment.text, .blank = !is_stop});
      is_behind_comment_ = !is_stop;
    }
    if (ends_line) ended_ = true;
  }

  void AddToken(size_t i, int32_t lines_before) {
    using Break = TokenLayout::Break;
    const TokenLayout& layout = layout_[i];
    const bool breaks =
        layout.line_break == Break::kAlways || (layout.line_break == Break::kKeep && lines_before > 0);
    const Token& token = tokens_[i];
    if (breaks || ended_ || lines_.empty()) BeginLine(layout.indent, token.Is("}") ? 0 : lines_before, i);
    LinePiece piece;
    piece.text = text_.substr(token.offset, token.end_offset - token.offset);
    piece.blank = layout.blank || (is_behind_comment_ && !token.Is(",") && !token.Is(";"));
    // A comment that a break would leave at the end of a line would be another kind of comment.
    piece.may_break = layout.may_break && !is_behind_comment_;
    piece.begins_body = layout.begins_body && !is_behind_comment_;
    // An operator is a worse place to break than a comma beside it.
    piece.level = 2 * layout.depth + (i > 0 && (tokens_[i - 1].Is(",") || token.Is("return")) ? 0 : 1);
    piece.indent = layout.indent;
    lines_.back().pieces.push_back(piece);
    is_behind_comment_ = false;
    is_behind_brace_ = token.Is("{");
  }

  std::string_view text_;
  const std::vector<Token>& tokens_;
  const std::vector<TokenLayout>& layout_;
  std::vector<FormattedLine> lines_;
  bool ended_ = false;  // nothing more goes on the last line
  bool is_behind_brace_ = false;
  bool is_behind_comment_ = false;
};

std::string WithoutBlanks(std::string_view text) {
  std::string rest;
  for (const char c : text)
    if (!IsBlank(c)) rest += c;
  return rest;
}

// Whether both texts are the same script: tree, tokens and comments.
bool AreTheSame(const ScriptFile& before, const std::vector<Token>& tokens, const std::string& formatted) {
  Diagnostics diagnostics;
  const ScriptFile after = Parse(before.path, formatted, &diagnostics);
  if (diagnostics.HasErrors() || PrintScript(before) != PrintScript(after)) return false;
  const std::vector<Token> tokens_after = Tokenize(formatted);
  const auto is_same = [](const Token& a, const Token& b) {
    return a.kind == b.kind && a.text == b.text && a.name_space == b.name_space;
  };
  return std::equal(tokens.begin(), tokens.end(), tokens_after.begin(), tokens_after.end(), is_same) &&
         WithoutBlanks(before.text) == WithoutBlanks(formatted);
}

}  // namespace

Result<std::string> FormatScript(const std::string& path, const std::string& text,
                                 const FormatOptions& options, Diagnostics* diagnostics) {
  const ScriptFile file = Parse(path, text, diagnostics);
  if (diagnostics->HasErrors()) return diagnostics->ToStatus();
  const std::vector<Token> tokens = Tokenize(text);
  const size_t first_end = text.find('\n');
  const bool is_crlf = first_end != std::string::npos && first_end > 0 && text[first_end - 1] == '\r';
  const std::string_view line_end = is_crlf ? "\r\n" : "\n";
  std::string formatted(text.starts_with(kByteOrderMark) ? kByteOrderMark : "");
  formatted += JoinLines(BreakLongLines(Lines(text, tokens, LayOut(tokens, file)).Run(), options.width),
                         options.width, line_end);
  if (!text.ends_with('\n') && formatted.ends_with(line_end))
    formatted.resize(formatted.size() - line_end.size());
  if (!AreTheSame(file, tokens, formatted))
    return Internal("{}: formatting would change more than blanks; the script stays as it is", path);
  return formatted;
}

}  // namespace heddle::compiler
