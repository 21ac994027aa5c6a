/**
 * Owns one viewer: its place in the ring, and when it is sent how much from there.
 * Does not own its words (voice.ts), its socket's messages (connect.ts) nor the pace of reading (audience.ts).
 */
import { limits } from "../../../src/protocol/limits.ts";
import type { AgentSocket } from "../server/socket.ts";
import type { Exit } from "../supervision/process-tree.ts";
import type { Voice } from "./frame-writer.ts";
import { Patience } from "./lag-budget.ts";
import type { Size } from "./pty.ts";
import type { Ring } from "./ring.ts";

export type Picture = { picture: Uint8Array; offset: number };

/** What a viewer sees of its terminal. */
export type Stage = {
  readonly ring: Ring;
  readonly size: Size;
  draw(): Promise<Picture>;
  /** A viewer got on: more may be read. */
  moved(): void;
};

export type Socket = Bun.ServerWebSocket<AgentSocket>;

const pieceBytes = 64 * 1024;
/** Under a flood that others can follow, one that cannot gets a picture this often. */
const drawEveryMs = 250;

export class Viewer {
  readonly #socket: Socket;
  readonly #voice: Voice;
  readonly #stage: Stage;
  readonly patience = new Patience();
  /** Of the next byte to be sent; undefined while a picture is drawn for it. */
  #position: number | undefined;
  #acked: number | undefined;
  #began = 0;
  #sent = 0;
  #exit: Exit | undefined;
  #closed = false;
  #drawnAt = Number.NEGATIVE_INFINITY;
  #drawTimer: Timer | undefined;

  constructor(socket: Socket, voice: Voice, stage: Stage) {
    this.#socket = socket;
    this.#voice = voice;
    this.#stage = stage;
  }

  get position(): number | undefined {
    return this.#position;
  }

  /** How far it has ever got. */
  get sent(): number {
    return this.#sent;
  }

  /** What it is known to have got, and where it began until then; undefined: it counts none. */
  get known(): number | undefined {
    return this.#voice.resumes && this.#position !== undefined
      ? (this.#acked ?? this.#began)
      : undefined;
  }

  /** From where it would go on if it was cut off now; undefined: it would not come back. */
  get mayReturnTo(): number | undefined {
    if (!this.#voice.resumes || this.#exit !== undefined) return undefined;
    const { start } = this.#stage.ring;
    const from = this.#acked ?? Math.max(start, this.#sent - limits.terminalWindowBytes);
    return from >= start ? from : undefined;
  }

  begin(after: number | undefined): void {
    const { ring } = this.#stage;
    if (after === undefined && ring.end === 0) this.#goOn(0);
    else if (after !== undefined && after >= ring.start && after <= ring.end) {
      this.#acked = after;
      this.#goOn(after);
    } else this.#catchUp({ isFirst: true, isGap: after !== undefined });
  }

  /** Sends as much as may be sent now. */
  pump(): void {
    const { ring } = this.#stage;
    while (this.#position !== undefined && !this.#closed) {
      if (this.#socket.getBufferedAmount() >= limits.terminalSocketBytes) return;
      const at = this.#position;
      if (at < ring.start) {
        this.#catchUp({ isFirst: false, isGap: true });
        return;
      }
      if (at === ring.end) {
        if (this.#exit !== undefined) this.#close(this.#exit);
        return;
      }
      const acked = this.#acked ?? Number.POSITIVE_INFINITY;
      const allowed = Math.min(pieceBytes, acked + limits.terminalWindowBytes - at);
      if (allowed <= 0) return;
      const piece = ring.peek(at, allowed);
      this.#socket.sendBinary(piece);
      this.#place(at + piece.length);
      this.#stage.moved();
    }
  }

  /** False: it was not sent so much. */
  ack(offset: number): boolean {
    if (offset > this.#sent) return false;
    const before = this.#acked ?? 0;
    this.#acked = Math.max(offset, before);
    this.patience.earn(this.#acked - before);
    this.pump();
    this.#stage.moved();
    return true;
  }

  tellSize(): void {
    this.#voice.resize(this.#stage.size);
  }

  finish(exit: Exit): void {
    this.#exit = exit;
    this.pump();
  }

  /** It did not take the end in time. */
  cut(): void {
    if (this.#closed || this.#exit === undefined) return;
    if (this.#socket.getBufferedAmount() > 0) {
      this.#socket.terminate();
    } else {
      this.#voice.truncated(this.#stage.ring.end);
      this.#close(this.#exit);
    }
  }

  /** Its socket is closed. */
  gone(): void {
    this.#closed = true;
    clearTimeout(this.#drawTimer);
  }

  /** Gives it a picture and goes on from there: what it was not sent is no longer here, or it is new. */
  #catchUp(which: { isFirst: boolean; isGap: boolean }): void {
    this.#position = undefined;
    const waitMs = Math.max(0, this.#drawnAt + drawEveryMs - performance.now());
    if (waitMs === 0) this.#draw(which);
    else this.#drawTimer = setTimeout(() => this.#draw(which), waitMs);
  }

  async #draw({ isFirst, isGap }: { isFirst: boolean; isGap: boolean }): Promise<void> {
    const { picture, offset } = await this.#stage.draw();
    if (this.#closed) return;
    this.#drawnAt = performance.now();
    this.#began = offset;
    if (isFirst) this.#voice.ready(offset, this.#stage.size);
    if (isGap) this.#voice.truncated(offset);
    this.#voice.screen(offset);
    this.#socket.sendBinary(picture);
    if (this.#acked !== undefined) this.#acked = Math.max(this.#acked, offset);
    this.#place(offset);
    this.#stage.moved();
    this.pump();
  }

  #goOn(offset: number): void {
    this.#began = offset;
    this.#voice.ready(offset, this.#stage.size);
    this.#place(offset);
    this.#stage.moved();
    this.pump();
  }

  #place(position: number): void {
    this.#position = position;
    this.#sent = Math.max(this.#sent, position);
  }

  #close(exit: Exit): void {
    this.#closed = true;
    this.#voice.exit(exit);
    this.#socket.close(1000);
  }
}
