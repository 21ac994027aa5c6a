/**
 * Owns the process that draws: the emulators of all terminals of one agent, told what to do by a pipe.
 * Does not own when it runs or what is drawn (screens.ts). Apart from the agent because output of a sandbox may make an
 * emulator slow, large or fail; and because the memory that it took is the machine's again when it ends.
 */
import { writeSync } from "node:fs";
import { Emulator } from "./emulator.ts";
import { type Answer, answerBytes, type Order, order, orders } from "./render-protocol.ts";

/** Beyond it this process ends: the next one begins with what is still in the rings. */
const residentBytesMax = 384 * 1024 * 1024;
const answersFd = 1;
const nothing = new Uint8Array();

export async function draw(): Promise<void> {
  const emulators = new Map<number, Emulator>();
  const coming = orders();
  for await (const part of Bun.stdin.stream()) {
    for (const one of coming.take(part)) tell(answerBytes(await follow(one, emulators)));
    if (process.memoryUsage.rss() > residentBytesMax) return;
  }
}

async function follow(one: Order, emulators: Map<number, Emulator>): Promise<Answer> {
  if (one.kind === order.begin) {
    emulators.get(one.terminal)?.free();
    emulators.set(one.terminal, new Emulator(one.cols, one.rows));
    return { known: true, bytes: nothing };
  }
  const emulator = emulators.get(one.terminal);
  if (emulator === undefined) return { known: false, bytes: nothing };
  return { known: true, bytes: await ask(one, emulator, emulators) };
}

async function ask(
  one: Order,
  emulator: Emulator,
  emulators: Map<number, Emulator>,
): Promise<Uint8Array> {
  switch (one.kind) {
    case order.write:
      await emulator.write(one.bytes);
      return nothing;
    case order.resize:
      emulator.resize(one.cols, one.rows);
      return nothing;
    case order.picture:
      return emulator.picture();
    case order.look:
      return Buffer.from(JSON.stringify(emulator.look()));
    default:
      emulator.free();
      emulators.delete(one.terminal);
      return nothing;
  }
}

function tell(message: Uint8Array): void {
  for (let at = 0; at < message.length; ) {
    at += writeSync(answersFd, message, at, message.length - at);
  }
}
