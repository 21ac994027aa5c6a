/** The ports of a sandbox. */
import type { Port, PortInput, PortList } from "../../protocol/port.ts";
import type { CallOptions } from "../http/request.ts";
import { type Page, toPage } from "../page.ts";
import type { SandboxCalls } from "../verbs.ts";

/** Ports: servers in a sandbox that others reach by an address. */
export class Ports {
  readonly #calls: SandboxCalls;

  /** @internal */
  constructor(calls: SandboxCalls) {
    this.#calls = calls;
  }

  /**
   * Creates an address for a port. Everyone who knows it can use it. Opening an open port again replaces its address.
   *
   * @example
   * ```ts
   * const { url } = await sandbox.ports.open(3000);
   * ```
   */
  open(port: number | PortInput, options: CallOptions = {}): Promise<Port> {
    return this.#calls.openPort({ ...(typeof port === "number" ? { port } : port), ...options });
  }

  /** The open ports, without their addresses. */
  async list(options: CallOptions = {}): Promise<Page<PortList["ports"][number]>> {
    const { ports, nextCursor } = await this.#calls.ports(options);
    return toPage(ports, { nextCursor });
  }

  /** Ends the address of a port. */
  async close(port: number, options: CallOptions = {}): Promise<void> {
    await this.#calls.closePort(port, options);
  }
}
