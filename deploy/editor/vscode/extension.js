// SPDX-License-Identifier: Apache-2.0
// Starts `heddle lsp` and hands it the settings; everything else is the server's.
'use strict';

const vscode = require('vscode');
const { LanguageClient, TransportKind } = require('vscode-languageclient/node');

let client;

function settings() {
  const configuration = vscode.workspace.getConfiguration('heddle');
  return {
    width: configuration.get('width'),
    libraries: configuration.get('libraries'),
    arguments: configuration.get('arguments'),
  };
}

async function start() {
  const program = vscode.workspace.getConfiguration('heddle').get('path');
  const server = { command: program, args: ['lsp'], transport: TransportKind.stdio };
  client = new LanguageClient('heddle', 'Heddle', server, {
    documentSelector: [{ language: 'dml' }],
    initializationOptions: settings(),
    synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher('**/*.{dml,mtd}') },
  });
  try {
    await client.start();
  } catch (error) {
    vscode.window.showErrorMessage(
      `Heddle: cannot start '${program} lsp' (${error.message}). The setting heddle.path names the program.`,
    );
  }
}

async function stop() {
  if (client !== undefined && client.needsStop()) await client.stop();
  client = undefined;
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand('heddle.restart', async () => {
      await stop();
      await start();
    }),
    vscode.commands.registerCommand('heddle.run', async () => {
      const editor = vscode.window.activeTextEditor;
      if (editor === undefined) return;
      await editor.document.save();
      const terminal = vscode.window.createTerminal({
        name: 'heddle run',
        shellPath: vscode.workspace.getConfiguration('heddle').get('path'),
        shellArgs: ['run', editor.document.fileName],
      });
      terminal.show();
    }),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration('heddle.path')) {
        await stop();
        await start();
      } else if (event.affectsConfiguration('heddle') && client !== undefined) {
        await client.sendNotification('workspace/didChangeConfiguration', { settings: { heddle: settings() } });
      }
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
