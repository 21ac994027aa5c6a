/**
 * Declares options of commands, each with the type of its value. See program.ts for how commander parses them.
 */
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

export function wholeNumber(
  flags: string,
  about: string,
  bounds: { min: number; max: number },
): Option<number | undefined> {
  return {
    flags,
    about,
    initial: undefined,
    read: (given) => {
      const value = Number(given);
      if (!/^\d+$/.test(given) || value < bounds.min || value > bounds.max) {
        throw badOption(flags, `must be a whole number from ${bounds.min} to ${bounds.max}`);
      }
      return value;
    },
  };
}

/** May be given several times. */
export function repeatable(flags: string, about: string): Option<string[]> {
  return { flags, about, initial: [], read: (given, before) => [...before, given] };
}

/** `problem` continues the name of the option: "must be a number". */
export function badOption(flags: string, problem: string): Failure {
  const name = /--[a-z-]+/.exec(flags)?.[0] ?? flags;
  return new Failure(`\`${name}\` ${problem}.`, { code: "bad_usage" });
}
