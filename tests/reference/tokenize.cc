// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <sstream>

#include "ops/frame/arrange.h"
#include "ops/frame/text_column.h"
#include "ops/transform/encoders.h"
#include "ops/transform/tokenizer.h"
#include "tests/reference/transform.h"

namespace heddle::ops::reference {
namespace {

using Cells = std::vector<std::optional<std::string>>;

// A java.util.HashMap: buckets in which new keys go to the end, twice as many when three of four are full.
class HashMap {
 public:
  int64_t& operator[](const std::string& key) {
    for (auto& [known, count] : BucketOf(key))
      if (known == key) return count;
    BucketOf(key).emplace_back(key, 0);
    if (4 * ++size_ > 3 * buckets_.size()) {
      const Buckets old = std::move(buckets_);
      buckets_ = Buckets(2 * old.size());
      for (const auto& bucket : old)
        for (const auto& entry : bucket) BucketOf(entry.first).push_back(entry);
    }
    return (*this)[key];
  }
  std::vector<std::pair<std::string, int64_t>> Entries() const {
    std::vector<std::pair<std::string, int64_t>> entries;
    for (const auto& bucket : buckets_) entries.insert(entries.end(), bucket.begin(), bucket.end());
    return entries;
  }

 private:
  using Buckets = std::vector<std::vector<std::pair<std::string, int64_t>>>;
  std::vector<std::pair<std::string, int64_t>>& BucketOf(const std::string& key) {
    const auto hash = static_cast<uint32_t>(JavaHash(key));
    return buckets_[(hash ^ hash >> 16) % buckets_.size()];
  }
  Buckets buckets_ = Buckets(16);
  size_t size_ = 0;
};

// What the rows of one text say behind the ids.
std::vector<std::pair<std::string, std::string>> RowsOf(const std::string& text, const TokenizeSpec& spec) {
  std::vector<std::pair<std::string, std::string>> rows;
  std::istringstream words(text);
  if (spec.output == TokenOutput::kPosition) {
    for (std::string word; words >> word;) {
      const auto end = words.eof() ? text.size() : static_cast<size_t>(words.tellg());
      rows.emplace_back(std::to_string(end - word.size() + 1), word);
    }
  } else if (spec.output == TokenOutput::kHash) {
    std::map<int64_t, int64_t> counts;
    for (std::string word; words >> word;)
      ++counts[(JavaHash(word) % spec.features + spec.features) % spec.features + 1];
    for (const auto& [code, count] : counts) rows.emplace_back(std::to_string(code), std::to_string(count));
  } else {
    HashMap counts;
    for (std::string word; words >> word;) ++counts[word];
    for (const auto& [word, count] : counts.Entries()) rows.emplace_back(word, std::to_string(count));
    if (spec.sorted) std::sort(rows.begin(), rows.end());
  }
  return rows;
}

Column NumbersOf(const Cells& cells) {
  std::vector<int64_t> numbers;
  for (const auto& cell : cells) numbers.push_back(std::stoll(*cell));
  return *Column::OfIntegers(numbers);
}

}  // namespace

Frame Tokenize(const Frame& target, std::string_view text, int64_t most) {
  const TokenizeSpec spec = *ParseTokenizeSpec("reference", text);
  const size_t ids = spec.id_columns.size();
  std::vector<Cells> cells(ids + 2);
  for (int64_t i = 0; i < target.rows(); ++i) {
    int64_t count = 0;
    for (const auto& [first, second] : RowsOf(TextOfCell(target, i, spec.text_column).value_or(""), spec)) {
      if (count++ == most) break;
      for (size_t k = 0; k < ids; ++k) cells[k].push_back(TextOfCell(target, i, spec.id_columns[k]));
      cells[ids].emplace_back(first);
      cells[ids + 1].emplace_back(second);
    }
  }
  Schema schema;
  std::vector<Column> columns;
  for (size_t k = 0; k < cells.size(); ++k) {
    const bool is_text = k < ids || (spec.output == TokenOutput::kCount && k == ids) ||
                         (spec.output == TokenOutput::kPosition && k == ids + 1);
    columns.push_back(is_text ? *TextColumn(cells[k]) : NumbersOf(cells[k]));
    schema.types.push_back(columns.back().type());
  }
  schema.names = CountedNames(schema.columns());
  return Frame(std::make_shared<const Schema>(std::move(schema)), std::move(columns));
}

}  // namespace heddle::ops::reference
