// SPDX-License-Identifier: Apache-2.0
// The grammar's scopes on lines of DML, and on every script of the repository: no line is left in a string or comment at
// the end of a file, and no rule matches for ever.
'use strict';

const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const test = require('node:test');
const oniguruma = require('vscode-oniguruma');
const textmate = require('vscode-textmate');

const folder = path.join(__dirname, '..');

async function loadGrammar() {
  const wasm = fs.readFileSync(require.resolve('vscode-oniguruma/release/onig.wasm'));
  await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (sources) => new oniguruma.OnigScanner(sources),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () => {
      const file = path.join(folder, 'syntaxes', 'dml.tmLanguage.json');
      return textmate.parseRawGrammar(fs.readFileSync(file, 'utf8'), file);
    },
  });
  return registry.loadGrammar('source.dml');
}

const grammar = loadGrammar();

// "text scope" of each piece of a line that has a scope of its own.
async function scopesOf(line) {
  const { tokens } = (await grammar).tokenizeLine(line, textmate.INITIAL);
  return tokens
    .filter((token) => token.scopes.length > 1)
    .map((token) => `${line.slice(token.startIndex, token.endIndex)} ${token.scopes.at(-1)}`);
}

test('package.json and the files that it names', () => {
  const manifest = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
  const files = [manifest.main, manifest.contributes.languages[0].configuration, manifest.contributes.grammars[0].path];
  for (const file of files) assert.ok(fs.existsSync(path.join(folder, file)), file);
  JSON.parse(fs.readFileSync(path.join(folder, 'language-configuration.json'), 'utf8'));
});

test('words, numbers, texts and comments', async () => {
  assert.deepStrictEqual(await scopesOf('x = 1.5e-3 # note'), [
    '= keyword.operator.assignment.dml',
    '1.5e-3 constant.numeric.dml',
    '# note comment.line.number-sign.dml',
  ]);
  assert.deepStrictEqual(await scopesOf('f = function(matrix[double] X) return (double y) {'), [
    'f entity.name.function.dml',
    '= keyword.operator.assignment.dml',
    'function storage.type.function.dml',
    'matrix storage.type.dml',
    'double storage.type.dml',
    'return keyword.control.dml',
    'double storage.type.dml',
  ]);
  assert.deepStrictEqual(await scopesOf('y = lib::f(as.scalar(X), $n) %*% t(Z)'), [
    '= keyword.operator.assignment.dml',
    'lib entity.name.namespace.dml',
    ':: punctuation.separator.namespace.dml',
    'f entity.name.function.call.dml',
    'as.scalar support.function.dml',
    '$n variable.parameter.script.dml',
    '%*% keyword.operator.matrix.dml',
    't entity.name.function.call.dml',
  ]);
});

test('every script of the repository ends outside of texts and comments', async () => {
  const root = path.join(folder, '..', '..', '..');
  let count = 0;
  for (const name of ['library', 'examples', 'bench']) {
    for (const file of fs.readdirSync(path.join(root, name), { recursive: true })) {
      if (!file.endsWith('.dml')) continue;
      let state = textmate.INITIAL;
      let last = [];
      for (const line of fs.readFileSync(path.join(root, name, file), 'utf8').split('\n')) {
        const result = (await grammar).tokenizeLine(line, state);
        assert.ok(!result.stoppedEarly, file);
        state = result.ruleStack;
        last = result.tokens.at(-1).scopes;
      }
      assert.deepStrictEqual(last, ['source.dml'], file);
      ++count;
    }
  }
  assert.ok(count > 200, `${count} scripts`);
});
