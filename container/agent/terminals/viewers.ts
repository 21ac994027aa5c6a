/** Tracks the viewers of a terminal, and decides how fast its output may be read: at the pace of the fastest one. */
import { limits } from "../../../src/protocol/limits.ts";
import type { TerminalSize } from "../../../src/protocol/terminal.ts";
import type { Exit } from "../supervision/process-tree.ts";
import { ResumeWindows } from "./resume-window.ts";
import type { Ring } from "./ring.ts";
import type { Viewer } from "./viewer.ts";

/** How far the fastest viewer may lag: enough to keep it busy, little to wait for after Ctrl-C. */
const lagBytesMax = limits.terminalSocketBytes;
/** One read may return this much after it was allowed. */
const readBytesMax = 512 * 1024;

export class Viewers {
  readonly #ring: Ring;
  readonly #onChange: () => void;
  readonly #viewers = new Set<Viewer>();
  readonly #resumeWindows: ResumeWindows;
  #cutOffTimer: Timer | undefined;
  #lagTimer: Timer | undefined;

  /** `onChange` is called when the result of `mayRead` may have changed. */
  constructor(ring: Ring, onChange: () => void) {
    this.#ring = ring;
    this.#onChange = onChange;
    this.#resumeWindows = new ResumeWindows(onChange);
  }

  get size(): number {
    return this.#viewers.size;
  }

  /** False also when the terminal has all its viewers, but this one replaces an earlier connection of its own. */
  isFullFor(id: string | undefined): boolean {
    return this.#viewers.size >= limits.terminalViewersMax && this.#connectionOf(id) === undefined;
  }

  mayRead(): boolean {
    const { end } = this.#ring;
    const mustStay = end + readBytesMax - limits.terminalRingBytes;
    let isFollowed = false;
    for (const viewer of this.#viewers) isFollowed ||= this.#keepsUp(viewer);
    if (isFollowed) this.#resumeWindows.yieldTo(mustStay);
    if (this.#resumeWindows.floor < mustStay) return false;
    if (this.#viewers.size === 0) return true;
    return isFollowed && !this.#mustWaitForLeader(mustStay);
  }

  /** `after`: the offset up to which the viewer has the output already. */
  join(viewer: Viewer, after: number | undefined): void {
    const earlier = this.#connectionOf(viewer.id);
    if (earlier !== undefined) {
      this.#viewers.delete(earlier);
      earlier.replace();
    }
    this.#resumeWindows.resume(viewer.id, after);
    this.#viewers.add(viewer);
  }

  leave(viewer: Viewer, { mayReturn }: { mayReturn: boolean }): void {
    if (!this.#viewers.delete(viewer)) return;
    if (mayReturn) this.#resumeWindows.open(viewer);
    if (this.#viewers.size === 0) {
      clearTimeout(this.#cutOffTimer);
      clearTimeout(this.#lagTimer);
    }
    this.#onChange();
  }

  pump(): void {
    for (const viewer of this.#viewers) viewer.pump();
  }

  sendSize({ cols, rows }: TerminalSize, except: Viewer | undefined): void {
    for (const viewer of this.#viewers) {
      if (viewer !== except) viewer.send({ type: "resize", cols, rows });
    }
  }

  /** Sends the rest of the output and the exit, and cuts off viewers that do not take them in time. */
  finish(exit: Exit): void {
    this.#resumeWindows.clear();
    clearTimeout(this.#lagTimer);
    for (const viewer of this.#viewers) viewer.finish(exit);
    if (this.#viewers.size === 0) return;
    this.#cutOffTimer = setTimeout(() => {
      for (const viewer of this.#viewers) viewer.cutOff();
    }, limits.terminalResumeMs);
  }

  #connectionOf(id: string | undefined): Viewer | undefined {
    return id === undefined ? undefined : [...this.#viewers].find((viewer) => viewer.id === id);
  }

  #keepsUp({ position }: Viewer): boolean {
    return position !== undefined && this.#ring.end - position <= lagBytesMax;
  }

  /** True while the viewer that acknowledged most is about to be overtaken by others and has lag budget left. */
  #mustWaitForLeader(mustStay: number): boolean {
    let leader: { viewer: Viewer; acked: number } | undefined;
    for (const viewer of this.#viewers) {
      const acked = viewer.ackedOffset;
      if (acked === undefined || acked < this.#ring.start) continue;
      const isAhead = leader === undefined || acked > leader.acked;
      if (isAhead || (acked === leader?.acked && !this.#keepsUp(viewer)))
        leader = { viewer, acked };
    }
    if (leader === undefined || leader.acked >= mustStay) return false;
    if (this.#keepsUp(leader.viewer)) return false;
    const leftMs = leader.viewer.lagBudget.spend();
    if (leftMs === 0) return false;
    clearTimeout(this.#lagTimer);
    this.#lagTimer = setTimeout(this.#onChange, leftMs + 1);
    return true;
  }
}
