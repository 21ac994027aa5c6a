/** Opens raw connections to the server: bytes as they are written, and WebSockets with any headers. */
import { connect, type Socket } from "node:net";
import { WebSocket } from "ws";

const silenceMs = 60_000;

export type RawAnswer = { status: number; text: string; closed: boolean };

/** All that comes back until the server closes, or has been silent for so long after a whole answer. */
export function raw(
  url: string,
  bytes: string | Buffer,
  quietMs = 300,
  silentMs = silenceMs,
): Promise<RawAnswer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(Number(port), hostname);
    let text = "";
    let quiet: NodeJS.Timeout | undefined;
    const end = (closed: boolean) => {
      clearTimeout(quiet);
      socket.destroy();
      resolve({ status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0), text, closed });
    };
    socket.setTimeout(silentMs, () => reject(new Error(`silence after ${text}`)));
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      clearTimeout(quiet);
      if (isWhole(text)) quiet = setTimeout(() => end(false), quietMs);
    });
    socket.on("close", () => end(true));
    // A server that refuses may reset what was not read.
    socket.on("error", () => end(true));
    socket.write(bytes);
  });
}

/** Whether the first response is complete: a busy machine may write it in pieces that arrive far apart. */
function isWhole(text: string): boolean {
  const [head = "", ...rest] = text.split("\r\n\r\n");
  if (rest.length === 0) return false;
  const body = rest.join("\r\n\r\n");
  const length = /^content-length: *(\d+)$/im.exec(head)?.[1];
  if (length !== undefined) return body.length >= Number(length);
  return !/^transfer-encoding: *chunked$/im.test(head) || /^0\r\n/m.test(body);
}

export type Joined = {
  status: number;
  code: string | undefined;
  socket: WebSocket | undefined;
  protocol: string;
};

/** Open, or what the upgrade was refused with. */
export function join(
  url: string,
  { headers = {}, protocols = [] }: { headers?: Record<string, string>; protocols?: string[] } = {},
): Promise<Joined> {
  const socket = new WebSocket(url.replace("http", "ws"), protocols, { headers });
  return new Promise((resolve, reject) => {
    socket.on("open", () =>
      resolve({ status: 101, code: undefined, socket, protocol: socket.protocol }),
    );
    socket.on("unexpected-response", (_request, response) => {
      let text = "";
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("end", () => {
        const code = (JSON.parse(text) as { error?: { code?: string } }).error?.code;
        resolve({ status: response.statusCode ?? 0, code, socket: undefined, protocol: "" });
      });
    });
    socket.on("error", reject);
  });
}

/** The code that the other end closes with. */
export function closeOf(socket: WebSocket): Promise<number> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error("it was not closed")), silenceMs);
    socket.once("close", (code) => {
      clearTimeout(late);
      resolve(code);
    });
  });
}
