/**
 * Opens one pseudo-terminal: both descriptors, its size, and closing them.
 * The program's side stays open here as long as its tree exists: a program that closes its own does not end the output.
 */
import { closeSync, constants, existsSync, openSync } from "node:fs";
import type { TerminalSize } from "../../../src/protocol/terminal.ts";
import { chownDescriptor, ioctl, type User } from "../kernel/libc.ts";

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
/** A flag in the first word of struct termios: erasing removes whole characters. */
const inputIsUtf8 = 0o40000;
const attributesBytes = 64;

/** A thread of the runtime closes the last descriptor a moment after its stream has ended. */
const removedLimitMs = 500;

export class Pty {
  readonly master: number;
  readonly slave: number;
  readonly #path: string;
  #open = { master: true, slave: true };

  /** The terminal belongs to `user`; undefined: to the user of the agent. */
  constructor(size: TerminalSize, user: User | undefined) {
    // Non-blocking, so that a program that does not read or write cannot stop the agent.
    this.master = openSync("/dev/ptmx", neverControlling | constants.O_NONBLOCK);
    try {
      ioctl(this.master, request.lock, new Uint8Array(4));
      const number = new Uint8Array(4);
      ioctl(this.master, request.number, number);
      this.#path = `/dev/pts/${new DataView(number.buffer).getUint32(0, true)}`;
      this.slave = ioctl(this.master, request.openPeer, neverControlling);
    } catch (error) {
      closeSync(this.master);
      throw error;
    }
    try {
      if (user !== undefined) chownDescriptor(this.slave, user);
      this.#expectUtf8();
      this.resize(size);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** The kernel sends SIGWINCH to the foreground processes. */
  resize({ cols, rows }: TerminalSize): void {
    ioctl(this.master, request.setSize, new Uint8Array(new Uint16Array([rows, cols, 0, 0]).buffer));
  }

  /** Afterwards the output ends with its last byte. */
  closeSlave(): void {
    if (this.#open.slave) closeSync(this.slave);
    this.#open.slave = false;
  }

  close(): void {
    this.closeSlave();
    if (this.#open.master) closeSync(this.master);
    this.#open.master = false;
  }

  /** After `close`: waits until the kernel has removed it. Limited, because another program may get its number. */
  async removed(): Promise<void> {
    const deadline = performance.now() + removedLimitMs;
    while (existsSync(this.#path) && performance.now() < deadline) await Bun.sleep(1);
  }

  #expectUtf8(): void {
    const attributes = new Uint8Array(attributesBytes);
    ioctl(this.slave, request.getAttributes, attributes);
    const words = new DataView(attributes.buffer);
    words.setUint32(0, words.getUint32(0, true) | inputIsUtf8, true);
    ioctl(this.slave, request.setAttributes, attributes);
  }
}
