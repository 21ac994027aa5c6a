/**
 * Owns one sequence that the emulator fails at: erasing all above the end of the last line throws within it, and then
 * it never says that it has written. Does not own any other sequence.
 */
import type { Terminal } from "@xterm/headless";
import { insideOf } from "./xterm-internals.ts";

const above = 1;

export function eraseAboveSafely(terminal: Terminal): void {
  for (const id of [{ final: "J" }, { prefix: "?", final: "J" }]) {
    terminal.parser.registerCsiHandler(id, (params) => {
      const { buffers, _inputHandler: handler } = insideOf(terminal);
      const { active } = buffers;
      const isLast = active.y + 1 >= terminal.buffer.active.length;
      if (params[0] !== above || !isLast || active.x + 1 < terminal.cols) return false;
      const { x } = active;
      const call = { params: [above] };
      const isSelective = "prefix" in id;
      // From one column before it the lines above go, and then this line to its end.
      active.x = terminal.cols - 2;
      handler.eraseInDisplay(call, isSelective);
      active.x = terminal.cols - 1;
      handler.eraseInLine(call, isSelective);
      active.x = x;
      return true;
    });
  }
}
