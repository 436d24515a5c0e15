// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tests/fuzz/chooser.h"

namespace heddle::fuzz {

/// A number in the text of a script at which arithmetic, sizes or indexes end: zeros, halves, infinities, the
/// ends of doubles and of integers of 32, 53 and 64 bits.
std::string HostileNumber(Chooser& choose);

/// A string literal of a script: empty, long, with escapes, a number, a path, a format.
std::string HostileText(Chooser& choose);

/// Any small expression that an argument may be, most of them of a type or shape that nobody expects.
std::string HostileExpression(Chooser& choose);

/// A field of a data file: a number in a form of other programs, or no number at all.
std::string HostileField(Chooser& choose);

}  // namespace heddle::fuzz
