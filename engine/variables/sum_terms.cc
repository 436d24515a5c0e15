// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/sum_terms.h"

#include <utility>

#include "core/programs/text_format.h"
#include "core/text/quoted.h"
#include "engine/wire/value_wire.h"

namespace heddle::engine {
namespace {

// The line at the front, which goes.
std::string_view TakeLine(std::string_view* bytes) {
  const size_t end = std::min(bytes->find('\n'), bytes->size());
  const std::string_view line = bytes->substr(0, end);
  bytes->remove_prefix(std::min(end + 1, bytes->size()));
  return line;
}

}  // namespace

std::string EncodeTerms(const std::vector<SumTerm>& terms) {
  std::string bytes;
  for (const SumTerm& term : terms) {
    bytes += fmt::format("term {:#x} {} {}\n", term.iteration, term.block, term.values.size());
    for (const auto& [name, variable] : term.values) {
      const std::string value = EncodeValue(variable.value);
      bytes += fmt::format("value {} ", value.size());
      AppendQuoted(name, &bytes);
      AppendInfo(variable.info, &bytes);
      bytes += '\n';
      bytes += value;
    }
  }
  return bytes;
}

Status DecodeTerms(std::string_view bytes, std::vector<SumTerm>* terms) {
  while (!bytes.empty()) {
    TextReader head(TakeLine(&bytes), "terms of sums");
    head.Expect("term");
    SumTerm& term = terms->emplace_back();
    term.iteration = head.Hexadecimal();
    term.block = head.Integer32();
    const int64_t count = head.Integer();
    if (!head.ok()) return head.status();
    for (int64_t i = 0; i < count; ++i) {
      TextReader line(TakeLine(&bytes), "terms of sums");
      line.Expect("value");
      const int64_t size = line.Integer();
      const std::string name = line.Quoted();
      Variable variable;
      variable.info = line.Info();
      if (!line.ok()) return line.status();
      if (size < 0 || static_cast<uint64_t>(size) > bytes.size())
        return Internal("terms of sums arrived cut off");
      HEDDLE_ASSIGN_OR_RETURN(variable.value, DecodeValue(bytes.substr(0, static_cast<size_t>(size))));
      bytes.remove_prefix(static_cast<size_t>(size));
      term.values.emplace(name, std::move(variable));
    }
  }
  return OkStatus();
}

}  // namespace heddle::engine
