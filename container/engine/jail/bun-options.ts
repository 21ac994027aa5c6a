/**
 * Options of Bun that keep Berth's own processes in a sandbox from creating threads after their start.
 *
 * A sandbox whose commands have used up its process limit has no thread left for its agent either, and Bun aborts
 * when it cannot create one. With these options it collects garbage and compiles on its only thread, without the last
 * compiler stage, which would block that thread for long. Measurements show no cost. container/entry.sh sets the same
 * options on the platform.
 */
export const singleThreadedBun = {
  BUN_JSC_numberOfGCMarkers: "1",
  BUN_JSC_useConcurrentGC: "0",
  BUN_JSC_useConcurrentJIT: "0",
  BUN_JSC_useFTLJIT: "0",
  BUN_JSC_useWarmUpMarkedBlocks: "0",
};
