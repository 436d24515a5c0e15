// SPDX-License-Identifier: Apache-2.0
#include "compiler/editor/writing_context.h"

#include <vector>

#include "compiler/parse/lexer.h"

namespace heddle::compiler {
namespace {

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The innermost call that is open behind the last of `count` tokens.
std::optional<OpenCall> CallAround(const std::vector<Token>& tokens, size_t count) {
  OpenCall call;
  int32_t closed = 0;
  for (size_t i = count; i-- > 0;) {
    const Token& token = tokens[i];
    // No call goes on across the statements of a block.
    if (token.Is("{") || token.Is("}")) return std::nullopt;
    if (token.Is(")") || token.Is("]")) ++closed;
    if (closed == 0 && token.Is(",")) ++call.argument;
    if (closed == 0 && call.argument == 0 && token.Is("=") && i > 0 &&
        tokens[i - 1].kind == Token::Kind::kIdentifier)
      call.argument_name = tokens[i - 1].text;
    if (!token.Is("(") && !token.Is("[")) continue;
    if (closed > 0) {
      --closed;
      continue;
    }
    const bool is_call = token.Is("(") && i > 0 &&
                         (tokens[i - 1].kind == Token::Kind::kIdentifier || tokens[i - 1].Is("source") ||
                          tokens[i - 1].Is("setwd"));
    if (is_call) {
      const Token& name = tokens[i - 1];
      if (!name.name_space.empty()) call.name = std::string(name.name_space) + "::";
      call.name += name.text;
      return call;
    }
    // Within a group or an index of an argument.
    call.argument = 0;
    call.argument_name.clear();
  }
  return std::nullopt;
}

}  // namespace

WritingContext ContextAtEnd(std::string_view text) {
  WritingContext context;
  const std::vector<Token> tokens = Tokenize(text);
  const size_t count = tokens.size() - 1;  // without the end
  context.begin = text.size();
  const bool is_open = count > 0 && tokens[count - 1].problem != nullptr &&
                       tokens[count - 1].problem->is_open && tokens[count - 1].end_offset == text.size();
  if (is_open && text[tokens[count - 1].offset] != '/') {
    context.kind = WritingContext::Kind::kText;
    context.begin = tokens[count - 1].offset + 1;
    context.call = CallAround(tokens, count - 1);
    return context;
  }
  const size_t last_end = count > 0 ? tokens[count - 1].end_offset : 0;
  const size_t hash = text.find('#', last_end);
  if (is_open || (hash != std::string_view::npos && text.find('\n', hash) == std::string_view::npos)) {
    context.kind = WritingContext::Kind::kNothing;
    return context;
  }
  while (context.begin > 0 && IsNameCharacter(text[context.begin - 1])) --context.begin;
  size_t before = count;
  while (before > 0 && tokens[before - 1].end_offset > context.begin) --before;
  context.call = CallAround(tokens, before);
  if (context.begin < text.size() && (IsDigit(text[context.begin]) || text[context.begin] == '.')) {
    context.kind = WritingContext::Kind::kNothing;
  } else if (text.substr(0, context.begin).ends_with("::")) {
    size_t begin = context.begin - 2;
    while (begin > 0 && IsNameCharacter(text[begin - 1])) --begin;
    context.kind = WritingContext::Kind::kMember;
    context.name_space = text.substr(begin, context.begin - 2 - begin);
  }
  return context;
}

}  // namespace heddle::compiler
