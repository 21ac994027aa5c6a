/**
 * Owns the kinds of options that commands are declared with, each with the type of what it gives.
 * Does not own parsing: program.ts hands them to the library.
 */
import { Failure } from "../failure.ts";

export type Option<T> = {
  /** As in help: `-p, --port <port>`. */
  flags: string;
  about: string;
  initial: T;
  choices?: readonly string[];
  /** Of an option with a value; `before` is what an earlier one of the same name gave. */
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

export function whole(
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
export function several(flags: string, about: string): Option<string[]> {
  return { flags, about, initial: [], read: (given, before) => [...before, given] };
}

export function badOption(flags: string, what: string): Failure {
  const name = /--[a-z-]+/.exec(flags)?.[0] ?? flags;
  return new Failure(`${name} ${what}`, { code: "bad_usage" });
}
