/**
 * Owns how the runtime of our own processes in a sandbox is set: they make no thread once they run.
 * Does not own the environment of commands. container/entry.sh says the same to the agent of the platform.
 *
 * A sandbox whose commands have taken every process that it may have gives no thread to its agent either, and the
 * runtime aborts where it cannot have one. So it collects and compiles on the one thread that there is; without the
 * last stage of its compiler, which would hold that up for long. Measured, that costs nothing.
 */
export const oneThread = {
  BUN_JSC_numberOfGCMarkers: "1",
  BUN_JSC_useConcurrentGC: "0",
  BUN_JSC_useConcurrentJIT: "0",
  BUN_JSC_useFTLJIT: "0",
  BUN_JSC_useWarmUpMarkedBlocks: "0",
};
