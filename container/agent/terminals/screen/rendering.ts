/** Renders the output of one terminal: in slices, each size from where it was set, also after the ring overtook it. */
import type { TerminalSize } from "../../../../src/protocol/terminal.ts";
import type { Ring } from "../ring.ts";
import type { RenderWorker } from "./render-client.ts";
import { command } from "./render-protocol.ts";

/** A terminal's output and size, as the renderer needs them. */
export type ScreenSource = {
  readonly key: string;
  readonly size: TerminalSize;
  readonly ring: Ring;
};

/** What one worker has rendered of a terminal, in which size. */
type Progress = { by: RenderWorker; to: number; size: TerminalSize };

type CommandBody = Omit<Parameters<RenderWorker["request"]>[0], "terminal">;

/** Rendered in one command: some 10 ms of work. */
export const sliceBytes = 256 * 1024;
/** Size changes that are remembered. More of them within one ring of output cannot matter to anybody. */
const sizesMax = 256;

export class Rendering {
  readonly source: ScreenSource;
  /** The terminal's number in the commands to a worker. */
  readonly id: number;
  progress: Progress | undefined;
  /** A snapshot by a worker that has ended, and the offset that it stands for. */
  stored: { bytes: Uint8Array; to: number } | undefined;
  /** Rendering in the background is scheduled. */
  isScheduled = false;
  usedAt = 0;
  readonly #sizes: (TerminalSize & { from: number })[];

  constructor(source: ScreenSource, id: number) {
    this.source = source;
    this.id = id;
    this.#sizes = [{ from: 0, ...source.size }];
  }

  /** The offset up to which there is a screen. */
  renderedTo(worker: RenderWorker | undefined): number {
    const isCurrent = worker !== undefined && this.progress?.by === worker;
    return (isCurrent ? this.progress?.to : this.stored?.to) ?? 0;
  }

  recordSize(): void {
    const { ring, size } = this.source;
    if (this.#sizes.at(-1)?.from === ring.end) this.#sizes.pop();
    this.#sizes.push({ from: ring.end, ...size });
    // Output from before the ring is never rendered again.
    while ((this.#sizes[1]?.from ?? Number.POSITIVE_INFINITY) <= ring.start) this.#sizes.shift();
    if (this.#sizes.length > sizesMax) this.#sizes.splice(1, 1);
  }

  /** Renders up to `to` at least. False: the worker has ended, or has lost the terminal. */
  async renderTo(worker: RenderWorker, to: number): Promise<boolean> {
    if (this.progress?.by !== worker && !(await this.#restart(worker))) return false;
    const { ring } = this.source;
    while (this.progress !== undefined && this.progress.to < to) {
      const { to: from } = this.progress;
      if (from < ring.start) return this.#renderCopy(worker);
      const bytes = ring.read(from, Math.min(to, from + sliceBytes));
      if (!(await this.#write(worker, bytes))) return false;
    }
    return this.#applySize(worker);
  }

  /** Undefined: the worker has ended, or does not know this terminal. */
  async request(worker: RenderWorker, body: CommandBody): Promise<Uint8Array | undefined> {
    const response = await worker.request({ ...body, terminal: this.id });
    if (response?.isKnown) return response.bytes;
    this.progress = undefined;
    return undefined;
  }

  /** Starts from the stored snapshot if the ring continues it, else from the beginning of the ring. */
  async #restart(worker: RenderWorker): Promise<boolean> {
    const { stored, source } = this;
    this.stored = undefined;
    if (stored === undefined || stored.to < source.ring.start) {
      return this.#startAt(worker, source.ring.start);
    }
    if (!(await this.#startAt(worker, stored.to))) return false;
    for (const bytes of slicesOf(stored.bytes)) {
      if (!(await this.#succeeds(worker, { kind: command.write, bytes }))) return false;
    }
    return true;
  }

  #startAt(worker: RenderWorker, from: number): Promise<boolean> {
    const size = this.#sizeAt(from);
    this.progress = { by: worker, to: from, size };
    return this.#succeeds(worker, { kind: command.begin, ...size });
  }

  /** Output comes faster than it can be rendered, so this renders a copy of what there is now, which has an end. */
  async #renderCopy(worker: RenderWorker): Promise<boolean> {
    const { start, end } = this.source.ring;
    const copy = this.source.ring.read(start, end);
    if (!(await this.#startAt(worker, start))) return false;
    for (const bytes of slicesOf(copy)) if (!(await this.#write(worker, bytes))) return false;
    return this.#applySize(worker);
  }

  /** Appends bytes that follow what is rendered. */
  async #write(worker: RenderWorker, bytes: Uint8Array): Promise<boolean> {
    for (let done = 0; done < bytes.length; ) {
      if (!(await this.#applySize(worker)) || this.progress === undefined) return false;
      const untilNext = this.#nextSizeAt(this.progress.to) - this.progress.to;
      const part = bytes.subarray(done, Math.min(bytes.length, done + untilNext));
      if (!(await this.#succeeds(worker, { kind: command.write, bytes: part }))) return false;
      this.progress.to += part.length;
      done += part.length;
    }
    return true;
  }

  async #applySize(worker: RenderWorker): Promise<boolean> {
    if (this.progress === undefined) return false;
    const { cols, rows } = this.#sizeAt(this.progress.to);
    const { size } = this.progress;
    if (size.cols === cols && size.rows === rows) return true;
    this.progress.size = { cols, rows };
    return this.#succeeds(worker, { kind: command.resize, cols, rows });
  }

  async #succeeds(worker: RenderWorker, body: CommandBody): Promise<boolean> {
    return (await this.request(worker, body)) !== undefined;
  }

  #sizeAt(offset: number): TerminalSize {
    const size = this.#sizes.findLast(({ from }) => from <= offset) ?? this.#sizes[0];
    return size ?? this.source.size;
  }

  #nextSizeAt(offset: number): number {
    return this.#sizes.find(({ from }) => from > offset)?.from ?? Number.POSITIVE_INFINITY;
  }
}

function* slicesOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += sliceBytes) {
    yield bytes.subarray(start, start + sliceBytes);
  }
}
