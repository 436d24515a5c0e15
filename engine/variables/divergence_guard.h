// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {
class TextReader;
}

namespace heddle::engine {

/// Finds out whether two ranks have run different blocks or decided differently, which would be our bug: a
/// hash of all steps of one rank's control program, which must be equal on all ranks, and the last steps in
/// words for the error message.
class DivergenceGuard {
 public:
  /// A plan that is about to run.
  void AddPlan(int32_t block, uint64_t key);
  /// A predicate or loop bound, bit by bit.
  void AddDecision(int32_t block, std::string_view bytes);

  uint64_t hash() const { return hash_; }
  int64_t steps() const { return steps_; }
  /// The last steps, oldest first: "block 4 plan 1f3a, block 5 decided TRUE".
  std::string Trace() const;

  /// All of it as lines of text, and back; errors are the reader's.
  void AppendTo(std::string* text) const;
  static DivergenceGuard Read(TextReader& reader);

 private:
  struct Step {
    int32_t block = 0;
    uint64_t plan = 0;     // 0: a decision
    std::string decision;  // short
  };
  Step& NextStep(int32_t block);

  uint64_t hash_ = 0x243f6a8885a308d3;
  int64_t steps_ = 0;
  std::array<Step, 12> last_;  // ring
};

}  // namespace heddle::engine
