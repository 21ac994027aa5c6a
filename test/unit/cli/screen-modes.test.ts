import { describe, expect, it } from "vitest";
import { ScreenModes } from "../../../src/cli/attach/screen-modes.ts";

/** What is written to one's own terminal after a program that wrote these pieces. */
function afterwards(...pieces: string[]): string {
  const modes = new ScreenModes();
  for (const piece of pieces) modes.see(Buffer.from(piece, "latin1"));
  return modes.restore();
}

const nothing = afterwards("hello\r\n");

describe("what `berth attach` leaves of a program's modes", () => {
  it("[LV16] a program that changed nothing has nothing switched off", () => {
    expect(nothing).toBe("\x1b[m\x1b7\x1b[r\x1b8");
    expect(afterwards("\x1b[?1049h\x1b[?2004h")).toContain("\x1b[?1049l\x1b[?2004l");
  });

  it("[LV16] keys with modifiers are told as before", () => {
    expect(afterwards("\x1b[>4;2m")).toContain("\x1b[>4;m");
    expect(afterwards("\x1b[>4", ";1m\x1b[>1;3m")).toContain("\x1b[>4;m\x1b[>1;m");
    expect(afterwards("\x1b[>4n")).toContain("\x1b[>4;m");
    for (const undone of ["\x1b[>4m", "\x1b[>4;m", "\x1b[>m", "\x1bc"]) {
      expect(afterwards("\x1b[>4;2m", undone)).toBe(nothing);
    }
  });

  it("[LV16] what a program pushed onto the keyboard's modes is taken off, on the screen where it lies", () => {
    expect(afterwards("\x1b[>1u\x1b[>5u")).toContain("\x1b[<2u");
    expect(afterwards("\x1b[>1u\x1b[>5u\x1b[<2u")).toBe(nothing);
    expect(afterwards("\x1b[?1049h\x1b[>1u")).toContain("\x1b[<1u\x1b[?1049l");
    expect(afterwards("\x1b[>1u\x1b[?1049h")).toContain("\x1b[?1049l\x1b[<1u");
  });

  it("[LV16] flags of the keyboard that were set without being pushed are cleared", () => {
    expect(afterwards("\x1b[=5;1u")).toContain("\x1b[=0u");
    expect(afterwards("\x1b[=1u\x1b[=4;2u\x1b[=1;3u")).toContain("\x1b[=0u");
    expect(afterwards("\x1b[=5u\x1b[=0u")).toBe(nothing);
    expect(afterwards("\x1b[=5u\x1b[=5;3u")).toBe(nothing);
    // Those of what was pushed go with it.
    expect(afterwards("\x1b[>1u\x1b[=5u")).toBe(afterwards("\x1b[>1u"));
    expect(afterwards("\x1b[=5u\x1b[>1u")).toContain("\x1b[<1u\x1b[=0u");
  });
});
