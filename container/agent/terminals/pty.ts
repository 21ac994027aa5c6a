/**
 * Owns one pseudo-terminal: both descriptors, its size, and that all of it is given back.
 * Does not own what runs in it (terminal.ts) nor the pace of reading (output.ts).
 *
 * The program's side stays open here as long as the tree lives: a program that closes its own does not end the output.
 */
import { closeSync, constants, existsSync, openSync } from "node:fs";
import { controlDevice, giveDescriptor, type User } from "../kernel/libc.ts";

export type Size = { cols: number; rows: number };

const request = {
  getAttributes: 0x5401,
  setAttributes: 0x5402,
  setSize: 0x5414,
  number: 0x80045430,
  lock: 0x40045431,
  openPeer: 0x5441,
} as const;

const closeOnExec = 0o2000000;
const neverControlling = constants.O_RDWR | constants.O_NOCTTY | closeOnExec;
/** The first word of struct termios: erasing in a line takes whole characters. */
const inputIsUtf8 = 0o40000;
const attributesBytes = 64;

/** The last descriptor is closed by a thread of the runtime, a moment after its stream has ended. */
const goneLimitMs = 500;

export class Pty {
  readonly master: number;
  readonly slave: number;
  readonly #path: string;
  #open = { master: true, slave: true };

  /** `user`: whose terminal it is, if not the agent's own. */
  constructor(size: Size, user: User | undefined) {
    // Not blocking: neither a program that does not read nor one that does not write may stop the agent.
    this.master = openSync("/dev/ptmx", neverControlling | constants.O_NONBLOCK);
    try {
      controlDevice(this.master, request.lock, new Uint8Array(4));
      const number = new Uint8Array(4);
      controlDevice(this.master, request.number, number);
      this.#path = `/dev/pts/${new DataView(number.buffer).getUint32(0, true)}`;
      this.slave = controlDevice(this.master, request.openPeer, neverControlling);
    } catch (error) {
      closeSync(this.master);
      throw error;
    }
    try {
      if (user !== undefined) giveDescriptor(this.slave, user);
      this.#expectUtf8();
      this.resize(size);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Whoever runs in its foreground is told by SIGWINCH. */
  resize({ cols, rows }: Size): void {
    controlDevice(
      this.master,
      request.setSize,
      new Uint8Array(new Uint16Array([rows, cols, 0, 0]).buffer),
    );
  }

  /** The output then ends with its last byte. */
  closeSlave(): void {
    if (this.#open.slave) closeSync(this.slave);
    this.#open.slave = false;
  }

  close(): void {
    this.closeSlave();
    if (this.#open.master) closeSync(this.master);
    this.#open.master = false;
  }

  /** After close: the kernel has let go of it too. Another program may have the number by then: hence the limit. */
  async gone(): Promise<void> {
    const deadline = performance.now() + goneLimitMs;
    while (existsSync(this.#path) && performance.now() < deadline) await Bun.sleep(1);
  }

  #expectUtf8(): void {
    const attributes = new Uint8Array(attributesBytes);
    controlDevice(this.slave, request.getAttributes, attributes);
    const words = new DataView(attributes.buffer);
    words.setUint32(0, words.getUint32(0, true) | inputIsUtf8, true);
    controlDevice(this.slave, request.setAttributes, attributes);
  }
}
