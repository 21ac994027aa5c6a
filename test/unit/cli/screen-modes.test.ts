import { describe, expect, it } from "vitest";
import { ScreenModes } from "../../../src/cli/attach/screen-modes.ts";

/** What restores the user's terminal after a program that wrote these chunks. */
function afterwards(...chunks: string[]): string {
  const modes = new ScreenModes();
  for (const chunk of chunks) modes.see(Buffer.from(chunk, "latin1"));
  return modes.restore();
}

const unchanged = afterwards("hello\r\n");

describe("terminal modes after `berth attach`", () => {
  it("[LV16] a program that changed no mode has none switched off", () => {
    expect(unchanged).toBe("\x1b[m\x1b7\x1b[r\x1b8");
    expect(afterwards("\x1b[?1049h\x1b[?2004h")).toContain("\x1b[?1049l\x1b[?2004l");
  });

  it("[LV16] keys with modifiers are reported as before", () => {
    expect(afterwards("\x1b[>4;2m")).toContain("\x1b[>4;m");
    expect(afterwards("\x1b[>4", ";1m\x1b[>1;3m")).toContain("\x1b[>4;m\x1b[>1;m");
    expect(afterwards("\x1b[>4n")).toContain("\x1b[>4;m");
    for (const undone of ["\x1b[>4m", "\x1b[>4;m", "\x1b[>m", "\x1bc"]) {
      expect(afterwards("\x1b[>4;2m", undone)).toBe(unchanged);
    }
  });

  it("[LV16] keyboard modes that a program pushed are popped, on the right screen", () => {
    expect(afterwards("\x1b[>1u\x1b[>5u")).toContain("\x1b[<2u");
    expect(afterwards("\x1b[>1u\x1b[>5u\x1b[<2u")).toBe(unchanged);
    expect(afterwards("\x1b[?1049h\x1b[>1u")).toContain("\x1b[<1u\x1b[?1049l");
    expect(afterwards("\x1b[>1u\x1b[?1049h")).toContain("\x1b[?1049l\x1b[<1u");
  });

  it("[LV16] keyboard flags that were set without a push are cleared", () => {
    expect(afterwards("\x1b[=5;1u")).toContain("\x1b[=0u");
    expect(afterwards("\x1b[=1u\x1b[=4;2u\x1b[=1;3u")).toContain("\x1b[=0u");
    expect(afterwards("\x1b[=5u\x1b[=0u")).toBe(unchanged);
    expect(afterwards("\x1b[=5u\x1b[=5;3u")).toBe(unchanged);
    // Popping clears the flags above.
    expect(afterwards("\x1b[>1u\x1b[=5u")).toBe(afterwards("\x1b[>1u"));
    expect(afterwards("\x1b[=5u\x1b[>1u")).toContain("\x1b[<1u\x1b[=0u");
  });
});
