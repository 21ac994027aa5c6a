/**
 * A small server like one of a user: it echoes bodies and WebSocket frames, streams and redirects. It writes frames by
 * hand, so that no library hides what was sent.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { gzipSync } from "node:zlib";

export type SandboxServer = {
  port: number;
  /** The last request. */
  seen: () => IncomingMessage;
  /** How many requests their callers have cancelled. */
  aborted: () => number;
  close: () => Promise<void>;
};

export const zipped = gzipSync("zipped text");

export async function startServer(): Promise<SandboxServer> {
  let seen: IncomingMessage | undefined;
  let aborted = 0;
  const upgraded = new Set<Duplex>();
  const server = createServer((request, response) => {
    seen = request;
    response.on("close", () => {
      if (!response.writableFinished) aborted += 1;
    });
    answer(request, response);
  });
  server.on("upgrade", (request: IncomingMessage, socket: Duplex) => {
    seen = request;
    upgraded.add(socket);
    upgrade(request, socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    seen: () => seen ?? (new Error("no request came") as never),
    aborted: () => aborted,
    close: () => {
      for (const socket of upgraded) socket.destroy();
      return close(server);
    },
  };
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  const { pathname } = new URL(request.url ?? "/", "http://server");
  switch (pathname) {
    case "/echo":
      response.writeHead(200, { "content-type": "application/x-echo" });
      request.pipe(response);
      break;
    case "/never":
      response.write("begun");
      break;
    case "/breaks":
      response.writeHead(200, { "content-length": 1000 });
      response.write("begun", () => response.destroy());
      break;
    case "/redirect":
      response.writeHead(302, { location: "/else", "set-cookie": ["a=1", "b=2"] }).end();
      break;
    case "/zipped":
      response
        .writeHead(200, { "content-encoding": "gzip", "content-length": zipped.length })
        .end(zipped);
      break;
    case "/empty":
      response.writeHead(204, { "berth-incarnation": "forged", "x-own": "kept" }).end();
      break;
    default:
      response.writeHead(404).end(`${request.method} ${request.url}`);
  }
}

const magic = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const opcode = { text: 1, binary: 2, close: 8 } as const;

function upgrade(request: IncomingMessage, socket: Duplex): void {
  const accept = createHash("sha1")
    .update(`${request.headers["sec-websocket-key"]}${magic}`)
    .digest("base64");
  const protocol = request.headers["sec-websocket-protocol"]?.split(",")[0];
  socket.on("error", () => socket.destroy());
  socket.write(
    [
      ...["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"],
      `Sec-WebSocket-Accept: ${accept}`,
      ...(protocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
      ...["", ""],
    ].join("\r\n"),
  );
  writeFrame(socket, opcode.text, Buffer.from(`hello ${request.url}`));
  let held = Buffer.alloc(0);
  socket.on("data", (bytes: Buffer) => {
    held = Buffer.concat([held, bytes]);
    for (let frame = readFrame(held); frame !== undefined; frame = readFrame(held)) {
      held = held.subarray(frame.size);
      reply(socket, frame);
    }
  });
}

type Frame = { kind: number; payload: Buffer; size: number };

function reply(socket: Duplex, { kind, payload }: Frame): void {
  if (kind === opcode.text && payload.toString() === "close me") {
    const code = Buffer.alloc(2);
    code.writeUInt16BE(4321);
    writeFrame(socket, opcode.close, Buffer.concat([code, Buffer.from("as you wish")]));
  } else if (kind === opcode.text && payload.toString() === "drop me") {
    socket.destroy();
  } else if (kind === opcode.close) {
    socket.emit("closed-by-peer", payload);
    writeFrame(socket, opcode.close, payload);
    socket.end();
  } else if (kind === opcode.text || kind === opcode.binary) {
    writeFrame(socket, kind, payload);
  }
}

function readFrame(bytes: Buffer): Frame | undefined {
  if (bytes.length < 2) return undefined;
  const short = bytes.readUInt8(1) & 0x7f;
  const extra = short === 126 ? 2 : short === 127 ? 8 : 0;
  const start = 2 + extra + 4;
  if (bytes.length < start) return undefined;
  const length =
    extra === 2 ? bytes.readUInt16BE(2) : extra === 8 ? Number(bytes.readBigUInt64BE(2)) : short;
  if (bytes.length < start + length) return undefined;
  const mask = bytes.subarray(start - 4, start);
  const payload = Buffer.from(bytes.subarray(start, start + length));
  for (const [n, byte] of payload.entries()) payload[n] = byte ^ (mask[n % 4] ?? 0);
  return { kind: bytes.readUInt8(0) & 0x0f, payload, size: start + length };
}

function writeFrame(socket: Duplex, kind: number, payload: Buffer): void {
  const { length } = payload;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head.writeUInt8(0x80 | kind, 0);
  if (length < 126) head.writeUInt8(length, 1);
  else if (length < 65_536) {
    head.writeUInt8(126, 1);
    head.writeUInt16BE(length, 2);
  } else {
    head.writeUInt8(127, 1);
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  socket.write(Buffer.concat([head, payload]));
}

function close(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}
