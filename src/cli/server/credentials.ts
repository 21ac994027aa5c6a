/** The file in which `berth login` stores the server's address and key, readable by its owner only. */
import { chmodSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { z } from "zod";
import { Failure } from "../failure.ts";
import { parseJson, writeJsonFile } from "../state/json-file.ts";

const credentialsSchema = z.strictObject({ url: z.url(), key: z.string().min(1) });

type Credentials = z.infer<typeof credentialsSchema>;

function credentialsPath(env: NodeJS.ProcessEnv): string {
  const config = env.XDG_CONFIG_HOME;
  const base =
    config === undefined || config === "" ? join(env.HOME ?? homedir(), ".config") : config;
  return join(base, "berth", "login.json");
}

export function readCredentials(env: NodeJS.ProcessEnv): Credentials | undefined {
  const path = credentialsPath(env);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new Failure(`Cannot read ${path}: ${(error as Error).message}.`, { cause: error });
  }
  const read = credentialsSchema.safeParse(parseJson(text));
  if (read.success) return read.data;
  throw new Failure(`${path} does not contain a valid login.`, {
    hint: "Run `berth login` again.",
  });
}

export function storeCredentials(env: NodeJS.ProcessEnv, credentials: Credentials): string {
  const path = credentialsPath(env);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeJsonFile(path, credentials, 0o600);
  chmodSync(path, 0o600);
  return path;
}

export function removeCredentials(env: NodeJS.ProcessEnv): void {
  rmSync(credentialsPath(env), { force: true });
}
