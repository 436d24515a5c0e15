// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace heddle::fuzz {

/// A part of Heddle that reads bytes which somebody else made: the reader of a file format, the parser of a
/// spec, of an expression, of a script. Whatever the bytes are, it comes back, with a value or an error.
struct Inlet {
  std::string name;
  /// Reads the bytes to their end and uses what they say as a script would.
  std::function<Status(std::string_view bytes)> read;
  std::vector<std::string> seeds;  ///< Valid inputs, small.
  /// Makes checksums right again in damaged bytes, so that what is behind them is reached; may be empty.
  std::function<void(std::string* bytes)> repair;
  bool is_slow = false;  ///< It compiles a script, or reads in a process of its own: fewer inputs are tried.
};

/// All of them. Formats that this build does not have are left out.
const std::vector<Inlet>& Inlets();

/// What is wrong with how an inlet ended: more than a second of processor time, or an error of more than 12
/// lines. "" when nothing is.
std::string JudgeInlet(const Inlet& inlet, std::string_view bytes);

}  // namespace heddle::fuzz
