// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// How like two texts are, as UtilFunctions of SystemDS measures it.
namespace heddle::ops {

/// Of the sets of UTF-16 units in both: |a and b| / |a or b|. An empty text counts as one unit of its own.
double JaccardSimilarity(std::u16string_view a, std::u16string_view b);

/// The least number of words to insert, delete or replace to make one of the other, divided by the larger
/// number of words. Words are what single blanks part, empty ones at the end left out; an empty text is one
/// empty word.
double WordErrorRate(std::u16string_view a, std::u16string_view b);

}  // namespace heddle::ops
