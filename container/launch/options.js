/**
 * Owns what a person may say to the launcher: flags, environment, help, and the line for what is wrong.
 * Does not own whether the machine can do it: see data-folder.js, address.js and descriptors.js.
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { root } from "./places.js";
import { Refusal } from "./say.js";

/** @typedef {{ port: number, host: string, data: string, help: boolean }} Options */

/** @type {Record<string, { env: string, fallback: string }>} */
const known = {
  port: { env: "BERTH_PORT", fallback: "8787" },
  host: { env: "BERTH_HOST", fallback: "127.0.0.1" },
  data: { env: "BERTH_DATA", fallback: ".berth" },
};

/** @param {string} command */
export function help(command) {
  return `Serves Berth on this machine: sandboxes for agents, CI jobs and people.

  ${command} -- [--port N] [--host ADDRESS] [--data FOLDER]

  --port N        where to answer, 0 for any free port   BERTH_PORT   8787
  --host ADDRESS  the address to answer on               BERTH_HOST   127.0.0.1
  --data FOLDER   where everything is kept               BERTH_DATA   .berth
  --help          this

A flag wins over the environment. When it serves, one line on stdout says where.
Ctrl-C or TERM ends it and every process in its sandboxes; files stay.

Examples
  ${command}
  ${command} -- --port 9000 --data /var/lib/berth
  BERTH_PORT=0 ${command}
`;
}

/**
 * @param {string[]} args
 * @param {Record<string, string | undefined>} env
 * @param {string} command  how the person began, for the hint
 * @returns {Options}
 */
export function parseOptions(args, env, command) {
  refuseWhatNpmTook(args, env, command);
  const given = flagsOf(args, command);
  /** @param {string} name */
  const pick = (name) => {
    const { env: variable, fallback } = /** @type {{ env: string, fallback: string }} */ (
      known[name]
    );
    const flag = given.get(name);
    if (flag !== undefined) return { value: flag, from: `--${name}` };
    const fromEnv = env[variable];
    return fromEnv ? { value: fromEnv, from: variable } : { value: fallback, from: `--${name}` };
  };
  const data = pick("data");
  return {
    port: portOf(pick("port")),
    host: hostOf(pick("host")),
    // The default stands beside the sources; what a person writes is relative to where they are.
    data: data.value === known.data?.fallback ? resolve(root, data.value) : resolve(data.value),
    help: given.has("help"),
  };
}

/**
 * @param {string[]} args
 * @param {string} command
 */
function flagsOf(args, command) {
  const hint = `see ${command} -- --help`;
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
    if (token.kind === "positional") throw new Refusal(`unknown argument ${token.value}; ${hint}`);
    if (token.kind !== "option") continue;
    if (token.name === "help") {
      given.set("help", "");
      continue;
    }
    if (!Object.hasOwn(known, token.name))
      throw new Refusal(`unknown flag ${token.rawName}; ${hint}`);
    if (given.has(token.name)) throw new Refusal(`--${token.name} is given twice`);
    // `--data --port 1`: a flag in the place of a value is a value forgotten.
    if (!token.value || (!token.inlineValue && token.value.startsWith("--"))) {
      throw new Refusal(`--${token.name} needs a value; ${hint}`);
    }
    given.set(token.name, token.value);
  }
  return given;
}

/**
 * npm keeps flags that stand before `--` for itself, and the person would wonder.
 * @param {string[]} args
 * @param {Record<string, string | undefined>} env
 * @param {string} command
 */
function refuseWhatNpmTook(args, env, command) {
  for (const name of Object.keys(known)) {
    const taken = env[`npm_config_${name}`];
    if (taken === undefined || args.some((arg) => arg.startsWith(`--${name}`))) continue;
    // Depending on its version npm takes the value too, or leaves it as an argument.
    const value = taken === "true" ? (args[0] ?? "…") : taken;
    throw new Refusal(`npm kept --${name} for itself; write ${command} -- --${name} ${value}`);
  }
}

/** @param {{ value: string, from: string }} said */
function portOf({ value, from }) {
  const port = /^\d{1,5}$/.test(value) ? Number(value) : Number.NaN;
  if (!(port <= 65535))
    throw new Refusal(`${from} must be a number from 0 to 65535, not "${value}"`);
  return port;
}

/** @param {{ value: string, from: string }} said */
function hostOf({ value, from }) {
  if (/^[A-Za-z0-9._:-]{1,253}$/.test(value)) return value;
  throw new Refusal(`${from} must be an address or a host name, not "${value}"`);
}
