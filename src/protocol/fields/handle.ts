/**
 * Ids of processes, sessions and terminals. A generated id contains the incarnation of the container, so it never
 * refers to something in a later one. The agent loads this file, so it does not use the schema library.
 */

const kinds = { process: "p", session: "s", terminal: "t" } as const;

export type HandleKind = keyof typeof kinds;

const randomChars = 12;
const incarnationTagChars = 8;
const generatedPattern = /^[pst][a-z0-9]{12}-([a-z0-9]{8})$/;

/** Callers may choose ids of sessions and terminals. Names of processes have this form too. */
export const handlePattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
export const handleMessage =
  "must be 1 to 64 letters, digits, _ or -, beginning with a letter or digit";

export function generateHandle(
  kind: HandleKind,
  incarnation: string,
  randomId: (length: number) => string,
): string {
  return `${kinds[kind]}${randomId(randomChars)}-${incarnationTag(incarnation)}`;
}

/** Whether Berth generated the id, judged by its form. */
export function isGenerated(handle: string): boolean {
  return generatedPattern.test(handle);
}

/** Whether the id belongs to an incarnation other than the current one; `incarnation` is undefined if there is none. */
export function isOfOtherIncarnation(handle: string, incarnation: string | undefined): boolean {
  const tag = generatedPattern.exec(handle)?.[1];
  return tag !== undefined && (incarnation === undefined || tag !== incarnationTag(incarnation));
}

/** The last characters of the incarnation's id, which the agent generates at boot. */
function incarnationTag(incarnation: string): string {
  return incarnation.slice(-incarnationTagChars);
}
