/**
 * Owns the kinds of arguments without a name that commands are declared with.
 */
export type Positional<T> = {
  /** As in help: `<port>`, `[sandbox]`, `<command...>`. */
  form: string;
  about: string;
  choices?: readonly string[];
  /** Ties the type of what it gives to the declaration. */
  none: T;
};

export function required(name: string, about: string): Positional<string> {
  return { form: `<${name}>`, about, none: "" };
}

export function optional(name: string, about: string): Positional<string | undefined> {
  return { form: `[${name}]`, about, none: undefined };
}

/** All that follow; at least one. */
export function rest(name: string, about: string): Positional<string[]> {
  return { form: `<${name}...>`, about, none: [] };
}

export function optionalRest(name: string, about: string): Positional<string[]> {
  return { form: `[${name}...]`, about, none: [] };
}
