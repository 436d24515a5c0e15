// SPDX-License-Identifier: Apache-2.0
#include "ops/compressed/plan_groups.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <queue>
#include <span>
#include <utility>

#include "core/hash.h"
#include "core/values/panels.h"
#include "ops/base/parallel.h"
#include "ops/cells/tuple_tables.h"
#include "ops/compressed/distinct.h"
#include "ops/compressed/numbered_columns.h"
#include "ops/compressed/read_cost.h"

namespace heddle::ops {
namespace {

constexpr int64_t kLeastSample = 3000;
constexpr int64_t kMostSample = 1'000'000;
// Groups up to which every pair is tried.
constexpr size_t kFewGroups = 16;
// Groups above which only pairs of few tuples are tried: to find out what others save takes too long.
constexpr size_t kSomeGroups = 64;
// Groups above which the queue alone joins.
constexpr size_t kManyGroups = 1000;
// Pairs in a row that save nothing, after which the queue gives up.
constexpr int kPatience = 5;

// A column, or several, as the sample has them.
struct Candidate {
  std::vector<int32_t> columns;
  std::vector<uint32_t> codes;    // Of each sampled row: its tuple, numbered by first occurrence.
  uint32_t tuples = 0;            // How many numbers there are.
  std::vector<uint64_t> changes;  // A bit for each sampled row: whether the row behind it has another tuple.
  bool is_zero = false;           // All sampled cells are +0.0.
  PlannedGroup planned;
};

// Numbers of 64-bit keys, by first occurrence. Open addressing.
class Numbers {
 public:
  uint32_t Of(uint64_t key) {
    size_t slot = SlotOf(key);
    while (slots_[slot] != kFree) {
      if (keys_[slots_[slot]] == key) return slots_[slot];
      slot = (slot + 1) & (slots_.size() - 1);
    }
    const auto number = static_cast<uint32_t>(keys_.size());
    slots_[slot] = number;
    keys_.push_back(key);
    if (keys_.size() * 2 > slots_.size()) Grow();
    return number;
  }
  uint32_t size() const { return static_cast<uint32_t>(keys_.size()); }
  static constexpr uint32_t kFree = ~uint32_t{0};

 private:
  size_t SlotOf(uint64_t key) const { return SpreadHash(FoldHash(1, key)) & (slots_.size() - 1); }
  void Grow() {
    slots_.assign(slots_.size() * 2, kFree);
    for (uint32_t number = 0; number < keys_.size(); ++number) {
      size_t slot = SlotOf(keys_[number]);
      while (slots_[slot] != kFree) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = number;
    }
  }

  std::vector<uint64_t> keys_;
  std::vector<uint32_t> slots_ = std::vector<uint32_t>(64, kFree);
};

// Codes of pairs of codes, by first occurrence: by a table of all pairs where there are few.
class Pairs {
 public:
  static constexpr uint64_t kFewPairs = uint64_t{1} << 14;

  Pairs(const Candidate& first, const Candidate& second) : width_(second.tuples) {
    if (first.tuples * width_ <= kFewPairs)
      table_.assign(static_cast<size_t>(first.tuples * width_), Numbers::kFree);
  }

  uint32_t CodeOf(uint32_t first, uint32_t second) {
    const uint64_t pair = first * width_ + second;
    if (table_.empty()) return numbers_.Of(pair);
    uint32_t& code = table_[static_cast<size_t>(pair)];
    if (code == Numbers::kFree) code = count_++;
    return code;
  }
  uint32_t size() const { return table_.empty() ? numbers_.size() : count_; }

 private:
  uint64_t width_;
  uint32_t count_ = 0;
  std::vector<uint32_t> table_;  // Empty where pairs are many.
  Numbers numbers_;
};

// How many sampled rows have each pair of codes of two candidates, in any order; in memory that it keeps.
class PairCounts {
 public:
  std::span<const int64_t> Of(const Candidate& a, const Candidate& b) {
    const uint64_t width = b.tuples;
    counts_.clear();
    if (a.tuples * width <= Pairs::kFewPairs) {
      table_.assign(static_cast<size_t>(a.tuples * width), 0);
      for (size_t i = 0; i < a.codes.size(); ++i)
        ++table_[static_cast<size_t>(a.codes[i] * width + b.codes[i])];
      for (const uint32_t count : table_)
        if (count > 0) counts_.push_back(count);
      return counts_;
    }
    // Open addressing, of pairs and 1, with places for all rows.
    slots_.assign(std::bit_ceil(2 * a.codes.size()), {});
    for (size_t i = 0; i < a.codes.size(); ++i) {
      const uint64_t key = a.codes[i] * width + b.codes[i] + 1;
      size_t slot = SpreadHash(key) & (slots_.size() - 1);
      while (slots_[slot].key != 0 && slots_[slot].key != key) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot].key = key;
      ++slots_[slot].count;
    }
    for (const Slot& slot : slots_)
      if (slot.count > 0) counts_.push_back(slot.count);
    return counts_;
  }

