/**
 * Owns waiting for something that becomes true by itself, with a limit that only a hang can reach.
 * Does not own what is waited for.
 */
const pollMs = 10;

export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  limitMs = 60_000,
): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
