// SPDX-License-Identifier: Apache-2.0
#include "compiler/parse/parser.h"

#include "compiler/parse/statement_parser.h"
#include "compiler/parse/token_stream.h"

namespace heddle::compiler {

ScriptFile Parse(std::string path, std::string text, Diagnostics* diagnostics) {
  constexpr size_t kMostBytes = size_t{64} << 20;
  ScriptFile file;
  file.path = std::move(path);
  file.text = std::move(text);
  if (file.text.size() > kMostBytes) {
    diagnostics
        ->Error(file.path, {},
                fmt::format("a script has at most {} bytes, this has {}", kMostBytes, file.text.size()))
        .notes.push_back("is this a data file?");
    return file;
  }
  diagnostics->AddSource(file.path, file.text);
  TokenStream stream(file.path, file.text, diagnostics);
  StatementParser(&stream, &file).ParseFile();
  return file;
}

}  // namespace heddle::compiler