 private:
  struct Slot {
    uint64_t key = 0;
    int64_t count = 0;
  };
  std::vector<uint32_t> table_;
  std::vector<Slot> slots_;
  std::vector<int64_t> counts_;
};

// The encoding that costs least for what the sample tells of a group.
class Estimator {
 public:
  Estimator(const Matrix& matrix, int64_t sampled, double entries_per_cell)
      : rows_(static_cast<double>(matrix.rows())),
        cell_bytes_(static_cast<double>(BytesOf(matrix.element_type()))),
        sampled_(static_cast<double>(sampled)),
        row_count_(matrix.rows()),
        is_sparse_(matrix.IsSparse()),
        entries_per_cell_(entries_per_cell) {}

  void Estimate(Candidate* candidate) const {
    std::vector<int64_t> counts(candidate->tuples, 0);
    for (const uint32_t code : candidate->codes) ++counts[code];
    int64_t changes = 0;
    for (const uint64_t some : candidate->changes) changes += std::popcount(some);
    candidate->planned.columns = candidate->columns;
    Estimate(counts, static_cast<double>(changes), candidate->is_zero, &candidate->planned);
  }

  // What is saved where both become one group.
  double Saved(const Candidate& a, const Candidate& b, PairCounts* pair_counts) const {
    PlannedGroup joined;
    joined.columns.resize(a.columns.size() + b.columns.size());
    int64_t changes = 0;
    for (size_t i = 0; i < a.changes.size(); ++i) changes += std::popcount(a.changes[i] | b.changes[i]);
    Estimate(pair_counts->Of(a, b), static_cast<double>(changes), a.is_zero && b.is_zero, &joined);
    return a.planned.cost + b.planned.cost - joined.cost;
  }

  double PlainBytes(double width) const {
    // An entry of CSR has a column index of four bytes.
    return is_sparse_ ? rows_ * width * entries_per_cell_ * (cell_bytes_ + 4) : rows_ * width * cell_bytes_;
  }

 private:
  // Of so many columns, by how many sampled rows have each tuple, and how many are followed by another one.
  void Estimate(std::span<const int64_t> counts, double changes, bool is_zero, PlannedGroup* planned) const {
    PlannedGroup& group = *planned;
    const auto width = static_cast<double>(group.columns.size());
    group.tuples = EstimateDistinct(FrequenciesOf(counts), row_count_);
    group.bytes = PlainBytes(width);
    group.cost = std::numeric_limits<double>::max();
    Offer(&group, Encoding::kUncompressed, group.bytes);
    if (counts.size() == 1)
      Offer(&group, is_zero ? Encoding::kEmpty : Encoding::kConstant, is_zero ? 0 : width * cell_bytes_);
    if (group.tuples > static_cast<double>(kMostTuples)) return;
    const double dictionary = group.tuples * width * cell_bytes_;
    const double code_bytes = CodeBits(static_cast<int64_t>(std::ceil(group.tuples))) / 8.0;
    Offer(&group, Encoding::kDenseCodes, rows_ * code_bytes + dictionary);
    const double frequent = static_cast<double>(*std::max_element(counts.begin(), counts.end())) / sampled_;
    const double exceptions = rows_ * (1 - frequent);
    Offer(&group, Encoding::kDefault,
          exceptions * (code_bytes + sizeof(uint16_t)) + rows_ / kSegmentRows * sizeof(int64_t) + dictionary,
          exceptions);
    const double runs = 1 + (rows_ - 1) * changes / sampled_;
    Offer(&group, Encoding::kRuns, runs * (code_bytes + sizeof(int64_t)) + dictionary, runs);
  }

  void Offer(PlannedGroup* group, Encoding encoding, double bytes, double exceptions = 0) const {
    const double plain = PlainBytes(static_cast<double>(group->columns.size()));
    const double cost = ReadCost({.encoding = encoding,
                                  .rows = rows_,
                                  .columns = static_cast<double>(group->columns.size()),
                                  .tuples = group->tuples,
                                  .exceptions = exceptions,
                                  .bytes = bytes});
    // Groups that are no smaller than their cells are none.
    if (cost >= group->cost || (encoding != Encoding::kUncompressed && bytes >= plain)) return;
    group->encoding = encoding;
    group->bytes = bytes;
    group->cost = cost;
  }

