/** Checks that the address of the server is free, and formats it. workerd itself opens the socket. */
import { createServer } from "node:net";
import { UserError } from "./program.js";

/** @type {Record<string, (address: string) => string>} */
const reasons = {
  EADDRINUSE: (address) =>
    `${address} is in use by another program. Choose another port with \`--port\`.`,
  EACCES: (address) =>
    `This user may not listen on ${address}. Choose a port above 1023 with \`--port\`.`,
  EADDRNOTAVAIL: (address) =>
    `${address} is not an address of this machine. Choose another with \`--host\`.`,
  ENOTFOUND: (address) =>
    `${address}: There is no host with this name. Choose another with \`--host\`.`,
};

/**
 * Fails before anything is started if the port is in use.
 * @param {string} host
 * @param {number} port
 * @returns {Promise<void>}
 */
export function requireFreeAddress(host, port) {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", (/** @type {NodeJS.ErrnoException} */ error) => {
      const reason =
        reasons[error.code ?? ""] ?? ((address) => `Cannot listen on ${address}: ${error.message}`);
      reject(new UserError(reason(formatAddress(host, port))));
    });
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve()));
  });
}

/** @type {(host: string, port: number) => string} */
export function formatAddress(host, port) {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * The address at which this machine reaches a server that listens on `host`.
 * @param {string} host
 */
export function localAddressOf(host) {
  if (host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}
