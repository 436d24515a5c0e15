// SPDX-License-Identifier: Apache-2.0
// The grammar of DML for tree-sitter: what compiler/parse accepts, and nothing about types or names. Line ends mean nothing
// but to end a comment.

const LEVEL = {
  or: 1,
  and: 2,
  not: 3,
  comparison: 4,
  sum: 5,
  product: 6,
  modulus: 7,
  matrix_product: 8,
  sign: 9,
  power: 10,
  index: 11,
};

const commaSeparated = (rule) => seq(rule, repeat(seq(',', rule)));

module.exports = grammar({
  name: 'dml',

  extras: ($) => [/[ \t\r\n]/, /\uFEFF/, $.comment, $.full_stop],

  word: ($) => $.identifier,

  inline: ($) => [$._target],

  // src/scanner.c
  externals: ($) => [$._multi_assignment_open],

  rules: {
    script: ($) => repeat(choice($.function_definition, $.external_function, $._statement, ';')),

    comment: () => token(choice(/#[^\n]*/, seq('/*', /[^*]*\*+([^/*][^*]*\*+)*/, '/'))),

    // Behind a call that ends a line; it means nothing.
    full_stop: () => token(prec(-1, /\.[ \t\r]*\n/)),

    // --- functions

    function_definition: ($) =>
      seq(
        field('name', $.identifier),
        choice('=', '<-'),
        'function',
        field('parameters', $.parameters),
        optional(seq('return', field('results', $.parameters))),
        field('body', $.block),
      ),

    external_function: ($) =>
      seq(
        field('name', $.identifier),
        choice('=', '<-'),
        'externalFunction',
        field('parameters', $.parameters),
        optional(seq('return', field('results', $.parameters))),
        'implemented',
        'in',
        field('description', $.arguments),
      ),

    parameters: ($) => seq('(', optional(commaSeparated($.parameter)), ')'),

    parameter: ($) =>
      seq(
        field('type', $.type),
        field('name', $.identifier),
        optional(seq('=', field('default', $._expression))),
      ),

    type: ($) => choice($.value_type, seq(alias($.identifier, $.container), optional(seq('[', $.value_type, ']')))),

    value_type: () =>
      choice(
        'int',
        'integer',
        'double',
        'boolean',
        'string',
        'unknown',
        'Int',
        'Integer',
        'Double',
        'Boolean',
        'String',
        'Unknown',
      ),

    // --- statements

    _statement: ($) =>
      choice(
        $.assignment,
        $.accumulation,
        $.multi_assignment,
        $.call_statement,
        $.if_statement,
        $.while_statement,
        $.for_statement,
        $.parfor_statement,
        $.source_statement,
        $.setwd_statement,
      ),

    block: ($) => seq('{', repeat(choice($._statement, ';')), '}'),

    _body: ($) => choice($.block, $._statement),

    _target: ($) => choice($.identifier, $.indexed_target),

    indexed_target: ($) => seq(field('name', $.identifier), $.index),

    assignment: ($) =>
      seq(field('target', $._target), choice('=', '<-'), field('value', choice($._expression, $.ifdef))),

    accumulation: ($) => seq(field('target', $._target), '+=', field('value', $._expression)),

    multi_assignment: ($) =>
      seq(
        alias($._multi_assignment_open, '['),
        commaSeparated(field('target', $._target)),
        ']',
        choice('=', '<-'),
        field('value', $.call),
      ),

    call_statement: ($) => $.call,

    ifdef: ($) => seq('ifdef', '(', $.script_argument, ',', field('default', $._expression), ')'),

    if_statement: ($) =>
      prec.right(
        seq(
          'if',
          '(',
          field('condition', $._expression),
          ')',
          field('consequence', $._body),
          repeat(';'),
          optional(seq('else', field('alternative', $._body))),
        ),
      ),

    while_statement: ($) => seq('while', '(', field('condition', $._expression), ')', field('body', $._body)),

    for_statement: ($) => seq('for', $._loop_head, field('body', $._body)),

    parfor_statement: ($) => seq('parfor', $._loop_head, field('body', $._body)),

    _loop_head: ($) =>
      seq(
        '(',
        field('variable', $.identifier),
        'in',
        field('range', choice($.range, $.call)),
        repeat(seq(',', $.loop_option)),
        ')',
      ),

    loop_option: ($) => seq(field('name', $.identifier), '=', field('value', $._expression)),

    source_statement: ($) => seq('source', '(', $.string, ')', 'as', field('namespace', $.identifier)),

    setwd_statement: ($) => seq('setwd', '(', $.string, ')'),

    // --- expressions

    _expression: ($) =>
      choice(
        $.identifier,
        $.script_argument,
        $.number,
        $.string,
        $.boolean,
        $.call,
        $.indexed,
        $.list,
        $.parenthesized,
        $.unary,
        $.binary,
      ),

    parenthesized: ($) => seq('(', $._expression, ')'),

    list: ($) => seq('[', commaSeparated($._expression), ']'),

    // The ";" that may follow belong to it, also within an expression.
    call: ($) =>
      prec.right(
        seq(
          field('function', choice($.identifier, $.qualified_name, $.dotted_name)),
          field('arguments', $.arguments),
          repeat(';'),
        ),
      ),

    arguments: ($) => seq('(', optional(commaSeparated($.argument)), ')'),

    argument: ($) =>
      seq(optional(seq(field('name', choice($.identifier, $.dotted_name)), '=')), field('value', $._expression)),

    indexed: ($) => prec(LEVEL.index, seq(field('value', $._expression), $.index)),

    index: ($) => seq('[', optional($._bounds), optional(seq(',', optional($._bounds))), ']'),

    _bounds: ($) => choice($._expression, $.range),

    range: ($) => seq(field('from', $._expression), ':', field('to', $._expression)),

    unary: ($) =>
      choice(
        prec.right(LEVEL.sign, seq(field('operator', choice('-', '+')), field('operand', $._expression))),
        prec.right(LEVEL.not, seq(field('operator', '!'), field('operand', $._expression))),
      ),

    binary: ($) => {
      const left = (level, ...operators) =>
        prec.left(
          level,
          seq(
            field('left', $._expression),
            field('operator', operators.length === 1 ? operators[0] : choice(...operators)),
            field('right', $._expression),
          ),
        );
      return choice(
        left(LEVEL.or, '|', '||'),
        left(LEVEL.and, '&', '&&'),
        left(LEVEL.comparison, '<', '<=', '>', '>=', '==', '!='),
        left(LEVEL.sum, '+', '-'),
        left(LEVEL.product, '*', '/'),
        left(LEVEL.modulus, '%%', '%/%'),
        left(LEVEL.matrix_product, '%*%'),
        prec.right(
          LEVEL.power,
          seq(field('left', $._expression), field('operator', '^'), field('right', $._expression)),
        ),
      );
    },

    // --- words

    identifier: () => /[A-Za-z][A-Za-z0-9_]*/,
    dotted_name: () => token(prec(1, /[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+/)),
    qualified_name: () => token(prec(1, /[A-Za-z][A-Za-z0-9_]*::[A-Za-z][A-Za-z0-9_]*/)),
    script_argument: () => /\$([A-Za-z][A-Za-z0-9_]*|[0-9]+)/,
    number: () => token(choice(/[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?/, /\.[0-9]+([eE][+-]?[0-9]+)?/)),
    string: () => token(choice(/"([^"\\]|\\(.|\n))*"/, /'([^'\\]|\\(.|\n))*'/)),
    boolean: () => choice('TRUE', 'FALSE'),
  },
});
