/**
 * Reads a secret: from standard input, or typed without being shown.
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
      throw new Failure("There is no terminal to type the key on.", {
        hint: "Pass it on standard input: `berth login --key-stdin < file`.",
        code: "bad_usage",
      });
    }
    return firstLine(await readPipe(stdin));
  }
  stderr.write(prompt);
  stdin.setRawMode(true);
  try {
    return await readTyped(stdin);
  } finally {
    stdin.setRawMode(false);
    stdin.pause();
    stderr.write("\n");
  }
}

async function readPipe(stdin: NodeJS.ReadStream): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk));
    bytes += chunk.length;
    if (bytes > secretBytesMax) throw new Failure(`A key has at most ${secretBytesMax} bytes.`);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** The terminal is in raw mode: it shows and edits nothing, so this handles the usual keys. */
async function readTyped(stdin: NodeJS.ReadStream): Promise<string> {
  let text = "";
  for await (const chunk of stdin) {
    for (const key of Buffer.from(chunk).toString("utf8")) {
      if (key === "\r" || key === "\n") return firstLine(text);
      if (key === "\u0003" || (key === "\u0004" && text === "")) {
        throw new Failure("No key was typed.", { exitCode: 130, code: "interrupted" });
      }
      if (key === "\u007f" || key === "\b") text = text.slice(0, -1);
      else if (key === "\u0015") text = "";
      else if (key >= " ") text += key;
      if (text.length > secretBytesMax)
        throw new Failure(`A key has at most ${secretBytesMax} bytes.`);
    }
  }
  return firstLine(text);
}

function firstLine(text: string): string {
  const [line = ""] = text.split(/\r?\n/);
  if (line.trim() === "") throw new Failure("No key was given.", { code: "bad_key" });
  return line.trim();
}