  double rows_;
  double cell_bytes_;
  double sampled_;
  int64_t row_count_;
  bool is_sparse_;
  double entries_per_cell_;
};

uint64_t BitsOf(double value) { return std::isnan(value) ? ~uint64_t{0} : std::bit_cast<uint64_t>(value); }

// The bits of the cells of the sampled rows, each followed by those of the row behind it. Every row is read
// once, for all columns.
template <typename T>
void CopyRows(const Matrix& matrix, const std::vector<int64_t>& rows, std::vector<uint64_t>* bits) {
  const int64_t columns = matrix.columns();
  ParallelFor(static_cast<int64_t>(rows.size()), 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (const int64_t behind : {0, 1}) {
        const int64_t row = std::min(rows[static_cast<size_t>(i)] + behind, matrix.rows() - 1);
        uint64_t* const out = bits->data() + (2 * i + behind) * columns;
        if (!matrix.IsSparse()) {
          const T* cells = matrix.data<T>() + row * columns;
          for (int64_t j = 0; j < columns; ++j) out[j] = BitsOf(cells[j]);
          continue;
        }
        for (int64_t e = matrix.row_offsets()[row]; e < matrix.row_offsets()[row + 1]; ++e)
          if (const T cell = matrix.values<T>()[e]; cell != 0) out[matrix.column_indexes()[e]] = BitsOf(cell);
      }
  });
}

std::vector<uint64_t> SampledBits(const Matrix& matrix, const std::vector<int64_t>& rows) {
  std::vector<uint64_t> bits(2 * rows.size() * static_cast<size_t>(matrix.columns()), 0);
  if (matrix.element_type() == ElementType::kFloat64)
    CopyRows<double>(matrix, rows, &bits);
  else
    CopyRows<float>(matrix, rows, &bits);
  return bits;
}

// Of a column: the bits of each sampled row, followed by those of the row behind it.
Candidate Sample(std::span<const uint64_t> bits, int32_t column, const Estimator& estimator) {
  Candidate candidate;
  candidate.columns = {column};
  Numbers codes;
  const size_t rows = bits.size() / 2;
  candidate.codes.resize(rows);
  candidate.changes.resize((rows + 63) / 64, 0);
  uint64_t any = 0;
  for (size_t i = 0; i < rows; ++i) {
    candidate.codes[i] = codes.Of(bits[2 * i]);
    candidate.changes[i / 64] |= uint64_t{bits[2 * i] != bits[2 * i + 1]} << (i % 64);
    any |= bits[2 * i];
  }
  candidate.tuples = codes.size();
  candidate.is_zero = any == 0;
  estimator.Estimate(&candidate);
  return candidate;
}

// The columns of both in one group.
Candidate Join(const Candidate& a, const Candidate& b, const Estimator& estimator) {
  Candidate joined;
  joined.columns.resize(a.columns.size() + b.columns.size());
  std::merge(a.columns.begin(), a.columns.end(), b.columns.begin(), b.columns.end(), joined.columns.begin());
  Pairs pairs(a, b);
  joined.codes.reserve(a.codes.size());
  for (size_t i = 0; i < a.codes.size(); ++i) joined.codes.push_back(pairs.CodeOf(a.codes[i], b.codes[i]));
  joined.tuples = pairs.size();
  for (size_t i = 0; i < a.changes.size(); ++i) joined.changes.push_back(a.changes[i] | b.changes[i]);
  joined.is_zero = a.is_zero && b.is_zero;
  estimator.Estimate(&joined);
  return joined;
}

// Whether a table of all pairs of their tuples is small.
bool IsQuick(const Candidate& a, const Candidate& b) {
  return a.planned.tuples * b.planned.tuples <= static_cast<double>(Pairs::kFewPairs) / 4;
}

// Whether codes of the joined group take as many bits as those of both: it has so many tuples in the first
// few sampled rows already.
bool NeedsAllBits(const Candidate& a, const Candidate& b) {
  if (a.planned.encoding != Encoding::kDenseCodes || b.planned.encoding != Encoding::kDenseCodes)
    return false;
  const auto bits_of = [](const Candidate& c) {
    return CodeBits(static_cast<int64_t>(std::ceil(c.planned.tuples)));
  };
  const int32_t bits = bits_of(a) + bits_of(b);
  Pairs tuples(a, b);
  for (size_t i = 0; i < a.codes.size(); ++i) {
    tuples.CodeOf(a.codes[i], b.codes[i]);
    if (CodeBits(tuples.size()) >= bits) return true;
  }
  return false;
}

