/** Waits until a condition becomes true, with a limit that only a hang can reach. */
const pollMs = 10;

export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  limitMs = 60_000,
): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`this did not become true: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
