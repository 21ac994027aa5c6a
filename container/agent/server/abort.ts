/** Ends long work when its signal is aborted. */

/** Resolves with `over`. `end` is called once the signal is aborted, also if it was before. */
export async function endOnAbort(
  over: Promise<void>,
  signal: AbortSignal,
  end: () => void,
): Promise<void> {
  signal.addEventListener("abort", end);
  if (signal.aborted) end();
  await over;
  signal.removeEventListener("abort", end);
}
