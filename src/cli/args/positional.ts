/**
 * Declares the arguments without a name that commands take.
 */
export type Positional<T> = {
  /** As help shows it: `<port>`, `[sandbox]`, `<command...>`. */
  form: string;
  about: string;
  choices?: readonly string[];
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
