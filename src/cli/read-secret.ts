/**
 * Owns reading a secret: a line of standard input, or what a person types, unseen.
 */
import type { Context } from "./context.ts";
import { Failure } from "./failure.ts";

const secretBytesMax = 4096;

export async function readSecret(
  { stdin, stderr }: Context,
  prompt: string,
  fromPipe: boolean,
): Promise<string> {
  if (fromPipe || stdin.isTTY !== true) {
    if (!fromPipe) {
      throw new Failure("there is no terminal to type the key on", {
        hint: "Pipe it: `berth login --key-stdin < file`.",
        code: "bad_usage",
      });
    }
    return first(await collected(stdin));
  }
  stderr.write(prompt);
  stdin.setRawMode(true);
  try {
    return await typed(stdin);
  } finally {
    stdin.setRawMode(false);
    stdin.pause();
    stderr.write("\n");
  }
}

async function collected(stdin: NodeJS.ReadStream): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of stdin) {
    pieces.push(Buffer.from(piece));
    bytes += piece.length;
    if (bytes > secretBytesMax) throw new Failure(`a key has at most ${secretBytesMax} bytes`);
  }
  return Buffer.concat(pieces).toString("utf8");
}

/** Raw: neither shown nor edited by the terminal, so the keys that people use are looked after here. */
async function typed(stdin: NodeJS.ReadStream): Promise<string> {
  let text = "";
  for await (const piece of stdin) {
    for (const key of Buffer.from(piece).toString("utf8")) {
      if (key === "\r" || key === "\n") return first(text);
      if (key === "\u0003" || (key === "\u0004" && text === "")) {
        throw new Failure("nothing was typed", { exitCode: 130, code: "interrupted" });
      }
      if (key === "\u007f" || key === "\b") text = text.slice(0, -1);
      else if (key === "\u0015") text = "";
      else if (key >= " ") text += key;
      if (text.length > secretBytesMax)
        throw new Failure(`a key has at most ${secretBytesMax} bytes`);
    }
  }
  return first(text);
}

function first(text: string): string {
  const [line = ""] = text.split(/\r?\n/);
  if (line.trim() === "") throw new Failure("no key was given", { code: "bad_key" });
  return line.trim();
}
