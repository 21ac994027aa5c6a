/** Tells errors of the kernel apart by their codes, such as ENOENT. */

export function hasCode(thrown: unknown, ...codes: string[]): boolean {
  return thrown instanceof Error && "code" in thrown && codes.includes(String(thrown.code));
}

/** Undefined: `work` failed with one of these codes of the kernel. */
export function catchCodes<T>(codes: string[], work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (hasCode(error, ...codes)) return undefined;
    throw error;
  }
}

/** False: `work` failed with one of these codes of the kernel. */
export function succeedsUnless(codes: string[], work: () => void): boolean {
  const done = () => {
    work();
    return true;
  };
  return catchCodes(codes, done) ?? false;
}
