/**
 * Owns the address that Berth answers on: whether it is free, and how it is written.
 * Does not own the socket: workerd listens itself.
 */
import { createServer } from "node:net";
import { Refusal } from "./say.js";

/** @type {Record<string, (at: string) => string>} */
const reasons = {
  EADDRINUSE: (at) => `${at} is in use by another program; choose another port with --port`,
  EACCES: (at) => `this user may not listen on ${at}; choose a port above 1023 with --port`,
  EADDRNOTAVAIL: (at) => `${at} is no address of this machine; choose another with --host`,
  ENOTFOUND: (at) => `${at}: there is no host of that name; choose another with --host`,
};

/**
 * Asks the kernel, so that a port in use is told before anything is started.
 * @param {string} host
 * @param {number} port
 * @returns {Promise<void>}
 */
export function requireFreeAddress(host, port) {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", (/** @type {NodeJS.ErrnoException} */ error) => {
      const reason =
        reasons[error.code ?? ""] ?? ((at) => `cannot listen on ${at}: ${error.message}`);
      reject(new Refusal(reason(written(host, port))));
    });
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve()));
  });
}

/**
 * @param {string} host
 * @param {number} port
 */
export function written(host, port) {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * Where this machine itself finds a server that listens on that host.
 * @param {string} host
 */
export function reachable(host) {
  if (host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}
