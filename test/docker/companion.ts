/**
 * A replacement for the network companion that the platform's local mode starts next to each container, for machines
 * that cannot download the real one: inbound connections to its ports, and outbound HTTP, HTTPS and DNS. It runs in a
 * container. The Worker decides what may leave; ports other than 80, 443 and 53 are not intercepted.
 */
import { execFileSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { createServer, request } from "node:http";
import { connect, createServer as createTcpServer } from "node:net";
import type { Duplex } from "node:stream";
import { createServer as createTlsServer } from "node:tls";
import { Authority } from "./authority.ts";

/** Every name resolves to this address; no packet to it leaves. */
const anyHost = "11.0.0.1";
const ports = { http: 41080, https: 41443, names: 41053 };
const headBytesMax = 16_384;
const bodyBytesMax = 65_536;

const gateway = (await lookup("host.docker.internal", 4)).address;
const authority = new Authority("/tmp");
let egressPort = Number(argument("--http-egress-port"));
let resolvesNames = false;

redirect(argument("--docker-gateway-cidr"));
serveNames();
serveHttp();
serveHttps();
serveIngress(argument("--http-ingress-address"));
process.once("SIGTERM", () => process.exit(0));

function argument(name: string): string {
  return process.argv[process.argv.indexOf(name) + 1] ?? "";
}

/** Redirects the container's traffic to ports 80, 443 and 53 to this program, except within its own network. */
function redirect(ownNetwork: string): void {
  const rules = [
    "-N COMPANION",
    "-A OUTPUT -j COMPANION",
    "-A COMPANION -d 127.0.0.0/8 -j RETURN",
    `-A COMPANION -d ${ownNetwork} -j RETURN`,
    `-A COMPANION -p tcp --dport 80 -j REDIRECT --to-ports ${ports.http}`,
    `-A COMPANION -p tcp --dport 443 -j REDIRECT --to-ports ${ports.https}`,
    `-A COMPANION -p udp --dport 53 -j REDIRECT --to-ports ${ports.names}`,
  ];
  for (const rule of rules) execFileSync("iptables", ["-t", "nat", ...rule.split(" ")]);
}

/** CONNECT reaches a port of the container; other requests configure the companion. */
function serveIngress(address: string): void {
  const server = createServer((request, response) => {
    if (request.method === "GET" && request.url === "/ca") {
      response.end(authority.certificate);
      return;
    }
    let text = "";
    request.on("data", (chunk) => {
      text = (text + chunk).slice(0, bodyBytesMax);
    });
    request.on("end", () => {
      if (request.method === "PUT" && request.url === "/egress") configure(JSON.parse(text));
      else response.statusCode = 404;
      response.end("{}");
    });
  });
  server.on("connect", (request, outer, head) => {
    const [host = "", port] = String(request.headers["x-dst-addr"] ?? request.url).split(":");
    const inner = connect({ host, port: Number(port), allowHalfOpen: true });
    const refused = () => outer.end("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    outer.once("error", () => inner.destroy());
    inner.once("error", refused);
    inner.once("connect", () => {
      inner.off("error", refused);
      outer.write("HTTP/1.1 200 OK\r\n\r\n");
      joinBoth(outer, inner, head);
    });
  });
  const [host, port] = address.split(":");
  server.listen({ host, port: Number(port) });
}

function configure(settings: { port?: number; dns?: { allowHostnames?: string[] } }): void {
  egressPort = settings.port ?? egressPort;
  if (settings.dns !== undefined) resolvesNames = (settings.dns.allowHostnames ?? []).length > 0;
}

function serveHttp(): void {
  const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
    let head: Buffer = Buffer.alloc(0);
    const read = (chunk: Buffer) => {
      head = Buffer.concat([head, chunk]);
      if (!head.includes("\r\n\r\n") && head.length < headBytesMax) return;
      socket.off("data", read);
      socket.pause();
      const host = /\r\nhost: *([^\r:]+)/i.exec(head.toString("latin1"))?.[1] ?? anyHost;
      forwardEgress(socket, `${anyHost}:80`, { "x-hostname": host }, head);
    };
    socket.on("data", read);
    socket.on("error", () => socket.destroy());
  });
  server.listen(ports.http, "127.0.0.1");
}

function serveHttps(): void {
  const server = createTlsServer(
    { SNICallback: (host, done) => done(null, authority.contextFor(host)) },
    (socket) => {
      const host = typeof socket.servername === "string" ? socket.servername : anyHost;
      forwardEgress(socket, `${anyHost}:443`, { "x-tls-sni": host }, Buffer.alloc(0));
    },
  );
  server.listen(ports.https, "127.0.0.1");
}

/** Forwards to the platform, which checks and fetches the request. */
function forwardEgress(
  inner: Duplex,
  address: string,
  headers: Record<string, string>,
  first: Buffer,
): void {
  const options = { host: gateway, port: egressPort, method: "CONNECT", path: address, headers };
  const connection = request({ ...options, agent: false });
  connection.once("error", () => inner.destroy());
  connection.once("connect", (response, outer, head) => {
    if (response.statusCode !== 200 && response.statusCode !== 202) {
      inner.destroy();
      return;
    }
    outer.write(first);
    joinBoth(inner, outer, head);
  });
  connection.end();
}

/** Joins two streams in both directions. `head` has already been read and belongs to `to`. */
function joinBoth(from: Duplex, to: Duplex, head: Buffer): void {
  from.on("error", () => to.destroy());
  to.on("error", () => from.destroy());
  if (head.length > 0) from.unshift(head);
  from.pipe(to);
  to.pipe(from);
}

/** Responds to each IPv4 query with the one address, if any host is allowed. */
function serveNames(): void {
  const socket = createSocket("udp4", (question, { address, port }) => {
    const end = question.indexOf(0, 12) + 5;
    const asksIpv4 = question.readUInt16BE(end - 4) === 1;
    const answers = resolvesNames && asksIpv4 ? 1 : 0;
    const head = Buffer.from(question.subarray(0, 12));
    head.writeUInt16BE(resolvesNames ? 0x8180 : 0x8183, 2);
    const counts = [1, answers, 0, 0];
    for (const [index, count] of counts.entries()) head.writeUInt16BE(count, 4 + 2 * index);
    const record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, ...anyHost.split(".").map(Number)];
    const answer = answers === 1 ? Buffer.from(record) : Buffer.alloc(0);
    socket.send(Buffer.concat([head, question.subarray(12, end), answer]), port, address);
  });
  socket.bind(ports.names, "127.0.0.1");
}
