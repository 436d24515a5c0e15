// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/values/column_groups.h"
#include "core/values/scalar.h"
#include "ops/base/kernel.h"

namespace heddle::ops {

/// What compress() has done at one place of a script.
struct CompressionRecord {
  std::string place;        ///< "line 3 of x.dml".
  int64_t calls = 0;        ///< On all pieces of rows.
  int64_t stored = 0;       ///< Of these, those that made column groups.
  int64_t plain_bytes = 0;  ///< Of all calls that made groups, before,
  int64_t bytes = 0;        ///< and behind it.
  int64_t ns = 0;           ///< Of planning and compressing.
  std::string groups;       ///< Of the last call that made groups: GroupsText.
  std::string why_not;      ///< Of the last call that made none.
};

/// How often a matrix could be read in the time that it takes to plan and to compress it
/// (docs/performance.md).
constexpr double kReadsOfCompressing = 25;

/// Whether a matrix of so many bytes takes so much of the memory that plans read it in panels, from files.
bool IsReadInPanels(int64_t bytes);
/// Why a matrix of so many bytes is not compressed, small as it is; "" where it is large enough. `reads`: how
/// often it will be read, if somebody knows.
std::string WhyTooSmall(int64_t bytes, const Scalar* reads);
/// "line 3 of x.dml".
std::string PlaceOf(const Node& node);
/// "1.5 KB", "3.2 MB", "1.04 GB".
std::string AmountText(int64_t bytes);
/// "2 columns in 1 group DDC (40 tuples), 1 column in 1 group UNCOMPRESSED": by encoding.
std::string GroupsText(const ColumnGroups& groups);
/// "80.0 MB to 9.8 MB (8.2 times smaller) in 0.041 s: 3 columns in ...", or "as it is: " and why.
std::string BytesText(const CompressionRecord& record);
/// The same behind its place: "line 3 of x.dml: 80.0 MB to 9.8 MB (8.2 times smaller) in 0.041 s: 3 columns
/// in ...".
std::string ToText(const CompressionRecord& record);

/// The matrix stored by groups of columns, or as it is where that does not pay, with the reason in
/// `record->why_not`. `whole_bytes`: of the matrix that these are rows of. `reads`: how often it will be
/// read, if somebody knows (the operator compress), `of_tuples`: how often of these dictionaries alone would
/// be read, where sums are exact; it counts where that is all of them. Fills in what the record says of one
/// call, but its place and time. Without memory for the groups the matrix stays as it is, too. Cancelled().
Result<Matrix> CompressedOf(const Matrix& x, int64_t whole_bytes, const Scalar* reads,
                            const KernelContext& context, CompressionRecord* record,
                            const Scalar* of_tuples = nullptr);

/// What compress() has done in the sessions of this process, by session and place. Thread-safe. What tells
/// sessions apart is their KernelContext::fused, which outlives every call; nullptr counts as one.
class CompressionRecords {
 public:
  static CompressionRecords& Process();
  /// `record` is of one call.
  void Add(const FusedRuntime* session, const CompressionRecord& record);
  /// Those of a session in the order of the places, which are forgotten.
  std::vector<CompressionRecord> Take(const FusedRuntime* session);

 private:
  using ByPlace = std::map<std::string, CompressionRecord>;
  std::mutex mutex_;
  std::map<const FusedRuntime*, ByPlace> sessions_;  // Under mutex_.
};

}  // namespace heddle::ops
