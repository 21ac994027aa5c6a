/**
 * Renders the output of one terminal up to an offset: in slices, with each size where it applies, also when the ring
 * has overtaken the rendering. Each function returns whether it finished: false if the worker has ended or has lost the
 * terminal.
 */
import type { RenderWorker } from "./render-client.ts";
import { command } from "./render-protocol.ts";
import type { RenderState } from "./render-state.ts";

/** Rendered in one command: some 10 ms of work. */
export const sliceBytes = 256 * 1024;

/** Renders up to `to` at least. */
export async function renderTo(
  worker: RenderWorker,
  state: RenderState,
  to: number,
): Promise<boolean> {
  if (state.rendering?.by !== worker && !(await restart(worker, state))) return false;
  const { source } = state;
  while (state.rendering !== undefined && state.rendering.to < to) {
    const { to: from } = state.rendering;
    if (from < source.start) return renderCopy(worker, state);
    const bytes = source.read(from, Math.min(to, from + sliceBytes));
    if (!(await write(worker, state, bytes))) return false;
  }
  return applySize(worker, state);
}

/** Starts from the stored snapshot if the ring continues it, else from the beginning of the ring. */
async function restart(worker: RenderWorker, state: RenderState): Promise<boolean> {
  const { stored, source } = state;
  state.stored = undefined;
  if (stored === undefined || stored.to < source.start) return startAt(worker, state, source.start);
  if (!(await startAt(worker, state, stored.to))) return false;
  for (const bytes of slicesOf(stored.bytes)) {
    if (!(await succeeds(worker, state, { kind: command.write, bytes }))) return false;
  }
  return true;
}

async function startAt(worker: RenderWorker, state: RenderState, from: number): Promise<boolean> {
  const size = state.sizeAt(from);
  state.rendering = { by: worker, from, to: from, size };
  return succeeds(worker, state, { kind: command.begin, ...size });
}

/** Output comes faster than it can be rendered, so this renders a copy of what there is now, which has an end. */
async function renderCopy(worker: RenderWorker, state: RenderState): Promise<boolean> {
  const { start, end } = state.source;
  const copy = state.source.read(start, end).slice();
  if (!(await startAt(worker, state, start))) return false;
  for (const bytes of slicesOf(copy)) if (!(await write(worker, state, bytes))) return false;
  return applySize(worker, state);
}

/** Appends bytes that follow what is rendered. */
async function write(
  worker: RenderWorker,
  state: RenderState,
  bytes: Uint8Array,
): Promise<boolean> {
  for (let done = 0; done < bytes.length; ) {
    if (!(await applySize(worker, state)) || state.rendering === undefined) return false;
    const untilNext = state.nextSizeAt(state.rendering.to) - state.rendering.to;
    const part = bytes.subarray(done, Math.min(bytes.length, done + untilNext));
    if (!(await succeeds(worker, state, { kind: command.write, bytes: part }))) return false;
    state.rendering.to += part.length;
    done += part.length;
  }
  return true;
}

async function applySize(worker: RenderWorker, state: RenderState): Promise<boolean> {
  if (state.rendering === undefined) return false;
  const { cols, rows } = state.sizeAt(state.rendering.to);
  const { size } = state.rendering;
  if (size.cols === cols && size.rows === rows) return true;
  state.rendering.size = { cols, rows };
  return succeeds(worker, state, { kind: command.resize, cols, rows });
}

type CommandBody = Omit<Parameters<RenderWorker["request"]>[0], "terminal">;

async function succeeds(
  worker: RenderWorker,
  state: RenderState,
  body: CommandBody,
): Promise<boolean> {
  return (await request(worker, state, body)) !== undefined;
}

/** Undefined: the worker has ended, or does not know this terminal. */
export async function request(
  worker: RenderWorker,
  state: RenderState,
  body: CommandBody,
): Promise<Uint8Array | undefined> {
  const response = await worker.request({ ...body, terminal: state.id });
  if (response?.isKnown) return response.bytes;
  state.rendering = undefined;
  return undefined;
}

function* slicesOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += sliceBytes) {
    yield bytes.subarray(start, start + sliceBytes);
  }
}
