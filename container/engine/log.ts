/**
 * Owns the engine's log: one JSON line for each event, on stderr.
 * Does not own what is worth a line; secrets and environments never are.
 */
export function log(event: string, facts: Record<string, unknown> = {}): void {
  process.stderr.write(`${JSON.stringify({ at: new Date().toISOString(), event, ...facts })}\n`);
}

export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
