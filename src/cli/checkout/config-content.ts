/** What a configuration file may contain, and how its text is checked. */
import { extname } from "node:path";
import { parse as parseToml } from "smol-toml";
import { z } from "zod";
import { portNumberSchema } from "../../protocol/port.ts";
import { createCallSchema } from "../../protocol/sandbox.ts";
import { Failure } from "../failure.ts";

const { image, size, env, cwd, network, idleTimeoutMs, onIdle, maxLifetimeMs } =
  createCallSchema.shape;

const setupCommandsMax = 64;
const portsMax = 32;

const configSchema = z.strictObject({
  image,
  size,
  cwd,
  env: env.unwrap().optional(),
  network: network.unwrap().optional(),
  idleTimeoutMs: idleTimeoutMs.unwrap().optional(),
  onIdle: onIdle.unwrap().optional(),
  maxLifetimeMs,
  /** Commands run once, in order, on the checkout's files, before the sandbox is used. */
  setup: z.array(z.string().min(1)).max(setupCommandsMax).optional(),
  /** Whether everybody has a sandbox of their own (the default for people) or all share one (the default in CI). */
  scope: z.enum(["personal", "shared"]).optional(),
  /** The ports that `berth open` opens. */
  ports: z.array(portNumberSchema).max(portsMax).optional(),
});

export type Config = z.infer<typeof configSchema>;

export function parseConfig(file: string, text: string): Config {
  return check(file, parse(file, text));
}

function parse(file: string, text: string): unknown {
  const isToml = extname(file) === ".toml";
  try {
    return isToml ? parseToml(text) : JSON.parse(text);
  } catch (error) {
    const [reason] = (error as Error).message.split("\n");
    throw new Failure(`${file} is not valid ${isToml ? "TOML" : "JSON"}: ${reason}.`, {
      code: "bad_config",
      cause: error,
    });
  }
}

function check(file: string, content: unknown): Config {
  const read = configSchema.safeParse(content);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new Failure(`${file}: ${issue === undefined ? "invalid" : describeIssue(issue)}.`, {
    hint: `The possible fields are ${Object.keys(configSchema.shape).join(", ")}.`,
    code: "bad_config",
  });
}

function describeIssue(issue: z.core.$ZodIssue): string {
  if (issue.code === "unrecognized_keys") {
    const path = issue.path.length === 0 ? "" : `${issue.path.join(".")}: `;
    return `${path}unknown field ${issue.keys.map((key) => `\`${key}\``).join(", ")}`;
  }
  return issue.path.length === 0 ? issue.message : `${issue.path.join(".")}: ${issue.message}`;
}
