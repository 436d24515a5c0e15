; SPDX-License-Identifier: Apache-2.0
(comment) @comment
(string) @string
(number) @number
(boolean) @boolean
(script_argument) @variable.parameter

(function_definition name: (identifier) @function)
(external_function name: (identifier) @function)
(call function: (identifier) @function.call)
(call function: (dotted_name) @function.builtin)
(call function: (qualified_name) @function.call)
(parameter name: (identifier) @variable.parameter)
(argument name: (_) @property)
(loop_option name: (identifier) @property)
(source_statement namespace: (identifier) @module)
(value_type) @type.builtin
(container) @type.builtin

((identifier) @constant.builtin
  (#any-of? @constant.builtin "pi" "Inf" "NaN"))

["if" "else"] @keyword.conditional
["for" "parfor" "while" "in"] @keyword.repeat
["function" "externalFunction" "implemented"] @keyword.function
"return" @keyword.return
["source" "setwd" "as"] @keyword.import
"ifdef" @keyword

["=" "<-" "+=" "+" "-" "*" "/" "^" "%*%" "%/%" "%%" "<" "<=" ">" ">=" "==" "!=" "!" "&" "&&" "|" "||" ":"] @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ";"] @punctuation.delimiter
