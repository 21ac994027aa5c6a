/** Sends one viewer the output of a terminal, and a snapshot of the screen where output is lost. */
import type { FromTerminal } from "../../../src/protocol/internal/terminal-frames.ts";
import { limits } from "../../../src/protocol/limits.ts";
import type { AgentSocket } from "../server/socket.ts";
import type { Exit } from "../supervision/process-tree.ts";
import type { Terminal } from "./terminal.ts";

export type ViewerProtocol = "frames" | "bytes";

type ViewerSocket = Bun.ServerWebSocket<AgentSocket>;

const pieceBytes = 64 * 1024;
/** A viewer that cannot follow a flood that others can gets a snapshot this often. */
const snapshotEveryMs = 250;
const policyViolation = 1008;
const lagBudgetMaxMs = 1000;
/** The others always wait for a viewer that acknowledges at this rate. */
const keepsUpBytesPerMs = 1000;

export class Viewer {
  /** Connections with the same id belong to one viewer; undefined: every connection is a viewer of its own. */
  readonly id: string | undefined;
  readonly lagBudget = new LagBudget();
  readonly #socket: ViewerSocket;
  /** Only a viewer with frames counts offsets, so that it can resume at one. */
  readonly #hasFrames: boolean;
  readonly #terminal: Terminal;
  /** Offset of the next byte to send; undefined while it waits for a snapshot. */
  #position: number | undefined;
  #acked: number | undefined;
  /** Where this connection began. */
  #from = 0;
  #sent = 0;
  #exit: Exit | undefined;
  #closed = false;
  #lastSnapshotAt = Number.NEGATIVE_INFINITY;
  #snapshotTimer: Timer | undefined;

  constructor(
    socket: ViewerSocket,
    terminal: Terminal,
    { id, protocol }: { id: string | undefined; protocol: ViewerProtocol },
  ) {
    this.id = id;
    this.#socket = socket;
    this.#hasFrames = protocol === "frames";
    this.#terminal = terminal;
  }

  get position(): number | undefined {
    return this.#position;
  }

  /** The highest offset that was ever sent. */
  get sent(): number {
    return this.#sent;
  }

