// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "ops/base/parallel.h"
#include "ops/transform/encoders.h"

namespace heddle::ops {
namespace {

constexpr int64_t kGrainRows = int64_t{1} << 12;

using CodesOfWords = std::unordered_map<std::string_view, int32_t>;

// The words of the text that replaces missing cells, with their codes.
std::vector<CellWords::Count> ImputedWords(const ColumnInput& input, const ColumnMetadata& metadata,
                                           const CodesOfWords& code_of) {
  std::vector<int32_t> codes;
  std::vector<CellWords::Count> counts;
  if (!input.spec.impute || !metadata.imputed) return counts;
  for (const std::string& word : WordsOf(*metadata.imputed))
    if (const auto found = code_of.find(word); found != code_of.end()) codes.push_back(found->second);
  std::sort(codes.begin(), codes.end());
  for (const int32_t code : codes) {
    if (counts.empty() || counts.back().word != code) counts.push_back({code, 0});
    ++counts.back().count;
  }
  return counts;
}

}  // namespace

void FitWords(const ColumnInput& input, ColumnMetadata* metadata) {
  metadata->tokens = input.words->words;
  AddConstant(input.spec, metadata);
}

WordCounts CountWords(const ColumnInput& input, const ColumnMetadata& metadata) {
  CodesOfWords code_of;
  for (size_t i = 0; i < metadata.tokens.size(); ++i)
    code_of.emplace(metadata.tokens[i], static_cast<int32_t>(i));
  const CellWords& words = *input.words;
  std::vector<int32_t> code_of_number(words.words.size(), -1);
  for (size_t k = 0; k < words.words.size(); ++k)
    if (const auto found = code_of.find(words.words[k]); found != code_of.end())
      code_of_number[k] = found->second;
  const std::vector<CellWords::Count> imputed = ImputedWords(input, metadata, code_of);

  const auto rows = static_cast<int64_t>(words.offsets.size()) - 1;
  WordCounts result;
  result.offsets.resize(static_cast<size_t>(rows) + 1);
  const auto is_known = [&](const CellWords::Count& one) {
    return code_of_number[static_cast<size_t>(one.word)] >= 0;
  };
  const auto counts_of = [&](int64_t i) {
    return std::span(words.counts)
        .subspan(static_cast<size_t>(words.offsets[static_cast<size_t>(i)]),
                 static_cast<size_t>(words.offsets[static_cast<size_t>(i) + 1] -
                                     words.offsets[static_cast<size_t>(i)]));
  };
  for (int64_t i = 0; i < rows; ++i) {
    const auto row = counts_of(i);
    result.offsets[static_cast<size_t>(i) + 1] =
        result.offsets[static_cast<size_t>(i)] +
        (input.IsReplaced(i) ? static_cast<int64_t>(imputed.size())
                             : static_cast<int64_t>(std::count_if(row.begin(), row.end(), is_known)));
  }
  result.counts.resize(static_cast<size_t>(result.offsets.back()));
  ParallelFor(rows, kGrainRows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      CellWords::Count* const first = result.counts.data() + result.offsets[static_cast<size_t>(i)];
      CellWords::Count* to = first;
      if (input.IsReplaced(i)) {
        std::copy(imputed.begin(), imputed.end(), to);
        continue;
      }
      for (const CellWords::Count& one : counts_of(i))
        if (is_known(one)) *to++ = {code_of_number[static_cast<size_t>(one.word)], one.count};
      std::sort(first, to, [](const auto& a, const auto& b) { return a.word < b.word; });
    }
  });
  return result;
}

}  // namespace heddle::ops
