/** The launcher's flags, environment variables and help, and the messages for invalid ones. */
import { relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { root } from "./paths.js";
import { UserError } from "./program.js";

/** @typedef {{ port: number, host: string, data: string, help: boolean }} Options */

const flags = {
  port: { env: "BERTH_PORT", fallback: "8787" },
  host: { env: "BERTH_HOST", fallback: "127.0.0.1" },
  data: { env: "BERTH_DATA", fallback: "" },
};

/** @type {(command: string, data: string) => string} */
export function help(command, data) {
  return `Serves Berth on this machine: sandboxes for agents, CI jobs and people.

  ${withFlags(command)} [--port N] [--host ADDRESS] [--data FOLDER]

  --port N        the port to listen on, 0 for any       BERTH_PORT   8787
  --host ADDRESS  the address to listen on               BERTH_HOST   127.0.0.1
  --data FOLDER   where all data is stored               BERTH_DATA   ${relative(root, data) === ".berth" ? ".berth" : data}
  --help          print this help

A flag overrides the environment. When it is ready, it prints its address in one line on stdout.
Ctrl-C or SIGTERM ends it and every process in its sandboxes; files are kept.

Examples
  ${command}
  ${withFlags(command)} --port 9000 --data /var/lib/berth
  BERTH_PORT=0 ${command}
`;
}

/**
 * npm passes on only what follows `--`.
 * @param {string} command
 */
function withFlags(command) {
  return command.startsWith("npm ") ? `${command} --` : command;
}

/**
 * @param {string[]} args
 * @param {Record<string, string | undefined>} env
 * @param {string} command  for hints
 * @param {string} defaultData
 * @returns {Options}
 */
export function parseOptions(args, env, command, defaultData) {
  refuseFlagsKeptByNpm(args, env, command);
  const given = flagsOf(args, command);
  /** @param {keyof typeof flags} name */
  const pick = (name) => {
    const { env: variable, fallback } = flags[name];
    const flag = given.get(name);
    if (flag !== undefined) return { value: flag, from: `\`--${name}\`` };
    const fromEnv = env[variable];
    return fromEnv
      ? { value: fromEnv, from: variable }
      : { value: fallback, from: `\`--${name}\`` };
  };
  const data = pick("data");
  return {
    port: portOf(pick("port")),
    host: hostOf(pick("host")),
    // A path that is given is relative to the working folder.
    data: data.value === "" ? defaultData : resolve(data.value),
    help: given.has("help"),
  };
}

/** @type {(args: string[], command: string) => Map<string, string>} */
function flagsOf(args, command) {
  const hint = `See \`${withFlags(command)} --help\`.`;
  const { tokens } = parseArgs({
    args,
    strict: false,
    tokens: true,
    options: {
      port: { type: "string" },
      host: { type: "string" },
      data: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  /** @type {Map<string, string>} */
  const given = new Map();
  for (const token of tokens) {
    if (token.kind === "positional")
      throw new UserError(`Unknown argument \`${token.value}\`. ${hint}`);
    if (token.kind !== "option") continue;
    if (token.name === "help") {
      given.set("help", "");
      continue;
    }
    if (!Object.hasOwn(flags, token.name))
      throw new UserError(`Unknown flag \`${token.rawName}\`. ${hint}`);
    if (given.has(token.name)) throw new UserError(`\`--${token.name}\` is given twice.`);
    // In `--data --port 1` the value of `--data` is missing.
    if (!token.value || (!token.inlineValue && token.value.startsWith("--"))) {
      throw new UserError(`\`--${token.name}\` needs a value. ${hint}`);
    }
    given.set(token.name, token.value);
  }
  return given;
}

/**
 * npm silently takes flags before `--` for itself, so they would have no effect.
 * @param {string[]} args
 * @param {Record<string, string | undefined>} env
 * @param {string} command
 */
function refuseFlagsKeptByNpm(args, env, command) {
  for (const name of Object.keys(flags)) {
    const configured = env[`npm_config_${name}`];
    if (configured === undefined || args.some((arg) => arg.startsWith(`--${name}`))) continue;
    // Depending on its version, npm takes the value too or passes it on as an argument.
    const value = configured === "true" ? (args[0] ?? "…") : configured;
    throw new UserError(
      `npm has taken \`--${name}\` for itself. Run \`${withFlags(command)} --${name} ${value}\`.`,
    );
  }
}

/** @param {{ value: string, from: string }} option */
function portOf({ value, from }) {
  const port = /^\d{1,5}$/.test(value) ? Number(value) : Number.NaN;
  if (!(port <= 65535))
    throw new UserError(`${from} must be a number from 0 to 65535, not "${value}".`);
  return port;
}

/** @param {{ value: string, from: string }} option */
function hostOf({ value, from }) {
  if (/^[A-Za-z0-9._:-]{1,253}$/.test(value)) return value;
  throw new UserError(`${from} must be an address or a host name, not "${value}".`);
}
