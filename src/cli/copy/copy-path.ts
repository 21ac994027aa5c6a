/**
 * Parses the two paths of a copy: `path` here, `:path` in the checkout's sandbox, `<id>:path` in that sandbox.
 */
export type CopyPath = { isRemote: boolean; sandbox: string | undefined; path: string };

export function parseCopyPath(text: string): CopyPath {
  const [, sandbox = "", path] = /^([a-z][a-z0-9]{23})?:(.*)$/s.exec(text) ?? [];
  if (path === undefined) return { isRemote: false, sandbox: undefined, path: text };
  return {
    isRemote: true,
    sandbox: sandbox === "" ? undefined : sandbox,
    path: path === "" ? "." : path,
  };
}
