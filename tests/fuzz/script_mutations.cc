// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/script_mutations.h"

#include <algorithm>

#include "tests/fuzz/hostile.h"
#include "tests/fuzz/script_text.h"

namespace heddle::fuzz {
namespace {

using Tokens = std::vector<std::string>;

constexpr int kNone = -1;

// A random token for which `is` holds, or kNone.
int FindToken(const Tokens& tokens, bool (*is)(std::string_view), Chooser& choose) {
  std::vector<int> places;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (is(tokens[i])) places.push_back(static_cast<int>(i));
  return places.empty() ? kNone : choose.Pick(places);
}

std::string AnyOperator(Chooser& choose) {
  return choose.Pick({"+",  "-",  "*", "/", "^",  "%*%", "%%", "%/%", "<",  "<=", ">", ">=",
                      "==", "!=", "&", "|", "&&", "||",  ":",  "=",   "<-", "+=", ",", "!"});
}

bool IsTextToken(std::string_view token) {
  return token.size() >= 2 && (token[0] == '"' || token[0] == '\'') && token.back() == token[0];
}

// What specs of transforms and tokenize, expressions of map() and regular expressions are made of; nothing
// that ends a text of DML.
std::string PieceOfText(Chooser& choose) {
  return choose.Pick({"(a{1,100}){1,100}",
                      "{9,}",
                      "(a|b)*",
                      "[",
                      "]",
                      "(",
                      ")",
                      "\\\\d+",
                      "+",
                      ".*",
                      "{",
                      "}",
                      ":",
                      ",",
                      "recode: [1]",
                      "dummycode: [1, 2]",
                      "bin: [{id: 1, method: equi-width, numbins: 3}]",
                      "ids: true",
                      "algo: split",
                      "algo: ngram",
                      "max_gram: 1000000",
                      "out: hash",
                      "id_cols: []",
                      "null",
                      " -> ",
                      ".chars()",
                      ".repeat(1000000)",
                      ".length()",
                      "x",
                      " + ",
                      " >>> ",
                      "(int) ",
                      ".replaceAll(x, x)",
                      "new StringBuilder(x)",
                      ".filter(c -> c > 1)",
                      "java.time.LocalDate.parse(x)",
                      "Math.log(",
                      "String.format("});
}

// Changes the inside of a text and leaves its quotes.
void MutateText(std::string* token, Chooser& choose) {
  const size_t at = 1 + choose.Below(token->size() - 1);
  switch (choose.Below(4)) {
    case 0:
      if (at + 1 < token->size())
        token->erase(at, 1 + choose.Below(std::min<size_t>(5, token->size() - 1 - at)));
      return;
    case 1: token->insert(at, HostileNumber(choose)); return;
    default: token->insert(at, PieceOfText(choose));
  }
}

void Splice(Tokens* tokens, const std::string& other, Chooser& choose) {
  const Tokens lines = SplitLines(other);
  if (lines.empty()) return;
  const size_t begin = choose.Below(lines.size());
  const size_t end = std::min(lines.size(), begin + 1 + choose.Below(6));
  std::string piece = "\n";
  for (size_t i = begin; i < end; ++i) piece += lines[i];
  // Between lines mostly, so that what is put in is read as statements.
  size_t at = choose.Below(tokens->size() + 1);
  if (choose.Chance(80))
    while (at < tokens->size() && (*tokens)[at].find('\n') == std::string::npos) ++at;
  tokens->insert(tokens->begin() + static_cast<std::ptrdiff_t>(at), piece);
}

void MutateTokens(Tokens* tokens, const std::string& other, Chooser& choose) {
  if (tokens->empty()) return;
  const size_t at = choose.Below(tokens->size());
  const auto place = tokens->begin() + static_cast<std::ptrdiff_t>(at);
  // What leaves a script whole is the most frequent: numbers, names, operators.
  switch (choose.Below(19)) {
    case 0: tokens->erase(place); return;
    case 1: {
      const std::string again = *place;
      tokens->insert(place, again);
      return;
    }
    case 2: std::swap(*place, (*tokens)[choose.Below(tokens->size())]); return;
    case 3: {
      const size_t count = std::min(tokens->size() - at, 1 + choose.Below(20));
      const Tokens piece(place, place + static_cast<std::ptrdiff_t>(count));
      if (choose.Chance(50))
        tokens->erase(place, place + static_cast<std::ptrdiff_t>(count));
      else
        tokens->insert(place, piece.begin(), piece.end());
      return;
    }
    case 4: {
      const int name = FindToken(*tokens, IsNameToken, choose);
      if (name != kNone) (*tokens)[static_cast<size_t>(name)] = HostileExpression(choose);
      return;
    }
    case 5:
    case 6: Splice(tokens, other, choose); return;
    case 7:
    case 8: {
      const int op = FindToken(*tokens, IsOperatorToken, choose);
      if (op != kNone) (*tokens)[static_cast<size_t>(op)] = AnyOperator(choose);
      return;
    }
    case 9:
    case 10:
    case 11: {
      const int to = FindToken(*tokens, IsNameToken, choose), from = FindToken(*tokens, IsNameToken, choose);
      if (to != kNone) (*tokens)[static_cast<size_t>(to)] = (*tokens)[static_cast<size_t>(from)];
      return;
    }
    case 12:
    case 13:
    case 14: {
      const int text = FindToken(*tokens, IsTextToken, choose);
      if (text != kNone) MutateText(&(*tokens)[static_cast<size_t>(text)], choose);
      return;
    }
    default: {
      const int number = FindToken(*tokens, IsNumberToken, choose);
      if (number != kNone) (*tokens)[static_cast<size_t>(number)] = HostileNumber(choose);
    }
  }
}

void MutateLines(std::string* script, Chooser& choose) {
  Tokens lines = SplitLines(*script);
  if (lines.empty()) return;
  const size_t at = choose.Below(lines.size()), other = choose.Below(lines.size());
  switch (choose.Below(3)) {
    case 0: lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at)); break;
    case 1: std::swap(lines[at], lines[other]); break;
    default: {
      const std::string line = lines[at];
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(other), line);
    }
  }
  *script = JoinTokens(lines);
}

void MutateBytes(std::string* script, Chooser& choose) {
  for (size_t changes = 1 + choose.Below(4); changes > 0; --changes) {
    const size_t at = choose.Below(script->size() + 1);
    switch (choose.Below(4)) {
      case 0: script->insert(at, 1, static_cast<char>(choose.Below(256))); break;
      case 1:
        if (at < script->size()) (*script)[at] = static_cast<char>(choose.Below(256));
        break;
      case 2: script->erase(at, 1 + choose.Below(3)); break;
      default: script->resize(choose.Chance(20) ? at : script->size());
    }
  }
}

}  // namespace

std::string MutateScript(const std::string& script, const std::string& other, Chooser& choose) {
  std::string text = script;
  // Mostly few changes: what is changed much is only a syntax error.
  for (size_t changes = choose.Chance(75) ? 1 : 1 + choose.Below(6); changes > 0; --changes) {
    const size_t kind = choose.Below(20);
    if (kind == 0) {
      MutateBytes(&text, choose);
    } else if (kind < 4) {
      MutateLines(&text, choose);
    } else {
      Tokens tokens = SplitTokens(text);
      MutateTokens(&tokens, other, choose);
      text = JoinTokens(tokens);
    }
  }
  return text;
}

}  // namespace heddle::fuzz
