/**
 * Runs the render worker: the emulators of all terminals of one agent, driven through a pipe.
 * It is a process of its own because output of a sandbox may make an emulator slow, large or fail, and because the
 * machine gets all its memory back when it ends.
 */
import { writeSync } from "node:fs";
import { Emulator } from "./emulator.ts";
import {
  command,
  commandReader,
  encodeResponse,
  type RenderCommand,
  type RenderResponse,
} from "./render-protocol.ts";

/** Beyond it this process ends. The next one begins with what is still in the rings. */
const residentBytesMax = 384 * 1024 * 1024;
const responsesFd = 1;
const nothing = new Uint8Array();

export async function runRenderWorker(): Promise<void> {
  const emulators = new Map<number, Emulator>();
  const commands = commandReader();
  for await (const part of Bun.stdin.stream()) {
    for (const next of commands.push(part)) {
      writeResponse(encodeResponse(await execute(next, emulators)));
    }
    if (process.memoryUsage.rss() > residentBytesMax) return;
  }
}

async function execute(
  { kind, terminal, cols, rows, bytes }: RenderCommand,
  emulators: Map<number, Emulator>,
): Promise<RenderResponse> {
  const emulator = emulators.get(terminal);
  if (kind === command.begin) {
    emulator?.free();
    emulators.set(terminal, new Emulator(cols, rows));
    return { isKnown: true, bytes: nothing };
  }
  if (emulator === undefined) return { isKnown: false, bytes: nothing };
  switch (kind) {
    case command.write:
      await emulator.write(bytes);
      break;
    case command.resize:
      emulator.resize(cols, rows);
      break;
    case command.snapshot:
      return { isKnown: true, bytes: emulator.snapshot() };
    case command.text:
      return { isKnown: true, bytes: Buffer.from(JSON.stringify(emulator.screenText())) };
    case command.free:
      emulator.free();
      emulators.delete(terminal);
  }
  return { isKnown: true, bytes: nothing };
}

function writeResponse(message: Uint8Array): void {
  for (let written = 0; written < message.length; ) {
    written += writeSync(responsesFd, message, written, message.length - written);
  }
}
