// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/control_state.h"

#include <array>

#include "core/hash.h"
#include "core/programs/text_format.h"
#include "core/text/quoted.h"
#include "engine/variables/variable_bytes.h"

namespace heddle::engine {
namespace {

using Activation = ControlState::Activation;

constexpr std::array<std::string_view, 5> kKinds = {"sequence", "while", "for", "parfor", "call"};

void AppendActivation(const Activation& activation, std::string* out) {
  out->append("in ").append(kKinds[static_cast<size_t>(activation.kind)]).append(" of ");
  AppendInteger(activation.owner, out);
  if (activation.otherwise) out->append(" otherwise");
  if (activation.kind == Activation::Kind::kCall) {
    out->append(" function ");
    AppendQuoted(activation.function, out);
  }
  out->append(" next ");
  AppendInteger(static_cast<int64_t>(activation.next), out);
  if (activation.kind == Activation::Kind::kFor || activation.kind == Activation::Kind::kParallelFor) {
    out->append(fmt::format(" value {} increment {} rounds {:#x} round {:#x} seed {}", activation.value,
                            activation.increment, activation.rounds, activation.round, activation.seed));
  }
  out->push_back('\n');
}

Activation ReadActivation(TextReader& reader) {
  Activation activation;
  size_t kind = 0;
  while (kind < kKinds.size() && !reader.AcceptWord(kKinds[kind])) ++kind;
  if (kind == kKinds.size()) {
    reader.Fail("a kind of step");
    return activation;
  }
  activation.kind = static_cast<Activation::Kind>(kind);
  reader.Expect("of");
  activation.owner = reader.Integer32();
  activation.otherwise = reader.AcceptWord("otherwise");
  if (reader.AcceptWord("function")) activation.function = reader.Quoted();
  reader.Expect("next");
  activation.next = static_cast<uint64_t>(reader.Integer());
  if (reader.AcceptWord("value")) {
    activation.value = reader.Integer();
    reader.Expect("increment");
    activation.increment = reader.Integer();
    reader.Expect("rounds");
    activation.rounds = reader.Hexadecimal();
    reader.Expect("round");
    activation.round = reader.Hexadecimal();
    reader.Expect("seed");
    activation.seed = reader.Integer();
  }
  return activation;
}

}  // namespace

uint64_t ControlState::HashOf(const Program& program) { return FoldHash(0, program.ToText()); }

std::string ControlState::ToText() const {
  std::string text = fmt::format("program {:#x} decisions {}\n", program, decisions);
  for (const RandomSeeds::Scope& scope : seeds)
    text.append(fmt::format("seed {} draws {} loops {}\n", scope.seed, scope.draws, scope.loops));
  guard.AppendTo(&text);
  for (const Activation& activation : stack) AppendActivation(activation, &text);
  for (const VariableTable& frame : frames) {
    text.append("frame\n");
    for (const auto& [name, variable] : frame.variables()) {
      text.append("variable ");
      AppendQuoted(name, &text);
      AppendVariable(variable, &text);
    }
  }
  return text;
}

Result<ControlState> ControlState::ParseText(std::string_view text) {
  TextReader reader(text, "control state");
  ControlState state;
  reader.Expect("program");
  state.program = reader.Hexadecimal();
  reader.Expect("decisions");
  state.decisions = reader.Integer();
  while (reader.AcceptWord("seed")) {
    RandomSeeds::Scope& scope = state.seeds.emplace_back();
    scope.seed = reader.Integer();
    reader.Expect("draws");
    scope.draws = reader.Integer();
    reader.Expect("loops");
    scope.loops = reader.Integer();
  }
  if (state.seeds.empty()) reader.Fail("seed");
  state.guard = DivergenceGuard::Read(reader);
  while (reader.AcceptWord("in")) state.stack.push_back(ReadActivation(reader));
  while (reader.AcceptWord("frame")) {
    VariableTable& frame = state.frames.emplace_back();
    while (reader.AcceptWord("variable")) {
      const std::string name = reader.Quoted();
      frame.Set(name, ReadVariable(reader));
    }
  }
  if (!reader.AtEnd()) reader.Fail("a line of a control state");
  if (!reader.ok()) return reader.status().WithCode(StatusCode::kDataLoss);
  return state;
}

}  // namespace heddle::engine
