// SPDX-License-Identifier: Apache-2.0
#include "compiler/parse/parser.h"

#include "compiler/parse/statement_parser.h"
#include "compiler/parse/token_stream.h"
#include "core/text/text_encoding.h"

namespace heddle::compiler {

ScriptFile Parse(std::string path, std::string text, Diagnostics* diagnostics, bool takes_expressions) {
  ScriptFile file;
  file.path = std::move(path);
  file.text = std::move(text);
  if (file.text.size() > kMostScriptBytes) {
    diagnostics
        ->Error(file.path, {}, fmt::format("a script has at most {} bytes, this has more", kMostScriptBytes))
        .notes.emplace_back("is this a data file?");
    return file;
  }
  if (const auto foreign = FindForeignEncoding(file.text)) {
    diagnostics->Error(file.path, {}, fmt::format("a script is UTF-8 text, this is {}", foreign->name))
        .notes.emplace_back(foreign->remedy);
    return file;
  }
  diagnostics->AddSource(file.path, file.text);
  TokenStream stream(file.path, file.text, diagnostics);
  StatementParser(&stream, &file, takes_expressions).ParseFile();
  return file;
}

bool EndsInsideStatement(std::string_view text) {
  Diagnostics diagnostics;
  ScriptFile file;
  TokenStream stream("", text, &diagnostics);
  StatementParser(&stream, &file, /*takes_expressions=*/true).ParseFile();
  return stream.ends_inside();
}

}  // namespace heddle::compiler
