#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`heddle lsp` and a client that others have written: pygls, whose types are those of the protocol's own model, so that an
answer of another shape is an error. Run by hand, as the tests of the build install nothing from PyPI:

    python3 -m venv venv && venv/bin/pip install pygls && venv/bin/python tests/editor/client_test.py [build/release/heddle]

Without pygls it says so and passes.
"""
import asyncio
import pathlib
import sys
import tempfile
import unittest

try:
    from lsprotocol import types
    from pygls.lsp.client import LanguageClient
except ImportError:
    print("skipped: pygls is not installed")
    sys.exit(0)

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = str(ROOT / "build" / "release" / "heddle")
SCRIPT = """# doubles
f = function(Matrix[Double] A, Double k = 2) return (Matrix[Double] B) {
  B = A * k
}
X = rand(rows=100, cols=10, seed=1)
Y = f(X, k=3)
print(sum(Y) + missing)
"""


class Client(LanguageClient):
    def __init__(self):
        super().__init__("heddle-test", "1")
        self.published = asyncio.Queue()

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(parameters: types.PublishDiagnosticsParams):
            self.published.put_nowait(parameters)


class ClientTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.uri = (pathlib.Path(self.folder.name) / "a.dml").as_uri()
        self.client = Client()
        await self.client.start_io(PROGRAM, "lsp")
        result = await self.client.initialize_async(types.InitializeParams(
            capabilities=types.ClientCapabilities(), root_uri=pathlib.Path(self.folder.name).as_uri()))
        self.assertEqual(result.server_info.name, "heddle")
        self.client.initialized(types.InitializedParams())
        self.open(SCRIPT)

    async def asyncTearDown(self):
        await asyncio.wait_for(self.client.shutdown_async(None), 20)
        self.client.exit(None)
        await asyncio.wait_for(self.client._server.wait(), 20)
        self.assertEqual(self.client._server.returncode, 0)
        await self.client.stop()
        self.folder.cleanup()

    def open(self, text):
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(
            types.TextDocumentItem(uri=self.uri, language_id="dml", version=1, text=text)))

    def at(self, line, character):
        return {"text_document": types.TextDocumentIdentifier(self.uri), "position": types.Position(line, character)}

    async def test_diagnostics_and_a_change(self):
        first = await asyncio.wait_for(self.client.published.get(), 20)
        self.assertEqual([d.message for d in first.diagnostics], ["undefined variable 'missing'"])
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(
            types.VersionedTextDocumentIdentifier(version=2, uri=self.uri),
            [types.TextDocumentContentChangePartial(
                types.Range(types.Position(6, 15), types.Position(6, 22)), "1")]))
        while (second := await asyncio.wait_for(self.client.published.get(), 20)).version != 2:
            pass
        self.assertFalse(second.diagnostics)

    async def test_every_request(self):
        hover = await self.client.text_document_hover_async(types.HoverParams(**self.at(4, 0)))
        self.assertIn("matrix 100x10", hover.contents.value)
        items = await self.client.text_document_completion_async(types.CompletionParams(**self.at(5, 9)))
        self.assertIn("k=", [item.label for item in items.items])
        item = next(item for item in items.items if item.label == "sum")
        self.assertIsNotNone((await self.client.completion_item_resolve_async(item)).documentation)
        help = await self.client.text_document_signature_help_async(types.SignatureHelpParams(**self.at(5, 9)))
        self.assertEqual(help.active_parameter, 1)
        places = await self.client.text_document_definition_async(types.DefinitionParams(**self.at(5, 4)))
        self.assertEqual(places[0].range.start, types.Position(1, 0))
        uses = await self.client.text_document_references_async(
            types.ReferenceParams(**self.at(4, 0), context=types.ReferenceContext(True)))
        self.assertEqual(len(uses), 2)
        self.assertEqual(len(await self.client.text_document_document_highlight_async(
            types.DocumentHighlightParams(**self.at(4, 0)))), 2)
        prepared = await self.client.text_document_prepare_rename_async(types.PrepareRenameParams(**self.at(1, 38)))
        self.assertEqual(prepared.placeholder, "k")
        edit = await self.client.text_document_rename_async(types.RenameParams(**self.at(1, 38), new_name="factor"))
        self.assertEqual(len(edit.changes[self.uri]), 3)
        document = types.TextDocumentIdentifier(self.uri)
        symbols = await self.client.text_document_document_symbol_async(types.DocumentSymbolParams(document))
        self.assertEqual([symbol.name for symbol in symbols], ["f", "X", "Y"])
        folds = await self.client.text_document_folding_range_async(types.FoldingRangeParams(document))
        self.assertEqual(len(folds), 1)
        edits = await self.client.text_document_formatting_async(
            types.DocumentFormattingParams(document, types.FormattingOptions(2, True)))
        self.assertFalse(edits)

    async def test_an_unknown_method_is_an_error(self):
        with self.assertRaises(Exception):
            await self.client.protocol.send_request_async("textDocument/makeCoffee", {})


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
