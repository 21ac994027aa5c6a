/** Tests that text of a server or a sandbox reaches the terminal only as text. */
import { describe, expect, it } from "vitest";
import { LocalTerminal } from "../../../src/cli/attach/local-terminal.ts";
import { reportFailure } from "../../../src/cli/failure.ts";
import { Output } from "../../../src/cli/output/output.ts";
import { BerthError } from "../../../src/protocol/errors.ts";

const from = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index);

/** All that a terminal obeys, or that makes a line read otherwise than it is written. */
const codes = [
  ...from(0x00, 0x1f),
  ...from(0x7f, 0x9f),
  ...[0x061c, 0x200e, 0x200f, 0x2028, 0x2029],
  ...from(0x202a, 0x202e),
  ...from(0x2066, 0x2069),
];
const controls = codes.map((code): [name: string, character: string] => [
  `U+${code.toString(16).padStart(4, "0")}`,
  String.fromCharCode(code),
]);
/** Whole sequences: clear the screen, set the title, a link, a second line, a report that types something. */
const sequences: [string, string][] = [
  ["clear", "\u001b[2J\u001b[H"],
  ["title", "\u001b]0;owned\u0007"],
  ["link", "\u001b]8;;http://evil.test\u001b\\click\u001b]8;;\u001b\\"],
  ["line", "\r\nerror: forged"],
  ["report", "\u009b6n"],
  ["override", "\u202egnp.exe\u202c"],
];

function record(json = false) {
  const written = { stdout: "", stderr: "" };
  const sink = (name: "stdout" | "stderr") => ({
    write: (text: string | Uint8Array) => {
      written[name] += text;
    },
  });
  const options = { json, plain: true };
  return { written, output: new Output(sink("stdout"), sink("stderr"), options) };
}

const isControl = (character: string) => codes.includes(character.charCodeAt(0));
const controlsIn = (text: string) =>
  [...text].filter((character) => isControl(character) && character !== "\n");

describe.each([...controls, ...sequences])("text with %s", (_, hostile) => {
  const text = `a${hostile}b`;

  it("[CL32] is one line without it, in results, tables, messages, failures and hints", () => {
    const { written, output } = record();
    output.print(text);
    output.printResult({ text }, text);
    output.printTable([{ name: "NAME", cell: () => text }], [{}]);
    output.info(text);
    output.warn(text, text);
    reportFailure(new BerthError("bad_request", text, { hint: text }), output, "berth list");
    expect(controlsIn(written.stdout + written.stderr)).toEqual([]);
    expect(written.stdout.split("\n")).toHaveLength(5);
    const marks = written.stderr.split("\n").map((line) => line.slice(0, 6));
    expect(marks.filter((mark) => mark === "error:")).toHaveLength(1);
    expect(marks).toHaveLength(6);
  });

  it("[CL32] is escaped in the JSON document, which still means the same", () => {
    const { written, output } = record(true);
    output.printJson({ [text]: [text] });
    expect(controlsIn(written.stdout)).toEqual([]);
    expect(JSON.parse(written.stdout)).toEqual({ [text]: [text] });
  });

  it("[CL32] is a line of our own in a terminal that is attached", () => {
    let shown = "";
    const stdout = { write: (bytes: string) => (shown += bytes) } as unknown as NodeJS.WriteStream;
    new LocalTerminal({ stdin: process.stdin, stdout }).printLine(text);
    expect(shown).toMatch(/^\r\n[^\r\n]*\r\n$/);
    expect(controlsIn(shown.slice(2, -2))).toEqual([]);
  });
});

it("[CL32] text in any language, and emoji of several parts, is printed as it is", () => {
  const { written, output } = record();
  const text = "Größe 日本語 שלום عربى 👩‍👩‍👧 e\u0301 \u00a0✓";
  output.print(text);
  expect(written.stdout).toBe(`${text}\n`);
});
