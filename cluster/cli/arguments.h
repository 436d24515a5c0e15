// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace heddle::cluster::cli {

/// One option of a verb. Every option may be written with one dash or two (DML users write -stats, others
/// --stats), its value after a blank or '='.
struct Option {
  enum class Kind : uint8_t {
    kFlag,
    kValue,          ///< must be followed by a value
    kOptionalValue,  ///< takes the next word when that may be its value (SystemDS: -stats 10, -explain hops)
    kRest,           ///< takes all following words (-args, -nvargs)
    kIgnored,  ///< accepted for SystemDS, means nothing here: a warning, value taken when `value_name` is set
  };
  std::string_view name;  ///< without dashes
  Kind kind = Kind::kFlag;
  std::string_view value_name;  ///< shown in help: N, FILE
  std::string_view help;        ///< one line; "" hides the option from help
  std::string_view alias = "";  ///< a second name
};

/// -stats of the verbs that tell how a run went.
inline constexpr Option kStatsOption = {"stats", Option::Kind::kOptionalValue, "",
                                        "print what was done, by operator"};

/// --core-dumps of the daemons.
inline constexpr Option kCoreDumpsOption = {"core-dumps", Option::Kind::kFlag, "",
                                            "leave them on, with tokens and data inside (default: off)"};

/// Lists of options behind each other: what a verb adds, then what it shares with others.
std::vector<Option> JoinOptions(std::initializer_list<std::span<const Option>> lists);

/// An option as people write it: "-e", "-nvargs", "--threads".
std::string WithDashes(const Option& option);

/// The words of a command line by option.
class Arguments {
 public:
  bool Has(std::string_view option) const { return values_.contains(std::string(option)); }
  /// The last value given; nullopt when the option was not given.
  std::optional<std::string> Value(std::string_view option) const;
  /// An integer option within [low, high]; kUsage otherwise. `otherwise` when the option was not given.
  Result<int64_t> Integer(std::string_view option, int64_t otherwise, int64_t low, int64_t high) const;
  /// A size such as 512, 64k, 100M, 2g (powers of 1024); kUsage when malformed.
  Result<int64_t> Bytes(std::string_view option, int64_t otherwise) const;
  /// A time such as 90s, 10m, 24h, 7d, or 0, of at most `high`; kUsage otherwise. In milliseconds.
  Result<int64_t> Milliseconds(std::string_view option, int64_t otherwise, int64_t high) const;
  const std::vector<std::string>& positional() const { return positional_; }
  /// All values given, in order.
  const std::vector<std::string>& rest(std::string_view option) const;
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  friend Result<Arguments> ParseArguments(std::span<const std::string> words,
                                          std::span<const Option> options);
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> positional_;
  std::vector<std::string> warnings_;
};

/// kUsage "unknown option --thread; did you mean --threads?" for a word that is no option.
Result<Arguments> ParseArguments(std::span<const std::string> words, std::span<const Option> options);

/// --threads; all cores of this machine when it was not given.
Result<int> ReadThreads(const Arguments& arguments);

/// Script parameters from -args / -nvargs (language reference 1.7): name or "1", "2", ... to text. kUsage
/// when malformed.
Result<std::map<std::string, std::string>> ScriptParameters(const Arguments& arguments);

}  // namespace heddle::cluster::cli
