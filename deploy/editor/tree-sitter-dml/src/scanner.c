// SPDX-License-Identifier: Apache-2.0
// Where a statement may begin, "[" begins one if "=" or "<-" stands behind the "]" that closes it, as in
//     x = y
//     [a, b] = f(z)
// which is no index of y. That takes more than one token of lookahead.
#include <stdint.h>

#include "tree_sitter/parser.h"

enum TokenType { MULTI_ASSIGNMENT_OPEN };

void *tree_sitter_dml_external_scanner_create(void) { return 0; }
void tree_sitter_dml_external_scanner_destroy(void *payload) { (void)payload; }
unsigned tree_sitter_dml_external_scanner_serialize(void *payload, char *buffer) {
  (void)payload;
  (void)buffer;
  return 0;
}
void tree_sitter_dml_external_scanner_deserialize(void *payload, const char *buffer, unsigned length) {
  (void)payload;
  (void)buffer;
  (void)length;
}

static bool is_blank(int32_t c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Passes over a string, whose quote is next.
static void pass_string(TSLexer *lexer) {
  const int32_t quote = lexer->lookahead;
  lexer->advance(lexer, false);
  while (!lexer->eof(lexer) && lexer->lookahead != quote) {
    if (lexer->lookahead == '\\') lexer->advance(lexer, false);
    if (!lexer->eof(lexer)) lexer->advance(lexer, false);
  }
  lexer->advance(lexer, false);
}

// Passes over a comment if one is next; a "/" that begins none is passed over, too.
static void pass_comment(TSLexer *lexer) {
  const bool is_line = lexer->lookahead == '#';
  lexer->advance(lexer, false);
  if (is_line) {
    while (!lexer->eof(lexer) && lexer->lookahead != '\n') lexer->advance(lexer, false);
    return;
  }
  if (lexer->lookahead != '*') return;
  lexer->advance(lexer, false);
  int32_t before = 0;
  while (!lexer->eof(lexer) && !(before == '*' && lexer->lookahead == '/')) {
    before = lexer->lookahead;
    lexer->advance(lexer, false);
  }
  lexer->advance(lexer, false);
}

bool tree_sitter_dml_external_scanner_scan(void *payload, TSLexer *lexer, const bool *valid_symbols) {
  (void)payload;
  if (!valid_symbols[MULTI_ASSIGNMENT_OPEN]) return false;
  while (is_blank(lexer->lookahead)) lexer->advance(lexer, true);
  if (lexer->lookahead != '[') return false;
  lexer->advance(lexer, false);
  lexer->mark_end(lexer);
  int depth = 1;
  while (depth > 0) {
    if (lexer->eof(lexer)) return false;
    switch (lexer->lookahead) {
      case '"':
      case '\'': pass_string(lexer); continue;
      case '#':
      case '/': pass_comment(lexer); continue;
      case '[': ++depth; break;
      case ']': --depth; break;
      case '{':
      case '}': return false;
      default: break;
    }
    lexer->advance(lexer, false);
  }
  while (is_blank(lexer->lookahead) || lexer->lookahead == '#') {
    if (lexer->lookahead == '#') {
      pass_comment(lexer);
    } else {
      lexer->advance(lexer, false);
    }
  }
  const int32_t first = lexer->lookahead;
  if (first != '=' && first != '<') return false;
  lexer->advance(lexer, false);
  if (first == '=' ? lexer->lookahead == '=' : lexer->lookahead != '-') return false;
  lexer->result_symbol = MULTI_ASSIGNMENT_OPEN;
  return true;
}
