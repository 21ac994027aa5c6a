/**
 * Runs a server in a sandbox as a user would: it echoes requests, streams, talks WebSocket, and dies.
 * Also sends requests to it by either form of its address.
 */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import type { Readable } from "node:stream";
import { WebSocket } from "ws";
import { post, runPython } from "../files/workspace.ts";
import type { RunningServer } from "../server.ts";

export const port = 8123;

/** The server answers when this returns. */
export async function serve(server: RunningServer, id: string): Promise<void> {
  await runPython(
    server,
    id,
    "import sys; open('/workspace/serve.py', 'w').write(sys.stdin.read())",
    program,
  );
  const call = { argv: ["python3", "/workspace/serve.py", String(port)] };
  const made = await post(server, id, "processes", call);
  const wait = `/v1/sandboxes/${id}/processes/${made.body.id}/wait?for=port:${port}&timeoutMs=20000`;
  const waited = await server.call("GET", wait);
  if (waited.status !== 200) throw new Error(`it does not serve: ${JSON.stringify(waited.body)}`);
}

export type Opened = { url: string; pathUrl: string; token: string };

export async function open(server: RunningServer, id: string, more = {}): Promise<Opened> {
  const { status, body } = await post(server, id, "ports", { port, ...more });
  if (status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`);
  return body as Opened;
}

export type Got = { status: number; headers: IncomingMessage["headers"]; body: Buffer };
export type Init = {
  method?: string;
  headers?: Record<string, string>;
  body?: Readable | Buffer | string;
};

/** The answer as soon as its headers are there. A name below `localhost` is the machine itself. */
export function ask(
  url: string,
  { method = "GET", headers = {}, body }: Init = {},
): Promise<IncomingMessage> {
  const { host, port: to, pathname, search } = new URL(url);
  return new Promise((resolve, reject) => {
    const options = {
      host: "127.0.0.1",
      port: to,
      path: pathname + search,
      method,
      timeout: 60_000,
    };
    const call = request({ ...options, headers: { host, ...headers }, agent: false }, resolve);
    call.once("error", reject);
    call.once("timeout", () => call.destroy(new Error(`${url}: no answer`)));
    if (body === undefined || typeof body === "string" || Buffer.isBuffer(body)) call.end(body);
    else body.pipe(call);
  });
}

export async function get(url: string, init?: Init): Promise<Got> {
  const answer = await ask(url, init);
  const pieces: Buffer[] = [];
  for await (const piece of answer) pieces.push(piece as Buffer);
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(pieces) };
}

/** An open WebSocket, and the headers of the handshake. A mute one answers no ping. */
export async function openSocket(
  url: string,
  more: Record<string, string> = {},
  options: { mute?: boolean } = {},
): Promise<{ socket: WebSocket; headers: IncomingMessage["headers"] }> {
  const { host, port: to, pathname, search } = new URL(url);
  const socket = new WebSocket(`ws://127.0.0.1:${to}${pathname}${search}`, {
    headers: { host, ...more },
    autoPong: options.mute !== true,
    perMessageDeflate: false,
  });
  let headers: IncomingMessage["headers"] = {};
  socket.once("upgrade", (response) => {
    headers = response.headers;
  });
  await once(socket, "open");
  socket.on("error", () => {});
  return { socket, headers };
}

/** The text that comes back. */
export async function echoOf(socket: WebSocket, text: string): Promise<string> {
  const answered = once(socket, "message");
  socket.send(text);
  return String((await answered)[0]);
}

const program = `
import base64, gzip, hashlib, json, os, struct, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Server(ThreadingHTTPServer):
    request_queue_size = 256
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args): pass
    def begin(self, **headers):
        self.send_response(200)
        for name, value in headers.items(): self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
    def piece(self, data):
        self.wfile.write(b"%x\\r\\n%s\\r\\n" % (len(data), data)); self.wfile.flush()
    def pieces(self):
        if "content-length" in self.headers:
            left = int(self.headers["content-length"])
            while left:
                data = self.rfile.read(min(left, 65536)); left -= len(data); yield data
        elif self.headers.get("transfer-encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size); self.rfile.readline()
            self.rfile.readline()
    def do_GET(self):
        path = self.path.split("?")[0]
        if self.headers.get("upgrade", "").lower() == "websocket": return self.websocket()
        if path == "/stream":
            self.begin(transfer_encoding="chunked")
            self.piece(b"first")
            while not os.path.exists("/workspace/go"): time.sleep(0.01)
            self.piece(b"last"); self.piece(b"")
        elif path == "/large":
            self.begin(content_length=40_000_000)
            for n in range(400): self.wfile.write(bytes([n % 256]) * 100_000)
        elif path == "/dies":
            self.begin(content_length=1000)
            self.wfile.write(b"begun"); self.wfile.flush()
            while not os.path.exists("/workspace/go"): time.sleep(0.01)
            os._exit(1)
        elif path == "/zipped":
            data = gzip.compress(b"zipped text" * 10_000)
            self.begin(content_encoding="gzip", content_length=len(data)); self.wfile.write(data)
        elif path == "/odd":
            self.begin(content_encoding="zstd", content_length=4); self.wfile.write(b"odd!")
        elif path == "/cookies":
            self.send_response(200)
            for value in ("a=1", "b=2"): self.send_header("set-cookie", value)
            for name in ("berth-incarnation", "berth-secret", "proxy-authenticate"): self.send_header(name, "forged")
            self.send_header("content-length", "0"); self.end_headers()
        else: self.tell()
    def tell(self):
        body = b"".join(self.pieces()).decode("latin1")
        seen = {"method": self.command, "path": self.path, "headers": [[k.lower(), v] for k, v in self.headers.items()], "body": body[:1000]}
        data = json.dumps(seen).encode()
        self.begin(content_type="application/json", content_length=len(data))
        if self.command != "HEAD": self.wfile.write(data)
    do_PUT = do_DELETE = do_HEAD = do_OPTIONS = do_PATCH = tell
    def do_POST(self):
        if self.path != "/echo": return self.tell()
        self.begin(transfer_encoding="chunked")
        for data in self.pieces(): self.piece(data)
        self.piece(b"")
    def websocket(self):
        accept = self.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("upgrade", "websocket"); self.send_header("connection", "upgrade")
        self.send_header("sec-websocket-accept", base64.b64encode(hashlib.sha1(accept.encode()).digest()).decode())
        self.end_headers()
        self.close_connection = True
        while True:
            head = self.rfile.read(2)
            if len(head) < 2: return
            size = head[1] & 127
            if size == 126: size = struct.unpack(">H", self.rfile.read(2))[0]
            elif size == 127: size = struct.unpack(">Q", self.rfile.read(8))[0]
            mask = self.rfile.read(4); data = bytes(b ^ mask[i % 4] for i, b in enumerate(self.rfile.read(size)))
            if head[0] & 15 == 8: return
            if data == b"headers": data = json.dumps(sorted(k.lower() for k in self.headers.keys())).encode()
            length = bytes([len(data)]) if len(data) < 126 else b"\\x7e" + struct.pack(">H", len(data)) if len(data) < 65536 else b"\\x7f" + struct.pack(">Q", len(data))
            self.wfile.write(bytes([head[0]]) + length + data); self.wfile.flush()
Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
`;
