/** Generates random output of a terminal as programs write it: text, colours, moves, modes, incomplete sequences. */
import fc from "fast-check";

const numbers = fc.integer({ min: 0, max: 14 });
const csi = (last: string, count = 1) =>
  fc.array(numbers, { maxLength: count }).map((list) => `\x1b[${list.join(";")}${last}`);

const text = fc
  .array(fc.constantFrom(..."aBz qxé漢字😀ﾊ", "e\u0301", "\u0301", "한", "\u200b"), {
    minLength: 1,
    maxLength: 30,
  })
  .map((chars) => chars.join(""));

/** Without underline styles: the emulator loses a part of them when a program restores its cursor. */
const colour = fc.oneof(
  fc.constantFrom("0", "1", "2", "3", "4", "5", "7", "8", "9", "22", "23", "24", "27", "39", "49"),
  fc.constantFrom("53", "31", "42", "97", "103", "38;5;200", "48;2;1;2;3"),
);
const colours = fc.array(colour, { maxLength: 3 }).map((list) => `\x1b[${list.join(";")}m`);

const lines = fc.constantFrom(
  ...["\r\n", "\n", "\r", "\b", "\t", "\x1bM", "\x1bE", "\r\n\r\n\r\n", "\x07"],
);

const moves = fc.oneof(
  csi("H", 2),
  ...["A", "B", "C", "D", "G", "d", "E", "F", "I", "Z"].map((last) => csi(last)),
);

const edits = fc.oneof(
  ...["J", "K", "L", "M", "P", "@", "X", "S", "T"].map((last) => csi(last)),
  csi("r", 2),
  csi("b"),
);

const modes = fc.constantFrom(
  ...["\x1b[?1049h", "\x1b[?1049l", "\x1b[?47h", "\x1b[?47l", "\x1b[?1047h"],
  ...["\x1b[?1h", "\x1b[?1l", "\x1b[?25l", "\x1b[?25h", "\x1b[?2004h", "\x1b[?2004l"],
  ...["\x1b[?7l", "\x1b[?7h", "\x1b[4h", "\x1b[4l"],
  ...["\x1b[?1000h", "\x1b[?1002h", "\x1b[?1003l", "\x1b[?1006h", "\x1b[?1004h", "\x1b=", "\x1b>"],
  ...["\x1b7", "\x1b8", "\x1b(0", "\x1b(B", "\x1b)0", "\x0e", "\x0f", "\x1bH", "\x1b[3g", "\x1b[g"],
  ...["\x1b[2 q", "\x1b[5 q", "\x1b[0 q", "\x1b[20h", "\x1b[20l", "\x1b[?45h", "\x1b[!p"],
  ...["\x1b]2;a title\x07", "\x1b]0;é title\x1b\\", "\x1b[6n", "\x1b[c", "\x1bP$qm\x1b\\"],
);

export const output = fc
  .array(
    fc.oneof(
      { weight: 6, arbitrary: text },
      { weight: 3, arbitrary: colours },
      { weight: 3, arbitrary: lines },
      { weight: 3, arbitrary: moves },
      { weight: 2, arbitrary: edits },
      { weight: 2, arbitrary: modes },
    ),
    { minLength: 5, maxLength: 60, size: "max" },
  )
  .map((parts) => Buffer.from(parts.join("")));
