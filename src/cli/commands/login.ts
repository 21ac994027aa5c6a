/** `berth login`: stores the server's address and a working key, which is read from standard input or typed unseen. */
import { connect } from "../../client/index.ts";
import { flag, text } from "../args/option.ts";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { checkUrl, localUrl, removeCredentials, storeCredentials } from "../server/find-server.ts";

export const loginCommand = command({
  name: "login",
  summary: "Store the server's address and key for this user",
  about:
    "BERTH_URL and BERTH_KEY override it. Without a login, the server that you run on this machine is used.",
  options: {
    url: text("--url <address>", `Address of the server (default: ${localUrl})`),
    keyStdin: flag("--key-stdin", "Read the key from standard input"),
    forget: flag("--forget", "Remove the stored login"),
  },
  examples: [
    ["Type the key", "berth login --url https://berth.example.com"],
    ["From a script", "berth login --key-stdin < key"],
  ],
  async run(context, { options }) {
    const { output, env } = context;
    if (options.forget) {
      removeCredentials(env);
      return void output.printResult({ forgotten: true }, "Removed the login.");
    }
    const url = checkUrl(options.url ?? env.BERTH_URL ?? localUrl, "--url");
    const key = await readKey(context, options.keyStdin);
    if (!/^[\x21-\x7e]+$/.test(key)) {
      throw new Failure("The key must not contain spaces or characters outside of ASCII.", {
        hint: "Use the key exactly as the server printed it.",
        code: "bad_key",
      });
    }
    context.progress.show(`Asking ${url}`);
    const { total } = await connect({ url, key }).counts();
    const path = storeCredentials(env, { url, key });
    context.progress.end();
    const document = { url, storedIn: path, sandboxes: total };
    output.printResult(document, `Logged in to ${url}; stored in ${path}.`);
  },
});

const secretBytesMax = 4096;

async function readKey({ stdin, stderr }: Context, fromPipe: boolean): Promise<string> {
  if (fromPipe) return firstLine(await readPipe(stdin));
  if (stdin.isTTY !== true) {
    throw new Failure("There is no terminal to type the key on.", {
      hint: "Pass it on standard input: `berth login --key-stdin < file`.",
      code: "bad_usage",
    });
  }
  stderr.write("Key: ");
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
