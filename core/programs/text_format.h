// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/programs/distribution.h"
#include "core/programs/graph.h"

// Words of the text forms of Graph, Program and Plan. Blanks and line ends separate and mean nothing else, so
// a text may be indented at will.
namespace heddle {

/// Appends "matrix double 3x1 dense", of a frame with a known schema also " schema(STRING name, FP64 age)".
void AppendType(const ValueInfo& info, std::string* out);
/// Appends " : " and the same.
void AppendInfo(const ValueInfo& info, std::string* out);
/// Appends ` @ "file":12:9`, behind it ` in "f"` and the place of the call for each call that the place was
/// put in place of; nothing for a default position.
void AppendPosition(const SourcePosition& position, std::string* out);
/// Appends "%3", or "_" for kNoNode.
void AppendNodeId(NodeId id, std::string* out);

/// A cursor over a text form. The first error sticks: after it every read returns an empty value and leaves
/// the cursor alone, so a caller reads a whole line and asks for status() once. Loops must ask ok().
class TextReader {
 public:
  /// `what` names the kind of text in errors ("graph"). Both views must outlive the reader.
  TextReader(std::string_view text, std::string_view what) : text_(text), what_(what) {}

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  /// True when only blanks are left (or after an error).
  bool AtEnd();
  /// Steps over `token` if it is next.
  bool Accept(std::string_view token);
  /// The same, for a word: "to" is not accepted where "total" stands.
  bool AcceptWord(std::string_view word);
  void Expect(std::string_view token);
  /// A plain word; empty (and an error) when there is none.
  std::string_view Word();
  /// A plain word or a quoted string (AppendName).
  std::string Name();
  std::string Quoted();
  int64_t Integer();
  int32_t Integer32();
  uint64_t Hexadecimal();               ///< "0x1f"
  Scalar Literal();                     ///< Scalar::ToLiteral
  NodeId Node();                        ///< AppendNodeId
  ValueInfo Type();                     ///< AppendType
  ValueInfo Info();                     ///< AppendInfo
  heddle::Schema Schema();              ///< Schema::ToText in parentheses
  heddle::Distribution Distribution();  ///< Distribution::ToText
  SourcePosition Position();            ///< AppendPosition; a default position when none is next.
  /// Everything up to the next `end` (which is left), without blanks around it; an error when there is no
  /// `end`.
  std::string_view Until(char end);
  /// The next byte that is no blank, or 0 at the end.
  char Peek();
  /// Fails with "expected <expected>" at the cursor, unless something failed before.
  void Fail(std::string_view expected);
  /// Fails with an error of a text that was read inside of this one, unless something failed before.
  void Fail(const Status& status);

 private:
  void SkipBlanks();
  int64_t Dimension();

  std::string_view text_;
  std::string_view what_;
  size_t at_ = 0;
  Status status_;
};

/// Node lines of a graph, each indented by `indent` blanks; Graph::ToText with no indent.
void AppendGraph(const Graph& graph, int indent, std::string* out);
/// Appends " roots=(%3, %5)" and a line end.
void AppendRoots(const std::vector<NodeId>& roots, std::string* out);
std::vector<NodeId> ReadRoots(TextReader& reader);
/// Reads node lines until something else than "%" is next.
Graph ReadGraph(TextReader& reader);

}  // namespace heddle