// Groups that a join makes no cheaper: what has no codes needs none.
bool MayJoin(const Candidate& candidate) {
  return candidate.planned.encoding != Encoding::kUncompressed &&
         candidate.planned.encoding != Encoding::kEmpty;
}

// Joins the two cheapest groups again and again, until `least` are left or nothing is saved any more.
Status JoinByQueue(std::vector<Candidate>* groups, size_t least, const Estimator& estimator,
                   const KernelContext& context) {
  const auto order = [&](size_t a, size_t b) {
    const double left = (*groups)[a].planned.cost;
    const double right = (*groups)[b].planned.cost;
    return left != right ? left > right : (*groups)[a].columns > (*groups)[b].columns;
  };
  std::priority_queue<size_t, std::vector<size_t>, decltype(order)> queue(order);
  for (size_t i = 0; i < groups->size(); ++i)
    if (MayJoin((*groups)[i])) queue.push(i);
  std::vector<bool> is_gone(groups->size(), false);
  size_t left = queue.size();
  int in_vain = 0;
  while (queue.size() >= 2 && left > least && in_vain < kPatience) {
    if (IsCancelled(context.cancelled)) return Cancelled("compress");
    const size_t a = queue.top();
    queue.pop();
    const size_t b = queue.top();
    Candidate joined = Join((*groups)[a], (*groups)[b], estimator);
    if ((*groups)[a].planned.cost + (*groups)[b].planned.cost - joined.planned.cost <= 0) {
      ++in_vain;  // The cheaper one stays as it is; the other may find a better partner.
      continue;
    }
    queue.pop();
    in_vain = 0;
    joined.planned.parts = {(*groups)[a].planned, (*groups)[b].planned};
    is_gone[a] = true;
    is_gone[b] = true;
    --left;
    groups->push_back(std::move(joined));
    is_gone.push_back(false);
    queue.push(groups->size() - 1);
  }
  std::vector<Candidate> rest;
  for (size_t i = 0; i < groups->size(); ++i)
    if (!is_gone[i]) rest.push_back(std::move((*groups)[i]));
  *groups = std::move(rest);
  return OkStatus();
}

// Joins the pair that saves most, again and again. The saving of each pair is computed once.
Status JoinGreedily(std::vector<Candidate>* groups, const Estimator& estimator,
                    const KernelContext& context) {
  std::vector<Candidate> all;
  std::vector<Candidate> rest;
  for (Candidate& group : *groups) (MayJoin(group) ? all : rest).push_back(std::move(group));
  std::vector<bool> is_gone(all.size(), false);
  struct Pair {
    size_t a;
    size_t b;
    double saved = 0;
  };
  std::vector<Pair> pairs;
  const bool is_many = all.size() > kSomeGroups;
  const auto measure = [&](size_t first_new) {
    std::vector<Pair> added;
    for (size_t b = first_new; b < all.size(); ++b)
      for (size_t a = 0; a < b; ++a)
        if (!is_gone[a]) added.push_back({a, b});
    ParallelFor(static_cast<int64_t>(added.size()), 1, [&](int64_t begin, int64_t end) {
      PairCounts counts;
      for (int64_t i = begin; i < end; ++i) {
        Pair& pair = added[static_cast<size_t>(i)];
        if (IsCancelled(context.cancelled)) return;
        if (is_many && !IsQuick(all[pair.a], all[pair.b])) continue;
        if (NeedsAllBits(all[pair.a], all[pair.b])) continue;
        pair.saved = estimator.Saved(all[pair.a], all[pair.b], &counts);
      }
    });
    for (const Pair& pair : added)
      if (pair.saved > 0) pairs.push_back(pair);
  };
  measure(1);
  while (!pairs.empty()) {
    if (IsCancelled(context.cancelled)) return Cancelled("compress");
    const Pair best = *std::max_element(pairs.begin(), pairs.end(), [](const Pair& x, const Pair& y) {
      return x.saved != y.saved ? x.saved < y.saved : std::pair(x.a, x.b) > std::pair(y.a, y.b);
    });
    Candidate joined = Join(all[best.a], all[best.b], estimator);
    joined.planned.parts = {std::move(all[best.a].planned), std::move(all[best.b].planned)};
    all.push_back(std::move(joined));
    is_gone.push_back(false);
    is_gone[best.a] = true;
    is_gone[best.b] = true;
    std::erase_if(pairs, [&](const Pair& pair) { return is_gone[pair.a] || is_gone[pair.b]; });
    measure(all.size() - 1);
  }
  for (size_t i = 0; i < all.size(); ++i)
    if (!is_gone[i]) rest.push_back(std::move(all[i]));
  *groups = std::move(rest);
  return OkStatus();
}