  /** What it has acknowledged, until then where it began; undefined for a viewer that acknowledges nothing. */
  get ackedOffset(): number | undefined {
    return this.#hasFrames && this.#position !== undefined
      ? (this.#acked ?? this.#from)
      : undefined;
  }

  /** Where it would resume if it were cut off now; undefined: it cannot. */
  get resumeOffset(): number | undefined {
    if (!this.#hasFrames || this.#exit !== undefined) return undefined;
    const { start } = this.#terminal.ring;
    const from = this.#acked ?? Math.max(start, this.#sent - limits.terminalWindowBytes);
    return from >= start ? from : undefined;
  }

  begin(after: number | undefined): void {
    const { ring } = this.#terminal;
    if (after === undefined && ring.end === 0) this.#startAt(0);
    else if (after !== undefined && after >= ring.start && after <= ring.end) {
      this.#acked = after;
      this.#startAt(after);
    } else this.#scheduleSnapshot({ isFirst: true, isGap: after !== undefined });
  }

  /** Sends as much as may be sent now. */
  pump(): void {
    const { ring } = this.#terminal;
    while (this.#position !== undefined && !this.#closed) {
      if (this.#socket.getBufferedAmount() >= limits.terminalSocketBytes) return;
      const from = this.#position;
      if (from < ring.start) {
        this.#scheduleSnapshot({ isFirst: false, isGap: true });
        return;
      }
      if (from === ring.end) {
        if (this.#exit !== undefined) this.#close(this.#exit);
        return;
      }
      const acked = this.#acked ?? Number.POSITIVE_INFINITY;
      const allowed = Math.min(pieceBytes, acked + limits.terminalWindowBytes - from);
      if (allowed <= 0) return;
      const piece = ring.peek(from, allowed);
      this.#socket.sendBinary(piece);
      this.#moveTo(from + piece.length);
      this.#terminal.onViewerAdvanced();
    }
  }

  /** False: the viewer acknowledges more than it was sent. */
  ack(offset: number): boolean {
    if (offset > this.#sent) return false;
    const before = this.#acked ?? 0;
    this.#acked = Math.max(offset, before);
    this.lagBudget.earn(this.#acked - before);
    this.pump();
    this.#terminal.onViewerAdvanced();
    return true;
  }

  /** Sends what is not output. Does nothing for a viewer without frames. */
  send(frame: FromTerminal): void {
    if (this.#hasFrames) this.#socket.sendText(JSON.stringify(frame));
  }

  finish(exit: Exit): void {
    this.#exit = exit;
    this.pump();
  }

  /** The viewer did not take the rest of the output in time. */
  cutOff(): void {
    if (this.#closed || this.#exit === undefined) return;
    if (this.#socket.getBufferedAmount() > 0) {
      this.#socket.terminate();
    } else {
      this.send({ type: "truncated", offset: this.#terminal.ring.end });
      this.#close(this.#exit);
    }
  }

  /** A newer connection of the same viewer takes over. */
  replace(): void {
    this.markClosed();
    if (this.#socket.getBufferedAmount() > 0) this.#socket.terminate();
    else this.#socket.close(policyViolation, "a newer connection of this viewer took over");
  }

  /** The socket is closed. */
  markClosed(): void {
    this.#closed = true;
    clearTimeout(this.#snapshotTimer);
  }

  /** For a new viewer, or where output that it was not sent is no longer in the ring. */
  #scheduleSnapshot(reason: { isFirst: boolean; isGap: boolean }): void {
    this.#position = undefined;
    const waitMs = Math.max(0, this.#lastSnapshotAt + snapshotEveryMs - performance.now());
    if (waitMs === 0) this.#sendSnapshot(reason);
    else this.#snapshotTimer = setTimeout(() => this.#sendSnapshot(reason), waitMs);
  }

  async #sendSnapshot({ isFirst, isGap }: { isFirst: boolean; isGap: boolean }): Promise<void> {
    const { bytes, offset } = await this.#terminal.snapshot();
    if (this.#closed) return;
    this.#lastSnapshotAt = performance.now();
    this.#from = offset;
    if (isFirst) this.send({ type: "ready", offset, ...this.#terminal.size });
    if (isGap) this.send({ type: "truncated", offset });
    this.send({ type: "screen", offset });
    this.#socket.sendBinary(bytes);
    if (this.#acked !== undefined) this.#acked = Math.max(this.#acked, offset);
    this.#moveTo(offset);
    this.#terminal.onViewerAdvanced();
    this.pump();
  }

  #startAt(offset: number): void {
    this.#from = offset;
    this.send({ type: "ready", offset, ...this.#terminal.size });
    this.#moveTo(offset);
    this.#terminal.onViewerAdvanced();
    this.pump();
  }

  #moveTo(position: number): void {
    this.#position = position;
    this.#sent = Math.max(this.#sent, position);
  }

  #close({ exitCode, signal }: Exit): void {
    this.#closed = true;
    this.send({ type: "exit", exitCode, signal });
    this.#socket.close(1000);
  }
}

/**
 * Limits how long others wait for a viewer that acknowledges before they overtake it. A connection takes in megabytes
 * whether anybody reads them or not, so a viewer that only looks fast must not overtake one that is. A viewer that keeps
 * up earns budget; a slow one soon spends it.
 */
class LagBudget {
  #leftMs = lagBudgetMaxMs;
  #waitingSince: number | undefined;

  earn(ackedBytes: number): void {
    this.#settle();
    this.#leftMs = Math.min(lagBudgetMaxMs, this.#leftMs + ackedBytes / keepsUpBytesPerMs);
    this.#waitingSince = undefined;
  }

  /** Others wait from now on, unless nothing is left. Returns what is left. */
  spend(): number {
    this.#settle();
    if (this.#leftMs > 0) this.#waitingSince = performance.now();
    return this.#leftMs;
  }

  #settle(): void {
    if (this.#waitingSince === undefined) return;
    const now = performance.now();
    this.#leftMs = Math.max(0, this.#leftMs - (now - this.#waitingSince));
    this.#waitingSince = this.#leftMs > 0 ? now : undefined;
  }
}
