/**
 * Works around a bug of the emulator: erasing everything above the end of the last line throws inside it, and then its
 * write never completes.
 */
import type { Terminal } from "@xterm/headless";
import { internalsOf } from "./xterm-internals.ts";

const above = 1;

export function eraseAboveSafely(terminal: Terminal): void {
  for (const id of [{ final: "J" }, { prefix: "?", final: "J" }]) {
    terminal.parser.registerCsiHandler(id, (params) => {
      const { buffers, _inputHandler: handler } = internalsOf(terminal);
      const { active } = buffers;
      const isLast = active.y + 1 >= terminal.buffer.active.length;
      if (params[0] !== above || !isLast || active.x + 1 < terminal.cols) return false;
      const { x } = active;
      const call = { params: [above] };
      const isSelective = "prefix" in id;
      // One column earlier it erases the lines above without throwing; the rest of this line follows.
      active.x = terminal.cols - 2;
      handler.eraseInDisplay(call, isSelective);
      active.x = terminal.cols - 1;
      handler.eraseInLine(call, isSelective);
      active.x = x;
      return true;
    });
  }
}
