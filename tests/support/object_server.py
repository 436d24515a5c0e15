#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Objects in memory behind the part of S3's REST interface that checkpoints use. Every signature is computed anew from the
secret, as "Signature Version 4" of its documentation says, and compared. Prints its port.

    object_server.py [fail-every-N]    every N-th request gets a 503"""
import hashlib
import hmac
import sys
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape

KEY, SECRET, REGION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "eu-test-1"
FAIL_EVERY = int(sys.argv[1]) if len(sys.argv) > 1 else 0
objects, uploads, requests = {}, {}, [0]


def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, code, body=b"", headers=()):
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        if not any(name == "Content-Length" for name, _ in headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, code, name, text):
        self.reply(code, f"<Error><Code>{name}</Code><Message>{escape(text)}</Message></Error>".encode())

    def is_signed(self, body):
        given = self.headers.get("Authorization", "")
        if not given.startswith("AWS4-HMAC-SHA256 "):
            return False
        fields = dict(part.strip().split("=", 1) for part in given[len("AWS4-HMAC-SHA256 "):].split(","))
        scope = fields["Credential"].split("/", 1)
        if scope[0] != KEY or self.headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
            return False
        path, _, query = self.path.partition("?")
        names = fields["SignedHeaders"].split(";")
        if any(self.headers[name] is None for name in names) or "host" not in names or "x-amz-date" not in names or "x-amz-content-sha256" not in names:
            return False
        headers = "".join(f"{name}:{' '.join(self.headers[name].split())}\n" for name in names)
        pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
        query = "&".join(urllib.parse.quote(k, safe="-_.~") + "=" + urllib.parse.quote(v, safe="-_.~") for k, v in pairs)
        path = urllib.parse.quote(urllib.parse.unquote(path), safe="/-_.~")
        request = "\n".join([self.command, path, query, headers, fields["SignedHeaders"], hashlib.sha256(body).hexdigest()])
        text = "\n".join(["AWS4-HMAC-SHA256", self.headers["x-amz-date"], scope[1],
                          hashlib.sha256(request.encode()).hexdigest()])
        key = ("AWS4" + SECRET).encode()
        for part in scope[1].split("/"):
            key = sign(key, part)
        expected = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        return scope[1].endswith(f"/{REGION}/s3/aws4_request") and hmac.compare_digest(expected, fields["Signature"])

    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        requests[0] += 1
        if FAIL_EVERY and requests[0] % FAIL_EVERY == 0:
            return self.refuse(503, "SlowDown", "please reduce your request rate")
        if not self.is_signed(body):
            return self.refuse(403, "SignatureDoesNotMatch", "the signature is another one")
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        bucket, _, key = urllib.parse.unquote(url.path)[1:].partition("/")
        if bucket != "bucket":
            return self.refuse(404, "NoSuchBucket", "there is no such bucket")
        if self.command == "POST" and "uploads" in query:
            if key.endswith("/mute"):
                return self.reply(200, b"<R></R>")
            upload = f"upload/{len(uploads)}+"
            uploads[upload] = {}
            return self.reply(200, f"<R><UploadId>{upload}</UploadId></R>".encode())
        if self.command == "PUT" and "partNumber" in query:
            uploads[query["uploadId"]][int(query["partNumber"])] = body
            return self.reply(200, headers=[("ETag", f'"part{query["partNumber"]}"')])
        if self.command == "POST":
            parts = uploads.pop(query["uploadId"])
            if any(f"<PartNumber>{n}</PartNumber><ETag>\"part{n}\"</ETag>".encode() not in body for n in parts):
                return self.refuse(400, "InvalidPart", "a part is missing")
            if any(len(parts[n]) < 5 << 20 for n in sorted(parts)[:-1]):
                return self.refuse(400, "EntityTooSmall", "a part is too small")
            objects[key] = b"".join(parts[n] for n in sorted(parts))
            return self.reply(200, b"<R><ETag>&quot;whole&quot;</ETag></R>")
        if self.command == "DELETE" and "uploadId" in query:
            uploads.pop(query["uploadId"], None)
            return self.reply(204)
        if self.command == "PUT":
            objects[key] = body
            return self.reply(200, headers=[("ETag", '"one"')])
        if self.command == "DELETE":
            objects.pop(key, None)
            return self.reply(204)
        if self.command == "GET" and "list-type" in query:
            after = query["start-after"]
            keys = sorted(k for k in objects if k.startswith(query["prefix"]) and k > after)[:3]  # truncated early
            return self.reply(200, ("<R>" + "".join(f"<Contents><Key>{escape(k)}</Key><Size>{len(objects[k])}</Size></Contents>" for k in keys) + "</R>").encode())
        if key not in objects:
            return self.refuse(404, "NoSuchKey", "there is no such key")
        data = objects[key]
        if self.command == "HEAD":
            return self.reply(200, headers=[("Content-Length", str(len(data)))])
        begin, end = (int(n) for n in self.headers["Range"][len("bytes="):].split("-"))
        if begin >= len(data):
            return self.refuse(416, "InvalidRange", "nothing is there")
        if key.endswith("/whole"):  # RFC 9110: a server may ignore the range
            return self.reply(200, data)
        return self.reply(206, data[begin:end + 1])

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
