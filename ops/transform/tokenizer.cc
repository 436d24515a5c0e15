// SPDX-License-Identifier: Apache-2.0
#include "ops/transform/tokenizer.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "ops/base/kernel.h"
#include "ops/text/java_hash_map.h"
#include "ops/text/java_text.h"

namespace heddle::ops {
namespace {

// A token while the text is cut: units [begin, end) of it, from the first to the last of an n-gram.
struct Piece {
  size_t begin, end;
};

bool IsBlankOfJava(char16_t unit) { return unit == u' ' || (unit >= u'\t' && unit <= u'\r'); }

std::vector<Piece> PiecesBetweenBlanks(std::u16string_view text) {
  std::vector<Piece> pieces;
  for (size_t at = 0; at < text.size();) {
    while (at < text.size() && IsBlankOfJava(text[at])) ++at;
    const size_t begin = at;
    while (at < text.size() && !IsBlankOfJava(text[at])) ++at;
    if (at > begin) pieces.push_back({begin, at});
  }
  return pieces;
}

// As String.split() cuts, without the empty pieces.
Result<std::vector<Piece>> PiecesBetween(std::u16string_view text, const JavaRegex& separator,
                                         const std::atomic<bool>* cancelled) {
  JavaRegexSearch search(separator, text, cancelled);
  HEDDLE_RETURN_IF_ERROR(search.status());
  std::vector<Piece> pieces;
  size_t begin = 0;
  for (size_t from = 0; from <= text.size();) {
    const std::optional<JavaRegex::Match> match = search.Find(from);
    if (!match) break;
    const size_t first = (*match)[0], last = (*match)[1];
    if (first > begin) pieces.push_back({begin, first});
    begin = last;
    from = last > first ? last : last + 1;
  }
  if (begin < text.size()) pieces.push_back({begin, text.size()});
  return pieces;
}

// Tokens i to i + n - 1 as one: "('a', 'b')".
std::string TextOfNgram(std::u16string_view text, const std::vector<Piece>& pieces, size_t i, size_t n) {
  std::string joined = "\"('";
  for (size_t k = i; k < i + n; ++k) {
    if (k > i) joined += "', '";
    joined += ToUtf8(text.substr(pieces[k].begin, pieces[k].end - pieces[k].begin));
  }
  return joined + "')\"";
}

size_t Longest(const TokenizeSpec& spec, size_t size) {
  return static_cast<size_t>(std::min<int64_t>(spec.max_gram, static_cast<int64_t>(size)));
}

std::vector<Token> NgramsOfPieces(std::u16string_view text, const std::vector<Piece>& pieces,
                                  const TokenizeSpec& spec, const std::atomic<bool>* cancelled) {
  std::vector<Token> tokens;
  for (auto n = static_cast<size_t>(spec.min_gram); n <= Longest(spec, pieces.size()); ++n) {
    if (IsCancelled(cancelled)) break;
    for (size_t i = 0; i + n <= pieces.size(); ++i)
      tokens.push_back({n == 1 ? ToUtf8(text.substr(pieces[i].begin, pieces[i].end - pieces[i].begin))
                               : TextOfNgram(text, pieces, i, n),
                        static_cast<int64_t>(pieces[i].begin)});
  }
  return tokens;
}

std::vector<Token> NgramsOfLetters(std::u16string_view text, const std::vector<Piece>& pieces,
                                   const TokenizeSpec& spec, const std::atomic<bool>* cancelled) {
  std::vector<Token> tokens;
  for (const Piece& piece : pieces)
    for (auto n = static_cast<size_t>(spec.min_gram);
         n <= Longest(spec, piece.end - piece.begin) && !IsCancelled(cancelled); ++n)
      for (size_t i = piece.begin; i + n <= piece.end; ++i)
        tokens.push_back({ToUtf8(text.substr(i, n)), static_cast<int64_t>(i)});
  return tokens;
}

// Places of the keys as a HashMap of Java gives them that got them in this order.
std::vector<size_t> HashMapOrder(const std::vector<std::string>& keys) {
  std::vector<std::pair<uint32_t, size_t>> places;
  for (size_t i = 0; i < keys.size(); ++i) places.emplace_back(JavaBucketOf(keys[i], keys.size()), i);
  std::sort(places.begin(), places.end());
  std::vector<size_t> order;
  for (const auto& place : places) order.push_back(place.second);
  return order;
}

int64_t CodeOfToken(const Token& token, const TokenizeSpec& spec) {
  const int64_t rest = JavaHash(token.text) % spec.features;
  return rest < 0 ? rest + spec.features : rest;
}

std::vector<TokenRow> CountRows(std::vector<Token> tokens, const TokenizeSpec& spec) {
  std::vector<std::string> texts;
  std::unordered_map<std::string, size_t> number_of;
  std::vector<int64_t> counts;
  for (Token& token : tokens) {
    const auto [found, is_new] = number_of.emplace(token.text, texts.size());
    if (is_new) {
      texts.push_back(std::move(token.text));
      counts.push_back(0);
    }
    ++counts[found->second];
  }
  std::vector<size_t> order = HashMapOrder(texts);
  if (spec.sorted) {  // By units of UTF-16, as Java compares.
    std::vector<std::u16string> keys;
    for (const std::string& text : texts) keys.push_back(ToUtf16(text));
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  }
  std::vector<TokenRow> rows;
  for (const size_t i : order) rows.push_back({std::move(texts[i]), counts[i], 0});
  return rows;
}

}  // namespace

Result<std::vector<Token>> TokensOf(std::string_view text, const TokenizeSpec& spec,
                                    const std::atomic<bool>* cancelled) {
  const std::u16string units = ToUtf16(text);
  std::vector<Piece> pieces;
  if (spec.separator) {
    HEDDLE_ASSIGN_OR_RETURN(pieces, PiecesBetween(units, *spec.separator, cancelled));
  } else {
    pieces = PiecesBetweenBlanks(units);
  }
  if (spec.ngrams)
    return spec.ngrams_of_letters ? NgramsOfLetters(units, pieces, spec, cancelled)
                                  : NgramsOfPieces(units, pieces, spec, cancelled);
  std::vector<Token> tokens;
  for (const Piece& piece : pieces)
    tokens.push_back({ToUtf8(std::u16string_view(units).substr(piece.begin, piece.end - piece.begin)),
                      static_cast<int64_t>(piece.begin)});
  return tokens;
}

std::vector<TokenRow> TokenRows(std::vector<Token> tokens, const TokenizeSpec& spec, int64_t most) {
  std::vector<TokenRow> rows;
  switch (spec.output) {
    case TokenOutput::kCount: rows = CountRows(std::move(tokens), spec); break;
    case TokenOutput::kPosition:
      for (Token& token : tokens) rows.push_back({std::move(token.text), token.position + 1, 0});
      break;
    case TokenOutput::kHash: {
      std::map<int64_t, int64_t> counts;
      for (const Token& token : tokens) ++counts[CodeOfToken(token, spec)];
      for (const auto& [code, count] : counts) rows.push_back({"", code + 1, count});
      break;
    }
  }
  if (static_cast<int64_t>(rows.size()) > most) rows.resize(static_cast<size_t>(most));
  return rows;
}

std::vector<int64_t> TokenCodes(const std::vector<Token>& tokens, const TokenizeSpec& spec, int64_t count) {
  std::vector<int64_t> counts(static_cast<size_t>(count));
  for (const Token& token : tokens)
    if (const int64_t code = CodeOfToken(token, spec); code < count) ++counts[static_cast<size_t>(code)];
  return counts;
}

}  // namespace heddle::ops
