/** Declares options and arguments of commands, each with the type of its value. See program.ts for how they are parsed. */
import { Failure } from "../failure.ts";

export type Option<T> = {
  /** As in help: `-p, --port <port>`. */
  flags: string;
  about: string;
  initial: T;
  choices?: readonly string[];
  /** Parses the value of an option that takes one; `before` is the value of an earlier occurrence. */
  read?(text: string, before: T): T;
};

export function flag(flags: string, about: string): Option<boolean> {
  return { flags, about, initial: false };
}

/** `--no-…`: true unless it is given. */
export function notFlag(flags: string, about: string): Option<boolean> {
  return { flags, about, initial: true };
}

export function text(flags: string, about: string): Option<string | undefined> {
  return { flags, about, initial: undefined, read: (given) => given };
}

export function choice<const C extends readonly string[]>(
  flags: string,
  about: string,
  choices: C,
): Option<C[number] | undefined> {
  return {
    flags,
    about,
    choices,
    initial: undefined,
    read: (given) => {
      if (!choices.includes(given)) {
        throw badOption(flags, `must be one of ${choices.join(", ")}, not '${given}'`);
      }
      return given;
    },
  };
}

type Bounds = { min: number; max: number };

export function wholeNumber(
  flags: string,
  about: string,
  bounds: Bounds,
): Option<number | undefined> {
  return { flags, about, initial: undefined, read: (given) => parseWhole(flags, given, bounds) };
}

/** A number of seconds, read as milliseconds. */
export function seconds(flags: string, about: string, bounds: Bounds): Option<number | undefined> {
  const read = (given: string) => parseWhole(flags, given, bounds) * 1000;
  return { flags, about, initial: undefined, read };
}

function parseWhole(flags: string, given: string, { min, max }: Bounds): number {
  const value = Number(given);
  if (/^\d+$/.test(given) && value >= min && value <= max) return value;
  throw badOption(flags, `must be a whole number from ${min} to ${max}`);
}

export const waitOption = seconds(
  "--wait <seconds>",
  "How long to wait for the lease (default: 3600)",
  { min: 0, max: 60 * 60 },
);

export function repeatable(flags: string, about: string): Option<string[]> {
  return { flags, about, initial: [], read: (given, before) => [...before, given] };
}

/** `problem` continues the name of the option: "must be a number". */
export function badOption(flags: string, problem: string): Failure {
  const name = /--[a-z-]+/.exec(flags)?.[0] ?? flags;
  return new Failure(`\`${name}\` ${problem}.`, { code: "bad_usage" });
}

export type Positional<T> = {
  /** As help shows it: `<port>`, `[sandbox]`, `<command...>`. */
  form: string;
  about: string;
  /** Carries the type of the value. */
  none: T;
};

export function required(name: string, about: string): Positional<string> {
  return { form: `<${name}>`, about, none: "" };
}

export function optional(name: string, about: string): Positional<string | undefined> {
  return { form: `[${name}]`, about, none: undefined };
}

/** All following arguments; at least one. */
export function rest(name: string, about: string): Positional<string[]> {
  return { form: `<${name}...>`, about, none: [] };
}

export function optionalRest(name: string, about: string): Positional<string[]> {
  return { form: `[${name}...]`, about, none: [] };
}
