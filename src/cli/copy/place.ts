/**
 * Owns how the two places of a copy are written: `path` here, `:path` in the sandbox, `<id>:path` in that one.
 */
export type Place = { isRemote: boolean; sandbox: string | undefined; path: string };

export function readPlace(text: string): Place {
  const [, sandbox = "", path] = /^([a-z][a-z0-9]{23})?:(.*)$/s.exec(text) ?? [];
  if (path === undefined) return { isRemote: false, sandbox: undefined, path: text };
  return {
    isRemote: true,
    sandbox: sandbox === "" ? undefined : sandbox,
    path: path === "" ? "." : path,
  };
}
