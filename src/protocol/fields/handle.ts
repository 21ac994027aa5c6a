/**
 * Owns the ids of what runs in a sandbox. One that Berth minted names the life of the container that it belongs to,
 * so that it never means something of a later one.
 * Free of the library of schemas: the agent takes this file too.
 */

const kinds = { process: "p", session: "s", terminal: "t" } as const;

export type HandleKind = keyof typeof kinds;

const randomChars = 12;
const lifeChars = 8;
const minted = /^[pst][a-z0-9]{12}-([a-z0-9]{8})$/;

/** Sessions and terminals may also be called as their maker likes; a process has such a name beside its id. */
export const handlePattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
export const handleWords =
  "must be 1 to 64 letters, digits, _ or -, beginning with a letter or digit";

export function generateHandle(
  kind: HandleKind,
  incarnation: string,
  draw: (length: number) => string,
): string {
  return `${kinds[kind]}${draw(randomChars)}-${lifeTag(incarnation)}`;
}

/** Whether it has the form of those that Berth gives. */
export function isGenerated(handle: string): boolean {
  return minted.test(handle);
}

/** Whether it can only mean something of another life than this one, or of one that has ended. */
export function isOfOtherIncarnation(handle: string, incarnation: string | undefined): boolean {
  const tag = minted.exec(handle)?.[1];
  return tag !== undefined && (incarnation === undefined || tag !== lifeTag(incarnation));
}

/** The end of what the agent drew at boot. */
function lifeTag(incarnation: string): string {
  return incarnation.slice(-lifeChars);
}
