// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "ops/map/java_methods.h"

namespace heddle::ops {

/// An expression of the part of Java that map() knows, with its type: what compiles in Java compiles here or
/// is refused before the first cell.
struct JavaExpression {
  enum class Kind {
    kLiteral,    ///< `literal`
    kParameter,  ///< The one at index `parameter`.
    kTexts,      ///< new String[]{operands}
    kElement,    ///< operands[0][operands[1]]
    kLength,     ///< operands[0].length, of an array
    kCall,       ///< method(operands)
    kFunction,   ///< operands[0] with parameters from index `parameter` on: an argument of a call only
    kCast,       ///< (type) operands[0], between numbers; `op` tells "byte" and "short", of type int here
    kUnary,      ///< `op` operands[0]: "!" "-" "+" "~"
    kBinary,     ///< operands[0] `op` operands[1]
    kChoice,     ///< operands[0] ? operands[1] : operands[2]
  };
  Kind kind = Kind::kLiteral;
  JavaType type = JavaType::kBoolean;
  bool is_boxed = false;  ///< Of a number or boolean: it is an object, which may be null.
  size_t at = 0;          ///< Character of the expression's text, from 1.
  std::string op;
  JavaValue literal;
  size_t parameter = 0;  ///< Parameters of functions inside stand behind those of the lambda.
  const JavaMethod* method = nullptr;
  std::optional<JavaRegex> regex;  ///< Of a call, where the text gives it.
  std::vector<JavaExpression> operands;
};

/// x -> expression, or (x, y) -> expression.
class JavaLambda {
 public:
  /// All parameters are of type `parameter`. kInvalidArgument, with the place, for what is no Java, what does
  /// not fit together, and what of Java is not known here.
  static Result<JavaLambda> Parse(std::string_view text, JavaType parameter);

  size_t parameters() const { return parameters_.size(); }
  JavaType type() const { return body_.type; }
  /// kFailedPrecondition where Java throws. Ends soon once `cancelled` is set; the result does not count
  /// then.
  Result<JavaValue> Apply(std::span<const JavaValue> arguments,
                          const std::atomic<bool>* cancelled = nullptr) const;

 private:
  friend class JavaParser;
  std::vector<std::string> parameters_;
  size_t places_ = 0;  ///< Parameters, those of functions inside as well.
  JavaExpression body_;
};

}  // namespace heddle::ops
