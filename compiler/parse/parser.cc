// SPDX-License-Identifier: Apache-2.0
#include "compiler/parse/parser.h"

#include "compiler/parse/statement_parser.h"
#include "compiler/parse/token_stream.h"

namespace heddle::compiler {

ScriptFile Parse(std::string path, std::string text, Diagnostics* diagnostics) {
  ScriptFile file;
  file.path = std::move(path);
  file.text = std::move(text);
  if (file.text.size() > kMostScriptBytes) {
    diagnostics
        ->Error(file.path, {}, fmt::format("a script has at most {} bytes, this has more", kMostScriptBytes))
        .notes.push_back("is this a data file?");
    return file;
  }
  diagnostics->AddSource(file.path, file.text);
  TokenStream stream(file.path, file.text, diagnostics);
  StatementParser(&stream, &file).ParseFile();
  return file;
}

}  // namespace heddle::compiler