// Columns that stay as they are, in one group: their rows are read at once.
void MergeUncompressed(std::vector<Candidate>* groups) {
  Candidate* first = nullptr;
  for (Candidate& group : *groups) {
    if (group.planned.encoding != Encoding::kUncompressed) continue;
    if (first == nullptr) {
      first = &group;
      continue;
    }
    first->planned.columns.insert(first->planned.columns.end(), group.planned.columns.begin(),
                                  group.planned.columns.end());
    first->planned.bytes += group.planned.bytes;
    first->planned.cost += group.planned.cost;
    group.planned.columns.clear();
  }
  if (first != nullptr) std::sort(first->planned.columns.begin(), first->planned.columns.end());
  std::erase_if(*groups, [](const Candidate& group) { return group.planned.columns.empty(); });
}

}  // namespace

std::vector<int64_t> SampledRows(int64_t rows) {
  const int64_t count = std::min(rows, std::clamp(rows / 100, kLeastSample, kMostSample));
  std::vector<int64_t> sample(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    // One row of each of `count` stretches of rows, all as long but for one row.
    const int64_t begin = i * (rows / count) + std::min(i, rows % count);
    const int64_t length = rows / count + (i < rows % count ? 1 : 0);
    sample[static_cast<size_t>(i)] =
        begin +
        static_cast<int64_t>(FoldHash(static_cast<uint64_t>(rows), static_cast<uint64_t>(i)) >> 11) % length;
  }
  return sample;
}

Result<CompressionPlan> PlanCompression(const Matrix& matrix, const KernelContext& context) {
  CompressionPlan plan;
  plan.plain_bytes = static_cast<double>(matrix.bytes());
  plan.plain_cost = PlainReadCost(plan.plain_bytes, static_cast<double>(matrix.stored()), matrix.IsSparse());
  if (matrix.columns() == 0) return plan;
  if (matrix.rows() == 0) {
    plan.groups.resize(1);
    for (int32_t j = 0; j < matrix.columns(); ++j) plan.groups[0].columns.push_back(j);
    return plan;
  }
  const std::vector<int64_t> rows = SampledRows(matrix.rows());
  const Estimator estimator(matrix, static_cast<int64_t>(rows.size()),
                            static_cast<double>(matrix.stored()) / static_cast<double>(matrix.cells()));
  const std::vector<uint64_t> bits = SampledBits(matrix, rows);
  std::vector<Candidate> groups(static_cast<size_t>(matrix.columns()));
  // Eight columns of a row are in one line of the cache, or two.
  constexpr int64_t kColumnsAtOnce = 8;
  const auto height = static_cast<int64_t>(2 * rows.size());
  ParallelFor(CeilDivide(matrix.columns(), kColumnsAtOnce), 1, [&](int64_t begin, int64_t end) {
    std::vector<uint64_t> of_columns(static_cast<size_t>(kColumnsAtOnce * height));
    for (int64_t first = begin * kColumnsAtOnce; first < std::min(end * kColumnsAtOnce, matrix.columns());
         first += kColumnsAtOnce) {
      if (IsCancelled(context.cancelled)) return;
      const int64_t count = std::min(kColumnsAtOnce, matrix.columns() - first);
      CopyColumns(bits.data() + first, matrix.columns(), height, count, of_columns.data(), height);
      for (int64_t k = 0; k < count; ++k) {
        const std::span column(of_columns.data() + k * height, static_cast<size_t>(height));
        groups[static_cast<size_t>(first + k)] = Sample(column, static_cast<int32_t>(first + k), estimator);
      }
    }
  });
  if (IsCancelled(context.cancelled)) return Cancelled("compress");

  if (groups.size() > kFewGroups) {
    const size_t least = groups.size() > kManyGroups ? 1 : groups.size() / 5;
    HEDDLE_RETURN_IF_ERROR(JoinByQueue(&groups, least, estimator, context));
  }
  if (groups.size() <= kManyGroups) HEDDLE_RETURN_IF_ERROR(JoinGreedily(&groups, estimator, context));
  MergeUncompressed(&groups);
  std::sort(groups.begin(), groups.end(), [](const Candidate& a, const Candidate& b) {
    return a.planned.columns[0] < b.planned.columns[0];
  });
  for (Candidate& group : groups) {
    plan.bytes += group.planned.bytes;
    plan.cost += group.planned.cost;
    plan.groups.push_back(std::move(group.planned));
  }
  return plan;
}

}  // namespace heddle::ops
