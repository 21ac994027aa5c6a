/** A server in a sandbox that responds with bytes of the test's choice, which need not be HTTP. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";

type OddServer = AsyncDisposable & {
  port: number;
  /** Sent when the headers of a request have arrived; then the connection ends. */
  respondWith: (bytes: string) => void;
  /** The head of the last request, byte for byte. */
  seen: () => string;
};

export async function startOddServer(): Promise<OddServer> {
  let response = "";
  let seen = "";
  const server = createServer((socket: Socket) => {
    let request = "";
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      request += bytes.toString("latin1");
      if (!request.includes("\r\n\r\n")) return;
      seen = request;
      socket.end(Buffer.from(response, "latin1"));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    respondWith: (bytes) => {
      response = bytes;
    },
    seen: () => seen,
    [Symbol.asyncDispose]: async () => {
      server.close();
      await once(server, "close");
    },
  };
}
